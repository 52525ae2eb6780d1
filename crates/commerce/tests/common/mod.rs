//! A shop to test, on either keeping, with a clock that the test moves.

#![allow(dead_code, clippy::unwrap_used, reason = "shared by tests that use parts of it")]

pub(crate) mod mortal;

use commerce::{Address, Keeping, Line, MODEL, Money, NewProduct, NewSku, NewUser, OrderRequest, Settings, Shop};
use model::keep::Keeper;
use model::keep::embedded::ModelHook;
use model::problem::Sources;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use store::Store;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wire::{Config, Listen, Server};

pub(crate) const SECRET: &[u8] = b"a secret between the shop and the provider";

/// A clock that stands still until the test moves it.
#[derive(Clone)]
pub(crate) struct Hand(Arc<AtomicI64>);

impl Hand {
    pub(crate) fn at(millis: i64) -> Hand {
        Hand(Arc::new(AtomicI64::new(millis)))
    }

    pub(crate) fn forward_ms(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }

    pub(crate) fn millis(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// 2026-11-30 15:59 UTC: one minute to midnight in Shanghai.
pub(crate) const START: i64 = 1_796_054_340_000;

/// The shop's model.
pub(crate) fn shop_model() -> model::Model {
    let mut sources = Sources::default();
    for (name, text) in MODEL {
        sources.push(name, text);
    }
    model::parse(sources).unwrap_or_else(|problems| panic!("{problems}")).model
}

pub(crate) fn add_hook(store: &Store) {
    let hook = ModelHook::new(Keeper::new(&shop_model()).unwrap(), "shop");
    store.engine().unwrap().add_hook(Arc::new(hook));
}

pub(crate) fn settings(store: &Store, keeping: Keeping, hand: &Hand) -> Settings {
    let hand = hand.clone();
    Settings {
        keeping,
        callback_secret: SECRET.to_vec(),
        clock: Arc::new(move || hand.millis()),
        ..Settings::for_store(store)
    }
}

pub(crate) async fn on(store: Store, keeping: Keeping) -> (Shop, Hand) {
    if keeping == Keeping::Model {
        add_hook(&store);
    }
    let hand = Hand::at(START);
    let settings = settings(&store, keeping, &hand);
    let shop = Shop::with(store, "shop", settings);
    shop.ensure_indexes().await.unwrap();
    (shop, hand)
}

pub(crate) async fn empty(keeping: Keeping) -> (Shop, Hand) {
    on(Store::in_memory().unwrap(), keeping).await
}

pub(crate) fn euros(minor: i64) -> Money {
    Money::new(minor, "EUR".parse().unwrap())
}

pub(crate) fn lyon() -> Address {
    Address { city: "Lyon".into(), receiver: "Ada".into(), ..Address::default() }
}

/// A shop with 200 buyers `u0` … and two products `p`, `q` of one SKU each at 10.00, so many of both.
pub(crate) async fn stocked(keeping: Keeping, quantity: i64) -> (Shop, Hand) {
    let (shop, hand) = empty(keeping).await;
    fill(&shop, quantity).await;
    (shop, hand)
}

pub(crate) async fn fill(shop: &Shop, quantity: i64) {
    for buyer in 0..200 {
        let user = NewUser {
            id: Some(format!("u{buyer}")),
            username: format!("buyer {buyer}"),
            default_address: Some(lyon()),
            ..NewUser::default()
        };
        shop.add_user(&user).await.unwrap();
    }
    for id in ["p", "q"] {
        shop.add_product(&NewProduct::new(id, &format!("product {id}"), euros(1_000))).await.unwrap();
        let sku = NewSku { id: id.into(), product_id: id.into(), price_minor: 1_000, quantity, ..NewSku::default() };
        shop.add_sku(&sku).await.unwrap();
    }
}

pub(crate) fn request(buyer: usize, lines: &[(&str, i64)]) -> OrderRequest {
    OrderRequest {
        buyer: format!("u{buyer}"),
        lines: lines.iter().map(|(sku, quantity)| Line { sku: (*sku).into(), quantity: *quantity }).collect(),
        ..OrderRequest::default()
    }
}

/// That nothing differs between the SKUs, the ledger and the holds.
pub(crate) async fn reconciled(shop: &Shop) {
    let found = shop.reconcile(false).await.unwrap();
    assert_eq!(found.discrepancies, [], "{found:?}");
}

/// A store on a deployment, through the official driver: our own server on an engine, which knows nothing of the model.
pub(crate) async fn served(engine: engine::Engine) -> (Store, Serving) {
    let listen = vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }];
    let server = Server::bind(Config { listen, ..Config::default() }, engine).await.unwrap();
    let Some(wire::Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    let (stop, stopped) = oneshot::channel();
    let until = async {
        if stopped.await.is_err() {
            pending::<()>().await;
        }
    };
    let server = tokio::spawn(server.serve(until));
    let store = Store::connect(&format!("mongodb://{address}/?replicaSet=sheaf")).await.unwrap();
    (store, Serving { stop, server })
}

/// A server at work, for as long as the test runs unless it is stopped.
pub(crate) struct Serving {
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Serving {
    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.server.await.unwrap();
    }

    /// Lets it end by itself; nobody waits for it.
    pub(crate) fn leave(self) {
        self.stop.send(()).unwrap();
    }
}
