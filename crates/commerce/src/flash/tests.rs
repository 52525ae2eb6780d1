//! Flash sales on a deployment (our own server, through the official driver) and a real Redis, which the tests start
//! themselves: `redis-server` must be there.

use super::*;
use crate::order::{Address, Line};
use crate::{Keeping, Money, NewProduct, NewSku, NewUser, Settings};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use store::Store;
use tokio::task::JoinSet;
use wire::{Config, Listen, Server};

const START: i64 = 1_796_054_340_000;

/// A Redis that flushes every write, on a socket in a folder of its own.
struct Redis {
    folder: tempfile::TempDir,
    server: Child,
}

impl Redis {
    async fn start() -> Redis {
        let folder = tempfile::tempdir().unwrap();
        let server = Redis::spawn(folder.path());
        let redis = Redis { folder, server };
        redis.ready().await;
        redis
    }

    fn spawn(folder: &Path) -> Child {
        let settings = ["--port", "0", "--unixsocket", "redis.sock", "--appendonly", "yes", "--appendfsync", "always"];
        let started = Command::new("redis-server")
            .args(settings)
            .args(["--save", "", "--daemonize", "no"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn();
        started.expect("redis-server is there: apt-get install redis-server")
    }

    fn url(&self) -> String {
        format!("redis+unix://{}", self.folder.path().join("redis.sock").display())
    }

    async fn ready(&self) {
        let client = Client::open(self.url()).unwrap();
        for _ in 0..500 {
            if let Ok(mut connection) = client.get_multiplexed_async_connection().await
                && redis::cmd("PING").query_async::<String>(&mut connection).await.is_ok()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("redis-server does not answer");
    }

    /// Ends it without warning and starts it again.
    async fn kill(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        self.server = Redis::spawn(self.folder.path());
        self.ready().await;
    }

    /// Everything it knew is gone.
    async fn forget(&self) {
        let mut connection = Client::open(self.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
        redis::cmd("FLUSHALL").query_async::<()>(&mut connection).await.unwrap();
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

struct Scene {
    redis: Redis,
    store: Store,
    clock: Arc<AtomicI64>,
}

impl Scene {
    /// A deployment with 40 units of a SKU, of which a buyer may have two, and 60 buyers `u0` …
    async fn set() -> Scene {
        let config =
            Config { listen: vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }], ..Config::default() };
        let engine = engine::Engine::in_memory(engine::Options::system()).unwrap();
        let server = Server::bind(config, engine).await.unwrap();
        let Some(wire::Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
        tokio::spawn(server.serve(std::future::pending()));
        let store = Store::connect(&format!("mongodb://{address}/?replicaSet=sheaf")).await.unwrap();
        let scene = Scene { redis: Redis::start().await, store, clock: Arc::new(AtomicI64::new(START)) };
        let shop = scene.shop();
        shop.ensure_indexes().await.unwrap();
        let users = (0..60).map(|number| {
            let (shop, id) = (shop.clone(), format!("u{number}"));
            let address = Address { city: "Lyon".into(), ..Address::default() };
            let user =
                NewUser { id: Some(id.clone()), username: id, default_address: Some(address), ..NewUser::default() };
            async move { drop(shop.add_user(&user).await.unwrap()) }
        });
        users.collect::<JoinSet<()>>().join_all().await;
        let price = Money::new(1_000, "EUR".parse().unwrap());
        shop.add_product(&NewProduct::new("lamp", "Lamp", price)).await.unwrap();
        let lamp = NewSku { id: "lamp".into(), product_id: "lamp".into(), price_minor: 1_000, ..NewSku::default() };
        shop.add_sku(&NewSku { quantity: 40, per_buyer: Some(2), ..lamp }).await.unwrap();
        scene
    }

    /// A process of its own: its till, its connections.
    fn shop(&self) -> Shop {
        let clock = self.clock.clone();
        let settings = Settings {
            keeping: Keeping::Shop,
            clock: Arc::new(move || clock.load(Ordering::SeqCst)),
            ..Settings::for_store(&self.store)
        };
        Shop::with(self.store.clone(), "shop", settings)
    }

    async fn sale(&self) -> FlashSale {
        self.shop().open_flash_sale(&self.redis.url(), &sale()).await.unwrap()
    }

    fn forward(&self, time: Duration) {
        self.clock.fetch_add(time.as_millis() as i64, Ordering::SeqCst);
    }
}

fn sale() -> NewFlashSale {
    let until = Time::from_millis(START + 60 * 60 * 1_000);
    NewFlashSale { id: "friday".into(), sku: "lamp".into(), quantity: 30, until, operator: "merchant".into() }
}

fn request(buyer: usize, key: &str, quantity: i64) -> OrderRequest {
    OrderRequest {
        key: Some(key.into()),
        buyer: format!("u{buyer}"),
        lines: vec![Line { sku: "lamp".into(), quantity }],
        ..OrderRequest::default()
    }
}

/// Available, held, and what is reserved at this moment in Redis.
async fn level(sale: &FlashSale) -> (i64, i64) {
    let stock = sale.shop.stock("lamp").await.unwrap();
    (stock.available, stock.held)
}

async fn orders(sale: &FlashSale) -> u64 {
    sale.shop.collection("orders").count(doc! {}, None).await.unwrap()
}

/// That nothing differs anywhere.
async fn whole(sale: &FlashSale) {
    let found = sale.reconcile(false).await.unwrap();
    assert_eq!(found.left, found.expected);
    assert_eq!(sale.shop.verify().await.unwrap().violations, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_promise_exactly_what_was_set_aside_and_keep_it() {
    let scene = Scene::set().await;
    let sales = [scene.sale().await, scene.sale().await];
    assert_eq!(level(&sales[0]).await, (10, 30), "opened once");
    let mut tasks = JoinSet::new();
    for number in 0..180 {
        let sale = sales[number % 2].clone();
        tasks.spawn(async move { (number, sale.reserve(&request(number % 60, &format!("{number}"), 1)).await) });
        if number % 50 == 49 {
            let sale = sales[number % 2].clone();
            tasks.spawn(async move { (number, sale.write_down().await.map(|_| Reservation::known_by_nobody())) });
        }
    }
    let mut promised = Vec::new();
    for (number, answer) in tasks.join_all().await {
        match answer {
            Ok(reservation) if reservation.order.is_empty() => {}
            Ok(reservation) => promised.push((number % 60, reservation.order)),
            Err(Error::OutOfStock { .. } | Error::LimitPerBuyer { limit: 2, had: 2, .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(promised.len(), 30);
    // Meanwhile what was not set aside sells as ever.
    sales[0].shop.place_order(&request(59, "shelf", 1)).await.unwrap();
    tokio::join!(sales[0].write_down(), sales[1].write_down()).0.unwrap();
    while sales[1].write_down().await.unwrap() != Written::default() {}
    for (buyer, order) in &promised {
        let Reserved::Placed(placed) = sales[0].reserved(order).await.unwrap() else { panic!("{order}") };
        assert_eq!((&placed.id, placed.user_id), (order, format!("u{buyer}")));
    }
    assert_eq!((orders(&sales[0]).await, level(&sales[0]).await), (31, (9, 31)));
    whole(&sales[1]).await;
    assert_eq!(sales[0].close("merchant").await.unwrap(), 0);
    whole_shop(&sales[0]).await;
}

async fn whole_shop(sale: &FlashSale) {
    assert_eq!(sale.shop.verify().await.unwrap().violations, Vec::<String>::new());
}

impl Reservation {
    /// For tasks that reserve nothing.
    fn known_by_nobody() -> Reservation {
        Reservation { order: String::new(), known: false }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_redis_and_the_store_loses_nothing_and_places_nothing_twice() {
    let scene = Scene::set().await;
    let sale = scene.sale().await;
    let first = sale.reserve(&request(1, "a", 2)).await.unwrap();
    let second = sale.reserve(&request(2, "b", 1)).await.unwrap();
    // The second one's order is in the store when the process ends; Redis does not know.
    sale.place(&request(2, "b", 1)).await.unwrap();
    drop(sale);
    let sale = scene.sale().await;
    let asked_again = sale.reserve(&request(1, "a", 2)).await.unwrap();
    assert_eq!(asked_again, Reservation { order: first.order.clone(), known: true });
    assert_eq!(sale.reserved(&first.order).await.unwrap(), Reserved::Waiting);
    assert_eq!(sale.write_down().await.unwrap(), Written { placed: 2, refused: 0 });
    assert_eq!(sale.write_down().await.unwrap(), Written::default());
    assert_eq!((orders(&sale).await, level(&sale).await), (2, (10, 30)));
    for order in [&first.order, &second.order] {
        assert!(matches!(sale.reserved(order).await.unwrap(), Reserved::Placed(_)));
    }
    // Asked once more after everything: still the same promise, and no unit more.
    assert!(sale.reserve(&request(2, "b", 1)).await.unwrap().known);
    let found = sale.reconcile(true).await.unwrap();
    assert_eq!(found, SaleLevel { left: 27, expected: 27 });
    whole(&sale).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_refuses_gives_its_units_back_once() {
    let scene = Scene::set().await;
    let sale = scene.sale().await;
    let stranger = OrderRequest { buyer: "nobody".into(), ..request(0, "x", 2) };
    let promised = sale.reserve(&stranger).await.unwrap();
    assert_eq!(sale.reconcile(false).await.unwrap(), SaleLevel { left: 30, expected: 30 });
    assert_eq!(sale.reserved(&promised.order).await.unwrap(), Reserved::Refused("not-found".into()));
    // Settling it again, as another process would, changes nothing.
    sale.settle(&promised.order, "not-found", &stranger).await.unwrap();
    whole(&sale).await;
    let reused = sale.reserve(&request(3, "k", 1)).await.and(sale.reserve(&request(3, "k", 2)).await);
    assert!(matches!(reused, Err(Error::KeyReused { .. })), "{reused:?}");
    let other = OrderRequest { lines: vec![Line { sku: "bulb".into(), quantity: 1 }], ..request(3, "o", 1) };
    assert!(matches!(sale.reserve(&other).await, Err(Error::Invalid { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_killed_keeps_its_promises_and_one_that_forgets_is_told() {
    let mut scene = Scene::set().await;
    let sale = scene.sale().await;
    let mut promised = Vec::new();
    for buyer in 0..10 {
        promised.push(sale.reserve(&request(buyer, "k", 1)).await.unwrap().order);
    }
    scene.redis.kill().await;
    let sale = scene.sale().await;
    assert_eq!(sale.write_down().await.unwrap().placed, 10);
    for order in &promised {
        assert!(matches!(sale.reserved(order).await.unwrap(), Reserved::Placed(_)));
    }
    whole(&sale).await;
    // Two more, one of them written down; then Redis has lost everything.
    sale.reserve(&request(20, "k", 1)).await.unwrap();
    sale.write_down().await.unwrap();
    sale.reserve(&request(21, "k", 1)).await.unwrap();
    scene.redis.forget().await;
    assert!(matches!(sale.reserve(&request(22, "k", 1)).await, Err(Error::IllegalMove { .. })));
    assert_eq!(sale.reconcile(true).await.unwrap(), SaleLevel { left: 0, expected: 19 });
    // An old backup of it would let through too many.
    redis::cmd("HINCRBY")
        .arg(&sale.keys[0])
        .arg("left")
        .arg(5)
        .query_async::<i64>(&mut sale.redis.clone())
        .await
        .unwrap();
    assert_eq!(sale.reconcile(false).await.unwrap(), SaleLevel { left: 24, expected: 19 });
    assert_eq!(sale.reconcile(true).await.unwrap(), SaleLevel { left: 24, expected: 19 });
    whole(&sale).await;
    for buyer in 30..50 {
        let answer = sale.reserve(&request(buyer, "k", 1)).await;
        assert_eq!(answer.is_ok(), buyer < 49, "{answer:?}");
    }
    whole(&sale).await;
    assert_eq!(level(&sale).await, (10, 30));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_that_is_over_gives_back_what_is_left_whoever_is_gone() {
    let scene = Scene::set().await;
    let sale = scene.sale().await;
    let early = sale.reserve(&request(1, "a", 1)).await.unwrap();
    sale.write_down().await.unwrap();
    scene.forward(Duration::from_secs(60 * 60));
    assert!(matches!(sale.reserve(&request(2, "b", 1)).await, Err(Error::IllegalMove { .. })));
    assert_eq!(sale.shop.expire_holds().await.unwrap(), 1, "the order that nobody paid");
    assert_eq!(level(&sale).await, (11, 29));
    scene.forward(WRITE_DOWN_GRACE);
    assert_eq!(sale.shop.expire_holds().await.unwrap(), 1, "the sale's hold");
    assert_eq!(level(&sale).await, (40, 0));
    assert_eq!(sale.close("merchant").await.unwrap(), 0);
    assert!(matches!(sale.reserved(&early.order).await.unwrap(), Reserved::Placed(_)));
    let again = sale.shop.open_flash_sale(&scene.redis.url(), &sale_again()).await;
    assert!(matches!(again, Err(Error::IllegalMove { .. })), "its id was used");
    whole_shop(&sale).await;
}

fn sale_again() -> NewFlashSale {
    NewFlashSale { until: Time::from_millis(START + 10 * 60 * 60 * 1_000), ..sale() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_that_is_closed_early_keeps_its_promises_and_sells_no_more() {
    let scene = Scene::set().await;
    let sale = scene.sale().await;
    let promised = sale.reserve(&request(1, "a", 2)).await.unwrap();
    assert_eq!(sale.close("merchant").await.unwrap(), 28);
    assert!(matches!(sale.reserved(&promised.order).await.unwrap(), Reserved::Placed(_)));
    assert!(matches!(sale.reserve(&request(2, "b", 1)).await, Err(Error::IllegalMove { .. })));
    assert_eq!((level(&sale).await, sale.close("merchant").await.unwrap()), ((38, 2), 0));
    whole_shop(&sale).await;
}
