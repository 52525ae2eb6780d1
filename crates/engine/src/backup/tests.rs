//! A backup taken while others write restores to states that existed.

use super::*;
use crate::context::Context;
use crate::database::{Engine, Options};
use crate::namespace::Namespace;
use crate::operation::{Find, Insert, Query};
use bson::{RawDocument, RawDocumentBuf, rawdoc};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

fn namespace() -> Namespace {
    Namespace::new("bank", "moves").unwrap()
}

fn insert(engine: &Engine, documents: Vec<RawDocumentBuf>) {
    let insert = Insert {
        namespace: namespace(),
        documents,
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    let done = engine.insert(&Context::default(), insert).unwrap().wait().unwrap();
    assert!(done.errors.is_empty());
}

fn ids(folder: &Path) -> Vec<i64> {
    let engine = Engine::open(folder, Options::system()).unwrap();
    let query = Query { sort: Some(rawdoc! { "_id": 1 }), ..Query::default() };
    let find = Find { query, batch_size: Some(1_000_000), ..Find::new(namespace()) };
    let batch = engine.find(&Context::default(), &find).unwrap();
    let ids = batch.documents.iter().map(|document| RawDocument::from_bytes(document).unwrap().get_i64("_id").unwrap());
    let ids = ids.collect();
    assert!(engine.validate(&Context::default(), &namespace()).unwrap().is_valid());
    engine.close().unwrap();
    ids
}

fn quiet(_: Progress) -> Result<()> {
    Ok(())
}

/// One writer inserts 0, 1, 2 …: every state that existed is a row of numbers without a gap.
#[test]
fn what_was_backed_up_while_others_wrote_is_a_state_that_existed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(&folder.path().join("data"), Options::system()).unwrap();
    insert(&engine, (0..2000).map(|n| rawdoc! { "_id": n as i64, "filler": "x".repeat(500) }).collect());
    let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(2000)));
    let writer = std::thread::spawn({
        let (engine, stop, next) = (engine.clone(), stop.clone(), next.clone());
        move || {
            while !stop.load(Ordering::Relaxed) {
                let id = next.load(Ordering::Relaxed);
                insert(&engine, vec![rawdoc! { "_id": id }]);
                next.store(id + 1, Ordering::Relaxed);
            }
        }
    });
    let backup = folder.path().join("backup");
    let wait_for = |id: i64| {
        while next.load(Ordering::Relaxed) < id {
            std::thread::sleep(Duration::from_millis(5));
        }
        id
    };
    let before = wait_for(2005);
    let manifest = create(engine.storage(), &backup, &mut quiet).unwrap();
    wait_for(next.load(Ordering::Relaxed) + 5);
    let appended = append(engine.storage(), &backup, &mut quiet).unwrap();
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert!(appended.last > manifest.last && manifest.copied <= manifest.last);
    check(&backup).unwrap();
    let restored = folder.path().join("restored");
    let done = restore(&backup, &restored, None, crate::storage::Options::default(), &mut quiet).unwrap();
    assert_eq!(done.position, appended.last);
    let ids = ids(&restored);
    assert!(ids.len() as i64 >= before, "{} {before}", ids.len());
    assert_eq!(ids, (0..ids.len() as i64).collect::<Vec<_>>());
}

#[test]
fn a_state_between_is_restored_by_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(AtomicI64::new(1_700_000_000_000));
    let options = Options {
        clock: {
            let clock = clock.clone();
            Arc::new(move || clock.load(Ordering::Relaxed))
        },
        ..Options::system()
    };
    let engine = Engine::open(&folder.path().join("data"), options).unwrap();
    insert(&engine, vec![rawdoc! { "_id": 0_i64 }]);
    let backup = folder.path().join("backup");
    create(engine.storage(), &backup, &mut quiet).unwrap();
    for id in 1..=5 {
        clock.fetch_add(10_000, Ordering::Relaxed);
        insert(&engine, vec![rawdoc! { "_id": id as i64 }]);
    }
    append(engine.storage(), &backup, &mut quiet).unwrap();
    let at = |seconds: i64, name: &str| {
        let to = folder.path().join(name);
        let until = Some(1_700_000_000_000 + seconds * 1000);
        restore(&backup, &to, until, crate::storage::Options::default(), &mut quiet).map(|_| ids(&to))
    };
    assert_eq!(at(25, "two").unwrap(), [0, 1, 2]);
    assert_eq!(at(30, "three").unwrap(), [0, 1, 2, 3]);
    assert_eq!(at(3000, "all").unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(at(-60, "before").unwrap_err().code, Code::INVALID_OPTIONS);
}

#[test]
fn a_damaged_or_missing_part_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(&folder.path().join("data"), Options::system()).unwrap();
    insert(&engine, (0..100).map(|n| rawdoc! { "_id": n as i64, "text": format!("{n}") }).collect());
    let backup = folder.path().join("backup");
    let manifest = create(engine.storage(), &backup, &mut quiet).unwrap();
    assert_eq!(create(engine.storage(), &backup, &mut quiet).unwrap_err().code, Code::INVALID_OPTIONS);
    let path = backup.join(&manifest.keys[0].name);
    let whole = std::fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    assert!(check(&backup).is_err());
    std::fs::remove_file(&path).unwrap();
    assert!(check(&backup).is_err());
    std::fs::write(&path, &whole).unwrap();
    check(&backup).unwrap();
}
