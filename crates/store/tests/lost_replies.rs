//! What the driver makes good when the connection breaks after the server has done its work.

mod support;

use bson::doc;
use std::time::Duration;
use store::{BulkWrite, Find, FindOneAndUpdate, Session, Store, Update, Watch, WriteModel};
use support::Proxy;

async fn through(proxy: &Proxy) -> Store {
    Store::connect(&format!("mongodb://{}/?replicaSet=sheaf", proxy.address)).await.expect("connects")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_reply_was_lost_is_done_once() {
    let proxy = Proxy::start(b"reply-lost").await;
    let store = through(&proxy).await;
    assert!(store.capabilities().retryable_writes);
    let items = store.collection("shop", "items");
    proxy.lose(1);
    items.insert_one(doc! { "_id": 1, "n": 0, "why": "reply-lost" }, None).await.expect("inserts");
    assert_eq!(proxy.left(), 0);
    let filter = doc! { "why": "reply-lost" };
    let inc = doc! { "$inc": { "n": 1 } };
    proxy.lose(1);
    items.update_one(filter.clone(), inc.clone(), Update::default(), None).await.expect("updates");
    proxy.lose(1);
    let options = FindOneAndUpdate { after: true, ..FindOneAndUpdate::default() };
    let found = items.find_one_and_update(filter.clone(), inc.clone(), options, None).await.expect("updates");
    assert_eq!(found.expect("there").get_i32("n").ok(), Some(2));
    proxy.lose(1);
    let models = vec![
        WriteModel::update_one(filter.clone(), inc.clone()),
        WriteModel::Insert(doc! { "_id": 2, "why": "reply-lost" }),
    ];
    let done = items.bulk_write(models, BulkWrite::default(), None).await.expect("runs");
    assert_eq!((done.modified, done.inserted, done.errors.len()), (1, 1, 0));
    proxy.lose(1);
    let found = items.find(filter, Find::default(), None).await.expect("finds");
    assert_eq!((found.len(), found[0].get_i32("n").ok()), (2, Some(3)));
    assert_eq!(proxy.left(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_reply_was_lost_is_done_once() {
    let proxy = Proxy::start(b"commitTransaction").await;
    let store = through(&proxy).await;
    let items = store.collection("shop", "items");
    items.insert_one(doc! { "_id": 1, "n": 0 }, None).await.expect("inserts");
    proxy.lose(1);
    store
        .with_transaction(|session: &mut Session| {
            let items = items.clone();
            Box::pin(async move {
                let inc = doc! { "$inc": { "n": 1 } };
                items.update_one(doc! { "_id": 1 }, inc, Update::default(), Some(session)).await
            })
        })
        .await
        .expect("commits");
    assert_eq!(proxy.left(), 0);
    assert_eq!(items.find_one(doc! {}, None).await.expect("finds"), Some(doc! { "_id": 1, "n": 1 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_connection_broke_misses_nothing() {
    let proxy = Proxy::start(b"getMore").await;
    let store = through(&proxy).await;
    let items = store.collection("shop", "items");
    let quick = Watch { max_await: Duration::from_millis(100), ..Watch::default() };
    let mut stream = items.watch(quick).await.expect("opens");
    for n in 0..30 {
        if n % 10 == 5 {
            proxy.lose(1);
        }
        items.insert_one(doc! { "_id": n }, None).await.expect("inserts");
        let event = stream.next().await.expect("an event");
        assert_eq!(event.get_document("documentKey").ok(), Some(&doc! { "_id": n }));
    }
    assert_eq!(proxy.left(), 0);
}
