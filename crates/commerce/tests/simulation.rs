//! A shop for a day: many buyers, a provider with faults, carriers that repeat themselves, the store closed and opened
//! again in the middle. At the end everything that the shop promises is recomputed from what it stored.
//!
//! `SHEAF_SIM_ORDERS` says how many buyers (400 unless given, 100 on the deployment), `SHEAF_SIM_SEED` which run. The whole
//! of it: `SHEAF_SIM_ORDERS=160000 cargo test --release --workspace --test simulation -- --nocapture --test-threads 1`

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
use common::{Hand, SECRET, START, Serving, add_hook, euros, lyon, served, settings};
use engine::Engine;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use store::Store;

const BUYERS: u64 = 200;
const PRODUCTS: u64 = 30;
/// Buyers who are there at the same time.
const CROWD: u64 = 128;

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
    serving: Option<Serving>,
}

impl House {
    async fn open(kind: Kind, folder: &Path, hand: &Hand) -> House {
        let engine = Engine::open(folder, engine::Options::system()).unwrap();
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
        House { shop: Shop::with(store, "shop", settings), engine, serving }
    }

    /// Closes the store as a process that ends does.
    async fn close(self) {
        drop(self.shop);
        if let Some(serving) = self.serving {
            serving.stop().await;
        }
        self.engine.close().unwrap();
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

fn check<T>(outcome: Result<T, Error>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(error) if refused(&error) => None,
        Err(error) => panic!("{error}"),
    }
}

/// One buyer: browses, orders, maybe pays; sometimes changes their mind. Gives whether there was an order.
async fn buy(shop: Shop, provider: Simulator, mut dice: Dice) -> Option<String> {
    let buyer = format!("u{}", dice.next(BUYERS));
    let lines: Vec<Line> = (0..=dice.next(3))
        .map(|_| Line { sku: format!("p{}v{}", dice.next(PRODUCTS), dice.next(2)), quantity: 1 + dice.next(3) as i64 })
        .collect();
    let coupon = dice.of_a_hundred(10).then(|| "welcome".to_owned());
    if coupon.is_some() {
        check(shop.claim_coupon(&buyer, "welcome").await);
    }
    let key = format!("{}", dice.next(u64::MAX));
    let order = if dice.of_a_hundred(40) {
        for line in &lines {
            shop.put_in_cart(&buyer, &line.sku, line.quantity, None).await.unwrap();
        }
        let checkout = Checkout { key, coupon, ..Checkout::default() };
        let (first, second) = tokio::join!(shop.checkout(&buyer, &checkout), shop.checkout(&buyer, &checkout));
        if let (Ok(first), Ok(second)) = (&first, &second) {
            assert_eq!(first.id, second.id, "pressed twice");
        }
        check(first).or(check(second))
    } else {
        let request = OrderRequest { key: Some(key), buyer: buyer.clone(), lines, coupon, ..OrderRequest::default() };
        check(shop.place_order(&request).await)
    }?;
    if dice.of_a_hundred(5) {
        check(shop.cancel_order(&order.id, &buyer, "changed my mind", None).await);
    }
    for _ in 0..=u64::from(dice.of_a_hundred(10)) {
        if dice.of_a_hundred(92) {
            check(shop.pay(&order.id, "card", None, &provider).await);
        }
    }
    Some(order.id)
}

/// What happens to an order later.
async fn go_on(shop: Shop, id: String, mut dice: Dice) {
    let Some(order) = check(shop.order(&id).await) else { return };
    if order.status == "paid" && dice.of_a_hundred(8) {
        let amount = dice.of_a_hundred(50).then(|| 1 + dice.next(order.total as u64) as i64);
        let options = RefundOptions { key: "early".into(), amount, why: "no".into(), by: "clerk".into() };
        check(shop.refund_order(&id, &options).await);
    }
    let mut parcels = Vec::new();
    for parcel in 0..1 + dice.next(2) {
        let new =
            NewParcel { key: format!("{parcel}"), carrier: "post".into(), tracking_number: format!("{id}{parcel}") };
        parcels.extend(check(shop.ship(&id, &new, "clerk", None).await));
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
            shop.track(&parcel.id, std::slice::from_ref(event)).await.unwrap();
        }
    }
    if parcels.is_empty() {
        return;
    }
    if dice.of_a_hundred(80) {
        check(shop.sign_order(&id, &order.user_id, None).await);
    }
    if dice.of_a_hundred(30) {
        let product = order.items[0].product_id.clone();
        let review = NewReview { order: id.clone(), product, rating: 1 + dice.next(5) as i64, text: "well".into() };
        check(shop.review(&order.user_id, &review).await);
    }
    if dice.of_a_hundred(20) {
        give_back(&shop, &order, &mut dice).await;
    }
}

async fn give_back(shop: &Shop, order: &commerce::Order, dice: &mut Dice) {
    let item = &order.items[dice.next(order.items.len() as u64) as usize];
    let kind = if dice.of_a_hundred(70) { AfterSaleKind::Return } else { AfterSaleKind::Exchange };
    let request = AfterSaleRequest {
        key: "back".into(),
        kind,
        order: order.id.clone(),
        lines: vec![Line { sku: item.sku_id.clone(), quantity: 1 + dice.next(item.quantity as u64) as i64 }],
        why: "too small".into(),
    };
    let Some(sale) = check(shop.ask_after_sale(&order.user_id, &request).await) else { return };
    let steps: &[&str] = match (dice.next(4), kind) {
        (0, _) => &["rejected"],
        (_, AfterSaleKind::Exchange) => &["approved", "received", "replaced"],
        _ => &["approved", "received"],
    };
    for step in steps {
        if check(shop.move_after_sale(&sale.id, step, "clerk", "", None).await).is_none() {
            return;
        }
    }
}

async fn deliver(shop: &Shop, provider: &Simulator) {
    let mut tasks = tokio::task::JoinSet::new();
    for callback in provider.due() {
        let shop = shop.clone();
        tasks.spawn(async move { shop.accept_callback(&callback).await.unwrap() });
    }
    tasks.join_all().await;
}

async fn crowd(shop: &Shop, provider: &Simulator, hand: &Hand, orders: u64, dice: &mut Dice) -> u64 {
    let (mut tried, mut placed) = (0, Vec::new());
    while tried < orders {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..CROWD.min(orders - tried) {
            tried += 1;
            tasks.spawn(buy(shop.clone(), provider.clone(), Dice(dice.next(u64::MAX))));
        }
        let (new, ()) = tokio::join!(tasks.join_all(), deliver(shop, provider));
        placed.extend(new.into_iter().flatten());
        hand.forward_ms(90_000);
        let settle = async { shop.settle_payments(provider).await.unwrap() };
        let (_, keep) = tokio::join!(settle, shop.housekeeping());
        keep.unwrap();
        let ready: Vec<String> = placed.drain(..placed.len() / 2).collect();
        let later = ready.into_iter().map(|id| go_on(shop.clone(), id, Dice(dice.next(u64::MAX))));
        later.collect::<tokio::task::JoinSet<()>>().join_all().await;
    }
    let count = placed.len() as u64;
    let later = placed.into_iter().map(|id| go_on(shop.clone(), id, Dice(dice.next(u64::MAX))));
    later.collect::<tokio::task::JoinSet<()>>().join_all().await;
    count
}

/// The provider's day gets better, and everything that is on its way arrives.
async fn quiet(shop: &Shop, provider: &Simulator, hand: &Hand) {
    provider.set_faults(Faults::NONE);
    hand.forward_ms(commerce::READ_AFTER.as_millis() as i64);
    for _ in 0..200 {
        hand.forward_ms(60_000);
        deliver(shop, provider).await;
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
    let mut dice = Dice(number("SHEAF_SIM_SEED", 5));
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(START);
    let clock = hand.clone();
    let provider = Simulator::new(dice.next(u64::MAX), Faults::MANY, SECRET, Arc::new(move || clock.millis()));
    let mut house = House::open(kind, folder.path(), &hand).await;
    stock_up(&house.shop, orders).await;
    let begun = Instant::now();
    for part in 0..2 {
        crowd(&house.shop, &provider, &hand, orders / 2, &mut dice).await;
        if part == 0 {
            house.close().await;
            house = House::open(kind, folder.path(), &hand).await;
        }
    }
    let took = begun.elapsed();
    let shop = &house.shop;
    quiet(shop, &provider, &hand).await;
    let checking = Instant::now();
    let verdict = shop.verify().await.unwrap();
    eprintln!(
        "{kind:?}: {orders} buyers, {} orders, {} payments, {} in, {} out, {:.1} s ({:.0} buyers/s), verified in {:.1} s",
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
    house.close().await;
}
