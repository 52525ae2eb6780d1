//! Sales by city: of many orders, by `$group` over the orders themselves and over the shop's sales lines, by the kept rollup,
//! and by PostgreSQL on jsonb and on flat columns, one process each.

use crate::rival::Postgres;
use bson::{RawArrayBuf, RawDocumentBuf, doc, rawdoc};
use commerce::{Keeping, MODEL, ReportBy, ReportRequest, ReportSource, Settings, Shop};
use engine::operation::{Aggregate, Insert};
use engine::{Context, Engine, Namespace, Options};
use model::keep::Keeper;
use model::keep::embedded::ModelHook;
use model::problem::Sources;
use sheafdb_bench::{Dice, cpu, cpu_fine, order};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;

const CITIES: [&str; 8] = ["Lyon", "Porto", "Ghent", "Bergen", "Turin", "Graz", "Gdansk", "Malmo"];
/// 2026-01-01 in UTC, and how long the sales go on.
const START: i64 = 1_767_225_600_000;
const SPAN: u64 = 180 * 86_400_000;
const TIMES: u32 = 5;

/// Measures and prints the table.
pub fn measure(place: &Path, rival: &Postgres, orders: i64) {
    let folder = tempfile::tempdir_in(place).unwrap();
    let mut options = Options::system();
    options.storage.cache_bytes = 1 << 30;
    let engine = Engine::open(folder.path(), options).unwrap();
    println!("report by city over {orders} orders; milliseconds, one thread; the best and the middle of {TIMES}");
    println!("{:56} {:>9} {:>9} {:>9} {:>14}", "", "best", "middle", "cpu", "documents/s cpu");
    by_group(&engine, orders);
    by_shop(&engine, orders);
    by_rival(rival, orders);
    engine.close().unwrap();
}

fn times(name: &str, of: i64, mut body: impl FnMut()) {
    body();
    let used = cpu_fine();
    let mut taken: Vec<Duration> = (0..TIMES)
        .map(|_| {
            let begun = Instant::now();
            body();
            begun.elapsed()
        })
        .collect();
    let cpu = (cpu_fine() - used) / TIMES;
    taken.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let rate = of as f64 / cpu.as_secs_f64();
    println!("{name:56} {:9.3} {:9.3} {:9.3} {rate:14.0}", ms(taken[0]), ms(taken[TIMES as usize / 2]), ms(cpu));
}

fn insert(engine: &Engine, collection: &str, documents: Vec<RawDocumentBuf>) {
    let insert = Insert {
        namespace: Namespace::new("shop", collection).unwrap(),
        documents,
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    let reply = engine.insert(&Context::default(), insert).unwrap().wait().unwrap();
    assert!(reply.errors.is_empty(), "{:?}", reply.errors);
}

/// `$group` by city over whole orders of some 420 bytes.
fn by_group(engine: &Engine, orders: i64) {
    let mut dice = Dice::new(1);
    for start in (0..orders).step_by(1000) {
        insert(engine, "plain", (start..(start + 1000).min(orders)).map(|number| order(number, &mut dice)).collect());
    }
    engine.storage().checkpoint().unwrap();
    let group = rawdoc! { "$group": { "_id": "$city", "total": { "$sum": "$total" }, "count": { "$sum": 1 } } };
    let mut pipeline = RawArrayBuf::new();
    pipeline.push(group);
    times("Sheaf, $group by city over orders", orders, || {
        let aggregate = Aggregate::new(Namespace::new("shop", "plain").unwrap(), pipeline.clone());
        assert_eq!(engine.aggregate(&Context::default(), &aggregate).unwrap().documents.len(), CITIES.len());
    });
}

fn sale(number: i64, dice: &mut Dice) -> RawDocumentBuf {
    let amount = 100 + dice.below(100_000) as i64;
    rawdoc! {
        "_id": format!("sale-{number}"), "kind": "sale", "orderId": format!("order-{number}"),
        "city": CITIES[dice.below(8) as usize], "currency": "EUR",
        "at": bson::DateTime::from_millis(START + dice.below(SPAN) as i64),
        "orders": 1_i64, "sales": amount, "refunds": 0_i64,
        "lines": [{ "skuId": "lamp-brass", "productId": "lamp", "units": 1_i64, "sales": amount, "refunds": 0_i64 }],
    }
}

/// The shop's own report, whose rollups the model's hook keeps while the lines are written.
fn by_shop(engine: &Engine, orders: i64) {
    let mut sources = Sources::default();
    MODEL.iter().for_each(|(name, text)| sources.push(*name, *text));
    let checked = model::parse(sources).unwrap_or_else(|problems| panic!("{problems}"));
    engine.add_hook(Arc::new(ModelHook::new(Keeper::new(&checked.model).unwrap(), "shop")));
    let store = Store::embedded(engine.clone());
    let settings = Settings { keeping: Keeping::Model, ..Settings::for_store(&store) };
    let shop = Shop::with(store.clone(), "shop", settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(shop.ensure_indexes()).unwrap();
    let mut dice = Dice::new(2);
    let used = cpu();
    for start in (0..orders).step_by(500) {
        insert(engine, "sales", (start..(start + 500).min(orders)).map(|number| sale(number, &mut dice)).collect());
    }
    println!("  a line with its six rollups: {:.0} us of cpu", (cpu() - used).as_secs_f64() * 1e6 / orders as f64);
    engine.storage().checkpoint().unwrap();
    let ask = |source, per_day| {
        let (from, to) = ("2026-01-01".to_owned(), "2027-01-01".to_owned());
        let request = ReportRequest { by: ReportBy::City, from, to, zone: None, per_day, source };
        runtime.block_on(shop.report(&request)).unwrap().rows
    };
    let counted = ask(ReportSource::Aggregation, false);
    assert_eq!(counted, ask(ReportSource::Rollup, false), "the rollup says what the aggregation says");
    assert_eq!(counted.iter().map(|row| row.orders).sum::<i64>(), orders);
    times("Sheaf, the shop's report, aggregation of a year", orders, || drop(ask(ReportSource::Aggregation, false)));
    times("Sheaf, the shop's report, rollup of a year", orders, || drop(ask(ReportSource::Rollup, false)));
    let week = || {
        let (from, to) = ("2026-03-02".to_owned(), "2026-03-09".to_owned());
        let source = ReportSource::Rollup;
        let request = ReportRequest { by: ReportBy::City, from, to, zone: None, per_day: false, source };
        drop(runtime.block_on(shop.report(&request)).unwrap());
    };
    times("Sheaf, the shop's report, rollup of a week", orders, week);
    let lines = runtime.block_on(store.collection("shop", "salesByCity").count(doc! {}, None)).unwrap();
    println!("  the rollup has {lines} documents");
}

/// The same orders as jsonb and as flat columns.
fn by_rival(rival: &Postgres, orders: i64) {
    let mut client = rival.client();
    let tables = "CREATE TABLE documents (id bigint PRIMARY KEY, doc jsonb); \
        CREATE TABLE columns (id bigint PRIMARY KEY, number text, user_id bigint, city text, state text, total bigint, created bigint);";
    client.batch_execute(tables).unwrap();
    let mut dice = Dice::new(1);
    let mut copy = client.copy_in("COPY documents FROM STDIN").unwrap();
    let mut flat = Vec::with_capacity(orders as usize);
    for number in 0..orders {
        let document = order(number, &mut dice);
        writeln!(copy, "{number}\t{}", sheafdb_bench::json(&document)).unwrap();
        let text = |name: &str| document.get_str(name).unwrap().to_owned();
        let (user, total) = (document.get_i64("user").unwrap(), document.get_i64("total").unwrap());
        let created = document.get_datetime("created").unwrap().timestamp_millis();
        flat.push(format!(
            "{number}\t{}\t{user}\t{}\t{}\t{total}\t{created}",
            text("number"),
            text("city"),
            text("state")
        ));
    }
    copy.finish().unwrap();
    let mut copy = client.copy_in("COPY columns FROM STDIN").unwrap();
    flat.iter().for_each(|line| writeln!(copy, "{line}").unwrap());
    copy.finish().unwrap();
    client.batch_execute("VACUUM ANALYZE").unwrap();
    client.batch_execute("SET max_parallel_workers_per_gather = 0; SET jit = off").unwrap();
    for (name, question) in [
        ("PostgreSQL, jsonb", "SELECT doc->>'city', sum((doc->>'total')::bigint), count(*) FROM documents GROUP BY 1"),
        ("PostgreSQL, flat columns", "SELECT city, sum(total), count(*) FROM columns GROUP BY 1"),
    ] {
        times(name, orders, || assert_eq!(client.query(question, &[]).unwrap().len(), CITIES.len()));
    }
    println!("  (PostgreSQL's processor time is its own process's: its wall time counts)");
}
