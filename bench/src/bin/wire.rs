//! Over the wire: `ping`, `find` by `_id`, single inserts with and without the flush, `$inc` on one hot document, and an
//! indexed equality with sort and limit, over 1, 16 and 64 connections; all in one run, as ratios of lines that alternate.
//!
//! `cargo run --release --bin wire -- [folder] [seconds] [documents]` (build all binaries first: `serve` runs beside)

use bson::{RawDocument, rawdoc};
use sheafdb_bench::load::{self, Outcome};
use sheafdb_bench::message::{SLOT, Template, body, is_ok};
use sheafdb_bench::server::Server;
use sheafdb_bench::{Dice, order};
use std::cell::RefCell;
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
    let pings = Line::new(&durable, "ping", ping(), documents);
    for (name, below) in [("find by _id", documents), ("find by _id, 1,000 hot", 1_000)] {
        let finds = Line::new(&durable, name, find_by_id(), below);
        // Once without measuring: what is asked for often lies in the cache.
        finds.run(16, time);
        alternate(time, &pings, &finds);
    }
    let sorts = Line::new(&durable, "equality, sort, limit 20", sorted(), 100_000);
    alternate(time, &pings, &sorts);
    fill_parts(&durable);
    let whole = Line::new(&durable, "find with five embedded", embedded(), PARTS);
    let parts = Line::new(&durable, "the same by five $lookups", joined(), PARTS);
    for connections in CONNECTIONS {
        let ratio = beside(connections, time, &whole, &parts);
        println!("   five $lookups by _id take {:.1} times an embedded read", 1.0 / ratio);
    }
    let stubbed = Server::start(Path::new(stubbed.path()), false);
    let free = Line::new(&stubbed, "insert, flush stubbed out", insert(), 0);
    let inserts = Line::new(&durable, "insert, durable", insert(), 0);
    alternate(time, &free, &inserts);
    let increments = Line::new(&durable, "$inc on one document, durable", increment(), documents);
    for connections in CONNECTIONS {
        increments.show(connections, &increments.run(connections, time), None);
    }
    println!("memory of the durable server: {:?} MB (now, most)", durable.memory_mb());
}

/// One kind of request, with the numbers that it is given.
struct Line<'s> {
    server: &'s Server,
    name: &'static str,
    template: Template,
    /// Numbers are below this; any, where it is zero.
    below: i64,
    dice: RefCell<Dice>,
}

/// What a run of a line gave, and what the server used for it.
struct Measured {
    outcome: Outcome,
    cpu: Duration,
}

/// How often two lines alternate: the machine's own pace changes from second to second.
const SLICES: u32 = 10;

fn alternate(time: Duration, first: &Line<'_>, second: &Line<'_>) {
    for connections in CONNECTIONS {
        beside(connections, time, first, second);
    }
}

/// Runs two lines in turns and prints both; gives the second's rate by the first's.
fn beside(connections: usize, time: Duration, first: &Line<'_>, second: &Line<'_>) -> f64 {
    let slice = time / SLICES;
    let (mut one, mut other) = (first.run(connections, slice), second.run(connections, slice));
    for _ in 1..SLICES {
        one.absorb(first.run(connections, slice));
        other.absorb(second.run(connections, slice));
    }
    let ratio = other.outcome.per_second() / one.outcome.per_second();
    first.show(connections, &one, None);
    second.show(connections, &other, Some(ratio));
    ratio
}

impl Measured {
    fn absorb(&mut self, later: Measured) {
        self.outcome.absorb(later.outcome);
        self.cpu += later.cpu;
    }
}

impl<'s> Line<'s> {
    fn new(server: &'s Server, name: &'static str, template: Template, below: i64) -> Line<'s> {
        Line { server, name, template, below, dice: RefCell::new(Dice::new(17)) }
    }

    fn number(&self) -> i64 {
        let mut dice = self.dice.borrow_mut();
        if self.below > 0 { dice.below(self.below as u64) as i64 } else { dice.number() as i64 >> 1 }
    }

    fn run(&self, connections: usize, time: Duration) -> Measured {
        let cpu = self.server.cpu();
        let next = |_: usize, out: &mut Vec<u8>| self.template.write(out, |_| self.number());
        let outcome = load::run(self.server.address, connections, time, next);
        Measured { outcome, cpu: self.server.cpu() - cpu }
    }

    fn show(&self, connections: usize, measured: &Measured, ratio: Option<f64>) {
        let outcome = &measured.outcome;
        let us = |part: f64| outcome.percentile(part).as_secs_f64() * 1e6;
        let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        println!(
            "{:30} {connections:3} {:11.0} {:9.0} {:9.0} {ratio:>9} {:10.1}",
            self.name,
            outcome.per_second(),
            us(0.5),
            us(0.99),
            measured.cpu.as_secs_f64() * 1e6 / outcome.count as f64,
        );
    }
}

fn ping() -> Template {
    Template::new(&rawdoc! { "ping": 1, "$db": "shop" })
}

fn find_by_id() -> Template {
    Template::new(
        &rawdoc! { "find": "orders", "filter": { "_id": SLOT }, "limit": 1_i64, "singleBatch": true, "$db": "shop" },
    )
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
