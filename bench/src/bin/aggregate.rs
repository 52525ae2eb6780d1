//! Aggregation over orders, in process: `$match` + `$group`, top-k against a full sort, five `$lookup`s against one embedded
//! read, counts; the same questions to PostgreSQL (jsonb) through `psql`, where its address is given. SQLite is in `rivals`.
//!
//! `cargo run --release --bin aggregate -- [orders] [psql connection string]`

use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};
use engine::operation::{Aggregate, Count, Find, Insert, Query};
use engine::{Context, Engine, Namespace, Options};
use sheafdb_bench::{Dice, cpu, cpu_fine, memory_mb, order};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let orders: i64 = arguments.next().map_or(1_000_000, |count| count.parse().unwrap());
    let postgres = arguments.next();
    let folder = tempfile::tempdir_in(".").unwrap();
    let mut options = Options::system();
    options.storage.cache_bytes = 1 << 30;
    let engine = Engine::open(folder.path(), options).unwrap();
    fill(&engine, orders);
    println!("{orders} orders; memory {:?} MB", memory_mb("self"));
    let shop = Shop { engine: &engine, orders };
    shop.pipelines();
    shop.lookups();
    println!("memory {:?} MB (now, most)", memory_mb("self"));
    drop(shop);
    if let Some(connection) = postgres {
        let mut table = fill_postgres(&connection, orders);
        ask_postgres(&mut table);
    }
    engine.close().unwrap();
}

fn namespace(name: &str) -> Namespace {
    Namespace::new("shop", name).unwrap()
}

fn insert(engine: &Engine, collection: &str, documents: Vec<RawDocumentBuf>) {
    let insert = Insert {
        namespace: namespace(collection),
        documents,
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    let reply = engine.insert(&Context::default(), insert).unwrap().wait().unwrap();
    assert!(reply.errors.is_empty());
}

fn fill(engine: &Engine, orders: i64) {
    let mut dice = Dice::new(1);
    let started = cpu();
    for start in (0..orders).step_by(1000) {
        insert(engine, "orders", (start..(start + 1000).min(orders)).map(|number| order(number, &mut dice)).collect());
    }
    println!("inserted: {:.2} us of cpu each", (cpu() - started).as_secs_f64() * 1e6 / orders as f64);
    for part in ["a", "b", "c", "d", "e"] {
        insert(
            engine,
            part,
            (0..1000).map(|number| rawdoc! { "_id": number as i64, "name": format!("{part} {number}"), "note": "x".repeat(100) }).collect(),
        );
    }
    let documents = |embedded: bool| -> Vec<RawDocumentBuf> {
        let mut dice = Dice::new(9);
        (0..1000)
            .map(|number: i64| {
                let mut document = rawdoc! { "_id": number, "title": "an order of parts" };
                for part in ["a", "b", "c", "d", "e"] {
                    let id = dice.below(1000) as i64;
                    if embedded {
                        let inner = rawdoc! { "_id": id, "name": format!("{part} {id}"), "note": "x".repeat(100) };
                        document = append(document, part, bson::RawBson::Document(inner));
                    } else {
                        document = append(document, part, bson::RawBson::Int64(id));
                    }
                }
                document
            })
            .collect()
    };
    insert(engine, "joined", documents(false));
    insert(engine, "embedded", documents(true));
    engine.storage().checkpoint().unwrap();
}

fn append(mut document: RawDocumentBuf, name: &str, value: bson::RawBson) -> RawDocumentBuf {
    document.append(bson::raw::CString::try_from(name).unwrap(), value);
    document
}

struct Shop<'e> {
    engine: &'e Engine,
    orders: i64,
}

impl Shop<'_> {
    fn run(&self, collection: &str, stages: Vec<RawDocumentBuf>) -> usize {
        let pipeline: RawArrayBuf = stages.into_iter().collect();
        let context = Context::default();
        let batch = self.engine.aggregate(&context, &Aggregate::new(namespace(collection), pipeline)).unwrap();
        let (mut count, mut cursor) = (batch.documents.len(), batch.cursor);
        while cursor != 0 {
            let batch = self.engine.get_more(&context, cursor, &namespace(collection), None, None).unwrap();
            count += batch.documents.len();
            cursor = batch.cursor;
        }
        count
    }

    fn measure(&self, name: &str, of: i64, mut body: impl FnMut() -> usize) -> Duration {
        // A running thread's processor time is brought up to date by ticks only, so that short bodies are repeated.
        const LEAST: Duration = Duration::from_millis(400);
        let (started, used) = (Instant::now(), cpu_fine());
        let (mut times, mut count) = (0, 0);
        while times < 2 || (started.elapsed() < LEAST && times < 1000) {
            count = body();
            times += 1;
        }
        let (cpu, took) = ((cpu_fine() - used) / times, started.elapsed() / times);
        println!(
            "{name:44} {:8.2} ms of cpu, {:8.2} ms, {:9.0} documents/s of cpu, {count} rows",
            cpu.as_secs_f64() * 1e3,
            took.as_secs_f64() * 1e3,
            of as f64 / cpu.as_secs_f64(),
        );
        cpu
    }

    fn pipelines(&self) {
        let group = rawdoc! { "$group": { "_id": "$city", "total": { "$sum": "$total" }, "count": { "$sum": 1 } } };
        let matched = rawdoc! { "$match": { "state": "paid" } };
        let all = self.orders;
        self.measure("$group by city, sum and count", all, || self.run("orders", vec![group.clone()]));
        self.measure("$match + $group", all, || self.run("orders", vec![matched.clone(), group.clone()]));
        let range = rawdoc! { "$match": { "total": { "$gte": 10_000_i64 } } };
        self.measure("$match of nine in ten + $group", all, || self.run("orders", vec![range.clone(), group.clone()]));
        let users = rawdoc! { "$group": { "_id": "$user", "total": { "$sum": "$total" } } };
        self.measure("$group by 100,000 users", all, || self.run("orders", vec![users.clone()]));
        let days = rawdoc! { "$group": { "_id": { "city": "$city", "day": { "$dateTrunc": { "date": "$created", "unit": "day" } } }, "total": { "$sum": "$total" } } };
        self.measure("$group by city and day", all, || self.run("orders", vec![days.clone()]));
        let unwind = vec![
            rawdoc! { "$unwind": "$items" },
            rawdoc! { "$group": { "_id": "$items.sku", "n": { "$sum": "$items.quantity" } } },
        ];
        self.measure("$unwind items + $group by sku", all, || self.run("orders", unwind.clone()));
        let top = vec![rawdoc! { "$sort": { "total": -1, "_id": 1 } }, rawdoc! { "$limit": 10 }];
        self.measure("$sort + $limit 10", all, || self.run("orders", top.clone()));
        let sort = vec![rawdoc! { "$sort": { "total": -1, "_id": 1 } }, rawdoc! { "$count": "n" }];
        self.measure("$sort of all", all, || self.run("orders", sort.clone()));
        self.measure("$count", all, || self.run("orders", vec![rawdoc! { "$count": "n" }]));
        let query = Query { filter: rawdoc! { "state": "paid" }, ..Query::default() };
        let count = Count { namespace: namespace("orders"), query };
        self.measure("count by state", all, || self.engine.count(&Context::default(), &count).unwrap() as usize);
        self.measure("find all", all, || self.run("orders", vec![rawdoc! { "$match": {} }]));
    }

    fn lookups(&self) {
        let lookup = |part: &str| {
            rawdoc! { "$lookup": { "from": part, "localField": part, "foreignField": "_id", "as": part } }
        };
        let unwind = |part: &str| rawdoc! { "$unwind": format!("${part}") };
        let parts = ["a", "b", "c", "d", "e"];
        let one = |number: i64| rawdoc! { "$match": { "_id": number } };
        let embedded = self.measure("1,000 embedded reads, one at a time", 1000, || {
            (0..1000).map(|number| self.run("embedded", vec![one(number)])).sum()
        });
        let found = self.measure("1,000 embedded finds, one at a time", 1000, || {
            (0..1000)
                .map(|number: i64| {
                    let mut find = Find::new(namespace("embedded"));
                    find.query.filter = rawdoc! { "_id": number };
                    self.engine.find(&Context::default(), &find).unwrap().documents.len()
                })
                .sum()
        });
        let five = self.measure("1,000 reads with five $lookups", 1000, || {
            (0..1000)
                .map(|number| {
                    let stages = std::iter::once(one(number)).chain(parts.iter().map(|part| lookup(part)));
                    self.run("joined", stages.collect())
                })
                .sum()
        });
        println!(
            "  five lookups against one embedded read: {:.1} (against a find: {:.1})",
            five.as_secs_f64() / embedded.as_secs_f64(),
            five.as_secs_f64() / found.as_secs_f64()
        );
        let all = self.measure("all 1,000 embedded documents", 1000, || self.run("embedded", vec![]));
        let five = self.measure("all 1,000 with five $lookups", 1000, || {
            self.run("joined", parts.iter().map(|part| lookup(part)).collect())
        });
        println!("  five lookups against embedded, all at once: {:.1}", five.as_secs_f64() / all.as_secs_f64());
        let five = self.measure("all 1,000 with five $lookups and $unwinds", 1000, || {
            self.run("joined", parts.iter().flat_map(|part| [lookup(part), unwind(part)]).collect())
        });
        println!("  with $unwind: {:.1}", five.as_secs_f64() / all.as_secs_f64());
    }
}

/// `psql` with its clock on; PostgreSQL gets the same orders as jsonb.
fn fill_postgres(connection: &str, orders: i64) -> Command {
    let psql = || {
        let mut command = Command::new("psql");
        command.arg(connection).args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]);
        command
    };
    let mut filling = psql().stdin(Stdio::piped()).spawn().unwrap();
    let mut input = std::io::BufWriter::new(filling.stdin.take().unwrap());
    writeln!(
        input,
        "DROP TABLE IF EXISTS orders; CREATE TABLE orders (id bigint PRIMARY KEY, doc jsonb); COPY orders FROM STDIN;"
    )
    .unwrap();
    let mut dice = Dice::new(1);
    for number in 0..orders {
        let document = order(number, &mut dice);
        let json = sheafdb_bench::json(&document);
        writeln!(input, "{number}\t{}", json.replace('\\', "\\\\")).unwrap();
    }
    writeln!(input, "\\.\nANALYZE orders;").unwrap();
    drop(input);
    assert!(filling.wait().unwrap().success());
    psql()
}

fn ask_postgres(psql: &mut Command) {
    let group = "count(*), sum((doc->>'total')::bigint) FROM orders";
    let questions = [
        ("$group by city", format!("SELECT doc->>'city', {group} GROUP BY 1")),
        ("$match + $group", format!("SELECT doc->>'city', {group} WHERE doc->>'state' = 'paid' GROUP BY 1")),
        ("nine in ten", format!("SELECT doc->>'city', {group} WHERE (doc->>'total')::bigint >= 10000 GROUP BY 1")),
        (
            "by 100,000 users",
            "SELECT count(*) FROM (SELECT doc->>'user', sum((doc->>'total')::bigint) FROM orders GROUP BY 1) x"
                .to_owned(),
        ),
        ("$sort + $limit 10", "SELECT id FROM orders ORDER BY (doc->>'total')::bigint DESC, id LIMIT 10".to_owned()),
        ("count by state", "SELECT count(*) FROM orders WHERE doc->>'state' = 'paid'".to_owned()),
    ];
    let mut script = String::from("SET max_parallel_workers_per_gather = 0; SET work_mem = '256MB';\n\\timing on\n");
    for (name, question) in &questions {
        script += &format!("\\echo {name}\n");
        for _ in 0..3 {
            script += &format!("{question} \\g /dev/null\n");
        }
    }
    println!("PostgreSQL (jsonb, one process):");
    let mut asking = psql.stdin(Stdio::piped()).spawn().unwrap();
    asking.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    asking.wait().unwrap();
}
