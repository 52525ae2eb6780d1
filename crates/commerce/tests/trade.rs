//! What comes after paying: parcels, returns, reviews; and what is counted: catalogue, reports, caches.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use bson::doc;
use commerce::{
    AfterSaleKind, AfterSaleRequest, Category, Error, Faults, Keeping, Line, NewParcel, NewProduct, NewReview, NewSku,
    Order, OrderFilter, Paging, ProductList, RefundOptions, ReportBy, ReportRequest, ReportSource, Shop, Simulator,
    Time, TrackEvent,
};
use common::{Hand, SECRET, START, euros, lyon, reconciled, request, stocked};
use std::sync::Arc;
use store::Update;

fn provider(hand: &Hand) -> Simulator {
    let hand = hand.clone();
    Simulator::new(1, Faults::NONE, SECRET, Arc::new(move || hand.millis()))
}

async fn paid(shop: &Shop, provider: &Simulator, buyer: usize, lines: &[(&str, i64)]) -> Order {
    let order = shop.place_order(&request(buyer, lines)).await.unwrap();
    shop.pay(&order.id, "card", None, provider).await.unwrap();
    for callback in provider.due() {
        shop.accept_callback(&callback).await.unwrap();
    }
    shop.order(&order.id).await.unwrap()
}

fn parcel(key: &str) -> NewParcel {
    NewParcel { key: key.into(), carrier: "post".into(), tracking_number: format!("T{key}") }
}

fn event(id: usize, hours: i64) -> TrackEvent {
    TrackEvent {
        id: format!("e{id}"),
        time: Time::from_millis(START + hours * 3_600_000),
        status: format!("step {id}"),
        location: "Lyon".into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_late_twice_and_out_of_order_lose_nothing_and_never_move_backwards() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, hand) = stocked(keeping, 10).await;
        let order = paid(&shop, &provider(&hand), 1, &[("p", 1)]).await;
        let one = shop.ship(&order.id, &parcel("1"), "clerk", None).await.unwrap();
        assert_eq!(shop.ship(&order.id, &parcel("1"), "clerk", None).await.unwrap().id, one.id);
        let two = shop.ship(&order.id, &parcel("2"), "clerk", None).await.unwrap();
        // 300 events over five days, each reported three times, in an order of its own for each thread.
        let mut tasks = tokio::task::JoinSet::new();
        for thread in 0..3_usize {
            for (parcel, last) in [(one.id.clone(), 300), (two.id.clone(), 20)] {
                let shop = shop.clone();
                tasks.spawn(async move {
                    for step in 0..last {
                        let id = (step * [7, 11, 13][thread] + thread * 31) % last;
                        shop.track(&parcel, &[event(id, id as i64 * 2 / 5)]).await.unwrap();
                    }
                });
            }
        }
        tasks.join_all().await;
        let track = shop.track_of(&one.id, 200).await.unwrap();
        assert_eq!(track.len(), 300);
        assert!(track.windows(2).all(|pair| pair[0].time >= pair[1].time));
        assert_eq!(shop.track_of(&two.id, 200).await.unwrap().len(), 20);
        let order = shop.order(&order.id).await.unwrap();
        let latest = order.latest_logistics.unwrap();
        assert_eq!((latest.time, latest.parcel_id.as_str()), (event(299, 119).time, one.id.as_str()), "{keeping:?}");
        assert_eq!((order.status.as_str(), order.parcels.len()), ("shipped", 2));
        let verdict = shop.verify().await.unwrap();
        assert_eq!(verdict.violations, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_returned_is_never_more_than_was_bought_and_pays_back_to_the_cent() {
    let (shop, hand) = stocked(Keeping::Model, 10).await;
    let provider = provider(&hand);
    shop.set_price("p", 333).await.unwrap();
    let order = paid(&shop, &provider, 1, &[("p", 3), ("q", 1)]).await;
    let back = |key: &str, quantity: i64| AfterSaleRequest {
        key: key.into(),
        kind: AfterSaleKind::Return,
        order: order.id.clone(),
        lines: vec![Line { sku: "p".into(), quantity }],
        why: "too small".into(),
    };
    let early = shop.ask_after_sale("u1", &back("a", 1)).await.unwrap_err();
    assert!(matches!(early, Error::IllegalMove { .. }), "{early}");
    shop.ship(&order.id, &parcel("1"), "clerk", None).await.unwrap();
    assert!(matches!(shop.ask_after_sale("u2", &back("a", 1)).await, Err(Error::NotYours { .. })));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..10 {
        let (shop, ask) = (shop.clone(), back(&format!("r{number}"), 1));
        tasks.spawn(async move { shop.ask_after_sale("u1", &ask).await });
    }
    let mut returns = Vec::new();
    for outcome in tasks.join_all().await {
        match outcome {
            Ok(sale) => returns.push(sale),
            Err(Error::NothingToReturn { left: 0, .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(returns.len(), 3);
    for sale in &returns {
        let skipped = shop.move_after_sale(&sale.id, "received", "clerk", "", None).await.unwrap_err();
        assert!(matches!(skipped, Error::IllegalMove { .. }), "{skipped}");
        shop.move_after_sale(&sale.id, "approved", "clerk", "", Some(1)).await.unwrap();
        let done = shop.move_after_sale(&sale.id, "received", "clerk", "", Some(2)).await.unwrap();
        assert_eq!(done.status, "refunded");
    }
    shop.send_refunds(&provider).await.unwrap();
    let after = shop.order(&order.id).await.unwrap();
    assert_eq!((after.payment.refunded, after.payment.refunding, after.status.as_str()), (999, 0, "shipped"));
    let level = shop.stock("p").await.unwrap();
    assert_eq!((level.available, level.sold), (10, 0));
    let verdict = shop.verify().await.unwrap();
    assert_eq!(verdict.violations, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_whose_money_goes_back_is_not_shipped() {
    let (shop, hand) = stocked(Keeping::Model, 10).await;
    let order = paid(&shop, &provider(&hand), 1, &[("p", 1)]).await;
    let options = RefundOptions { key: "r".into(), amount: None, why: String::new(), by: "u1".into() };
    shop.refund_order(&order.id, &options).await.unwrap();
    let refused = shop.ship(&order.id, &parcel("1"), "clerk", None).await.unwrap_err();
    assert!(matches!(refused, Error::RefundInProgress { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_product_carries_its_reviews_count_sum_and_latest_three() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, hand) = stocked(keeping, 50).await;
        let provider = provider(&hand);
        for buyer in 0..6 {
            let order = paid(&shop, &provider, buyer, &[("p", 1)]).await;
            let mut review =
                NewReview { order: order.id.clone(), product: "p".into(), rating: 3, text: format!("review {buyer}") };
            let early = shop.review(&format!("u{buyer}"), &review).await.unwrap_err();
            assert!(matches!(early, Error::NotBought { .. }), "{early}");
            shop.ship(&order.id, &parcel("1"), "clerk", None).await.unwrap();
            hand.forward_ms(1_000);
            shop.review(&format!("u{buyer}"), &review).await.unwrap();
            review.rating = 4; // said again, better
            shop.review(&format!("u{buyer}"), &review).await.unwrap();
        }
        let product = shop.product("p").await.unwrap();
        assert_eq!((product.review_count, product.rating_total), (6, 24), "{keeping:?}");
        let texts: Vec<_> = product.latest_reviews.iter().map(|review| review.text.as_str()).collect();
        assert_eq!(texts, ["review 5", "review 4", "review 3"], "{keeping:?}");
        let page = shop.reviews("p", &Paging::first(4)).await.unwrap();
        let hidden = page.items[0].id.clone();
        shop.show_review(&hidden, false).await.unwrap();
        let product = shop.product("p").await.unwrap();
        assert_eq!((product.review_count, product.latest_reviews[0].text.as_str()), (5, "review 4"), "{keeping:?}");
        assert_eq!(shop.verify().await.unwrap().violations, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_find_red_shirts_and_what_is_running_out() {
    let (shop, _) = stocked(Keeping::Model, 3).await;
    for number in 0..40_i64 {
        let id = format!("shirt{number}");
        let mut product = NewProduct::new(&id, "shirt", euros(1_000 + number % 7));
        product.category = Category { id: "shirts".into(), ..Category::default() };
        shop.add_product(&product).await.unwrap();
        let colour = ["red", "blue"][(number % 2) as usize];
        let attributes = [("colour".to_owned(), colour.to_owned())].into();
        let sku = NewSku {
            id: id.clone(),
            product_id: id,
            price_minor: 1_000,
            quantity: 10 + number,
            attributes,
            ..NewSku::default()
        };
        shop.add_sku(&sku).await.unwrap();
    }
    let red = ProductList::Attribute { name: "colour".into(), value: "red".into(), category: Some("shirts".into()) };
    let (mut seen, mut paging) = (Vec::new(), Paging::first(6));
    loop {
        let page = shop.products(&red, &paging).await.unwrap();
        seen.extend(page.items.into_iter().map(|product| (product.price, product.id)));
        match page.next {
            Some(next) => paging = Paging::after(&next, 6),
            None => break,
        }
    }
    assert_eq!(seen.len(), 20);
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
    let cheap = ProductList::CategoryByPrice { category: "shirts".into(), from: Some(1_001), to: Some(1_003) };
    let page = shop.products(&cheap, &Paging::first(100)).await.unwrap();
    assert!(page.items.iter().all(|product| (1_001..1_003).contains(&product.price)) && page.items.len() == 12);
    shop.place_order(&request(1, &[("p", 2), ("shirt0", 5)])).await.unwrap();
    assert!(shop.settle_catalogue().await.unwrap() >= 2);
    let scarce = shop.products(&ProductList::LowStock { below: 6 }, &Paging::default()).await.unwrap();
    let stock: Vec<_> = scarce.items.iter().map(|product| (product.id.as_str(), product.total_stock)).collect();
    assert_eq!(stock, [("p", 1), ("q", 3), ("shirt0", 5)]);
    assert_eq!(scarce.items[0].skus[0].stock, 1);
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_category_that_is_renamed_is_renamed_on_its_products() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, _) = stocked(keeping, 5).await;
        let category = |id: &str, name: &str| Category { id: id.into(), name: name.into(), parent: "home".into() };
        let product = |id: &str, category: Category| NewProduct { category, ..NewProduct::new(id, id, euros(100)) };
        shop.add_product(&product("a", category("lamps", "Lamps"))).await.unwrap();
        shop.add_product(&product("b", category("chairs", "Chairs"))).await.unwrap();
        shop.set_category(&category("lamps", "Lights")).await.unwrap();
        // Whoever still says the old name gets the new one.
        shop.add_product(&product("c", category("lamps", "Lamps"))).await.unwrap();
        let of = async |id: &str| shop.product(id).await.unwrap().category.name;
        assert_eq!((of("a").await, of("b").await, of("c").await), ("Lights".into(), "Chairs".into(), "Lights".into()));
        shop.update_product(&product("b", category("lamps", "")), None).await.unwrap();
        shop.update_product(&product("c", Category::default()), None).await.unwrap();
        assert_eq!((of("b").await, of("c").await), ("Lights".into(), String::new()), "{keeping:?}");
        let all: Vec<String> = shop.categories(None, 10).await.unwrap().into_iter().map(|found| found.id).collect();
        assert_eq!(all, ["chairs", "lamps"]);
        assert_eq!(shop.categories(Some("chairs"), 10).await.unwrap(), [category("lamps", "Lights")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_begins_at_midnight_of_the_named_zone_and_rollup_and_count_agree() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, hand) = stocked(keeping, 100).await;
        let provider = provider(&hand);
        let before = paid(&shop, &provider, 1, &[("p", 2)]).await; // 23:59 on the 30th in Shanghai
        hand.forward_ms(120_000);
        let mut elsewhere = request(2, &[("p", 1), ("q", 1)]);
        elsewhere.address = Some(commerce::Address { city: "Porto".into(), ..lyon() });
        let order = shop.place_order(&elsewhere).await.unwrap();
        shop.pay(&order.id, "card", None, &provider).await.unwrap();
        for callback in provider.due() {
            shop.accept_callback(&callback).await.unwrap();
        }
        let options = RefundOptions { key: "r".into(), amount: Some(700), why: String::new(), by: "u1".into() };
        shop.refund_order(&before.id, &options).await.unwrap();
        shop.send_refunds(&provider).await.unwrap();
        let ask = |by, from: &str, to: &str, zone: Option<&str>, source| ReportRequest {
            by,
            from: from.into(),
            to: to.into(),
            zone: zone.map(str::to_owned),
            per_day: false,
            source,
        };
        for source in [ReportSource::Rollup, ReportSource::Aggregation] {
            let of = |request| {
                let shop = shop.clone();
                async move {
                    let rows = shop.report(&request).await.unwrap().rows;
                    let row = |row: commerce::ReportRow| (row.key, row.orders, row.units, row.sales, row.refunds);
                    rows.into_iter().map(row).collect::<Vec<_>>()
                }
            };
            let first = of(ask(ReportBy::City, "2026-11-30", "2026-12-01", None, source)).await;
            assert_eq!(first, [("Lyon".to_owned(), 1, 0, 2_000, 0)], "{keeping:?} {source:?}");
            let second = of(ask(ReportBy::City, "2026-12-01", "2026-12-02", None, source)).await;
            assert_eq!(second, [("Porto".to_owned(), 1, 0, 2_000, 0), ("Lyon".to_owned(), 0, 0, 0, 700)]);
            let skus = of(ask(ReportBy::Sku, "2026-11-30", "2026-12-02", None, source)).await;
            assert_eq!(skus, [("p".to_owned(), 0, 3, 3_000, 700), ("q".to_owned(), 0, 1, 1_000, 0)]);
        }
        // Other zones: UTC and New York by the rollup of hours, but India's days begin between two hours.
        for (zone, source, by_city) in [
            ("UTC", ReportSource::Rollup, 2),
            ("America/New_York", ReportSource::Rollup, 2),
            ("Asia/Tokyo", ReportSource::Rollup, 0),
            ("Asia/Kolkata", ReportSource::Aggregation, 2),
        ] {
            let mut request = ask(ReportBy::City, "2026-11-30", "2026-12-01", Some(zone), ReportSource::Either);
            for per_day in [false, true] {
                request.per_day = per_day;
                let report = shop.report(&request).await.unwrap();
                assert_eq!((report.source, report.rows.len()), (source, by_city), "{zone}");
                let counted = ReportRequest { source: ReportSource::Aggregation, ..request.clone() };
                assert_eq!(shop.report(&counted).await.unwrap().rows, report.rows, "{zone}");
            }
        }
        let wrong = ask(ReportBy::City, "2026-11-30", "2026-12-01", Some("Asia/Kolkata"), ReportSource::Rollup);
        assert!(matches!(shop.report(&wrong).await, Err(Error::Invalid { field: "source", .. })));
        let spent = shop.spending("u1").await.unwrap();
        assert_eq!(spent, [commerce::Spending { currency: euros(0).currency, orders: 1, spent: 2_000 }]);
        for (from, to, zone) in [
            ("2026-12-01", "2026-12-01", None),
            ("x", "2026-12-01", None),
            ("2026-11-30", "2026-12-01", Some("Mars/Base")),
        ] {
            assert!(shop.report(&ask(ReportBy::City, from, to, zone, ReportSource::Either)).await.is_err());
        }
        assert_eq!(shop.verify().await.unwrap().violations, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_spent_in_two_currencies_has_no_sum() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, hand) = stocked(keeping, 10).await;
        let provider = provider(&hand);
        let dollars = commerce::Money::new(700, "USD".parse().unwrap());
        shop.add_product(&NewProduct::new("d", "product d", dollars)).await.unwrap();
        let sku = NewSku { id: "d".into(), product_id: "d".into(), price_minor: 700, quantity: 9, ..NewSku::default() };
        shop.add_sku(&sku).await.unwrap();
        assert_eq!(shop.user("u1").await.unwrap().total_spent, None, "nothing yet");
        let mut spent = Vec::new();
        for line in ["p", "d"] {
            paid(&shop, &provider, 1, &[(line, 1)]).await;
            let user = shop.user("u1").await.unwrap();
            spent.push((user.order_count, user.total_spent));
        }
        assert_eq!(spent, [(1, Some(euros(1_000))), (2, None)], "{keeping:?}");
        let each: Vec<_> = shop.spending("u1").await.unwrap().iter().map(|each| (each.currency, each.spent)).collect();
        assert_eq!(each, [(euros(0).currency, 1_000), (dollars.currency, 700)], "{keeping:?}");
        let mixed = shop.place_order(&request(1, &[("p", 1), ("d", 1)])).await;
        assert!(matches!(mixed, Err(Error::CurrencyMismatch { .. })), "{mixed:?}");
        assert_eq!(shop.verify().await.unwrap().violations, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cached_order_is_what_was_answered_last_and_others_changes_arrive() {
    let (shop, _) = stocked(Keeping::Model, 10).await;
    let follower = tokio::spawn({
        let shop = shop.clone();
        async move { shop.follow_changes().await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let order = shop.place_order(&request(1, &[("p", 1)])).await.unwrap();
    let filter = OrderFilter { buyer: Some("u1".into()), status: None };
    for _ in 0..3 {
        assert_eq!(shop.order_cached(&order.id).await.unwrap().status, "created");
        let page = shop.orders_cached(&filter, &Paging::default()).await.unwrap();
        assert_eq!(page.items[0].status, "created");
    }
    shop.cancel_order(&order.id, "u1", "no", None).await.unwrap();
    assert_eq!(shop.order_cached(&order.id).await.unwrap().status, "cancelled");
    assert_eq!(shop.orders_cached(&filter, &Paging::default()).await.unwrap().items[0].status, "cancelled");
    let orders = shop.store().collection("shop", "orders");
    let by_hand = doc! { "$set": { "remark": "by another process" } };
    orders.update_one(doc! { "_id": &order.id }, by_hand, Update::default(), None).await.unwrap();
    for _ in 0..100 {
        if shop.order_cached(&order.id).await.unwrap().remark == "by another process" {
            follower.abort();
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the cache does not hear of it");
}
