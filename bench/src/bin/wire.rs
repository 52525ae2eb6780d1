//! Over the wire: `ping`, `find` by `_id`, single inserts with and without the flush, `$inc` on one hot document, and an
//! indexed equality with sort and limit, over 1, 16 and 64 connections; all in one run, as ratios.
//!
//! `cargo run --release --bin wire -- [folder] [seconds] [documents]` (build all binaries first: `serve` runs beside)

use bson::{RawDocument, rawdoc};
use sheafdb_bench::load::{self, Outcome};
use sheafdb_bench::message::{SLOT, Template, body, is_ok};
use sheafdb_bench::server::Server;
use sheafdb_bench::{Dice, order};
use std::path::Path;
use std::time::Duration;

const CONNECTIONS: [usize; 3] = [1, 16, 64];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let time = Duration::from_secs_f64(arguments.next().map_or(4.0, |seconds| seconds.parse().unwrap()));
    let documents: i64 = arguments.next().map_or(200_000, |count| count.parse().unwrap());
    let (durable, stubbed) = (tempfile::tempdir_in(&folder).unwrap(), tempfile::tempdir_in(&folder).unwrap());
    let durable = Server::start(Path::new(durable.path()), true);
    fill(&durable, documents);
    println!("{:34} {:>11} {:>9} {:>9} {:>9} {:>10}", "", "ops/s", "p50 us", "p99 us", "ratio", "server us");
    let mut pings = Vec::new();
    for connections in CONNECTIONS {
        pings.push(measure(&durable, "ping", connections, time, &ping(), documents, None));
    }
    for (at, connections) in CONNECTIONS.into_iter().enumerate() {
        measure(&durable, "find by _id", connections, time, &find_by_id(), documents, Some(pings[at]));
    }
    for (at, connections) in CONNECTIONS.into_iter().enumerate() {
        measure(&durable, "equality, sort, limit 20", connections, time, &sorted(), 100_000, Some(pings[at]));
    }
    fill_parts(&durable);
    for connections in CONNECTIONS {
        let find = measure(&durable, "find with five embedded", connections, time, &embedded(), PARTS, None);
        let name = "the same by five $lookups";
        let joined = measure(&durable, name, connections, time, &joined(), PARTS, Some(find));
        println!("   five $lookups by _id take {:.1} times an embedded read", find / joined);
    }
    let stubbed = Server::start(Path::new(stubbed.path()), false);
    for connections in CONNECTIONS {
        let free = measure(&stubbed, "insert, flush stubbed out", connections, time, &insert(), 0, None);
        measure(&durable, "insert, durable", connections, time, &insert(), 0, Some(free));
    }
    for connections in CONNECTIONS {
        let name = "$inc on one document, durable";
        measure(&durable, name, connections, time, &increment(), documents, None);
    }
    println!("memory of the durable server: {:?} MB (now, most)", durable.memory_mb());
}

fn measure(
    server: &Server,
    name: &str,
    connections: usize,
    time: Duration,
    template: &Template,
    below: i64,
    against: Option<f64>,
) -> f64 {
    let mut dice = Dice::new(connections as u64);
    let cpu = server.cpu();
    let number = |dice: &mut Dice| if below > 0 { dice.below(below as u64) as i64 } else { dice.number() as i64 >> 1 };
    let outcome: Outcome =
        load::run(server.address, connections, time, |_, out| template.write(out, |_| number(&mut dice)));
    let cpu = (server.cpu() - cpu).as_secs_f64() * 1e6 / outcome.count as f64;
    let ratio = against.map_or(String::new(), |other| format!("{:.2}", outcome.per_second() / other));
    println!(
        "{name:30} {connections:3} {:11.0} {:9.0} {:9.0} {ratio:>9} {cpu:10.1}",
        outcome.per_second(),
        outcome.percentile(0.5).as_secs_f64() * 1e6,
        outcome.percentile(0.99).as_secs_f64() * 1e6,
    );
    outcome.per_second()
}

fn ping() -> Template {
    Template::new(&rawdoc! { "ping": 1, "$db": "shop" })
}

fn find_by_id() -> Template {
    Template::new(&rawdoc! { "find": "orders", "filter": { "_id": SLOT }, "limit": 1_i64, "singleBatch": true, "$db": "shop" })
}

fn sorted() -> Template {
    let command = rawdoc! {
        "find": "orders", "filter": { "user": SLOT }, "sort": { "created": -1 }, "limit": 20_i64, "$db": "shop",
    };
    Template::new(&command)
}

/// The collections that are joined, and how many documents each has.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const PARTS: i64 = 1000;

fn embedded() -> Template {
    Template::new(&rawdoc! { "find": "embedded", "filter": { "_id": SLOT }, "limit": 1_i64, "$db": "shop" })
}

fn joined() -> Template {
    let mut pipeline = bson::RawArrayBuf::new();
    pipeline.push(rawdoc! { "$match": { "_id": SLOT } });
    for name in NAMES {
        pipeline.push(rawdoc! { "$lookup": { "from": name, "localField": name, "foreignField": "_id", "as": name } });
    }
    Template::new(&rawdoc! { "aggregate": "joined", "pipeline": pipeline, "cursor": {}, "$db": "shop" })
}

fn fill_parts(server: &Server) {
    let part = |name: &str, id: i64| rawdoc! { "_id": id, "name": format!("{name} {id}"), "note": "x".repeat(100) };
    for name in NAMES {
        insert_all(server, name, (0..PARTS).map(|id| part(name, id)).collect());
    }
    let documents = |embedded: bool| {
        let mut dice = Dice::new(9);
        let document = |id: i64| {
            let mut document = rawdoc! { "_id": id, "title": "an order of parts" };
            for name in NAMES {
                let other = dice.below(PARTS as u64) as i64;
                let key = bson::raw::CString::try_from(name).unwrap();
                match embedded {
                    true => document.append(key, part(name, other)),
                    false => document.append(key, other),
                }
            }
            document
        };
        (0..PARTS).map(document).collect::<Vec<_>>()
    };
    insert_all(server, "joined", documents(false));
    insert_all(server, "embedded", documents(true));
}

fn insert_all(server: &Server, collection: &str, documents: Vec<bson::RawDocumentBuf>) {
    let documents: Vec<&RawDocument> = documents.iter().map(|document| &**document).collect();
    let mut request = Vec::new();
    let command = rawdoc! { "insert": collection, "ordered": true, "$db": "shop" };
    Template::with_documents(&command, "documents", &documents).write(&mut request, |_| 0);
    let frame = server.client().send(&request);
    assert!(is_ok(&frame), "{:?}", body(&frame));
}

fn insert() -> Template {
    let document = order(SLOT, &mut Dice::new(7));
    Template::with_documents(&rawdoc! { "insert": "events", "ordered": true, "$db": "shop" }, "documents", &[&document])
}

fn increment() -> Template {
    let update = rawdoc! { "q": { "_id": 1_i64 }, "u": { "$inc": { "total": 1_i64 } } };
    Template::with_documents(&rawdoc! { "update": "orders", "ordered": true, "$db": "shop" }, "updates", &[&update])
}

/// Orders with an index on their user and time.
fn fill(server: &Server, documents: i64) {
    let mut client = server.client();
    let mut dice = Dice::new(1);
    for start in (0..documents).step_by(1000) {
        let batch = (start..(start + 1000).min(documents)).map(|number| order(number, &mut dice)).collect();
        insert_all(server, "orders", batch);
    }
    let index = rawdoc! { "key": { "user": 1, "created": -1 }, "name": "mine" };
    client.run(&rawdoc! { "createIndexes": "orders", "indexes": [index], "$db": "shop" });
    client.run(&rawdoc! { "fsync": 1, "$db": "admin" });
}
