//! What a kept model costs an insert: one snapshot, one live copy and one counter, against the bare insert; in process,
//! with the flush stubbed out so that the processor time of the write itself is what is seen.
//!
//! `cargo run --release --bin kept -- [folder]`

use bson::{RawDocumentBuf, rawdoc};
use engine::operation::Insert;
use engine::storage::Flush;
use engine::{Context, Engine, Namespace, Options};
use model::keep::Keeper;
use model::keep::embedded::ModelHook;
use model::problem::Sources;
use sheafdb_bench::{Dice, cpu};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const MODEL: &str = r#"
entity user collection=users id=long {
  expect count=1_000
  field name string required size=12
  field phone string size=16
  field city string size=10
  count posts of=post by=userId
}

entity post collection=posts id=long {
  expect count=100_000
  ref userId to=user on-delete=restrict required
  snapshot buyer via=userId { fields name phone }
  live author via=userId max-lag="1m" { fields city }
  field text string size=200
}
"#;

const USERS: u64 = 1000;

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let bare = inserts(Path::new(&folder), None);
    let mut sources = Sources::default();
    sources.push("bench.sheaf.kdl".to_owned(), MODEL.to_owned());
    let checked = model::parse(sources).unwrap_or_else(|problems| panic!("{problems:?}"));
    let hook = ModelHook::new(Keeper::new(&checked.model).unwrap(), "shop");
    let kept = inserts(Path::new(&folder), Some(hook));
    println!("bare insert {bare:.1} us of cpu, kept {kept:.1} us: {:.2} times", kept / bare);
}

fn inserts(folder: &Path, hook: Option<ModelHook>) -> f64 {
    let kept = hook.is_some();
    let folder = tempfile::tempdir_in(folder).unwrap();
    let mut options = Options::system();
    options.storage.flush = Flush::Skip;
    let engine = Engine::open(folder.path(), options).unwrap();
    if let Some(hook) = hook {
        engine.add_hook(Arc::new(hook));
    }
    let users = (0..USERS as i64).map(|user| rawdoc! { "_id": user, "name": "somebody", "phone": "+33 1 23 45", "city": "Lyon" });
    insert(&engine, "users", users.collect());
    let mut dice = Dice::new(1);
    let mut best = f64::MAX;
    let mut number = 0_i64;
    for _ in 0..3 {
        let (used, began) = (cpu(), Instant::now());
        for _ in 0..20_000 {
            number += 1;
            let mut post = rawdoc! { "_id": number, "userId": dice.below(USERS) as i64, "text": "x".repeat(200) };
            if !kept {
                post.append(bson::raw::cstr!("buyer"), rawdoc! { "name": "somebody", "phone": "+33 1 23 45" });
                post.append(bson::raw::cstr!("author"), rawdoc! { "city": "Lyon" });
            }
            insert(&engine, "posts", vec![post]);
        }
        let us = (cpu() - used).as_secs_f64() * 1e6 / 2e4;
        println!("  {} insert: {us:.1} us of cpu, {:.1} us", if kept { "kept" } else { "bare" }, began.elapsed().as_secs_f64() * 1e6 / 2e4);
        best = best.min(us);
    }
    engine.close().unwrap();
    best
}

fn insert(engine: &Engine, collection: &str, documents: Vec<RawDocumentBuf>) {
    let insert = Insert {
        namespace: Namespace::new("shop", collection).unwrap(),
        documents,
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    let reply = engine.insert(&Context::default(), insert).unwrap().wait().unwrap();
    assert!(reply.errors.is_empty(), "{:?}", reply.errors);
}
