//! No list of the shop scans: each runs on an index that also gives its order.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

mod common;

use bson::{Document, doc};
use common::empty;
use engine::operation::{Explain, Find};
use engine::plan::Verbosity;
use engine::{Context, Namespace};

/// The stages of the winning plan, from the top.
fn stages(plan: &Document, into: &mut Vec<String>) {
    into.push(plan.get_str("stage").unwrap_or_default().to_owned());
    for name in ["inputStage", "queryPlan"] {
        if let Ok(inner) = plan.get_document(name) {
            stages(inner, into);
        }
    }
    if let Ok(inner) = plan.get_array("inputStages") {
        inner.iter().filter_map(|stage| stage.as_document()).for_each(|stage| stages(stage, into));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_runs_on_an_index_in_its_order() {
    let (shop, _) = empty(commerce::Keeping::Shop).await;
    let engine = shop.store().engine().unwrap();
    let date = bson::DateTime::from_millis(0);
    let newest = doc! { "createdAt": -1, "_id": -1 };
    let after = doc! { "$or": [{ "createdAt": date, "_id": { "$lt": "x" } }, { "createdAt": { "$lt": date } }], "createdAt": { "$lte": date } };
    let with = |filter: Document| {
        let mut filter = filter;
        filter.extend(after.clone());
        filter
    };
    let lists = [
        ("products", doc! { "status": "active", "category.id": "c" }, newest.clone()),
        ("products", with(doc! { "status": "active", "category.id": "c" }), newest.clone()),
        (
            "products",
            doc! { "status": "active", "category.id": "c", "price": { "$gte": 1, "$lt": 9 } },
            doc! { "price": 1, "_id": 1 },
        ),
        ("products", doc! { "status": "active", "attributes": "colour:red" }, doc! { "price": 1, "_id": 1 }),
        (
            "products",
            doc! { "status": "active", "attributes": "colour:red", "category.id": "c" },
            doc! { "price": 1, "_id": 1 },
        ),
        ("products", doc! { "status": "active", "totalStock": { "$lt": 5 } }, doc! { "totalStock": 1, "_id": 1 }),
        ("orders", doc! { "userId": "u" }, newest.clone()),
        ("orders", with(doc! { "userId": "u" }), newest.clone()),
        ("orders", doc! { "userId": "u", "status": "paid" }, newest.clone()),
        ("orders", with(doc! { "userId": "u", "status": "paid" }), newest.clone()),
        ("orders", doc! { "status": "paid" }, newest.clone()),
        ("orders", doc! { "orderNumber": "n" }, doc! {}),
        ("users", doc! { "username": "n" }, doc! {}),
        ("reviews", doc! { "productId": "p", "status": "visible" }, newest.clone()),
        ("afterSales", doc! { "status": "requested" }, newest.clone()),
        ("afterSales", doc! { "userId": "u" }, newest.clone()),
        ("afterSales", doc! { "orderId": "o" }, doc! {}),
        ("payments", doc! { "orderId": "o" }, doc! {}),
        ("payments", doc! { "status": "pending", "createdAt": { "$lte": date } }, doc! { "createdAt": 1 }),
        ("payments", doc! { "refunding": { "$gt": 0_i64 } }, doc! {}),
        ("parcels", doc! { "orderId": "o" }, doc! {}),
        ("parcels", doc! { "trackingNumber": "t" }, doc! {}),
        ("logistics", doc! { "parcelId": "p" }, doc! { "time": -1, "_id": -1 }),
        ("logistics", doc! { "orderId": "p" }, doc! { "time": -1, "_id": -1 }),
        ("skus", doc! { "productId": "p" }, doc! {}),
        ("skus", doc! { "changedAt": { "$gte": date } }, doc! {}),
        ("stockHolds", doc! { "until": { "$lte": date } }, doc! { "until": 1 }),
        ("stockLedger", doc! { "skuId": "s" }, doc! { "at": -1, "_id": -1 }),
        ("webhookDeliveries", doc! { "status": "pending", "due": { "$lte": date } }, doc! { "due": 1 }),
        ("webhookDeliveries", doc! { "endpointId": "e" }, newest.clone()),
        ("webhookDeliveries", doc! { "doneAt": { "$lt": date } }, doc! {}),
        ("sales", doc! { "at": { "$gte": date, "$lt": date } }, doc! {}),
        ("salesByCity", doc! { "day": { "$gte": date, "$lt": date } }, doc! {}),
        ("salesByCityHour", doc! { "hour": { "$gte": date, "$lt": date } }, doc! {}),
        ("spending", doc! { "userId": "u" }, doc! {}),
    ];
    for (collection, filter, sort) in lists {
        let mut find = Find::new(Namespace::new("shop", collection).unwrap());
        find.query.filter = (&filter).try_into().unwrap();
        find.query.sort = (!sort.is_empty()).then(|| (&sort).try_into().unwrap());
        find.query.limit = 21;
        let explained = engine.explain(&Context::default(), &Explain::Find(Box::new(find)), Verbosity::QueryPlanner);
        let explained = Document::try_from(&*explained.unwrap()).unwrap();
        let plan = explained.get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap();
        let mut all = Vec::new();
        stages(plan, &mut all);
        let planned = all.iter().any(|stage| stage == "IXSCAN");
        let sorted = all.iter().all(|stage| stage != "SORT");
        assert!(planned && sorted && !all.iter().any(|stage| stage == "COLLSCAN"), "{collection} {filter}: {all:?}");
    }
}
