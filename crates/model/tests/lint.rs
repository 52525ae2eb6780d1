//! The bad shop: every planted fault is found, and nothing else.

use bson::{Document, doc, rawdoc};
use model::advise::thresholds::Thresholds;
use model::lint::{Finding, Options, Previous, Report, Severity, TABLE, bad_shop, judge};
use model::observe::{Bounds, Database, Observed, observe};
use std::future::pending;
use store::Store;
use wire::{Address, Config, Listen, Server};

const NOW_MS: i64 = 1_760_000_000_000;

/// The orders of the shop; more with SHEAF_BAD_SHOP_ORDERS.
fn orders() -> usize {
    std::env::var("SHEAF_BAD_SHOP_ORDERS").ok().and_then(|orders| orders.parse().ok()).unwrap_or(3_000)
}
/// What only a profile shows.
const PROFILED: &[&str] = &["lookup-heavy", "query-badly-ordered", "query-unindexed", "unique-missing"];

async fn cluster() -> Store {
    let listen = vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }];
    let engine = engine::Engine::in_memory(engine::Options::system()).expect("opens");
    let server = Server::bind(Config { listen, ..Config::default() }, engine).await.expect("binds");
    let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    tokio::spawn(server.serve(pending()));
    Store::connect(&format!("mongodb://{address}/?replicaSet=sheaf")).await.expect("connects")
}

fn judged(observed: &Observed) -> Report {
    judge(observed, &Thresholds::default(), &Options::default())
}

/// Which of the planted faults are not found, and which findings were not planted.
fn compared(report: &Report, profiled: bool) -> (Vec<String>, Vec<String>) {
    let planted: Vec<_> = bad_shop::PLANTED.iter().filter(|(rule, _)| profiled || !PROFILED.contains(rule)).collect();
    let is = |finding: &Finding, rule: &str, place: &str| finding.rule == rule && finding.place.starts_with(place);
    let missing = planted
        .iter()
        .filter(|(rule, place)| report.findings.iter().filter(|finding| is(finding, rule, place)).count() != 1)
        .map(|(rule, place)| format!("{rule} {place}"))
        .collect();
    let surplus = report
        .findings
        .iter()
        .filter(|finding| !planted.iter().any(|(rule, place)| is(finding, rule, place)))
        .map(|finding| format!("{} {}: {}", finding.rule, finding.place, finding.measured))
        .collect();
    (missing, surplus)
}

async fn looked(store: &Store) -> Observed {
    let bounds = Bounds { documents: 2_000, ..Bounds::default() };
    observe(store, &[bad_shop::DATABASE.to_owned()], bounds, NOW_MS).await.expect("looks")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bad_shop_on_a_deployment_each_fault_and_nothing_else() {
    let store = cluster().await;
    bad_shop::plant(&store, orders(), NOW_MS).await.expect("plants");
    bad_shop::profiled(&store, NOW_MS).await.expect("runs");
    let report = judged(&looked(&store).await);
    assert_eq!(compared(&report, true), (vec![], vec![]));
    assert!(report.reaches(Severity::Error));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bad_shop_in_a_folder_each_fault_and_nothing_else() {
    let store = Store::in_memory().expect("opens");
    bad_shop::plant(&store, orders(), NOW_MS).await.expect("plants");
    let observed = looked(&store).await;
    let report = judged(&observed);
    assert_eq!(compared(&report, false), (vec![], vec![]));
    let growing = report.findings.iter().find(|finding| finding.rule == "array-growing").expect("found");
    assert!(growing.measured.contains("24.0 more a day") && growing.measured.contains("16 MiB on 2"), "{growing:?}");

    let sarif: serde_json::Value = serde_json::from_str(&report.to_sarif()).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(report.findings.len()));
    let allowed: Vec<String> = TABLE.iter().map(|rule| rule.name.to_owned()).collect();
    let options = Options { allow: allowed, ..Options::default() };
    assert!(judge(&observed, &Thresholds::default(), &options).findings.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_shop_has_no_findings() {
    let store = Store::in_memory().expect("opens");
    let orders = store.collection("sound", "orders");
    let schema = doc! { "properties": { "status": { "enum": ["created", "paid"] } } };
    orders.create(doc! { "validator": { "$jsonSchema": schema } }).await.expect("creates");
    let order = |n: i64| doc! { "status": if n % 2 == 0 { "created" } else { "paid" }, "total": n * 100, "n": n };
    orders.insert_many((0..500).map(order).collect(), None).await.expect("inserts");
    let observed = observe(&store, &[], Bounds::default(), NOW_MS).await.expect("looks");
    assert_eq!(judged(&observed).findings, vec![]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_that_grew_since_the_last_run_is_growing() {
    let store = Store::in_memory().expect("opens");
    let lists = store.collection("growth", "lists");
    let list = |length: i32| doc! { "_id": length, "codes": (0..length).collect::<Vec<_>>() };
    lists.insert_one(list(60), None).await.expect("inserts");
    let before = observe(&store, &[], Bounds::default(), NOW_MS).await.expect("looks");
    lists.insert_one(list(90), None).await.expect("inserts");
    let day = 86_400_000;
    let observed = observe(&store, &[], Bounds::default(), NOW_MS + 10 * day).await.expect("looks");
    let options = Options { previous: Some(Previous::of(&before)), ..Options::default() };
    let report = judge(&observed, &Thresholds::default(), &options);
    let found = report.findings.iter().find(|finding| finding.rule == "array-growing").expect("found");
    assert!(found.measured.contains("3.0 more a day since the last run"), "{found:?}");
}

#[test]
fn a_key_twice_in_a_document_is_found() {
    let mut twice = rawdoc! { "a": 1 };
    twice.append(bson::raw::cstr!("a"), 2);
    let mut sample = model::observe::sample::Sample::default();
    sample.add(&rawdoc! { "_id": 1, "inner": twice });
    let collection = model::observe::Collection {
        info: store::CollectionInfo {
            name: "c".to_owned(),
            kind: "collection".to_owned(),
            options: doc! { "validator": Document::new() },
            uuid: None,
        },
        stats: store::CollectionStats::default(),
        indexes: Vec::new(),
        sample,
        largest: None,
    };
    let database = Database { name: "d".to_owned(), collections: vec![collection], ..Database::default() };
    let report = judged(&Observed { databases: vec![database], now_ms: NOW_MS });
    let found: Vec<_> = report.findings.iter().map(|finding| (finding.rule, finding.place.as_str())).collect();
    assert_eq!(found, [("duplicate-keys", "d.c a")]);
}

#[test]
fn every_rule_is_documented() {
    let docs = include_str!("../../../docs/lint.md");
    for rule in TABLE {
        assert!(docs.contains(&format!("### {}\n", rule.name)), "docs/lint.md has no section on {}", rule.name);
    }
    assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
}
