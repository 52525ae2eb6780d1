//! Money under faults: captured once, never lost, never given back twice.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use commerce::{
    Accepted, Callback, Error, Faults, Keeping, LatePayment, Order, RefundOptions, Reported, Settings, Shop, Signed,
    Simulator,
};
use common::{Hand, SECRET, euros, reconciled, request, stocked};
use std::sync::Arc;
use std::time::Duration;

fn simulator(seed: u64, faults: Faults, hand: &Hand) -> Simulator {
    let hand = hand.clone();
    Simulator::new(seed, faults, SECRET, Arc::new(move || hand.millis()))
}

fn signed(shop: &Shop, callback: &Callback) -> Signed {
    Signed::sign(SECRET, &callback.id, shop.now(), serde_json::to_vec(callback).unwrap())
}

fn report(shop: &Shop, payment: &str, report: Reported, amount: i64) -> Callback {
    let id = format!("{payment}:{report:?}:{amount}");
    let currency = euros(0).currency;
    Callback { id, payment_id: payment.into(), report, amount, currency, refund_key: None, at: shop.now() }
}

async fn deliver(shop: &Shop, provider: &Simulator) {
    for callback in provider.due() {
        shop.accept_callback(&callback).await.unwrap();
    }
}

async fn paid(shop: &Shop, provider: &Simulator, buyer: usize, quantity: i64) -> Order {
    let order = shop.place_order(&request(buyer, &[("p", quantity), ("q", 1)])).await.unwrap();
    shop.pay(&order.id, "card", None, provider).await.unwrap();
    deliver(shop, provider).await;
    shop.order(&order.id).await.unwrap()
}

fn all(key: &str) -> RefundOptions {
    RefundOptions { key: key.into(), why: "test".into(), by: "operator".into(), amount: None }
}

fn some(key: &str, amount: i64) -> RefundOptions {
    RefundOptions { amount: Some(amount), ..all(key) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_delivered_a_hundred_times_at_once_pays_once() {
    for keeping in [Keeping::Model, Keeping::Shop] {
        let (shop, hand) = stocked(keeping, 10).await;
        let provider = simulator(1, Faults::NONE, &hand);
        let order = shop.place_order(&request(3, &[("p", 2)])).await.unwrap();
        let payment = shop.pay(&order.id, "card", Some("k"), &provider).await.unwrap();
        let again = shop.pay(&order.id, "card", Some("k"), &provider).await.unwrap();
        assert_eq!(payment.id, again.id);
        let callback = provider.due().remove(0);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let (shop, callback) = (shop.clone(), callback.clone());
            tasks.spawn(async move { shop.accept_callback(&callback).await.unwrap() });
        }
        let done = tasks.join_all().await.into_iter().filter(|accepted| *accepted == Accepted::Done).count();
        assert_eq!(done, 1);
        let order = shop.order(&order.id).await.unwrap();
        assert_eq!((order.status.as_str(), order.payment.captured, order.hold_until), ("paid", 2_000, None));
        let level = shop.stock("p").await.unwrap();
        assert_eq!((level.available, level.held, level.sold), (8, 0, 2));
        let user = shop.user("u3").await.unwrap();
        assert_eq!((user.order_count, user.total_spent), (1, Some(euros(2_000))), "{keeping:?}");
        reconciled(&shop).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_callback_pays_nothing() {
    let (shop, _) = stocked(Keeping::Model, 10).await;
    let order = shop.place_order(&request(3, &[("p", 2)])).await.unwrap();
    let payment = shop.begin_payment(&order.id, "card", None).await.unwrap();
    let body = serde_json::to_vec(&report(&shop, &payment.id, Reported::Captured, 2_000)).unwrap();
    let forged = Signed::sign(b"guessed", "e", shop.now(), body);
    assert!(matches!(shop.accept_callback(&forged).await, Err(Error::BadSignature)));
    assert_eq!(shop.order(&order.id).await.unwrap().status, "created");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_amount_does_not_pay_and_goes_back() {
    let (shop, hand) = stocked(Keeping::Model, 10).await;
    let provider = simulator(1, Faults::NONE, &hand);
    let order = shop.place_order(&request(3, &[("p", 2)])).await.unwrap();
    let payment = shop.begin_payment(&order.id, "card", None).await.unwrap();
    let callback = signed(&shop, &report(&shop, &payment.id, Reported::Captured, 20));
    let refused = shop.accept_callback(&callback).await.unwrap_err();
    assert!(matches!(refused, Error::AmountMismatch { expected: 2_000, reported: 20 }), "{refused}");
    assert_eq!(shop.order(&order.id).await.unwrap().status, "created");
    let payment = shop.payment(&payment.id).await.unwrap();
    assert_eq!((payment.captured, payment.refunding, payment.left()), (20, 20, 0));
    drop(provider);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_arrives_after_the_capture_takes_nothing_back() {
    let (shop, _) = stocked(Keeping::Model, 10).await;
    let order = shop.place_order(&request(3, &[("p", 1)])).await.unwrap();
    let first = shop.begin_payment(&order.id, "card", None).await.unwrap();
    let second = shop.begin_payment(&order.id, "wallet", None).await.unwrap();
    let failed = signed(&shop, &report(&shop, &first.id, Reported::Failed, 1_000));
    assert_eq!(shop.accept_callback(&failed).await.unwrap(), Accepted::Done);
    let late = signed(&shop, &report(&shop, &first.id, Reported::Captured, 1_000));
    assert_eq!(shop.accept_callback(&late).await.unwrap(), Accepted::Done);
    assert_eq!(shop.accept_callback(&failed).await.unwrap(), Accepted::Known);
    // Both attempts brought money: the second goes back, whole.
    let double = signed(&shop, &report(&shop, &second.id, Reported::Captured, 1_000));
    assert_eq!(shop.accept_callback(&double).await.unwrap(), Accepted::SentBack);
    let order = shop.order(&order.id).await.unwrap();
    assert_eq!(order.payment.payment_id.as_deref(), Some(first.id.as_str()));
    assert_eq!((order.status.as_str(), order.payment.captured, order.payment.refunding), ("paid", 1_000, 0));
    assert_eq!(shop.payment(&second.id).await.unwrap().refunding, 1_000);
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_at_once_never_exceed_what_was_captured() {
    let (shop, hand) = stocked(Keeping::Model, 100).await;
    let provider = simulator(1, Faults::NONE, &hand);
    let order = paid(&shop, &provider, 1, 9).await;
    assert_eq!(order.payment.captured, 10_000);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (shop, order) = (shop.clone(), order.id.clone());
        tasks.spawn(async move {
            let key = format!("r{number}");
            let outcome = shop.refund_order(&order, &some(&key, 701)).await;
            (key, outcome)
        });
    }
    let (mut given, mut refused, mut used) = (0, 0, String::new());
    for (key, outcome) in tasks.join_all().await {
        match outcome {
            Ok(refund) => (given, used) = (given + refund.amount, key),
            Err(Error::RefundTooLarge { wanted: 701, left: 186 }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((given, refused), (9_814, 26));
    shop.refund_order(&order.id, &all("rest")).await.unwrap();
    let again = shop.refund_order(&order.id, &some(&used, 702)).await.unwrap_err();
    assert!(matches!(again, Error::KeyReused { .. }), "{again}");
    shop.send_refunds(&provider).await.unwrap();
    deliver(&shop, &provider).await;
    let order = shop.order(&order.id).await.unwrap();
    assert_eq!((order.status.as_str(), order.payment.refunded, order.payment.refunding), ("refunded", 10_000, 0));
    let by_line: i64 = order.returns.iter().map(|line| line.refunded).sum();
    assert_eq!(by_line, 10_000, "parts of parts add up");
    for item in &order.items {
        let line = order.returns.iter().find(|line| line.sku_id == item.sku_id).unwrap();
        assert_eq!((line.refunded, line.quantity), (item.payable, item.quantity));
    }
    assert_eq!(shop.stock("p").await.unwrap().available, 100, "what never left is on the shelf again");
    let books: i64 = provider.books().values().map(|books| books.captured - books.refunded).sum();
    assert_eq!(books, 0);
    assert_eq!(shop.user("u1").await.unwrap().total_spent, None);
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_whose_answer_is_lost_is_made_once() {
    let (shop, hand) = stocked(Keeping::Model, 100).await;
    let provider = simulator(7, Faults::NONE, &hand);
    let order = paid(&shop, &provider, 1, 9).await;
    provider.set_faults(Faults { lost_answers: 900, lost_callbacks: 1_000, ..Faults::NONE });
    for part in 0..5 {
        shop.refund_order(&order.id, &some(&format!("part {part}"), 1_000)).await.unwrap();
    }
    let mut tries = 0;
    while shop.order(&order.id).await.unwrap().payment.refunding > 0 {
        shop.send_refunds(&provider).await.unwrap();
        tries += 1;
        assert!(tries < 1_000);
    }
    assert!(tries > 1, "some answers were lost");
    let books = provider.books().remove(order.payment.payment_id.as_deref().unwrap()).unwrap();
    assert_eq!((books.captured, books.refunded), (10_000, 5_000));
    let order = shop.order(&order.id).await.unwrap();
    assert_eq!((order.payment.refunded, order.status.as_str()), (5_000, "paid"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_after_the_hold_takes_the_stock_again_or_goes_back() {
    for (rule, left_over, state, refunding) in [
        (LatePayment::Reacquire, true, "paid", 0),
        (LatePayment::Reacquire, false, "expired", 1_000),
        (LatePayment::Refund, true, "expired", 1_000),
    ] {
        let (model, hand) = stocked(Keeping::Model, 1).await;
        let settings = Settings { late_payment: rule, ..model.settings().clone() };
        let shop = Shop::with(model.store().clone(), "shop", settings);
        let order = shop.place_order(&request(1, &[("p", 1)])).await.unwrap();
        let payment = shop.begin_payment(&order.id, "card", None).await.unwrap();
        hand.forward_ms(15 * 60 * 1_000);
        assert_eq!(shop.expire_holds().await.unwrap(), 1);
        if !left_over {
            shop.place_order(&request(2, &[("p", 1)])).await.unwrap();
        }
        let callback = signed(&shop, &report(&shop, &payment.id, Reported::Captured, 1_000));
        shop.accept_callback(&callback).await.unwrap();
        assert_eq!(shop.accept_callback(&callback).await.unwrap(), Accepted::Known);
        assert_eq!(shop.order(&order.id).await.unwrap().status, state, "{rule:?}");
        assert_eq!(shop.payment(&payment.id).await.unwrap().refunding, refunding, "{rule:?}");
        reconciled(&shop).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_of_a_cancelled_order_goes_back() {
    let (shop, hand) = stocked(Keeping::Model, 1).await;
    let provider = simulator(1, Faults::NONE, &hand);
    let order = shop.place_order(&request(1, &[("p", 1)])).await.unwrap();
    shop.pay(&order.id, "card", None, &provider).await.unwrap();
    shop.cancel_order(&order.id, "u1", "changed my mind", Some(order.version + 1)).await.unwrap();
    let callback = provider.due().remove(0);
    assert_eq!(shop.accept_callback(&callback).await.unwrap(), Accepted::SentBack);
    shop.send_refunds(&provider).await.unwrap();
    let books = provider.books().into_values().next().unwrap();
    assert_eq!((books.captured, books.refunded), (1_000, 1_000));
    assert_eq!(shop.available("p").await.unwrap(), Some(1));
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reversal_before_its_capture_leaves_the_order_unpaid() {
    let (shop, hand) = stocked(Keeping::Model, 1).await;
    let provider = simulator(1, Faults::NONE, &hand);
    let order = shop.place_order(&request(1, &[("p", 1)])).await.unwrap();
    let payment = shop.pay(&order.id, "card", None, &provider).await.unwrap();
    provider.reverse(&payment.id);
    let mut callbacks = provider.due();
    callbacks.reverse();
    for callback in callbacks.iter().chain(&callbacks) {
        shop.accept_callback(callback).await.unwrap();
    }
    let payment = shop.payment(&payment.id).await.unwrap();
    assert_eq!((payment.captured, payment.reversed, payment.left()), (1_000, 1_000, 0));
    assert_eq!(shop.order(&order.id).await.unwrap().status, "created");
    hand.forward_ms(15 * 60 * 1_000);
    shop.expire_holds().await.unwrap();
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_of_which_nothing_is_heard_is_asked_about() {
    let (shop, hand) = stocked(Keeping::Model, 50).await;
    let silent = Faults { lost_answers: 500, lost_callbacks: 1_000, failures: 100, ..Faults::NONE };
    let provider = simulator(11, silent, &hand);
    for buyer in 0..30 {
        let order = shop.place_order(&request(buyer, &[("p", 1)])).await.unwrap();
        shop.pay(&order.id, "card", None, &provider).await.unwrap();
    }
    assert_eq!(shop.settle_payments(&provider).await.unwrap(), 0, "it is too early to ask");
    for _ in 0..20 {
        hand.forward_ms(Duration::from_secs(30).as_millis() as i64);
        shop.settle_payments(&provider).await.unwrap();
    }
    let captured: i64 = provider.books().values().map(|books| books.captured).sum();
    hand.forward_ms(15 * 60 * 1_000);
    shop.housekeeping().await.unwrap();
    let level = shop.stock("p").await.unwrap();
    assert_eq!((level.sold * 1_000, level.held), (captured, 0));
    assert!(captured > 0);
    reconciled(&shop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reversal_whose_callback_is_lost_is_noticed_all_the_same() {
    let (shop, hand) = stocked(Keeping::Model, 10).await;
    let provider = simulator(1, Faults::NONE, &hand);
    let order = paid(&shop, &provider, 1, 2).await;
    provider.set_faults(Faults { lost_callbacks: 1_000, ..Faults::NONE });
    provider.reverse(order.payment.payment_id.as_deref().unwrap());
    assert_eq!(provider.on_the_way(), 0);
    assert_eq!(shop.settle_payments(&provider).await.unwrap(), 0, "a callback may still come");
    hand.forward_ms(commerce::READ_AFTER.as_millis() as i64);
    assert_eq!(shop.settle_payments(&provider).await.unwrap(), 1);
    assert_eq!(shop.settle_payments(&provider).await.unwrap(), 0, "once");
    let order = shop.order(&order.id).await.unwrap();
    assert_eq!((order.status.as_str(), order.payment.refunded), ("refunded", 3_000));
    reconciled(&shop).await;
}
