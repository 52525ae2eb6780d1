//! Administration commands against a running server in this process: index filters, conversions to unique indexes, the
//! write block, views' definitions, settings of the deployment.

mod support;

use bson::{Document, doc};
use support::*;
use tokio::net::TcpStream;

/// Runs a command on the database `shop`; its code, if it is refused.
async fn on_shop(stream: &mut TcpStream, mut command: Document) -> (Document, Option<i32>) {
    command.insert("$db", "shop");
    let reply = run(stream, command).await;
    let code = reply.get_i32("code").ok();
    (reply, code)
}

async fn on_admin(stream: &mut TcpStream, mut command: Document) -> Option<i32> {
    command.insert("$db", "admin");
    run(stream, command).await.get_i32("code").ok()
}

/// A server with ten documents in `shop.goods`, indexed by `a` and by `a, b`.
async fn shop() -> TcpStream {
    let mut stream = connect().await;
    let documents: Vec<Document> = (0..10).map(|number| doc! { "_id": number, "a": number, "b": number % 2 }).collect();
    let indexes = [doc! { "key": { "a": 1 }, "name": "a_1" }, doc! { "key": { "a": 1, "b": 1 }, "name": "a_1_b_1" }];
    assert_eq!(on_shop(&mut stream, doc! { "insert": "goods", "documents": documents }).await.1, None);
    assert_eq!(on_shop(&mut stream, doc! { "createIndexes": "goods", "indexes": indexes.to_vec() }).await.1, None);
    stream
}

/// Whether an index filter held for a find, and the index or stage of its plan.
async fn plan(stream: &mut TcpStream, find: Document) -> (bool, String) {
    let (reply, code) = on_shop(stream, doc! { "explain": find, "verbosity": "queryPlanner" }).await;
    assert_eq!(code, None, "{reply}");
    let planner = reply.get_document("queryPlanner").expect("a plan");
    let mut stage = planner.get_document("winningPlan").expect("a winner");
    while let Ok(input) = stage.get_document("inputStage") {
        stage = input;
    }
    let name = stage.get_str("indexName").or(stage.get_str("stage")).expect("named");
    (planner.get_bool("indexFilterSet").expect("said"), name.to_owned())
}

#[tokio::test]
async fn an_index_filter_holds_for_its_shape_whatever_is_hinted() {
    let mut stream = shop().await;
    let find = doc! { "find": "goods", "filter": { "a": 1 } };
    let set = doc! { "planCacheSetFilter": "goods", "query": { "a": 5 }, "indexes": [{ "a": 1, "b": 1 }] };
    assert_eq!(on_shop(&mut stream, set).await.1, None);
    assert_eq!(plan(&mut stream, find.clone()).await, (true, "a_1_b_1".to_owned()));
    let hinted = doc! { "find": "goods", "filter": { "a": 1 }, "hint": "a_1" };
    assert_eq!(plan(&mut stream, hinted).await, (true, "a_1_b_1".to_owned()));
    let other = doc! { "find": "goods", "filter": { "a": 1, "b": 1 } };
    assert!(!plan(&mut stream, other).await.0);
    let (listed, _) = on_shop(&mut stream, doc! { "planCacheListFilters": "goods" }).await;
    assert_eq!(listed.get_array("filters").map(Vec::len).ok(), Some(1));

    let unusable = doc! { "planCacheSetFilter": "goods", "query": { "a": 5 }, "indexes": ["no_such"] };
    assert_eq!(on_shop(&mut stream, unusable).await.1, None);
    assert_eq!(plan(&mut stream, find.clone()).await, (true, "COLLSCAN".to_owned()));
    assert_eq!(on_shop(&mut stream, doc! { "planCacheClearFilters": "goods", "query": { "a": 1 } }).await.1, None);
    assert!(!plan(&mut stream, find).await.0);
    let missing = doc! { "planCacheSetFilter": "none", "query": { "a": 5 }, "indexes": ["a_1"] };
    assert_eq!(on_shop(&mut stream, missing).await.1, Some(2));
}

#[tokio::test]
async fn a_plan_that_won_a_trial_is_shown() {
    let mut stream = shop().await;
    let stats = doc! { "aggregate": "goods", "pipeline": [{ "$planCacheStats": {} }], "cursor": {} };
    let count = |reply: &Document| {
        let cursor = reply.get_document("cursor").expect("a cursor");
        cursor.get_array("firstBatch").expect("a batch").len()
    };
    assert_eq!(count(&on_shop(&mut stream, stats.clone()).await.0), 0);
    on_shop(&mut stream, doc! { "find": "goods", "filter": { "a": 5, "b": 1 } }).await;
    assert_eq!(count(&on_shop(&mut stream, stats.clone()).await.0), 1);
    on_shop(&mut stream, doc! { "planCacheClear": "goods" }).await;
    assert_eq!(count(&on_shop(&mut stream, stats).await.0), 0);
}

#[tokio::test]
async fn an_index_becomes_unique_once_prepared_and_without_duplicates() {
    let mut stream = connect().await;
    let documents = [doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 1 }, doc! { "_id": 3, "a": 2 }];
    on_shop(&mut stream, doc! { "insert": "goods", "documents": documents.to_vec() }).await;
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    on_shop(&mut stream, doc! { "createIndexes": "goods", "indexes": [index] }).await;
    let change = |what: Document| {
        let mut index = doc! { "name": "a_1" };
        index.extend(what);
        doc! { "collMod": "goods", "index": index }
    };
    assert_eq!(on_shop(&mut stream, change(doc! { "unique": true })).await.1, Some(72));
    let (prepared, _) = on_shop(&mut stream, change(doc! { "prepareUnique": true })).await;
    assert_eq!(prepared.get_bool("prepareUnique_new").ok(), Some(true));
    let (refused, _) = on_shop(&mut stream, doc! { "insert": "goods", "documents": [{ "_id": 4, "a": 2 }] }).await;
    assert!(refused.get_array("writeErrors").is_ok(), "{refused}");
    let (refused, code) = on_shop(&mut stream, change(doc! { "unique": true })).await;
    assert_eq!(code, Some(359));
    let ids = doc! { "ids": [1, 2] };
    assert_eq!(refused.get_array("violations").ok(), Some(&vec![ids.into()]));
    on_shop(&mut stream, doc! { "delete": "goods", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }] }).await;
    let mut dry = change(doc! { "unique": true });
    dry.insert("dryRun", true);
    let (tried, code) = on_shop(&mut stream, dry).await;
    assert!(code.is_none() && tried.get("unique_new").is_none(), "{tried}");
    let (changed, _) = on_shop(&mut stream, change(doc! { "unique": true })).await;
    assert_eq!(changed.get_bool("unique_new").ok(), Some(true), "{changed}");
    let (listed, _) = on_shop(&mut stream, doc! { "listIndexes": "goods" }).await;
    assert!(listed.to_string().contains("\"unique\": true") && !listed.to_string().contains("prepareUnique"));
}

#[tokio::test]
async fn blocked_writes_are_refused_and_reads_are_not() {
    let mut stream = shop().await;
    let block = |on: bool| doc! { "setUserWriteBlockMode": 1, "global": on };
    assert_eq!(on_admin(&mut stream, block(true)).await, None);
    let insert = doc! { "insert": "goods", "documents": [{ "_id": 100 }] };
    let out = doc! { "aggregate": "goods", "pipeline": [{ "$out": "copy" }], "cursor": {} };
    for write in [insert.clone(), out, doc! { "drop": "goods" }, doc! { "dropDatabase": 1 }] {
        assert_eq!(on_shop(&mut stream, write).await.1, Some(371));
    }
    assert_eq!(on_shop(&mut stream, doc! { "find": "goods" }).await.1, None);
    let other = doc! { "setUserWriteBlockMode": 1, "global": false, "reason": "DiskUseThresholdExceeded" };
    assert_eq!(on_admin(&mut stream, other).await, Some(20));
    assert_eq!(on_admin(&mut stream, block(false)).await, None);
    assert_eq!(on_shop(&mut stream, insert).await.1, None);
}

#[tokio::test]
async fn a_view_is_refused_where_it_could_not_be_read() {
    let mut stream = shop().await;
    let view =
        |name: &str, on: &str, pipeline: Vec<Document>| doc! { "create": name, "viewOn": on, "pipeline": pipeline };
    let stage = |stage: &str| vec![doc! { stage: {} }];
    assert_eq!(on_shop(&mut stream, view("own", "own", Vec::new())).await.1, Some(5));
    assert_eq!(on_shop(&mut stream, view("bad", "goods", stage("$nope"))).await.1, Some(40324));
    assert_eq!(on_shop(&mut stream, view("bad", "goods", vec![doc! { "$out": "x" }])).await.1, Some(167));
    assert_eq!(on_shop(&mut stream, view("v0", "goods", Vec::new())).await.1, None);
    for number in 1..20 {
        let below = format!("v{}", number - 1);
        assert_eq!(on_shop(&mut stream, view(&format!("v{number}"), &below, Vec::new())).await.1, None, "{number}");
    }
    assert_eq!(on_shop(&mut stream, view("v20", "v19", Vec::new())).await.1, Some(165));
    let union = vec![doc! { "$unionWith": "v19" }];
    assert_eq!(on_shop(&mut stream, doc! { "collMod": "v0", "viewOn": "goods", "pipeline": union }).await.1, Some(5));
}

#[tokio::test]
async fn a_settings_value_is_kept_and_the_default_time_bounds_reads() {
    let mut stream = shop().await;
    let set =
        |milliseconds: i32| doc! { "setClusterParameter": { "defaultMaxTimeMS": { "readOperations": milliseconds } } };
    assert_eq!(on_admin(&mut stream, set(-1)).await, Some(2));
    assert_eq!(on_admin(&mut stream, doc! { "setClusterParameter": { "unknown": {} } }).await, Some(4));
    assert_eq!(on_admin(&mut stream, set(60_000)).await, None);
    let reply = run(&mut stream, doc! { "getClusterParameter": "defaultMaxTimeMS", "$db": "admin" }).await;
    let told = reply.get_array("clusterParameters").expect("told")[0].as_document().expect("a document").clone();
    assert_eq!(told.get_i64("readOperations").ok(), Some(60_000));
    assert_eq!(on_shop(&mut stream, doc! { "find": "goods" }).await.1, None);
}

#[tokio::test]
async fn sparse_indexes_are_outside_the_stable_api() {
    let mut stream = shop().await;
    let index = doc! { "key": { "c": 1 }, "name": "c_1", "sparse": true };
    on_shop(&mut stream, doc! { "createIndexes": "goods", "indexes": [index] }).await;
    let check = |strict: bool| {
        let parameters = doc! { "version": "1", "strict": strict };
        doc! { "validateDBMetadata": 1, "db": "shop", "apiParameters": parameters, "$db": "admin" }
    };
    let found = run(&mut stream, check(true)).await;
    assert!(found.to_string().contains("The index with name c_1 is not allowed in API version 1."), "{found}");
    let found = run(&mut stream, check(false)).await;
    assert_eq!(found.get_array("apiVersionErrors").map(Vec::len).ok(), Some(0));
}

#[tokio::test]
async fn query_settings_choose_indexes_and_refuse_shapes() {
    let mut stream = shop().await;
    let shape = doc! { "find": "goods", "filter": { "a": 1 }, "$db": "shop" };
    let hint = doc! { "ns": { "db": "shop", "coll": "goods" }, "allowedIndexes": ["a_1_b_1"] };
    let set = doc! { "setQuerySettings": shape.clone(), "settings": { "indexHints": [hint] } };
    assert_eq!(on_admin(&mut stream, set).await, None);
    let find = doc! { "find": "goods", "filter": { "a": 7 } };
    assert_eq!(plan(&mut stream, find.clone()).await.1, "a_1_b_1");
    let reject = doc! { "setQuerySettings": shape.clone(), "settings": { "reject": true } };
    assert_eq!(on_admin(&mut stream, reject).await, None);
    assert_eq!(on_shop(&mut stream, find.clone()).await.1, Some(411));
    assert_eq!(on_shop(&mut stream, doc! { "find": "goods", "filter": { "b": 7 } }).await.1, None);
    let show = doc! { "aggregate": 1, "pipeline": [{ "$querySettings": {} }], "cursor": {}, "$db": "admin" };
    let shown = run(&mut stream, show).await;
    assert!(shown.to_string().contains("\"reject\": true") && shown.to_string().contains("indexHints"), "{shown}");
    assert_eq!(on_admin(&mut stream, doc! { "removeQuerySettings": shape }).await, None);
    assert_eq!(on_shop(&mut stream, find).await.1, None);
    let by_id = doc! { "find": "goods", "filter": { "_id": 1 }, "$db": "shop" };
    let refused = doc! { "setQuerySettings": by_id, "settings": { "reject": true } };
    assert_eq!(on_admin(&mut stream, refused).await, Some(7_746_606));
}
