//! Time series as a whole: the same answers whatever is packed, and nothing lost between two batches of a cursor.

use crate::context::Context;
use crate::database::{Engine, Options};
use crate::namespace::Namespace;
use crate::operation::{
    Aggregate, Count, Create, Delete, DeleteStatement, Find, Insert, Query, Update, UpdateStatement,
};
use bson::{DateTime, RawArrayBuf, RawBson, RawDocument, RawDocumentBuf, rawdoc};
use std::collections::BTreeSet;

const START: i64 = 1_700_000_000_000;
const HOUR: i64 = 3_600_000;

fn namespace() -> Namespace {
    Namespace::new("plant", "readings").unwrap()
}

fn engine() -> Engine {
    let engine = Engine::in_memory(Options::system()).unwrap();
    let options = rawdoc! { "timeseries": { "timeField": "ts", "metaField": "sensor", "granularity": "seconds" } };
    engine.create(&Context::default(), &Create { namespace: namespace(), options }).unwrap().wait().unwrap();
    engine
}

fn reading(sensor: &str, at_ms: i64, value: i32) -> RawDocumentBuf {
    rawdoc! { "_id": format!("{sensor}-{value}"), "ts": DateTime::from_millis(START + at_ms), "sensor": { "name": sensor, "hall": value % 2 }, "v": value }
}

fn insert(engine: &Engine, documents: Vec<RawDocumentBuf>) {
    for documents in documents.chunks(1000) {
        let insert = Insert {
            namespace: namespace(),
            documents: documents.to_vec(),
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        let done = engine.insert(&Context::default(), insert).unwrap().wait().unwrap();
        assert!(done.errors.is_empty(), "{:?}", done.errors);
    }
}

fn find(engine: &Engine, filter: RawDocumentBuf, sort: Option<RawDocumentBuf>) -> Vec<RawDocumentBuf> {
    let find =
        Find { query: Query { filter, sort, ..Query::default() }, batch_size: Some(100_000), ..Find::new(namespace()) };
    let batch = engine.find(&Context::default(), &find).unwrap();
    batch.documents.iter().map(|bytes| RawDocument::from_bytes(bytes.as_ref()).unwrap().to_owned()).collect()
}

fn values(documents: &[RawDocumentBuf]) -> BTreeSet<i32> {
    documents.iter().map(|document| document.get_i32("v").unwrap()).collect()
}

fn delete(engine: &Engine, filter: RawDocumentBuf, multi: bool) -> usize {
    let query = Query { filter, ..Query::default() };
    let delete = Delete {
        namespace: namespace(),
        statements: vec![DeleteStatement { query, multi }],
        ordered: true,
        statement_ids: Vec::new(),
    };
    let done = engine.delete(&Context::default(), &delete).unwrap().wait().unwrap();
    assert!(done.errors.is_empty(), "{:?}", done.errors);
    done.n
}

fn update(engine: &Engine, filter: RawDocumentBuf, update: RawDocumentBuf) -> crate::Result<(usize, usize)> {
    let query = Query { filter, ..Query::default() };
    let statement = UpdateStatement {
        query,
        update: RawBson::Document(update),
        multi: true,
        upsert: false,
        array_filters: Vec::new(),
    };
    let update = Update {
        namespace: namespace(),
        statements: vec![statement],
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    let mut done = engine.update(&Context::default(), &update)?.wait()?;
    match done.errors.pop() {
        Some(failed) => Err(failed.error),
        None => Ok((done.n, done.n_modified)),
    }
}

/// Readings of three sensors over five hours, out of order; the values count from zero.
fn three_sensors() -> Vec<RawDocumentBuf> {
    let mut documents = Vec::new();
    for n in 0..3000_i64 {
        let shuffled = (n * 1543) % 3000;
        let sensor = ["a", "b", "c"][(shuffled % 3) as usize];
        documents.push(reading(sensor, shuffled * 6000, shuffled as i32));
    }
    documents
}

/// Runs `check` on engines with everything loose, half packed, all packed, and packed twice.
fn in_all_states(check: impl Fn(&Engine, &str)) {
    let documents = three_sensors();
    let loose = engine();
    insert(&loose, documents.clone());
    check(&loose, "loose");
    let packed = engine();
    insert(&packed, documents.clone());
    let buckets = packed.pack_series().unwrap();
    assert!(buckets >= 15, "three sensors in five windows: {buckets}");
    check(&packed, "packed");
    for state in ["half packed", "packed twice"] {
        let half = engine();
        insert(&half, documents[..1500].to_vec());
        half.pack_series().unwrap();
        insert(&half, documents[1500..].to_vec());
        if state == "packed twice" {
            half.pack_series().unwrap();
        }
        check(&half, state);
    }
}

#[test]
fn finds_give_the_same_whatever_is_packed() {
    in_all_states(|engine, state| {
        let expected: BTreeSet<i32> = (0..3000).collect();
        assert_eq!(values(&find(engine, rawdoc! {}, None)), expected, "{state}");
        let b = find(engine, rawdoc! { "sensor.name": "b" }, None);
        assert_eq!(values(&b), expected.iter().copied().filter(|v| v % 3 == 1).collect(), "{state}");
        let meta = rawdoc! { "name": "b", "hall": 0 };
        let range =
            rawdoc! { "$gte": DateTime::from_millis(START + 2 * HOUR), "$lt": DateTime::from_millis(START + 3 * HOUR) };
        let some = find(engine, rawdoc! { "sensor": meta, "ts": range.clone() }, None);
        let within = |v: &i32| v % 3 == 1 && v % 2 == 0 && (1200..1800).contains(v);
        assert_eq!(values(&some), expected.iter().copied().filter(within).collect(), "{state}");
        let timed = find(engine, rawdoc! { "ts": range }, Some(rawdoc! { "ts": -1 }));
        let order: Vec<i32> = timed.iter().map(|document| document.get_i32("v").unwrap()).collect();
        assert_eq!(order, (1200..1800).rev().collect::<Vec<_>>(), "{state}");
        let count = Count { namespace: namespace(), query: Query::default() };
        assert_eq!(engine.count(&Context::default(), &count).unwrap(), 3000, "{state}");
        let query = Query { filter: rawdoc! { "v": { "$lt": 10 } }, ..Query::default() };
        assert_eq!(engine.count(&Context::default(), &Count { namespace: namespace(), query }).unwrap(), 10, "{state}");
        let validation = engine.validate(&Context::default(), &namespace()).unwrap();
        assert!(validation.is_valid(), "{state}: {validation:?}");
        assert_eq!(validation.records, 3000);
    });
}

#[test]
fn an_index_gives_the_same_whatever_is_packed() {
    in_all_states(|engine, state| {
        let specs = [
            rawdoc! { "v": 2, "key": { "v": 1 }, "name": "v_1" },
            rawdoc! { "v": 2, "key": { "sensor.hall": 1, "ts": -1 }, "name": "hall" },
            rawdoc! { "v": 2, "key": { "ts": 1 }, "name": "ts_1" },
        ];
        engine.create_indexes(&Context::default(), &namespace(), &specs).unwrap().wait().unwrap();
        let some = find(engine, rawdoc! { "v": { "$gte": 100, "$lt": 200 } }, None);
        assert_eq!((some.len(), values(&some)), (100, (100..200).collect()), "{state}");
        let late = DateTime::from_millis(START + 4 * HOUR);
        let filter = rawdoc! { "sensor.hall": 1, "ts": { "$gt": late } };
        for hint in ["hall", "ts_1", "sensor_1_ts_1"] {
            let query = Query { filter: filter.clone(), hint: Some(RawBson::String(hint.into())), ..Query::default() };
            let batch = engine
                .find(&Context::default(), &Find { query, batch_size: Some(9999), ..Find::new(namespace()) })
                .unwrap();
            assert_eq!(batch.documents.len(), (2401..3000).filter(|v| v % 2 == 1).count(), "{state} {hint}");
        }
        let validation = engine.validate(&Context::default(), &namespace()).unwrap();
        assert!(validation.is_valid(), "{state}: {validation:?}");
    });
}

#[test]
fn deletes_take_what_matches_and_leave_the_rest() {
    in_all_states(|engine, state| {
        let spec = rawdoc! { "v": 2, "key": { "v": 1 }, "name": "v_1" };
        engine.create_indexes(&Context::default(), &namespace(), &[spec]).unwrap().wait().unwrap();
        assert_eq!(delete(engine, rawdoc! { "v": 5 }, false), 1, "{state}");
        assert_eq!(delete(engine, rawdoc! { "sensor.name": "a" }, true), 1000, "{state}");
        assert_eq!(delete(engine, rawdoc! { "v": { "$mod": [10, 0] } }, true), 200, "{state}");
        let left: BTreeSet<i32> = (0..3000).filter(|v| *v != 5 && v % 3 != 0 && v % 10 != 0).collect();
        assert_eq!(values(&find(engine, rawdoc! {}, None)), left, "{state}");
        let totals = engine.totals(&engine.collection(&Context::default(), &namespace()).unwrap().collection).unwrap();
        assert_eq!(totals.count as usize, left.len(), "{state}");
        assert!(engine.validate(&Context::default(), &namespace()).unwrap().is_valid(), "{state}");
        assert_eq!(delete(engine, rawdoc! {}, true), left.len(), "{state}");
        let totals = engine.totals(&engine.collection(&Context::default(), &namespace()).unwrap().collection).unwrap();
        assert_eq!((totals.count, totals.size_bytes, totals.buckets), (0, 0, 0), "{state}");
    });
}

#[test]
fn an_update_moves_measurements_to_their_new_meta_value() {
    in_all_states(|engine, state| {
        let rename = rawdoc! { "$set": { "sensor.name": "z" } };
        assert_eq!(update(engine, rawdoc! { "sensor.name": "c" }, rename).unwrap(), (1000, 1000), "{state}");
        let moved = find(engine, rawdoc! { "sensor": { "name": "z", "hall": 1 } }, None);
        assert_eq!(values(&moved), (0..3000).filter(|v| v % 3 == 2 && v % 2 == 1).collect(), "{state}");
        assert_eq!(find(engine, rawdoc! { "sensor.name": "c" }, None).len(), 0, "{state}");
        let refused = update(engine, rawdoc! {}, rawdoc! { "$set": { "v": 1 } }).unwrap_err();
        assert_eq!(refused.code, crate::Code::INVALID_OPTIONS, "{state}");
    });
}

#[test]
fn a_cursor_gives_each_measurement_once_though_they_are_packed_between_its_batches() {
    for hint in [None, Some("v_1")] {
        let engine = engine();
        let spec = rawdoc! { "v": 2, "key": { "v": 1 }, "name": "v_1" };
        engine.create_indexes(&Context::default(), &namespace(), &[spec]).unwrap().wait().unwrap();
        insert(&engine, three_sensors());
        let query = Query { hint: hint.map(|hint| RawBson::String(hint.into())), ..Query::default() };
        let find = Find { query, batch_size: Some(7), ..Find::new(namespace()) };
        let mut batch = engine.find(&Context::default(), &find).unwrap();
        let mut seen = Vec::new();
        for number in 0.. {
            for document in &batch.documents {
                seen.push(RawDocument::from_bytes(document.as_ref()).unwrap().get_i32("v").unwrap());
            }
            if batch.cursor == 0 {
                break;
            }
            match number {
                3 => drop(engine.pack_series().unwrap()),
                9 => insert(&engine, (0..50).map(|n| reading("b", n * 1000, 10_000 + n as i32)).collect()),
                _ => {}
            }
            batch = engine.get_more(&Context::default(), batch.cursor, &namespace(), Some(100), None).unwrap();
        }
        seen.retain(|value| *value < 10_000);
        assert_eq!(seen.len(), 3000, "{hint:?}");
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), (0..3000).collect(), "{hint:?}");
    }
}

#[test]
fn buckets_can_be_looked_at() {
    let engine = engine();
    insert(&engine, (0..20).map(|n| reading("a", n * 60_000, 2 * n as i32)).collect());
    let buckets = Namespace::new("plant", "system.buckets.readings").unwrap();
    for state in ["loose", "packed"] {
        let aggregate =
            Aggregate::new(buckets.clone(), [rawdoc! { "$sort": { "_id": 1 } }].into_iter().collect::<RawArrayBuf>());
        let batch = engine.aggregate(&Context::default(), &aggregate).unwrap();
        let bucket = RawDocument::from_bytes(batch.documents[0].as_ref()).unwrap();
        assert_eq!(bucket.get_document("meta").unwrap().get_str("name").unwrap(), "a", "{state}");
        let control = bucket.get_document("control").unwrap();
        assert_eq!(control.get_document("max").unwrap().get_i32("v").unwrap(), 38, "{state}");
        let values = bucket.get_document("data").unwrap().get_document("v").unwrap();
        assert_eq!(values.get_i32("3").unwrap(), 6, "{state}");
        let count = Count { namespace: buckets.clone(), query: Query::default() };
        assert_eq!(engine.count(&Context::default(), &count).unwrap(), 1, "{state}");
        engine.pack_series().unwrap();
    }
}

#[test]
fn meta_values_that_are_arrays_or_missing_are_found() {
    let engine = engine();
    let ts = DateTime::from_millis(START);
    let documents = vec![
        rawdoc! { "_id": 1, "ts": ts, "sensor": [5, 6] },
        rawdoc! { "_id": 2, "ts": ts, "sensor": 5 },
        rawdoc! { "_id": 3, "ts": ts, "sensor": 5.0 },
        rawdoc! { "_id": 4, "ts": ts },
        rawdoc! { "_id": 5, "ts": ts, "sensor": RawBson::Null },
    ];
    insert(&engine, documents.clone());
    for state in ["loose", "packed"] {
        let ids = |filter| -> BTreeSet<i32> {
            find(&engine, filter, None).iter().map(|document| document.get_i32("_id").unwrap()).collect()
        };
        assert_eq!(ids(rawdoc! { "sensor": 5 }), [1, 2, 3].into(), "{state}");
        assert_eq!(ids(rawdoc! { "sensor": RawBson::Null }), [4, 5].into(), "{state}");
        assert_eq!(ids(rawdoc! { "sensor": { "$exists": false } }), [4].into(), "{state}");
        assert_eq!(ids(rawdoc! { "sensor": { "$gt": 5 } }), [1].into(), "{state}");
        let back: Vec<_> = find(&engine, rawdoc! { "_id": 3 }, None);
        assert_eq!(back[0], documents[2], "{state}");
        engine.pack_series().unwrap();
    }
}

#[test]
fn what_expired_goes_by_whole_windows() {
    let engine = Engine::in_memory(Options::system()).unwrap();
    let options = rawdoc! { "timeseries": { "timeField": "ts" }, "expireAfterSeconds": 7200 };
    engine.create(&Context::default(), &Create { namespace: namespace(), options }).unwrap().wait().unwrap();
    let now = DateTime::now().timestamp_millis();
    let at = |ms: i64, v: i32| rawdoc! { "_id": v, "ts": DateTime::from_millis(ms), "v": v };
    insert(&engine, (0..12).map(|n| at(now - i64::from(n) * HOUR, n)).collect());
    engine.pack_series().unwrap();
    assert!(engine.delete_expired().unwrap() >= 8);
    let last = engine.storage().writer().unwrap().position();
    engine.storage().ticket(last).wait().unwrap();
    let left = values(&find(&engine, rawdoc! {}, None));
    assert!(left.len() <= 4 && left.contains(&0) && left.contains(&1), "{left:?}");
}

#[test]
fn one_series_comes_in_the_order_of_time_without_a_sort() {
    in_all_states(|engine, state| {
        let meta = rawdoc! { "name": "b", "hall": 1 };
        let expected: Vec<i32> = (0..3000).filter(|v| v % 3 == 1 && v % 2 == 1).collect();
        for descending in [false, true] {
            let sort = rawdoc! { "ts": if descending { -1 } else { 1 } };
            let documents = find(engine, rawdoc! { "sensor": meta.clone() }, Some(sort.clone()));
            let mut order: Vec<i32> = documents.iter().map(|document| document.get_i32("v").unwrap()).collect();
            if descending {
                order.reverse();
            }
            assert_eq!(order, expected, "{state} {descending}");
            let query = Query {
                filter: rawdoc! { "sensor": meta.clone() },
                sort: Some(sort.clone()),
                limit: 1,
                ..Query::default()
            };
            let one = Find { query, ..Find::new(namespace()) };
            let explain = crate::operation::Explain::Find(Box::new(one));
            let explained =
                engine.explain(&Context::default(), &explain, crate::plan::Verbosity::ExecutionStats).unwrap();
            let text = format!("{explained:?}");
            assert!(!text.contains("\"SORT\""), "{text}");
            // Cut by batches, with everything packed in between.
            let query = Query { filter: rawdoc! { "sensor": meta.clone() }, sort: Some(sort), ..Query::default() };
            let mut batch = engine
                .find(&Context::default(), &Find { query, batch_size: Some(50), ..Find::new(namespace()) })
                .unwrap();
            let mut seen = Vec::new();
            loop {
                seen.extend(batch.documents.iter().map(|b| RawDocument::from_bytes(b).unwrap().get_i32("v").unwrap()));
                if batch.cursor == 0 {
                    break;
                }
                engine.pack_series().unwrap();
                batch = engine.get_more(&Context::default(), batch.cursor, &namespace(), Some(70), None).unwrap();
            }
            if descending {
                seen.reverse();
            }
            assert_eq!(seen, expected, "{state} {descending} in batches");
        }
    });
}
