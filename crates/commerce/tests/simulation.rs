//! A shop for a day: many buyers, a provider with faults, carriers that repeat themselves, and a process that is killed
//! again and again, at any write or sync of its store, and starts again. At the end everything that the shop promises is
//! recomputed from what it stored.
//!
//! `SHEAF_SIM_ORDERS` says how many buyers (400 unless given, 100 on the deployment), `SHEAF_SIM_KILLS` how often the process
//! is killed (3), `SHEAF_SIM_SEED` which run. The whole of it:
//! `SHEAF_SIM_ORDERS=160000 SHEAF_SIM_KILLS=20 cargo test --release --workspace --test simulation -- --nocapture --test-threads 1`

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may end at what it did not expect, and says how fast it was"
)]

mod common;

use commerce::{
    AfterSaleKind, AfterSaleRequest, Campaign, Category, Checkout, Error, Faults, Keeping, Line, NewParcel, NewProduct,
    NewReview, NewSku, NewUser, OrderRequest, Reduction, RefundOptions, ReportBy, ReportRequest, ReportSource, Shop,
    Simulator, Time, TrackEvent,
};
use common::mortal::Mortal;
use common::{Hand, SECRET, START, Serving, add_hook, euros, lyon, served, settings};
use engine::Engine;
use engine::storage::Storage;
use model::audit::Auditor;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;

const BUYERS: u64 = 200;
const PRODUCTS: u64 = 30;
/// Buyers who are there at the same time.
const CROWD: u64 = 128;

/// Within how many writes and syncs the process dies when its end has come; a part of the day takes about as many.
const STEPS: u64 = 60;

/// A seeded sequence (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % below
    }

    fn of_a_hundred(&mut self, percent: u64) -> bool {
        self.next(100) < percent
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Where the shop's documents are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// In this process; the model's hook keeps its values.
    Embedded,
    /// On a server; the shop keeps them.
    Deployment,
}

/// A shop on a folder, with the engine that has it open.
struct House {
    shop: Shop,
    engine: Engine,
    disk: Mortal,
    serving: Option<Serving>,
}

impl House {
    async fn open(kind: Kind, folder: &Path, hand: &Hand) -> House {
        let (disk, options) = (Mortal::open(folder), engine::Options::system());
        let storage = Storage::open_on(Arc::new(disk.clone()), options.storage.clone()).unwrap();
        let engine = Engine::on(storage, options).unwrap();
        let (store, keeping, serving) = match kind {
            Kind::Embedded => (Store::embedded(engine.clone()), Keeping::Model, None),
            Kind::Deployment => {
                let (store, serving) = served(engine.clone()).await;
                (store, Keeping::Shop, Some(serving))
            }
        };
        if kind == Kind::Embedded {
            add_hook(&store);
        }
        let settings = commerce::Settings { shipping_fee_minor: 390, ..settings(&store, keeping, hand) };
        House { shop: Shop::with(store, "shop", settings), engine, disk, serving }
    }

    /// Closes the store as a process that ends does.
    async fn close(self) {
        drop(self.shop);
        if let Some(serving) = self.serving {
            serving.stop().await;
        }
        self.engine.close().unwrap();
    }

    /// Lets go of what was killed.
    fn bury(self) {
        assert!(self.disk.is_dead(), "only what was killed is buried");
        if let Some(serving) = self.serving {
            serving.leave();
        }
    }
}

async fn stock_up(shop: &Shop, orders: u64) {
    shop.ensure_indexes().await.unwrap();
    for buyer in 0..BUYERS {
        let city = ["Lyon", "Porto", "Ghent", "Turku", "Graz"][(buyer % 5) as usize];
        let user = NewUser {
            id: Some(format!("u{buyer}")),
            username: format!("buyer {buyer}"),
            default_address: Some(commerce::Address { city: city.into(), ..lyon() }),
            ..NewUser::default()
        };
        shop.add_user(&user).await.unwrap();
    }
    for product in 0..PRODUCTS {
        let id = format!("p{product}");
        let mut new = NewProduct::new(&id, &format!("product {product}"), euros(997 + product as i64 * 131));
        new.category = Category { id: format!("c{}", product % 3), ..Category::default() };
        shop.add_product(&new).await.unwrap();
        for variant in 0..2 {
            let sku = NewSku {
                id: format!("{id}v{variant}"),
                product_id: id.clone(),
                price_minor: 997 + product as i64 * 131 + variant,
                // Not enough for all of them, so that some are refused.
                quantity: (orders as i64 * 2 / PRODUCTS as i64).max(5),
                ..NewSku::default()
            };
            shop.add_sku(&sku).await.unwrap();
        }
    }
    let campaign = Campaign {
        id: "welcome".into(),
        name: "welcome".into(),
        reduction: Reduction::Percent("7.5".parse().unwrap()),
        threshold: 1_000,
        currency: euros(0).currency,
        total: BUYERS as i64 / 2,
        valid_from: Time::from_millis(START - 1),
        valid_until: Time::from_millis(START + 30 * 86_400_000),
    };
    shop.add_campaign(&campaign).await.unwrap();
}

/// What the business may refuse without anything being wrong.
fn refused(error: &Error) -> bool {
    matches!(
        error,
        Error::OutOfStock { .. }
            | Error::CouponRefused { .. }
            | Error::IllegalMove { .. }
            | Error::EmptyCart
            | Error::RefundTooLarge { .. }
            | Error::RefundInProgress { .. }
            | Error::NothingToReturn { .. }
            | Error::NotBought { .. }
            | Error::NotFound { what: "coupon", .. }
            | Error::ProviderRefused { .. }
    )
}

/// What the buyers of one life of the process deal with.
#[derive(Clone)]
struct Scene {
    shop: Shop,
    provider: Simulator,
    disk: Mortal,
}

impl Scene {
    /// What was done, if it was; ends the test at an error that is neither a refusal nor the process's death.
    fn check<T>(&self, outcome: Result<T, Error>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) if refused(&error) => None,
            Err(Error::Store(_) | Error::Busy) if self.disk.is_dead() => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// One buyer: browses, orders, maybe pays; sometimes changes their mind. Gives the order, if there was one. With the same
/// dice it is the same buyer, who asks for the same again.
async fn buy(scene: Scene, mut dice: Dice) -> Option<String> {
    let shop = &scene.shop;
    let buyer = format!("u{}", dice.next(BUYERS));
    let lines: Vec<Line> = (0..=dice.next(3))
        .map(|_| Line { sku: format!("p{}v{}", dice.next(PRODUCTS), dice.next(2)), quantity: 1 + dice.next(3) as i64 })
        .collect();
    let coupon = dice.of_a_hundred(10).then(|| "welcome".to_owned());
    if coupon.is_some() {
        scene.check(shop.claim_coupon(&buyer, "welcome").await);
    }
    let key = format!("{}", dice.next(u64::MAX));
    let order = if dice.of_a_hundred(40) {
        for line in &lines {
            scene.check(shop.put_in_cart(&buyer, &line.sku, line.quantity, None).await)?;
        }
        let checkout = Checkout { key, coupon, ..Checkout::default() };
        let (first, second) = tokio::join!(shop.checkout(&buyer, &checkout), shop.checkout(&buyer, &checkout));
        if let (Ok(first), Ok(second)) = (&first, &second) {
            assert_eq!(first.id, second.id, "pressed twice");
        }
        scene.check(first).or(scene.check(second))
    } else {
        let request = OrderRequest { key: Some(key), buyer: buyer.clone(), lines, coupon, ..OrderRequest::default() };
        scene.check(shop.place_order(&request).await)
    }?;
    if dice.of_a_hundred(5) {
        scene.check(shop.cancel_order(&order.id, &buyer, "changed my mind", None).await);
    }
    for _ in 0..=u64::from(dice.of_a_hundred(10)) {
        if dice.of_a_hundred(92) {
            scene.check(shop.pay(&order.id, "card", None, &scene.provider).await);
        }
    }
    Some(order.id)
}

/// What happens to an order later.
async fn go_on(scene: Scene, id: String, mut dice: Dice) {
    let shop = &scene.shop;
    let Some(order) = scene.check(shop.order(&id).await) else { return };
    let (early, part) = (dice.of_a_hundred(8), dice.of_a_hundred(50).then(|| 1 + dice.next(order.total as u64) as i64));
    if order.status == "paid" && early {
        let options = RefundOptions { key: "early".into(), amount: part, why: "no".into(), by: "clerk".into() };
        scene.check(shop.refund_order(&id, &options).await);
    }
    let mut parcels = Vec::new();
    for parcel in 0..1 + dice.next(2) {
        let new =
            NewParcel { key: format!("{parcel}"), carrier: "post".into(), tracking_number: format!("{id}{parcel}") };
        parcels.extend(scene.check(shop.ship(&id, &new, "clerk", None).await));
    }
    for parcel in &parcels {
        let mut events: Vec<TrackEvent> = (0..1 + dice.next(6))
            .map(|step| TrackEvent {
                id: format!("e{step}"),
                time: Time::from_millis(START + step as i64 * 9 * 3_600_000),
                status: ["sent", "arrived", "left", "out", "there", "signed"][step as usize].into(),
                location: "somewhere".into(),
            })
            .collect();
        for index in (1..events.len()).rev() {
            events.swap(index, dice.next(index as u64 + 1) as usize);
        }
        for event in events.iter().chain(events.first()) {
            scene.check(shop.track(&parcel.id, std::slice::from_ref(event)).await);
        }
    }
    if parcels.is_empty() {
        return;
    }
    if dice.of_a_hundred(80) {
        scene.check(shop.sign_order(&id, &order.user_id, None).await);
    }
    if dice.of_a_hundred(30) {
        let product = order.items[0].product_id.clone();
        let review = NewReview { order: id.clone(), product, rating: 1 + dice.next(5) as i64, text: "well".into() };
        scene.check(shop.review(&order.user_id, &review).await);
    }
    if dice.of_a_hundred(20) {
        give_back(&scene, &order, &mut dice).await;
    }
}

async fn give_back(scene: &Scene, order: &commerce::Order, dice: &mut Dice) {
    let shop = &scene.shop;
    let item = &order.items[dice.next(order.items.len() as u64) as usize];
    let kind = if dice.of_a_hundred(70) { AfterSaleKind::Return } else { AfterSaleKind::Exchange };
    let request = AfterSaleRequest {
        key: "back".into(),
        kind,
        order: order.id.clone(),
        lines: vec![Line { sku: item.sku_id.clone(), quantity: 1 + dice.next(item.quantity as u64) as i64 }],
        why: "too small".into(),
    };
    let Some(sale) = scene.check(shop.ask_after_sale(&order.user_id, &request).await) else { return };
    let steps: &[&str] = match (dice.next(4), kind) {
        (0, _) => &["rejected"],
        (_, AfterSaleKind::Exchange) => &["approved", "received", "replaced"],
        _ => &["approved", "received"],
    };
    for step in steps {
        if scene.check(shop.move_after_sale(&sale.id, step, "clerk", "", None).await).is_none() {
            return;
        }
    }
}

async fn deliver(scene: &Scene) {
    let mut tasks = tokio::task::JoinSet::new();
    for callback in scene.provider.due() {
        let scene = scene.clone();
        tasks.spawn(async move {
            scene.check(scene.shop.accept_callback(&callback).await);
        });
    }
    tasks.join_all().await;
}

/// A part of the day: some buy, money is settled, and what was bought before goes on. Gives the new orders.
async fn part_of_the_day(scene: Scene, hand: Hand, buyers: Vec<u64>, ready: Vec<(String, u64)>) -> Vec<String> {
    let mut tasks = tokio::task::JoinSet::new();
    for seed in buyers {
        tasks.spawn(buy(scene.clone(), Dice(seed)));
    }
    let (new, ()) = tokio::join!(tasks.join_all(), deliver(&scene));
    hand.forward_ms(90_000);
    let settle = async { scene.check(scene.shop.settle_payments(&scene.provider).await) };
    let (_, keep) = tokio::join!(settle, scene.shop.housekeeping());
    scene.check(keep);
    let later = ready.into_iter().map(|(id, seed)| go_on(scene.clone(), id, Dice(seed)));
    later.collect::<tokio::task::JoinSet<()>>().join_all().await;
    new.into_iter().flatten().collect()
}

/// A day, part by part. A part in which the process dies is done again by the next process: buyers press the button again.
struct Day {
    kind: Kind,
    folder: tempfile::TempDir,
    hand: Hand,
    provider: Simulator,
    dice: Dice,
    house: House,
}

impl Day {
    /// Gives how often the process was killed.
    async fn goes_by(&mut self, orders: u64, kills: u64) -> u64 {
        let (mut tried, mut killed, mut placed): (u64, u64, Vec<String>) = (0, 0, Vec::new());
        while tried < orders || !placed.is_empty() {
            let count = CROWD.min(orders - tried);
            let buyers: Vec<u64> = (0..count).map(|_| self.dice.next(u64::MAX)).collect();
            let part = if tried + count >= orders { placed.len() } else { placed.len() / 2 };
            let ready: Vec<_> = placed.drain(..part).map(|id| (id, self.dice.next(u64::MAX))).collect();
            tried += count;
            if killed < kills && tried * (kills + 1) >= orders * (killed + 1) {
                self.house.disk.dies_after(self.dice.next(STEPS) as i64);
            }
            loop {
                match self.part(buyers.clone(), ready.clone()).await {
                    Some(new) => break placed.extend(new),
                    None => self.starts_again(&mut killed).await,
                }
            }
        }
        while killed < kills {
            self.house.disk.dies_after(self.dice.next(STEPS) as i64);
            while !self.house.disk.is_dead() {
                self.hand.forward_ms(1);
                self.scene().check(self.house.shop.note_login("u0", "127.0.0.1").await);
            }
            self.starts_again(&mut killed).await;
        }
        killed
    }

    fn scene(&self) -> Scene {
        Scene { shop: self.house.shop.clone(), provider: self.provider.clone(), disk: self.house.disk.clone() }
    }

    /// A part of the day, unless the process dies in it.
    async fn part(&self, buyers: Vec<u64>, ready: Vec<(String, u64)>) -> Option<Vec<String>> {
        let mut part = tokio::spawn(part_of_the_day(self.scene(), self.hand.clone(), buyers, ready));
        loop {
            tokio::select! {
                done = &mut part => return done.ok().filter(|_| !self.house.disk.is_dead()),
                () = tokio::time::sleep(Duration::from_millis(5)) => {
                    if self.house.disk.is_dead() {
                        part.abort();
                        let _ = part.await;
                        return None;
                    }
                }
            }
        }
    }

    async fn starts_again(&mut self, killed: &mut u64) {
        assert!(self.house.disk.is_dead(), "a part of the day failed");
        *killed += 1;
        let next = House::open(self.kind, self.folder.path(), &self.hand).await;
        std::mem::replace(&mut self.house, next).bury();
        let verdict = self.house.shop.verify().await.unwrap();
        assert_eq!(verdict.violations, Vec::<String>::new(), "after kill {killed}");
    }
}

/// The provider's day gets better, and everything that is on its way arrives.
async fn quiet(scene: &Scene, hand: &Hand) {
    let (shop, provider) = (&scene.shop, &scene.provider);
    provider.set_faults(Faults::NONE);
    hand.forward_ms(commerce::READ_AFTER.as_millis() as i64);
    for _ in 0..10_000 {
        hand.forward_ms(60_000);
        deliver(scene).await;
        let moved = shop.settle_payments(provider).await.unwrap();
        shop.housekeeping().await.unwrap();
        if moved == 0 && provider.on_the_way() == 0 && shop.stock_is_free().await {
            return;
        }
    }
    panic!("it does not come to rest");
}

trait AtRest {
    async fn stock_is_free(&self) -> bool;
}

impl AtRest for Shop {
    async fn stock_is_free(&self) -> bool {
        let holds = self.store().collection("shop", "stockHolds");
        let payments = self.store().collection("shop", "payments");
        holds.count(bson::doc! {}, None).await.unwrap() == 0
            && payments.count(bson::doc! { "status": "pending" }, None).await.unwrap() == 0
            && payments.count(bson::doc! { "refunding": { "$gt": 0 } }, None).await.unwrap() == 0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shop_that_had_a_bad_day_owes_nobody_anything() {
    a_bad_day(Kind::Embedded, number("SHEAF_SIM_ORDERS", 400)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shop_on_a_deployment_that_had_a_bad_day_owes_nobody_anything() {
    a_bad_day(Kind::Deployment, number("SHEAF_SIM_ORDERS", 100)).await;
}

async fn a_bad_day(kind: Kind, orders: u64) {
    let (mut dice, kills) = (Dice(number("SHEAF_SIM_SEED", 5)), number("SHEAF_SIM_KILLS", 3));
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(START);
    let clock = hand.clone();
    let provider = Simulator::new(dice.next(u64::MAX), Faults::MANY, SECRET, Arc::new(move || clock.millis()));
    let house = House::open(kind, folder.path(), &hand).await;
    stock_up(&house.shop, orders).await;
    let begun = Instant::now();
    let mut day = Day { kind, folder, hand, provider, dice, house };
    let killed = day.goes_by(orders, kills).await;
    assert_eq!(killed, kills);
    let took = begun.elapsed();
    let (shop, provider) = (day.house.shop.clone(), day.provider.clone());
    quiet(&day.scene(), &day.hand).await;
    let checking = Instant::now();
    let verdict = shop.verify().await.unwrap();
    eprintln!(
        "{kind:?}: {orders} buyers, {} orders, {} payments, {} in, {} out, {killed} kills, {:.1} s ({:.0} buyers/s), verified in {:.1} s",
        verdict.orders,
        verdict.payments,
        verdict.money_in,
        verdict.money_out,
        took.as_secs_f64(),
        orders as f64 / took.as_secs_f64(),
        checking.elapsed().as_secs_f64()
    );
    for source in [ReportSource::Rollup, ReportSource::Aggregation] {
        let (from, to) = ("2026-01-01".to_owned(), "2027-12-01".to_owned());
        let request = ReportRequest { by: ReportBy::City, from, to, zone: None, per_day: false, source };
        let asking = Instant::now();
        let rows = shop.report(&request).await.unwrap().rows.len();
        eprintln!("report by city, {source:?}: {rows} rows in {:.2} ms", asking.elapsed().as_secs_f64() * 1e3);
    }
    assert_eq!(verdict.violations, Vec::<String>::new());
    assert!(verdict.orders > orders / 3, "many buyers got something");
    let books = provider.books();
    assert_eq!(verdict.money_in, books.values().map(|books| books.captured).sum::<i64>());
    assert_eq!(verdict.money_out, books.values().map(|books| books.refunded + books.reversed).sum::<i64>());
    assert_eq!(verdict.refunding, 0);
    assert!(verdict.money_out > 0);
    audited(&shop).await;
    drop(shop);
    day.house.close().await;
}

/// That the model's audit finds nothing.
async fn audited(shop: &Shop) {
    let mut auditor = Auditor::new(shop.store(), shop.database(), &common::shop_model()).unwrap();
    for finding in auditor.run().await.unwrap() {
        assert_eq!(finding.drifted, 0, "{finding:?}");
        assert!(finding.skipped.is_none() || finding.checked == 0, "{finding:?}");
    }
}
