//! A process that is killed in the middle of everything: what it leaves is whole, and the next one goes on.
//!
//! The test starts itself again as another process, which buys, pays, cancels and lets holds expire as fast as it can, and
//! kills it without warning, again and again.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use commerce::{Callback, Error, Keeping, RefundOptions, Reported, Settings, Shop, Signed};
use common::{SECRET, add_hook, euros, fill, request};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use store::Store;

const FOLDER: &str = "SHEAF_KILL_FOLDER";
const UNITS: i64 = 2_000;
const KILLS: u64 = 6;

fn open(folder: &Path) -> Shop {
    let store = Store::open(folder).unwrap();
    add_hook(&store);
    let settings = Settings {
        hold_for: Duration::from_millis(150),
        callback_secret: SECRET.to_vec(),
        keeping: Keeping::Model,
        ..Settings::for_store(&store)
    };
    Shop::with(store, "shop", settings)
}

fn close(shop: Shop) {
    let engine = shop.store().engine().unwrap().clone();
    drop(shop);
    engine.close().unwrap();
}

/// Buys without end.
async fn buy(shop: Shop, mut number: usize) {
    loop {
        number = (number * 7 + 1) % 200;
        let lines = [("p", 1 + number as i64 % 3), ("q", 1)];
        let order = match shop.place_order(&request(number, &lines[..1 + number % 2])).await {
            Ok(order) => order,
            Err(Error::OutOfStock { .. }) => continue,
            Err(other) => panic!("{other}"),
        };
        match number % 4 {
            0 => drop(shop.cancel_order(&order.id, "buyer", "", None).await),
            1 => {} // it expires
            _ => {
                let Ok(payment) = shop.begin_payment(&order.id, "card", None).await else { continue };
                let callback = Callback {
                    id: payment.id.clone(),
                    payment_id: payment.id,
                    report: Reported::Captured,
                    amount: payment.amount,
                    currency: euros(0).currency,
                    refund_key: None,
                    at: shop.now(),
                };
                let body = serde_json::to_vec(&callback).unwrap();
                shop.accept_callback(&Signed::sign(SECRET, &callback.id, shop.now(), body)).await.unwrap();
                let back = RefundOptions { key: "r".into(), amount: None, why: String::new(), by: "clerk".into() };
                if shop.refund_order(&order.id, &back).await.is_ok() {
                    let refunded = Callback {
                        id: format!("{}:back", callback.payment_id),
                        report: Reported::Refunded,
                        refund_key: Some("r".into()),
                        ..callback
                    };
                    let body = serde_json::to_vec(&refunded).unwrap();
                    shop.accept_callback(&Signed::sign(SECRET, &refunded.id, shop.now(), body)).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_gets_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let shop = open(Path::new(&folder));
    let mut tasks = tokio::task::JoinSet::new();
    for buyer in 0..24 {
        tasks.spawn(buy(shop.clone(), buyer));
    }
    loop {
        shop.housekeeping().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(tasks.try_join_next().is_none(), "a buyer stopped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_kill_interrupts_nothing_is_sold_twice_held_for_ever_or_lost() {
    if std::env::var_os(FOLDER).is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shop = open(folder.path());
    shop.ensure_indexes().await.unwrap();
    fill(&shop, UNITS).await;
    close(shop);
    let mut orders = 0;
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_process_that_gets_killed"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(700 + kill * 137)).await;
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let shop = open(folder.path());
        let verdict = shop.verify().await.unwrap();
        assert_eq!(verdict.violations, Vec::<String>::new(), "after kill {kill}");
        orders = orders.max(verdict.orders);
        close(shop);
    }
    assert!(orders > 0, "nothing was ever sold");
    let shop = open(folder.path());
    tokio::time::sleep(Duration::from_millis(200)).await;
    while shop.expire_holds().await.unwrap() > 0 {}
    let verdict = shop.verify().await.unwrap();
    assert_eq!(verdict.violations, Vec::<String>::new());
    for sku in ["p", "q"] {
        let level = shop.stock(sku).await.unwrap();
        assert_eq!((level.held, level.available + level.sold), (0, UNITS), "{sku}");
    }
    close(shop);
}
