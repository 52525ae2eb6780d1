//! What a kept model costs an insert: one snapshot, one live copy and one counter, against the bare insert; in process,
//! with the flush stubbed out so that the processor time of the write itself is what is seen.
//!
//! `cargo run --release --bin kept -- [folder] [documents in a batch]`; both take turns, and the best of five counts.

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

/// The allocator of the `sheaf` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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

/// Inserts of one turn.
const INSERTS: usize = 20_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let batch = arguments.next().map_or(1, |batch| batch.parse().expect("a number of documents"));
    let mut sources = Sources::default();
    sources.push("bench.sheaf.kdl".to_owned(), MODEL.to_owned());
    let checked = model::parse(sources).unwrap_or_else(|problems| panic!("{problems:?}"));
    let hook = ModelHook::new(Keeper::new(&checked.model).unwrap(), "shop");
    let mut runs = [Run::new(Path::new(&folder), None), Run::new(Path::new(&folder), Some(hook))];
    let mut best = [f64::MAX; 2];
    for _ in 0..5 {
        for (run, best) in runs.iter_mut().zip(&mut best) {
            *best = best.min(run.turn(batch));
        }
    }
    let [bare, kept] = best;
    println!("batches of {batch}: bare insert {bare:.1} us of cpu, kept {kept:.1} us: {:.2} times", kept / bare);
}

/// An engine that gets inserts.
struct Run {
    engine: Engine,
    kept: bool,
    dice: Dice,
    number: i64,
    _folder: tempfile::TempDir,
}

impl Run {
    fn new(folder: &Path, hook: Option<ModelHook>) -> Run {
        let kept = hook.is_some();
        let folder = tempfile::tempdir_in(folder).unwrap();
        let mut options = Options::system();
        options.storage.flush = Flush::Skip;
        let engine = Engine::open(folder.path(), options).unwrap();
        if let Some(hook) = hook {
            engine.add_hook(Arc::new(hook));
        }
        let user = |user| rawdoc! { "_id": user, "name": "somebody", "phone": "+33 1 23 45", "city": "Lyon" };
        insert(&engine, "users", (0..USERS as i64).map(user).collect());
        Run { engine, kept, dice: Dice::new(1), number: 0, _folder: folder }
    }

    /// The processor time of an insert, in microseconds.
    fn turn(&mut self, batch: usize) -> f64 {
        let (used, began) = (cpu(), Instant::now());
        for _ in 0..INSERTS / batch {
            let posts = (0..batch).map(|_| self.post()).collect();
            insert(&self.engine, "posts", posts);
        }
        let inserts = (INSERTS / batch * batch) as f64;
        let us = (cpu() - used).as_secs_f64() * 1e6 / inserts;
        let name = if self.kept { "kept" } else { "bare" };
        println!("  {name} insert: {us:.1} us of cpu, {:.1} us", began.elapsed().as_secs_f64() * 1e6 / inserts);
        us
    }

    fn post(&mut self) -> RawDocumentBuf {
        self.number += 1;
        let user = self.dice.below(USERS) as i64;
        let mut post = rawdoc! { "_id": self.number, "userId": user, "text": "x".repeat(200) };
        if !self.kept {
            post.append(bson::raw::cstr!("buyer"), rawdoc! { "name": "somebody", "phone": "+33 1 23 45" });
            post.append(bson::raw::cstr!("author"), rawdoc! { "city": "Lyon" });
        }
        post
    }
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
