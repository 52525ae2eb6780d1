//! Orders: placed once, moved along the states, never changed in what they say.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use bson::doc;
use commerce::{
    Campaign, Checkout, CouponRefusal, Error, Keeping, NewProduct, NewSku, OrderFilter, Page, Paging, Reduction,
    Settings, Shop, Time,
};
use common::{START, euros, lyon, reconciled, request, stocked};
use std::collections::BTreeSet;

fn campaign(id: &str, reduction: Reduction, total: i64) -> Campaign {
    Campaign {
        id: id.into(),
        name: "welcome".into(),
        reduction,
        threshold: 1_500,
        currency: euros(0).currency,
        total,
        valid_from: Time::from_millis(START - 1_000),
        valid_until: Time::from_millis(START + 86_400_000),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_pressed_fifty_times_is_one_order() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, _) = stocked(keeping, 100).await;
        shop.put_in_cart("u1", "p", 3, None).await.unwrap();
        shop.put_in_cart("u1", "q", 1, None).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for press in 0..50 {
            let shop = shop.clone();
            // Half of them come from an impatient browser that makes a key of its own for each press.
            let key = if press % 2 == 0 { "button".to_owned() } else { format!("press {press}") };
            let checkout = Checkout { key, ..Checkout::default() };
            tasks.spawn(async move { shop.checkout("u1", &checkout).await });
        }
        let (mut orders, mut empty) = (BTreeSet::new(), 0);
        for outcome in tasks.join_all().await {
            match outcome {
                Ok(order) => drop(orders.insert(order.id)),
                Err(Error::EmptyCart) => empty += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(orders.len(), 1);
        assert!(empty >= 24, "{empty}");
        assert_eq!(shop.cart("u1").await.unwrap().lines, []);
        assert_eq!(shop.stock("p").await.unwrap().held, 3);
        reconciled(&shop).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_checkout_leaves_the_cart() {
    let (shop, _) = stocked(Keeping::Model, 2).await;
    shop.put_in_cart("u1", "p", 3, None).await.unwrap();
    let checkout = Checkout { key: "k".into(), ..Checkout::default() };
    assert!(matches!(shop.checkout("u1", &checkout).await, Err(Error::OutOfStock { wanted: 3, left: 2, .. })));
    let cart = shop.cart("u1").await.unwrap();
    assert_eq!(cart.lines.len(), 1);
    let stale = shop.put_in_cart("u1", "p", 2, Some(cart.version + 5)).await.unwrap_err();
    assert!(matches!(stale, Error::VersionConflict { .. }), "{stale}");
    shop.put_in_cart("u1", "p", 2, Some(cart.version)).await.unwrap();
    shop.checkout("u1", &checkout).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_with_another_request_is_refused() {
    let (shop, _) = stocked(Keeping::Model, 10).await;
    let mut first = request(1, &[("p", 1)]);
    first.key = Some("k".into());
    let placed = shop.place_order(&first).await.unwrap();
    assert_eq!(shop.place_order(&first).await.unwrap(), placed);
    let mut other = request(1, &[("p", 2)]);
    other.key = Some("k".into());
    assert!(matches!(shop.place_order(&other).await, Err(Error::KeyReused { .. })));
    let mut somebody = request(2, &[("p", 1)]);
    somebody.key = Some("k".into());
    assert_ne!(shop.place_order(&somebody).await.unwrap().id, placed.id, "keys are each buyer's own");
    assert_eq!(shop.stock("p").await.unwrap().held, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_keeps_what_product_buyer_and_address_were() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, _) = stocked(keeping, 10).await;
        let placed = shop.place_order(&request(1, &[("p", 1)])).await.unwrap();
        let mut renamed = NewProduct::new("p", "another name", euros(9_999));
        renamed.image_url = "https://example.com/new.jpg".into();
        shop.update_product(&renamed, None).await.unwrap();
        shop.set_price("p", 9_999).await.unwrap();
        let mut moved = lyon();
        moved.city = "Porto".into();
        shop.set_default_address("u1", &moved).await.unwrap();
        assert_eq!(shop.order(&placed.id).await.unwrap(), placed);
        let next = shop.place_order(&request(1, &[("p", 1)])).await.unwrap();
        assert_eq!((next.total, next.shipping_address.city.as_str()), (9_999, "Porto"));
        assert_eq!(next.items[0].product_name, "another name");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_unique_and_illegal_moves_are_refused_by_name() {
    let (shop, _) = stocked(Keeping::Model, 1_000).await;
    let mut tasks = tokio::task::JoinSet::new();
    for buyer in 0..200 {
        let shop = shop.clone();
        tasks.spawn(async move { shop.place_order(&request(buyer, &[("p", 1)])).await.unwrap() });
    }
    let orders = tasks.join_all().await;
    let numbers: BTreeSet<_> = orders.iter().map(|order| &order.order_number).collect();
    assert_eq!(numbers.len(), 200);
    let order = &orders[0];
    let refused = shop.sign_order(&order.id, "buyer", None).await.unwrap_err();
    assert!(
        matches!(refused, Error::IllegalMove { ref from, ref to, .. } if from == "created" && to == "signed"),
        "{refused}"
    );
    let stale = shop.cancel_order(&order.id, "buyer", "", Some(7)).await.unwrap_err();
    assert!(matches!(stale, Error::VersionConflict { expected: 7, found: 1, .. }), "{stale}");
    let cancelled = shop.cancel_order(&order.id, "buyer", "no", Some(1)).await.unwrap();
    assert_eq!((cancelled.status.as_str(), cancelled.version), ("cancelled", 2));
    let states: Vec<_> = cancelled.status_history.iter().map(|entry| entry.state.as_str()).collect();
    assert_eq!(states, ["created", "cancelled"]);
    assert!(matches!(shop.cancel_order(&order.id, "buyer", "", None).await, Err(Error::IllegalMove { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_version_is_changed_once_by_however_many() {
    let (shop, _) = stocked(Keeping::Model, 10).await;
    let order = shop.place_order(&request(1, &[("p", 1)])).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (shop, id) = (shop.clone(), order.id.clone());
        tasks.spawn(async move { shop.cancel_order(&id, &format!("clerk {number}"), "", Some(1)).await });
    }
    let mut done = 0;
    for outcome in tasks.join_all().await {
        match outcome {
            Ok(_) => done += 1,
            Err(Error::VersionConflict { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(done, 1);
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_add_up_and_currencies_do_not_mix() {
    let (model, _) = stocked(Keeping::Model, 100).await;
    let settings =
        Settings { shipping_fee_minor: 499, free_shipping_from_minor: Some(5_000), ..model.settings().clone() };
    let shop = Shop::with(model.store().clone(), "shop", settings);
    shop.add_sku(&NewSku {
        id: "p2".into(),
        product_id: "p".into(),
        price_minor: 333,
        quantity: 9,
        ..NewSku::default()
    })
    .await
    .unwrap();
    shop.add_campaign(&campaign("ten", Reduction::Percent("10".parse().unwrap()), 5)).await.unwrap();
    shop.claim_coupon("u1", "ten").await.unwrap();
    let mut wanted = request(1, &[("p", 1), ("q", 2), ("p2", 1)]);
    wanted.coupon = Some("ten".into());
    let order = shop.place_order(&wanted).await.unwrap();
    assert_eq!((order.subtotal, order.discount, order.shipping_fee, order.total), (3_333, 333, 499, 3_499));
    assert_eq!(order.items.iter().map(|item| item.discount).sum::<i64>(), 333);
    assert_eq!(order.items.iter().map(|item| item.payable).sum::<i64>() + order.shipping_fee, order.total);
    assert_eq!(order.discounts.iter().map(|discount| discount.amount).sum::<i64>(), order.discount);
    let big = shop.place_order(&request(2, &[("p", 5)])).await.unwrap();
    assert_eq!((big.shipping_fee, big.total), (0, 5_000));

    let dollars = commerce::Money::new(1_000, "USD".parse().unwrap());
    shop.add_product(&NewProduct::new("usd", "imported", dollars)).await.unwrap();
    let sku =
        NewSku { id: "usd".into(), product_id: "usd".into(), price_minor: 1_000, quantity: 9, ..NewSku::default() };
    shop.add_sku(&sku).await.unwrap();
    let mixed = shop.place_order(&request(2, &[("p", 1), ("usd", 1)])).await.unwrap_err();
    assert!(matches!(mixed, Error::CurrencyMismatch { .. }), "{mixed}");
    assert_eq!(shop.stock("usd").await.unwrap().held, 0);
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn coupons_are_given_out_to_the_last_and_used_once() {
    let (shop, hand) = stocked(Keeping::Model, 1_000).await;
    shop.add_campaign(&campaign("c", Reduction::Amount(500), 20)).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for buyer in 0..60 {
        let shop = shop.clone();
        tasks.spawn(async move { (buyer % 40, shop.claim_coupon(&format!("u{}", buyer % 40), "c").await) });
    }
    let mut holders = BTreeSet::new();
    for (buyer, outcome) in tasks.join_all().await {
        match outcome {
            Ok(_) => assert!(holders.insert(buyer), "one each"),
            Err(Error::CouponRefused { why: CouponRefusal::AllGivenOut | CouponRefusal::AlreadyHeld, .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(holders.len(), 20);
    let holder = *holders.first().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let shop = shop.clone();
        let mut wanted = request(holder, &[("p", 2)]);
        wanted.coupon = Some("c".into());
        tasks.spawn(async move { shop.place_order(&wanted).await });
    }
    let mut placed = Vec::new();
    for outcome in tasks.join_all().await {
        match outcome {
            Ok(order) => placed.push(order),
            Err(Error::CouponRefused { why: CouponRefusal::Used, .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((placed.len(), placed[0].total), (1, 1_500));
    let mut small = request(*holders.last().unwrap(), &[("p", 1)]);
    small.coupon = Some("c".into());
    let refused = shop.place_order(&small).await.unwrap_err();
    assert!(matches!(refused, Error::CouponRefused { why: CouponRefusal::BelowThreshold, .. }), "{refused}");
    // Not paid: the coupon comes back, and can be used again.
    hand.forward_ms(15 * 60 * 1_000);
    assert_eq!(shop.expire_holds().await.unwrap(), 1);
    let mut wanted = request(holder, &[("p", 2)]);
    wanted.coupon = Some("c".into());
    shop.place_order(&wanted).await.unwrap();
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_without_gaps_or_repetitions() {
    let (shop, hand) = stocked(Keeping::Model, 1_000).await;
    for number in 0..25 {
        shop.place_order(&request(1, &[("p", 1)])).await.unwrap();
        if number % 3 == 0 {
            hand.forward_ms(1); // some have the same time
        }
    }
    let filter = OrderFilter { buyer: Some("u1".into()), status: None };
    let (mut seen, mut paging) = (Vec::new(), Paging::first(7));
    loop {
        let page: Page<_> = shop.orders(&filter, &paging).await.unwrap();
        seen.extend(page.items.into_iter().map(|order| (order.created_at, order.id)));
        match page.next {
            Some(next) => paging = Paging::after(&next, 7),
            None => break,
        }
    }
    assert_eq!(seen.len(), 25);
    assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "newest first, each once");
    let open = OrderFilter { buyer: Some("u1".into()), status: Some("paid".into()) };
    assert_eq!(shop.orders(&open, &Paging::default()).await.unwrap().items, []);
    assert!(matches!(shop.orders(&OrderFilter::default(), &Paging::default()).await, Err(Error::Invalid { .. })));
    assert!(shop.orders(&filter, &Paging::after("nonsense", 5)).await.is_err());
    let orders = shop.store().collection("shop", "orders");
    assert_eq!(orders.count(doc! { "userId": "u1" }, None).await.unwrap(), 25);
}
