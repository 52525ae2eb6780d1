//! What a caller notes of an order: in the order's own commit, whatever becomes of it, wherever the process dies.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use bson::doc;
use commerce::{Error, Keeping, NewProduct, NewSku, NewUser, Note, NoteWrite, Order, Shop};
use common::mortal::Mortal;
use common::{Hand, START, add_hook, euros, lyon, request, settings, stocked};
use engine::Engine;
use engine::storage::Storage;
use std::path::Path;
use std::sync::Arc;
use store::Store;

/// Notes how it went, under an id.
fn note(id: &str) -> Note<Order> {
    let id = id.to_owned();
    Note::new("callers", "answers", move |outcome: &commerce::Result<Order>| {
        let said = match outcome {
            Ok(order) => order.id.as_str(),
            Err(refusal) => refusal.code(),
        };
        Some(NoteWrite::Insert(doc! { "_id": &id, "said": said }))
    })
}

fn open(folder: &Path) -> (Shop, Engine, Mortal) {
    let (disk, options) = (Mortal::open(folder), engine::Options::system());
    let storage = Storage::open_on(Arc::new(disk.clone()), options.storage.clone()).unwrap();
    let engine = Engine::on(storage, options).unwrap();
    let store = Store::embedded(engine.clone());
    add_hook(&store);
    let settings = settings(&store, Keeping::Model, &Hand::at(START));
    (Shop::with(store, "shop", settings), engine, disk)
}

async fn count(shop: &Shop, database: &str, collection: &str) -> u64 {
    shop.store().collection(database, collection).count(doc! {}, None).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_and_what_was_noted_of_it_are_there_together_wherever_the_process_dies() {
    let folder = tempfile::tempdir().unwrap();
    let (shop, engine, disk) = open(folder.path());
    shop.ensure_indexes().await.unwrap();
    let user =
        NewUser { id: Some("u0".into()), username: "b".into(), default_address: Some(lyon()), ..NewUser::default() };
    shop.add_user(&user).await.unwrap();
    shop.add_product(&NewProduct::new("p", "lamp", euros(1_000))).await.unwrap();
    let lamp = NewSku { id: "p".into(), product_id: "p".into(), price_minor: 1_000, quantity: 99, ..NewSku::default() };
    shop.add_sku(&lamp).await.unwrap();
    shop.store().collection("callers", "answers").create_index(doc! { "said": 1 }, false).await.unwrap();
    let before = engine.storage().flushed();
    shop.place_order_noted(&request(0, &[("p", 1)]), Some(note("first"))).await.unwrap();
    assert_eq!(engine.storage().flushed(), before + 1, "one commit");
    let (mut living, mut survived, mut lost) = ((shop, engine, disk), 0, 0);
    for steps in 0..12 {
        let (shop, engine, disk) = living;
        disk.dies_after(steps);
        let note = note(&format!("{steps}"));
        let answered = shop.place_order_noted(&request(0, &[("p", 1)]), Some(note.clone())).await.is_ok();
        assert_eq!(note.is_written(), answered);
        // Whatever is still to be written, it does not get far.
        for more in 0.. {
            if disk.is_dead() {
                break;
            }
            let _ = shop.receive("p", 1, &format!("{steps} {more}"), "warehouse").await;
        }
        drop((shop, engine));
        living = open(folder.path());
        let shop = &living.0;
        let orders = count(shop, "shop", "orders").await;
        assert_eq!(orders, count(shop, "callers", "answers").await, "death after {steps} steps");
        match orders - 1 - survived {
            0 => lost += 1,
            1 => survived += 1,
            more => panic!("{more} orders of one"),
        }
        assert!(!answered || orders == survived + 1, "what was answered is there");
        assert_eq!(shop.verify().await.unwrap().violations, Vec::<String>::new(), "death after {steps} steps");
    }
    assert!(lost > 0 && survived > 0, "{lost} lost, {survived} there");
    living.1.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_noted_too_and_what_never_came_to_the_till_is_not() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, _) = stocked(keeping, 1).await;
        let refused = note("refused");
        let short = shop.place_order_noted(&request(1, &[("p", 2)]), Some(refused.clone())).await;
        assert!(matches!(short, Err(Error::OutOfStock { .. })), "{short:?}");
        assert!(refused.is_written());
        let empty = note("empty");
        assert!(shop.place_order_noted(&request(1, &[]), Some(empty.clone())).await.is_err());
        assert!(!empty.is_written());
        let answers = shop.store().collection("callers", "answers").find(doc! {}, store::Find::default(), None).await;
        assert_eq!(answers.unwrap(), [doc! { "_id": "refused", "said": "out-of-stock" }]);
        assert_eq!(count(&shop, "shop", "orders").await, 0);
    }
}
