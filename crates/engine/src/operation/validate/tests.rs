//! Indexes damaged through the storage, and what `validate` says of them.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::Options;
use crate::index::ID_INDEX_NAME;
use crate::operation::Insert;
use crate::storage::Changes;

fn namespace() -> Namespace {
    Namespace::new("shop", "items").unwrap()
}

/// A collection with a unique, a multikey and a partial index and some documents.
fn filled() -> Engine {
    let engine = Engine::in_memory(Options::system()).unwrap();
    let specs = [
        rawdoc! { "key": { "code": 1 }, "name": "code_1", "unique": true },
        rawdoc! { "key": { "tags": 1, "n": -1 }, "name": "tags_1_n_-1" },
        rawdoc! { "key": { "n": 1 }, "name": "n_1", "partialFilterExpression": { "n": { "$gte": 300 } } },
    ];
    engine.create_indexes(&Context::default(), &namespace(), &specs).unwrap().wait().unwrap();
    let document = |n: i32| rawdoc! { "_id": n, "code": format!("c{n}"), "n": n, "tags": ["a", if n % 2 == 0 { "b" } else { "a" }] };
    let insert = Insert {
        namespace: namespace(),
        documents: (0..600).map(document).collect(),
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    assert!(engine.insert(&Context::default(), insert).unwrap().wait().unwrap().errors.is_empty());
    engine
}

fn validate(engine: &Engine) -> Validation {
    engine.validate(&Context::default(), &namespace()).unwrap()
}

/// Changes keys behind the engine's back.
fn damage(engine: &Engine, writes: Vec<(Bytes, Option<Bytes>)>) {
    let mut writer = engine.storage().writer().unwrap();
    let time = writer.time() + 1;
    let ticket = writer.commit(Changes { time, writes, ..Changes::default() }).unwrap();
    drop(writer);
    ticket.wait().unwrap();
}

/// The entries of an index, or of `_id`'s.
fn entries(engine: &Engine, name: &str) -> Vec<(Bytes, Bytes)> {
    let state = engine.state();
    let collection = state.catalog.get(&namespace()).unwrap();
    let prefix = match collection.index(name) {
        Some(index) => keyspace::prefix(keyspace::INDEXES, index.id),
        None if name == ID_INDEX_NAME => keyspace::prefix(keyspace::IDS, collection.id),
        None => keyspace::prefix(keyspace::RECORDS, collection.id),
    };
    let mut end = None;
    let (from, to) = keyspace::bounds(&prefix, &mut end);
    state.snapshot.range(from, to, Direction::Forward).unwrap().map(Result::unwrap).collect()
}

fn errors_of<'v>(found: &'v Validation, name: &str) -> &'v [String] {
    &found.indexes.iter().find(|index| index.name == name).unwrap().errors
}

#[test]
fn a_healthy_collection_is_valid_and_its_keys_are_counted() {
    let found = validate(&filled());
    assert!(found.is_valid(), "{found:?}");
    let keys: Vec<_> = found.indexes.iter().map(|index| (index.name.as_str(), index.keys)).collect();
    assert_eq!(keys, [("_id_", 600), ("code_1", 600), ("tags_1_n_-1", 900), ("n_1", 300)]);
    assert_eq!((found.records, found.invalid_documents), (600, 0));
}

#[test]
fn a_lost_index_entry_is_missing() {
    let engine = filled();
    let (key, _) = entries(&engine, "code_1")[41].clone();
    damage(&engine, vec![(key, None)]);
    let found = validate(&engine);
    assert!(!found.is_valid());
    assert_eq!(errors_of(&found, "code_1"), ["1 missing index entries"]);
    assert!(errors_of(&found, "n_1").is_empty());
    let missing = &found.missing_entries[0];
    assert_eq!(missing.get_str("indexName").unwrap(), "code_1");
    assert!(missing.get_document("indexKey").unwrap().get_str("code").unwrap().starts_with('c'));
    assert!(missing.get_document("idKey").unwrap().get_i32("_id").is_ok());
}

#[test]
fn an_entry_without_its_document_is_extra() {
    let engine = filled();
    let (key, value) = entries(&engine, "tags_1_n_-1")[0].clone();
    let mut stray = key.to_vec();
    let end = stray.len();
    stray[end - 8..].copy_from_slice(&77_777_u64.to_be_bytes());
    damage(&engine, vec![(Bytes::from(stray), Some(value))]);
    let found = validate(&engine);
    assert_eq!(errors_of(&found, "tags_1_n_-1"), ["1 extra index entries"]);
    assert_eq!(found.extra_entries[0].get_i64("recordId").unwrap(), 77_777);
    assert!(found.missing_entries.is_empty());
}

#[test]
fn an_entry_lost_and_another_too_many_do_not_cancel_out() {
    let engine = filled();
    let (key, value) = entries(&engine, "n_1")[5].clone();
    let mut stray = key.to_vec();
    let end = stray.len();
    stray[end - 8..].copy_from_slice(&88_888_u64.to_be_bytes());
    damage(&engine, vec![(key, None), (Bytes::from(stray), Some(value))]);
    let found = validate(&engine);
    assert_eq!(errors_of(&found, "n_1"), ["1 missing index entries", "1 extra index entries"]);
}

#[test]
fn a_document_gone_without_its_entries_is_seen_everywhere() {
    let engine = filled();
    let (key, _) = entries(&engine, "")[10].clone();
    damage(&engine, vec![(key, None)]);
    let found = validate(&engine);
    assert_eq!(errors_of(&found, "_id_"), ["1 extra index entries"]);
    assert_eq!(errors_of(&found, "code_1"), ["1 extra index entries"]);
    assert!(found.errors.iter().any(|error| error.starts_with("fast count (600 documents")), "{:?}", found.errors);
}

#[test]
fn a_broken_document_is_corrupt() {
    let engine = filled();
    let (key, value) = entries(&engine, "")[10].clone();
    damage(&engine, vec![(key, Some(value.slice(..value.len() - 3)))]);
    let found = validate(&engine);
    assert_eq!((found.invalid_documents, found.corrupt_records.len()), (1, 1));
    assert!(!found.is_valid());
}

#[test]
fn two_documents_under_one_unique_key_are_told() {
    let engine = filled();
    let records = entries(&engine, "");
    let (key, _) = records[3].clone();
    let twin = rawdoc! { "_id": 3, "code": "c4", "n": 3, "tags": ["a", "a"] };
    let code = entries(&engine, "code_1");
    let c4 = code.iter().find(|(key, _)| key.ends_with(&5_u64.to_be_bytes())).unwrap().clone();
    let c3 = code.iter().find(|(key, _)| key.ends_with(&4_u64.to_be_bytes())).unwrap().clone();
    let mut stolen = c4.0.to_vec();
    let end = stolen.len();
    stolen[end - 8..].copy_from_slice(&4_u64.to_be_bytes());
    damage(&engine, vec![(key, Some(Bytes::from(twin.into_bytes()))), (c3.0, None), (Bytes::from(stolen), Some(c4.1))]);
    let found = validate(&engine);
    assert_eq!(errors_of(&found, "code_1"), ["1 keys that a unique index must not hold twice"]);
}

#[test]
fn an_index_that_does_not_know_of_its_arrays_is_told() {
    let engine = filled();
    let state = engine.state();
    let collection = state.catalog.get(&namespace()).unwrap();
    let mut forgetful = Collection::clone(collection);
    for index in &mut forgetful.indexes {
        *index = Arc::new(Index { multikey: Vec::new(), ..Index::clone(index) });
    }
    let catalog = crate::catalog::Catalog::default();
    let mut catalog = catalog;
    catalog.put(forgetful);
    let context = Context::default();
    let mut validator = Validator::begin(&engine.inner, &context, &namespace()).unwrap();
    validator.look.collection = catalog.get(&namespace()).unwrap().clone();
    let found = validator.run().unwrap();
    assert_eq!(errors_of(&found, "tags_1_n_-1").len(), 1);
}

#[test]
fn a_walk_over_several_snapshots_finds_the_same() {
    let engine = filled();
    let (key, _) = entries(&engine, "code_1")[7].clone();
    damage(&engine, vec![(key, None)]);
    let context = Context::default();
    let mut validator = Validator::begin(&engine.inner, &context, &namespace()).unwrap();
    validator.moved = true;
    let found = validator.run().unwrap();
    assert_eq!(found.missing_entries.len(), 1);
    assert!(found.extra_entries.is_empty());
}
