//! Folders that releases wrote (`fixtures/VERSION/`, made by `fixtures/make.py` and a `kill -9`): this release opens them, finds
//! every document as it was written, and every index agrees with its documents.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use bson::rawdoc;
use engine::operation::{Count, Insert, Query};
use engine::{Context, Engine, Namespace, Options};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;

fn namespace(database: &str, collection: &str) -> Namespace {
    Namespace::new(database, collection).unwrap()
}

fn count(engine: &Engine, collection: &str, query: Query) -> u64 {
    engine.count(&Context::default(), &Count { namespace: namespace("shop", collection), query }).unwrap()
}

/// Everything is there as the release wrote it.
fn check(engine: &Engine, expected: &Value) {
    let context = Context::default();
    for (database, collections) in expected["digests"].as_object().unwrap() {
        let digest = engine.digest(&context, database, |_| true).unwrap();
        let found: serde_json::Map<_, _> = digest
            .collections
            .iter()
            .map(|(one, of_it)| (one.namespace.collection.clone(), of_it.clone().into()))
            .collect();
        let wanted = collections.as_object().unwrap();
        for (name, of_it) in wanted {
            // A time series goes by its own name here and by that of its buckets on the wire.
            let name = name.strip_prefix("system.buckets.").unwrap_or(name);
            assert_eq!(found.get(name), Some(of_it), "{database}.{name}");
        }
        assert_eq!(found.len(), wanted.len(), "{database}: {found:?}");
        for (collection, _) in &digest.collections {
            let validation = engine.validate(&context, &collection.namespace).unwrap();
            assert_eq!(validation.errors, [""; 0], "{}", collection.namespace);
        }
    }
    let seen = expected["counts"]["seen"].as_u64().unwrap();
    assert_eq!(count(engine, "seen", Query::default()), seen);
    let readings = Query { filter: rawdoc! { "sensor": 1 }, ..Query::default() };
    assert_eq!(count(engine, "readings", readings), expected["counts"]["readings"].as_u64().unwrap());
    let types = engine.list_collections(&context, "shop").unwrap();
    let types = types.iter().find(|info| info.collection.namespace.collection == "types").unwrap();
    let mut indexes: Vec<_> = types.collection.indexes.iter().map(|index| Value::from(index.spec.name())).collect();
    indexes.sort_by_key(|name| name.as_str().unwrap().to_owned());
    let wanted = expected["indexes"].as_array().unwrap().iter().filter(|name| *name != "_id_");
    assert_eq!(indexes, wanted.cloned().collect::<Vec<_>>());
}

#[test]
fn folders_of_old_releases_open_with_all_that_was_in_them() {
    let mut releases = 0;
    for release in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")).unwrap() {
        let release = release.unwrap().path();
        if !release.is_dir() {
            continue;
        }
        releases += 1;
        let expected: Value = serde_json::from_slice(&fs::read(release.join("expected.json")).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for file in fs::read_dir(&release).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "gz") {
                let mut plain = File::create(folder.path().join(file.file_stem().unwrap())).unwrap();
                std::io::copy(&mut flate2::read::GzDecoder::new(File::open(&file).unwrap()), &mut plain).unwrap();
            }
        }
        let engine = Engine::open(folder.path(), Options::system()).unwrap();
        check(&engine, &expected);
        // It can be written, folded, closed and opened again.
        let written = Insert {
            namespace: namespace("later", "written"),
            documents: vec![rawdoc! { "_id": 1 }],
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        assert_eq!(engine.insert(&Context::default(), written).unwrap().wait().unwrap().n, 1);
        engine.close().unwrap();
        let engine = Engine::open(folder.path(), Options::system()).unwrap();
        check(&engine, &expected);
        engine.close().unwrap();
    }
    assert!(releases > 0, "there is no folder of any release");
}
