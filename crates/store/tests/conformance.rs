//! One suite for both kinds of store: what holds embedded holds through the driver.

mod support;

use bson::{Bson, Document, doc};
use store::{
    Aggregate, BulkWrite, Collection, Find, FindOneAndUpdate, Index, InsertMany, Session, Start, Store, Update, Watch,
    WriteModel,
};

on_both!(
    documents_are_found_sorted_skipped_limited_and_projected,
    a_cursor_fetches_batch_by_batch,
    a_cursor_in_a_transaction_keeps_its_snapshot,
    a_hint_and_a_collation_are_followed,
    pipelines_run,
    counts_and_distinct_values,
    updates_say_what_they_did,
    updates_by_pipeline_and_array_filters,
    a_replacement_keeps_the_id_and_refuses_operators,
    one_document_is_found_and_changed_replaced_or_deleted,
    an_ordered_insert_stops_at_the_first_failure,
    an_unordered_insert_says_which_failed,
    documents_without_id_get_one,
    a_bulk_does_all_kinds_in_several_collections,
    an_ordered_bulk_stops_an_unordered_one_goes_on,
    a_transaction_is_all_or_nothing,
    a_failed_write_ends_its_transaction,
    a_lost_conflict_is_tried_again,
    bulks_and_reads_belong_to_the_transaction,
    a_validator_refuses_with_its_reasons,
    indexes_are_created_listed_changed_and_dropped,
    collections_are_created_listed_renamed_and_dropped,
    capped_and_time_series_collections,
    statistics_count_documents_and_bytes,
    a_stream_gives_events_and_resumes_at_a_token,
    streams_on_a_database_and_on_everything,
    a_stream_ends_when_its_collection_is_dropped,
    a_quiet_stream_still_has_a_token,
    errors_carry_codes,
);

const SHOP: &str = "shop";

async fn filled(store: &Store, count: i32) -> Collection {
    let items = store.collection(SHOP, "items");
    let documents = (0..count).map(|n| doc! { "_id": n, "even": n % 2 == 0, "name": format!("item {n:04}") }).collect();
    items.insert_many(documents, None).await.expect("inserts");
    items
}

fn ids(documents: &[Document]) -> Vec<i32> {
    documents.iter().map(|document| document.get_i32("_id").expect("an id")).collect()
}

async fn documents_are_found_sorted_skipped_limited_and_projected(store: Store) {
    let items = filled(&store, 10).await;
    let options = Find {
        sort: Some(doc! { "_id": -1 }),
        skip: 1,
        limit: 3,
        projection: Some(doc! { "even": 1 }),
        ..Find::default()
    };
    let found = items.find(doc! { "_id": { "$lt": 8 } }, options, None).await.expect("finds");
    let expected = [doc! { "_id": 6, "even": true }, doc! { "_id": 5, "even": false }, doc! { "_id": 4, "even": true }];
    assert_eq!(found, expected);
    assert_eq!(items.find_one(doc! { "_id": 99 }, None).await.expect("finds"), None);
    let missing = store.collection(SHOP, "missing").find(doc! {}, Find::default(), None).await;
    assert_eq!(missing.expect("finds nothing"), Vec::<Document>::new());
}

async fn a_cursor_fetches_batch_by_batch(store: Store) {
    let items = filled(&store, 1_000).await;
    let options = Find { sort: Some(doc! { "_id": 1 }), batch_size: Some(7), ..Find::default() };
    let mut cursor = items.stream(doc! {}, options.clone(), None).await.expect("opens");
    for expected in 0..1_000 {
        let raw = cursor.next_raw(None).await.expect("reads").expect("a document");
        assert_eq!(raw.get_i32("_id").expect("an id"), expected);
    }
    assert!(cursor.next(None).await.expect("reads").is_none());
    let mut dropped = items.stream(doc! {}, options, None).await.expect("opens");
    assert!(dropped.next(None).await.expect("reads").is_some());
}

async fn a_cursor_in_a_transaction_keeps_its_snapshot(store: Store) {
    let items = filled(&store, 500).await;
    let mut session = store.start_session().await.expect("a session");
    session.start_transaction().await.expect("starts");
    let options = Find { batch_size: Some(10), ..Find::default() };
    let mut cursor = items.stream(doc! {}, options, Some(&mut session)).await.expect("opens");
    assert!(cursor.next(Some(&mut session)).await.expect("reads").is_some());
    items.delete_many(doc! {}, None).await.expect("deletes");
    let rest = cursor.collect(Some(&mut session)).await.expect("reads");
    assert_eq!(rest.len(), 499);
    session.commit_transaction().await.expect("commits");
    assert_eq!(items.count(doc! {}, None).await.expect("counts"), 0);
}

async fn a_hint_and_a_collation_are_followed(store: Store) {
    let items = filled(&store, 5).await;
    let hint = Some(Bson::String("no such index".to_owned()));
    let refused = items.find(doc! {}, Find { hint, ..Find::default() }, None).await.expect_err("refuses");
    assert_eq!(refused.code, Some(2));
    items.create_index(doc! { "name": 1 }, false).await.expect("creates");
    let hint = Some(Bson::Document(doc! { "name": 1 }));
    let found = items.find(doc! {}, Find { hint, ..Find::default() }, None).await.expect("finds");
    assert_eq!(ids(&found), [0, 1, 2, 3, 4]);
    let collation = Some(doc! { "locale": "en", "strength": 2 });
    let options = Find { collation, ..Find::default() };
    let found = items.find(doc! { "name": "ITEM 0003" }, options, None).await.expect("finds");
    assert_eq!(ids(&found), [3]);
}

async fn pipelines_run(store: Store) {
    let items = filled(&store, 9).await;
    let pipeline = vec![
        doc! { "$match": { "_id": { "$gte": 2 } } },
        doc! { "$group": { "_id": "$even", "n": { "$sum": 1 } } },
        doc! { "$sort": { "_id": 1 } },
    ];
    let cursor = items.aggregate(pipeline, Aggregate::default(), None).await.expect("runs");
    let groups = cursor.collect(None).await.expect("reads");
    assert_eq!(groups, [doc! { "_id": false, "n": 3 }, doc! { "_id": true, "n": 4 }]);
    let batches = Aggregate { batch_size: Some(2), ..Aggregate::default() };
    let all = items.aggregate(vec![], batches, None).await.expect("runs").collect(None).await.expect("reads");
    assert_eq!(all.len(), 9);
    let documents = vec![doc! { "$documents": [{ "a": 1 }, { "a": 2 }] }];
    let cursor = store.aggregate(SHOP, documents, Aggregate::default(), None).await.expect("runs");
    assert_eq!(cursor.collect(None).await.expect("reads").len(), 2);
}

async fn counts_and_distinct_values(store: Store) {
    let items = filled(&store, 9).await;
    assert_eq!(items.count(doc! { "even": true }, None).await.expect("counts"), 5);
    assert_eq!(items.estimated_count().await.expect("counts"), 9);
    let values = items.distinct("even", doc! { "_id": { "$lt": 2 } }, None).await.expect("distinct");
    assert_eq!(values, [Bson::Boolean(false), Bson::Boolean(true)]);
    assert_eq!(store.collection(SHOP, "missing").count(doc! {}, None).await.expect("counts"), 0);
}

async fn updates_say_what_they_did(store: Store) {
    let items = filled(&store, 4).await;
    let set = doc! { "$set": { "even": true } };
    let done = items.update_many(doc! {}, set.clone(), Update::default(), None).await.expect("updates");
    assert_eq!((done.matched, done.modified, done.upserted), (4, 2, None));
    let upsert = Update { upsert: true, ..Update::default() };
    let done = items.update_one(doc! { "_id": 77 }, set, upsert, None).await.expect("upserts");
    assert_eq!((done.matched, done.modified, done.upserted), (0, 0, Some(Bson::Int32(77))));
    assert_eq!(items.delete_one(doc! {}, None).await.expect("deletes"), 1);
    assert_eq!(items.delete_many(doc! {}, None).await.expect("deletes"), 4);
    let refused = items.update_one(doc! {}, doc! { "plain": 1 }, Update::default(), None).await.expect_err("refuses");
    assert_eq!(refused.code, Some(9));
}

async fn updates_by_pipeline_and_array_filters(store: Store) {
    let items = store.collection(SHOP, "lists");
    items.insert_one(doc! { "_id": 1, "n": [1, 5, 9] }, None).await.expect("inserts");
    let array_filters = vec![doc! { "big": { "$gt": 3 } }];
    let update = doc! { "$inc": { "n.$[big]": 100 } };
    let options = Update { array_filters, ..Update::default() };
    items.update_one(doc! {}, update, options, None).await.expect("updates");
    let stages = vec![doc! { "$set": { "sum": { "$sum": "$n" } } }];
    items.update_one(doc! {}, stages, Update::default(), None).await.expect("updates");
    let found = items.find_one(doc! {}, None).await.expect("finds");
    assert_eq!(found, Some(doc! { "_id": 1, "n": [1, 105, 109], "sum": 215 }));
}

async fn a_replacement_keeps_the_id_and_refuses_operators(store: Store) {
    let items = filled(&store, 1).await;
    let done =
        items.replace_one(doc! { "_id": 0 }, doc! { "new": 1 }, Update::default(), None).await.expect("replaces");
    assert_eq!((done.matched, done.modified), (1, 1));
    assert_eq!(items.find_one(doc! {}, None).await.expect("finds"), Some(doc! { "_id": 0, "new": 1 }));
    let operators = doc! { "$set": { "a": 1 } };
    let refused = items.replace_one(doc! {}, operators, Update::default(), None).await.expect_err("refuses");
    assert_eq!(refused.code, Some(9));
    let upsert = Update { upsert: true, ..Update::default() };
    let done = items.replace_one(doc! { "_id": 5 }, doc! { "x": 1 }, upsert, None).await.expect("replaces");
    assert_eq!(done.upserted, Some(Bson::Int32(5)));
}

async fn one_document_is_found_and_changed_replaced_or_deleted(store: Store) {
    let items = filled(&store, 5).await;
    let options = FindOneAndUpdate {
        sort: Some(doc! { "_id": -1 }),
        projection: Some(doc! { "n": 1 }),
        after: true,
        ..FindOneAndUpdate::default()
    };
    let update = doc! { "$inc": { "n": 2 } };
    let found = items.find_one_and_update(doc! {}, update, options.clone(), None).await.expect("updates");
    assert_eq!(found, Some(doc! { "_id": 4, "n": 2 }));
    let found = items.find_one_and_replace(doc! {}, doc! { "n": 3 }, options.clone(), None).await.expect("replaces");
    assert_eq!(found, Some(doc! { "_id": 4, "n": 3 }));
    let before = FindOneAndUpdate { after: false, ..options };
    let found = items.find_one_and_delete(doc! { "even": { "$exists": true } }, before, None).await.expect("deletes");
    assert_eq!(found, Some(doc! { "_id": 3 }));
    let none = items.find_one_and_delete(doc! { "_id": 99 }, FindOneAndUpdate::default(), None).await;
    assert_eq!(none.expect("deletes nothing"), None);
    assert_eq!(items.count(doc! {}, None).await.expect("counts"), 4);
}

async fn an_ordered_insert_stops_at_the_first_failure(store: Store) {
    let items = filled(&store, 1).await;
    let documents = vec![doc! { "_id": 1 }, doc! { "_id": 0 }, doc! { "_id": 2 }];
    let done = items.insert_many_with(documents, InsertMany::default(), None).await.expect("runs");
    assert_eq!((done.inserted, done.errors.len(), done.errors[0].index), (1, 1, 1));
    assert!(done.errors[0].error.is_duplicate_key());
    assert_eq!(items.count(doc! {}, None).await.expect("counts"), 2);
}

async fn an_unordered_insert_says_which_failed(store: Store) {
    let items = filled(&store, 1).await;
    let documents = vec![doc! { "_id": 0 }, doc! { "_id": 1 }, doc! { "_id": 0 }, doc! { "_id": 2 }];
    let unordered = InsertMany { ordered: false, ..InsertMany::default() };
    let done = items.insert_many_with(documents, unordered, None).await.expect("runs");
    assert_eq!(done.inserted, 2);
    assert_eq!(done.errors.iter().map(|failed| failed.index).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(done.ids, [0, 1, 0, 2].map(Bson::Int32));
    assert_eq!(items.count(doc! {}, None).await.expect("counts"), 3);
    let none = items.insert_many_with(vec![], InsertMany::default(), None).await.expect("nothing to do");
    assert_eq!(none.inserted, 0);
}

async fn documents_without_id_get_one(store: Store) {
    let items = store.collection(SHOP, "items");
    let done = items.insert_many_with(vec![doc! { "a": 1 }], InsertMany::default(), None).await.expect("inserts");
    let found = items.find_one(doc! {}, None).await.expect("finds").expect("a document");
    assert_eq!(found.keys().collect::<Vec<_>>(), ["_id", "a"]);
    assert_eq!(found.get("_id"), done.ids.first());
}

async fn a_bulk_does_all_kinds_in_several_collections(store: Store) {
    let items = filled(&store, 5).await;
    let other = store.collection("else", "where");
    let models = vec![
        (items.clone(), WriteModel::Insert(doc! { "_id": 10 })),
        (items.clone(), WriteModel::Insert(doc! { "_id": 11 })),
        (other.clone(), WriteModel::Insert(doc! { "_id": 1 })),
        (items.clone(), WriteModel::update_one(doc! { "_id": 10 }, doc! { "$set": { "a": 1 } })),
        (items.clone(), WriteModel::update_many(doc! { "even": true }, doc! { "$set": { "even": false } })),
        (other.clone(), WriteModel::upsert_one(doc! { "_id": 2 }, doc! { "$set": { "up": 1 } })),
        (items.clone(), WriteModel::replace_one(doc! { "_id": 11 }, doc! { "b": 2 })),
        (items.clone(), WriteModel::delete_one(doc! { "_id": 0 })),
        (items.clone(), WriteModel::delete_many(doc! { "_id": { "$lt": 3 } })),
    ];
    let done = store.bulk_write(models, BulkWrite::default(), None).await.expect("runs").ok().expect("no failures");
    assert_eq!((done.inserted, done.matched, done.modified, done.deleted), (3, 5, 5, 3));
    assert_eq!(done.upserted, [(5, Bson::Int32(2))]);
    assert_eq!(items.find_one(doc! { "_id": 11 }, None).await.expect("finds"), Some(doc! { "_id": 11, "b": 2 }));
    assert_eq!(other.count(doc! {}, None).await.expect("counts"), 2);
    let none = items.bulk_write(vec![], BulkWrite::default(), None).await.expect("nothing to do");
    assert_eq!(none.inserted, 0);
}

async fn an_ordered_bulk_stops_an_unordered_one_goes_on(store: Store) {
    let items = filled(&store, 2).await;
    let models = || {
        vec![
            WriteModel::update_one(doc! { "_id": 0 }, doc! { "$inc": { "n": 1 } }),
            WriteModel::Insert(doc! { "_id": 1 }),
            WriteModel::Insert(doc! { "_id": 2 }),
        ]
    };
    let done = items.bulk_write(models(), BulkWrite::default(), None).await.expect("runs");
    assert_eq!((done.modified, done.inserted), (1, 0));
    assert_eq!((done.errors.len(), done.errors[0].index, done.errors[0].error.code), (1, 1, Some(11000)));
    assert!(done.ok().expect_err("a failure").is_duplicate_key());
    let unordered = BulkWrite { ordered: false, ..BulkWrite::default() };
    let done = items.bulk_write(models(), unordered, None).await.expect("runs");
    assert_eq!((done.modified, done.inserted, done.errors.len()), (1, 1, 1));
}

async fn a_transaction_is_all_or_nothing(store: Store) {
    let items = filled(&store, 1).await;
    let other = store.collection("else", "where");
    other.insert_one(doc! { "_id": 0 }, None).await.expect("inserts");
    let mut session = store.start_session().await.expect("a session");
    session.start_transaction().await.expect("starts");
    items.insert_one(doc! { "_id": 1 }, Some(&mut session)).await.expect("inserts");
    other.delete_one(doc! {}, Some(&mut session)).await.expect("deletes");
    assert_eq!(items.count(doc! {}, Some(&mut session)).await.expect("counts"), 2);
    assert_eq!(items.count(doc! { "_id": 1 }, None).await.expect("counts"), 0);
    session.abort_transaction().await.expect("aborts");
    assert_eq!(items.count(doc! {}, None).await.expect("counts"), 1);
    let inserted = store
        .with_transaction(|session: &mut Session| {
            let (items, other) = (items.clone(), other.clone());
            Box::pin(async move {
                items.insert_one(doc! { "_id": 2 }, Some(&mut *session)).await?;
                other.delete_one(doc! {}, Some(session)).await
            })
        })
        .await;
    assert_eq!(inserted.expect("commits"), 1);
    assert_eq!(items.count(doc! { "_id": 2 }, None).await.expect("counts"), 1);
    assert_eq!(other.count(doc! {}, None).await.expect("counts"), 0);
}

async fn a_failed_write_ends_its_transaction(store: Store) {
    let items = filled(&store, 1).await;
    let failed = store
        .with_transaction(|session: &mut Session| {
            let items = items.clone();
            Box::pin(async move {
                items.insert_one(doc! { "_id": 5 }, Some(&mut *session)).await?;
                items.insert_one(doc! { "_id": 0 }, Some(session)).await
            })
        })
        .await;
    assert!(failed.expect_err("a duplicate").is_duplicate_key());
    assert_eq!(items.count(doc! {}, None).await.expect("counts"), 1);
}

async fn a_lost_conflict_is_tried_again(store: Store) {
    let items = store.collection(SHOP, "counters");
    items.insert_one(doc! { "_id": 0, "n": 0 }, None).await.expect("inserts");
    let add = |items: Collection, store: Store| async move {
        for _ in 0..10 {
            let items = items.clone();
            let added = store.with_transaction(move |session: &mut Session| {
                let items = items.clone();
                Box::pin(async move {
                    let found = items.find_one(doc! { "_id": 0 }, Some(&mut *session)).await?.expect("there");
                    let n = found.get_i32("n").expect("a number");
                    let set = doc! { "$set": { "n": n + 1 } };
                    items.update_one(doc! { "_id": 0 }, set, Update::default(), Some(session)).await
                })
            });
            added.await.expect("commits");
        }
    };
    let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(add(items.clone(), store.clone()))).collect();
    for task in tasks {
        task.await.expect("ends well");
    }
    assert_eq!(items.find_one(doc! {}, None).await.expect("finds"), Some(doc! { "_id": 0, "n": 40 }));
}

async fn bulks_and_reads_belong_to_the_transaction(store: Store) {
    let items = filled(&store, 3).await;
    let mut session = store.start_session().await.expect("a session");
    session.start_transaction().await.expect("starts");
    let models = vec![WriteModel::Insert(doc! { "_id": 9 }), WriteModel::delete_many(doc! { "even": true })];
    let done = items.bulk_write(models, BulkWrite::default(), Some(&mut session)).await.expect("runs");
    assert_eq!((done.inserted, done.deleted), (1, 2));
    let pipeline = vec![doc! { "$sort": { "_id": 1 } }];
    let cursor = items.aggregate(pipeline, Aggregate::default(), Some(&mut session)).await.expect("runs");
    assert_eq!(ids(&cursor.collect(Some(&mut session)).await.expect("reads")), [1, 9]);
    let values = items.distinct("_id", doc! {}, Some(&mut session)).await.expect("distinct");
    assert_eq!(values, [1, 9].map(Bson::Int32));
    assert_eq!(items.count(doc! {}, None).await.expect("counts"), 3);
    let duplicate = vec![WriteModel::Insert(doc! { "_id": 9 })];
    let refused = items.bulk_write(duplicate, BulkWrite::default(), Some(&mut session)).await.expect_err("refuses");
    assert!(refused.is_duplicate_key());
    let _ = session.abort_transaction().await;
    assert_eq!(items.count(doc! {}, None).await.expect("counts"), 3);
}

async fn a_validator_refuses_with_its_reasons(store: Store) {
    let items = store.collection(SHOP, "valid");
    let schema = doc! { "$jsonSchema": { "required": ["name"], "properties": { "name": { "bsonType": "string" } } } };
    items.create(doc! { "validator": schema.clone() }).await.expect("creates");
    let refused = items.insert_one(doc! { "_id": 1, "name": 5 }, None).await.expect_err("refuses");
    assert_eq!(refused.code, Some(121));
    assert!(refused.info().is_some_and(|info| info.contains_key("details")), "{refused:?}");
    let bypass = InsertMany { bypass_document_validation: true, ..InsertMany::default() };
    let done = items.insert_many_with(vec![doc! { "_id": 1 }], bypass, None).await.expect("passes by");
    assert_eq!(done.inserted, 1);
    items.modify(doc! { "validator": {}, "validationLevel": "off" }).await.expect("modifies");
    items.insert_one(doc! { "_id": 2 }, None).await.expect("inserts");
    let options = items.info().await.expect("reads").expect("there").options;
    assert_eq!(options.get_str("validationLevel").ok(), Some("off"));
}

async fn indexes_are_created_listed_changed_and_dropped(store: Store) {
    let items = filled(&store, 3).await;
    let partial = doc! { "partialFilterExpression": { "even": true }, "name": "even names", "unique": true };
    items
        .create_indexes(vec![
            Index { keys: doc! { "name": 1 }, options: partial },
            Index { keys: doc! { "at": 1 }, options: doc! { "expireAfterSeconds": 60 } },
            Index::new(doc! { "a.b": -1, "c": 1 }),
        ])
        .await
        .expect("creates");
    let listed = items.list_indexes().await.expect("lists");
    let names: Vec<&str> = listed.iter().map(|index| index.get_str("name").expect("a name")).collect();
    assert_eq!(names, ["_id_", "even names", "at_1", "a.b_-1_c_1"]);
    assert_eq!(listed[1].get_document("partialFilterExpression").ok(), Some(&doc! { "even": true }));
    assert_eq!(listed[1].get_bool("unique").ok(), Some(true));
    items.modify(doc! { "index": { "name": "at_1", "expireAfterSeconds": 90 } }).await.expect("modifies");
    items.modify(doc! { "index": { "keyPattern": { "a.b": -1, "c": 1 }, "hidden": true } }).await.expect("modifies");
    let listed = items.list_indexes().await.expect("lists");
    assert_eq!(listed[2].get_i32("expireAfterSeconds").ok(), Some(90));
    assert_eq!(listed[3].get_bool("hidden").ok(), Some(true));
    let conflict = vec![Index { keys: doc! { "name": 1 }, options: doc! { "name": "even names" } }];
    assert_eq!(items.create_indexes(conflict).await.expect_err("refuses").code, Some(86));
    items.drop_index("at_1").await.expect("drops");
    assert_eq!(items.drop_index("at_1").await.expect_err("refuses").code, Some(27));
    items.drop_indexes().await.expect("drops");
    assert_eq!(items.list_indexes().await.expect("lists").len(), 1);
    let missing = store.collection(SHOP, "missing").list_indexes().await.expect("lists nothing");
    assert_eq!(missing, Vec::<Document>::new());
    let unique = items.create_index(doc! { "even": 1 }, true).await.expect_err("duplicates");
    assert!(unique.is_duplicate_key());
}

async fn collections_are_created_listed_renamed_and_dropped(store: Store) {
    let items = filled(&store, 3).await;
    let view = store.collection(SHOP, "odd");
    let pipeline = vec![doc! { "$match": { "even": false } }];
    view.create(doc! { "viewOn": "items", "pipeline": pipeline }).await.expect("creates");
    assert_eq!(ids(&view.find(doc! {}, Find::default(), None).await.expect("finds")), [1]);
    let listed = store.list_collections(SHOP).await.expect("lists");
    let listed: Vec<_> = listed
        .iter()
        .filter(|info| info.name != "system.views")
        .map(|info| (info.name.as_str(), info.kind.as_str()))
        .collect();
    assert_eq!(listed, [("items", "collection"), ("odd", "view")]);
    let renamed = items.rename("goods", false).await.expect("renames");
    assert_eq!(renamed.count(doc! {}, None).await.expect("counts"), 3);
    assert!(items.info().await.expect("reads").is_none());
    items.insert_one(doc! { "_id": 1 }, None).await.expect("inserts");
    assert_eq!(renamed.rename("items", false).await.err().and_then(|error| error.code), Some(48));
    renamed.rename("items", true).await.expect("renames");
    assert_eq!(items.count(doc! {}, None).await.expect("counts"), 3);
    assert!(items.info().await.expect("reads").expect("there").uuid.is_some());
    let databases = store.list_databases().await.expect("lists");
    assert!(databases.iter().any(|known| known.name == SHOP && known.size_bytes > 0), "{databases:?}");
    items.drop().await.expect("drops");
    items.drop().await.expect("nothing to drop");
    store.drop_database(SHOP).await.expect("drops");
    assert!(store.list_collections(SHOP).await.expect("lists").is_empty());
}

async fn capped_and_time_series_collections(store: Store) {
    let last = store.collection(SHOP, "last");
    last.create(doc! { "capped": true, "size": 4_000, "max": 3 }).await.expect("creates");
    for n in 0..5 {
        last.insert_one(doc! { "_id": n }, None).await.expect("inserts");
    }
    assert_eq!(ids(&last.find(doc! {}, Find::default(), None).await.expect("finds")), [2, 3, 4]);
    let info = last.info().await.expect("reads").expect("there");
    assert_eq!(info.options, doc! { "capped": true, "size": 4_096, "max": 3 });
    let series = store.collection(SHOP, "readings");
    let options = doc! { "timeField": "at", "metaField": "sensor", "granularity": "minutes" };
    series.create(doc! { "timeseries": options }).await.expect("creates");
    let info = series.info().await.expect("reads").expect("there");
    assert_eq!(info.kind, "timeseries");
    let shown = info.options.get_document("timeseries").expect("shown");
    assert_eq!(shown.get_i32("bucketMaxSpanSeconds").ok(), Some(86_400));
    series.insert_one(doc! { "at": bson::DateTime::now(), "sensor": 1, "v": 2 }, None).await.expect("inserts");
    assert_eq!(series.count(doc! { "sensor": 1 }, None).await.expect("counts"), 1);
}

async fn statistics_count_documents_and_bytes(store: Store) {
    let items = filled(&store, 100).await;
    items.create_index(doc! { "name": 1 }, false).await.expect("creates");
    let stats = items.stats().await.expect("reads");
    assert_eq!(stats.count, 100);
    assert!((4_000..6_000).contains(&stats.size_bytes), "{stats:?}");
    let names: Vec<&str> = stats.index_bytes.iter().map(|index| index.0.as_str()).collect();
    assert_eq!(names, ["_id_", "name_1"]);
    assert_eq!(store.collection(SHOP, "missing").stats().await.expect("reads").count, 0);
}

fn quick() -> Watch {
    Watch { max_await: std::time::Duration::from_millis(300), ..Watch::default() }
}

async fn a_stream_gives_events_and_resumes_at_a_token(store: Store) {
    let items = filled(&store, 1).await;
    let options = Watch { update_lookup: true, ..quick() };
    let mut stream = items.watch(options.clone()).await.expect("opens");
    items.insert_one(doc! { "_id": 7 }, None).await.expect("inserts");
    items.update_one(doc! { "_id": 7 }, doc! { "$set": { "a": 1 } }, Update::default(), None).await.expect("updates");
    items.delete_one(doc! { "_id": 7 }, None).await.expect("deletes");
    let insert = stream.next().await.expect("an event");
    assert_eq!(insert.get_str("operationType").ok(), Some("insert"));
    assert_eq!(insert.get_document("fullDocument").ok(), Some(&doc! { "_id": 7 }));
    let token = stream.resume_token().expect("a token");
    let update = stream.next().await.expect("an event");
    assert_eq!(update.get_str("operationType").ok(), Some("update"));
    assert_eq!(update.get_document("documentKey").ok(), Some(&doc! { "_id": 7 }));
    drop(stream);
    let resumed = Watch { start: Start::ResumeAfter(token.clone()), ..options };
    let mut stream = items.watch(resumed).await.expect("resumes");
    assert_eq!(stream.next().await.expect("an event").get_str("operationType").ok(), Some("update"));
    assert_eq!(stream.next().await.expect("an event").get_str("operationType").ok(), Some("delete"));
    assert_eq!(stream.next_if_any().await.expect("nothing"), None);
    assert!(stream.is_alive());
    let pipeline = vec![doc! { "$match": { "operationType": "delete" } }];
    let only = Watch { start: Start::StartAfter(token), pipeline, ..quick() };
    let mut stream = items.watch(only).await.expect("opens");
    assert_eq!(stream.next().await.expect("an event").get_str("operationType").ok(), Some("delete"));
}

async fn streams_on_a_database_and_on_everything(store: Store) {
    let items = filled(&store, 1).await;
    let mut database = store.watch_database(SHOP, quick()).await.expect("opens");
    let mut everything = store.watch(Watch { batch_size: Some(1), ..quick() }).await.expect("opens");
    store.collection("else", "where").insert_one(doc! { "_id": 1 }, None).await.expect("inserts");
    items.insert_one(doc! { "_id": 8 }, None).await.expect("inserts");
    let namespace = |event: &Document| event.get_document("ns").expect("a namespace").clone();
    let event = database.next().await.expect("an event");
    assert_eq!(namespace(&event), doc! { "db": SHOP, "coll": "items" });
    assert_eq!(namespace(&everything.next().await.expect("an event")), doc! { "db": "else", "coll": "where" });
    assert_eq!(namespace(&everything.next().await.expect("an event")), doc! { "db": SHOP, "coll": "items" });
    let time = event.get_timestamp("clusterTime").expect("a time");
    let mut again = items.watch(Watch { start: Start::AtTime(time), ..quick() }).await.expect("opens");
    assert_eq!(again.next().await.expect("an event").get("_id"), event.get("_id"));
}

async fn a_stream_ends_when_its_collection_is_dropped(store: Store) {
    let items = filled(&store, 1).await;
    let mut stream = items.watch(quick()).await.expect("opens");
    items.drop().await.expect("drops");
    assert_eq!(stream.next().await.expect("an event").get_str("operationType").ok(), Some("drop"));
    assert_eq!(stream.next().await.expect("an event").get_str("operationType").ok(), Some("invalidate"));
    let token = stream.resume_token().expect("a token");
    assert!(stream.next().await.is_err());
    assert!(!stream.is_alive());
    items.insert_one(doc! { "_id": 3 }, None).await.expect("inserts");
    let mut again = items.watch(Watch { start: Start::StartAfter(token), ..quick() }).await.expect("opens");
    assert_eq!(again.next().await.expect("an event").get_str("operationType").ok(), Some("insert"));
}

async fn a_quiet_stream_still_has_a_token(store: Store) {
    let items = filled(&store, 1).await;
    let mut stream = items.watch(quick()).await.expect("opens");
    assert_eq!(stream.next_if_any().await.expect("nothing"), None);
    let token = stream.resume_token().expect("a token");
    items.insert_one(doc! { "_id": 4 }, None).await.expect("inserts");
    let mut again = items.watch(Watch { start: Start::ResumeAfter(token), ..quick() }).await.expect("opens");
    let event = again.next().await.expect("an event");
    assert_eq!(event.get_document("documentKey").ok(), Some(&doc! { "_id": 4 }));
}

async fn errors_carry_codes(store: Store) {
    let items = filled(&store, 1).await;
    let code = |error: store::Error| error.code;
    let unknown = items.find(doc! { "a": { "$nonsense": 1 } }, Find::default(), None).await;
    assert_eq!(unknown.map_err(code), Err(Some(2)));
    let stage = items.aggregate(vec![doc! { "$nonsense": {} }], Aggregate::default(), None).await;
    assert_eq!(stage.err().and_then(code), Some(40324));
    let update = doc! { "$inc": { "name": 1 } };
    let wrong = items.update_one(doc! { "_id": 0 }, update, Update::default(), None).await;
    assert_eq!(wrong.map_err(code), Err(Some(14)));
    let missing = store.collection(SHOP, "missing").modify(doc! { "validator": {} }).await;
    assert_eq!(missing.map_err(code), Err(Some(26)));
    let time = bson::Timestamp { time: 1, increment: 1 };
    let lost = items.watch(Watch { start: Start::AtTime(time), ..quick() }).await;
    assert!(lost.err().is_none_or(|error| error.is_history_lost()));
}
