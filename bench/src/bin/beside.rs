//! A point writer's waits while something large runs beside it: an updateMany, checkpoints under a heavy load, an index build.
//!
//! `cargo run --release --bin beside -- [folder] [documents]`

use bson::{RawDocument, rawdoc};
use sheafdb_bench::load::{self, Outcome};
use sheafdb_bench::message::{SLOT, Template, body, is_ok};
use sheafdb_bench::server::Server;
use sheafdb_bench::{Dice, order};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let documents: i64 = arguments.next().map_or(1_000_000, |count| count.parse().unwrap());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let server = Server::start(folder.path(), true);
    let began = Instant::now();
    insert_many(&server, "orders", 0, documents, &AtomicBool::new(false));
    println!("{documents} documents inserted in batches of 1,000 in {:.1} s", began.elapsed().as_secs_f64());
    server.client().run(&rawdoc! { "fsync": 1, "$db": "admin" });
    let alone = writer(&server, Duration::from_secs(10), || ());
    show("a point writer alone", &alone, &alone);
    let beside = writer(&server, Duration::from_secs(600), || {
        let update = rawdoc! { "q": {}, "u": { "$inc": { "total": 1_i64 } }, "multi": true };
        let began = Instant::now();
        let reply = server.client().run(&rawdoc! { "update": "orders", "updates": [update], "$db": "shop" });
        let took = began.elapsed().as_secs_f64();
        println!("updateMany: {:?} documents in {took:.1} s", reply.get("nModified").unwrap());
    });
    show("beside an updateMany of all", &beside, &alone);
    let beside = writer(&server, Duration::from_secs(600), || {
        for _ in 0..8 {
            server.client().run(&rawdoc! { "fsync": 1, "$db": "admin" });
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    show("beside checkpoints", &beside, &alone);
    let beside = writer(&server, Duration::from_secs(600), || {
        insert_many(&server, "more", 0, documents / 4, &AtomicBool::new(false));
    });
    show("beside inserts of 1,000 at once", &beside, &alone);
    let beside = writer(&server, Duration::from_secs(600), || {
        let index = rawdoc! { "key": { "user": 1, "created": -1 }, "name": "mine" };
        server.client().run(&rawdoc! { "createIndexes": "orders", "indexes": [index], "$db": "shop" });
    });
    show("beside an index build", &beside, &alone);
    println!("memory of the server: {:?} MB (now, most)", server.memory_mb());
}

fn show(name: &str, outcome: &Outcome, alone: &Outcome) {
    let us = |part: f64| outcome.percentile(part).as_secs_f64() * 1e6;
    println!(
        "{name:34} {:8.0}/s p50 {:7.0} us p99 {:7.0} us p99.9 {:7.0} us most {:7.0} us; p99 x {:.2}",
        outcome.per_second(),
        us(0.5),
        us(0.99),
        us(0.999),
        us(1.0),
        outcome.percentile(0.99).as_secs_f64() / alone.percentile(0.99).as_secs_f64(),
    );
}

/// One connection that updates single documents of its own collection, while `beside` runs (at most for a time).
fn writer(server: &Server, most: Duration, beside: impl FnOnce() + Send) -> Outcome {
    const OWN: u64 = 1000;
    let update = rawdoc! { "q": { "_id": SLOT }, "u": { "$inc": { "n": 1_i64 } }, "upsert": true };
    let update = Template::with_documents(
        &rawdoc! { "update": "points", "ordered": true, "$db": "shop" },
        "updates",
        &[&update],
    );
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut client = server.client();
            let mut dice = Dice::new(5);
            let (mut waits, mut request) = (Vec::new(), Vec::new());
            let started = Instant::now();
            while !over.load(Ordering::Relaxed) && started.elapsed() < most {
                request.clear();
                update.write(&mut request, |_| dice.below(OWN) as i64);
                let sent = Instant::now();
                let frame = client.send(&request);
                waits.push(sent.elapsed());
                assert!(is_ok(&frame), "{:?}", body(&frame));
            }
            let elapsed = started.elapsed();
            waits.sort_unstable();
            load::Outcome { count: waits.len() as u64, elapsed, waits }
        });
        let began = Instant::now();
        beside();
        if most < Duration::from_secs(60) {
            std::thread::sleep(most.saturating_sub(began.elapsed()));
        }
        over.store(true, Ordering::Relaxed);
        running.join().unwrap()
    })
}

fn insert_many(server: &Server, collection: &str, from: i64, to: i64, stop: &AtomicBool) {
    let mut client = server.client();
    let mut dice = Dice::new(1);
    let mut request = Vec::new();
    for start in (from..to).step_by(1000) {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let batch: Vec<_> = (start..(start + 1000).min(to)).map(|number| order(number, &mut dice)).collect();
        let batch: Vec<&RawDocument> = batch.iter().map(|order| &**order).collect();
        let command = rawdoc! { "insert": collection, "ordered": true, "$db": "shop" };
        request.clear();
        Template::with_documents(&command, "documents", &batch).write(&mut request, |_| 0);
        let frame = client.send(&request);
        assert!(is_ok(&frame), "{:?}", body(&frame));
    }
}
