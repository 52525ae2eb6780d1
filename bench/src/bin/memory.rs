//! Resident memory: a million cursors opened and closed, a storm of messages of 48 MB, 5,000 idle connections, 500 busy ones,
//! and a collection of some GB with the time to open it after a crash.
//!
//! `cargo run --release --bin memory -- [folder] [GB] [cursors]`

use bson::{RawDocument, rawdoc};
use sheafdb_bench::load::{self, Client};
use sheafdb_bench::message::{SLOT, Template, body, is_ok};
use sheafdb_bench::server::Server;
use sheafdb_bench::{Dice, order};
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let gigabytes: u64 = arguments.next().map_or(2, |count| count.parse().unwrap());
    let cursors: u64 = arguments.next().map_or(1_000_000, |count| count.parse().unwrap());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let server = Server::start(folder.path(), true);
    println!("an empty server: {:?} MB (now, most)", server.memory_mb());
    open_and_close(&server, cursors);
    storm(&server);
    idle(&server);
    busy(&server);
    collection(&server, gigabytes);
    let began = Instant::now();
    server.kill();
    println!("killed after {:?}", began.elapsed());
    let began = Instant::now();
    let server = Server::start(folder.path(), true);
    println!("opened after the crash in {:?}; {:?} MB", began.elapsed(), server.memory_mb());
    let count = server.client().run(&rawdoc! { "count": "large", "$db": "shop" });
    println!("it holds {:?} documents", count.get("n").unwrap());
}

fn open_and_close(server: &Server, cursors: u64) {
    insert(&mut server.client(), "few", (0..10).map(|number| order(number, &mut Dice::new(1))).collect());
    let find = Template::new(&rawdoc! { "find": "few", "batchSize": 1_i64, "$db": "shop" });
    let kill = rawdoc! { "killCursors": "few", "cursors": [SLOT], "$db": "shop" };
    let kill = Template::new(&kill);
    let mut open = vec![0_i64; 16];
    let cell = std::cell::RefCell::new(&mut open);
    let began = Instant::now();
    let mut done = 0;
    while done < cursors {
        let outcome = load::run_checked(
            server.address,
            16,
            Duration::from_secs(5),
            |number, out| match std::mem::take(&mut cell.borrow_mut()[number]) {
                0 => find.write(out, |_| 0),
                id => kill.write(out, |_| id),
            },
            |number, frame| {
                assert!(is_ok(frame), "{:?}", body(frame));
                if let Ok(cursor) = body(frame).get_document("cursor") {
                    cell.borrow_mut()[number] = cursor.get_i64("id").unwrap();
                }
            },
        );
        done += outcome.count / 2;
        cell.borrow_mut().fill(0);
    }
    println!("{done} cursors opened and closed in {:?}: {:?} MB", began.elapsed(), server.memory_mb());
}

fn storm(server: &Server) {
    let document = bson::rawdoc! { "_id": SLOT, "text": "x".repeat(15_900_000) };
    let documents = [&*document, &*document, &*document];
    let command = rawdoc! { "insert": "storm", "ordered": true, "$db": "shop" };
    let template = Template::with_documents(&command, "documents", &documents);
    let mut dice = Dice::new(2);
    let outcome = load::run(server.address, 8, Duration::from_secs(20), |_, out| {
        template.write(out, |_| dice.number() as i64 >> 1)
    });
    println!(
        "{} messages of 48 MB over 8 connections in {:?}: {:?} MB",
        outcome.count,
        outcome.elapsed,
        server.memory_mb()
    );
    let began = Instant::now();
    server.client().run(&rawdoc! { "drop": "storm", "$db": "shop" });
    println!("dropped in {:?}", began.elapsed());
    std::thread::sleep(Duration::from_secs(2));
    println!("afterwards: {:?} MB", server.memory_mb());
}

fn idle(server: &Server) {
    let ping = rawdoc! { "ping": 1, "$db": "shop" };
    let before = server.memory_mb().0;
    let mut clients: Vec<Client> = (0..5000).map(|_| server.client()).collect();
    clients.iter_mut().for_each(|client| drop(client.run(&ping)));
    std::thread::sleep(Duration::from_secs(1));
    let cpu = server.cpu();
    std::thread::sleep(Duration::from_secs(5));
    let used = server.cpu() - cpu;
    let after = server.memory_mb().0;
    println!("5,000 idle connections: {before} -> {after} MB, {used:?} of cpu in 5 s");
}

fn busy(server: &Server) {
    let find = Template::new(&rawdoc! { "find": "few", "filter": { "_id": SLOT }, "$db": "shop" });
    let outcome = load::run(server.address, 500, Duration::from_secs(5), |_, out| find.write(out, |_| 3));
    println!(
        "500 busy connections: {:.0} finds/s, p99 {:?}: {:?} MB",
        outcome.per_second(),
        outcome.percentile(0.99),
        server.memory_mb()
    );
}

fn collection(server: &Server, gigabytes: u64) {
    let mut client = server.client();
    let mut dice = Dice::new(1);
    let began = Instant::now();
    let (mut number, mut bytes) = (0_i64, 0_u64);
    let padding = sheafdb_bench::value(&mut dice, 1_600);
    while bytes < gigabytes << 30 {
        let batch: Vec<_> = (number..number + 1000)
            .map(|number| {
                let mut document = order(number, &mut dice);
                document.append(bson::raw::cstr!("text"), std::str::from_utf8(&padding).unwrap());
                document
            })
            .collect();
        bytes += batch.iter().map(|document| document.as_bytes().len() as u64).sum::<u64>();
        insert(&mut client, "large", batch);
        number += 1000;
    }
    let took = began.elapsed();
    println!("{number} documents of {} bytes in {took:?}: {:?} MB", bytes / number as u64, server.memory_mb());
    let find = Template::new(&rawdoc! { "find": "large", "filter": { "_id": SLOT }, "$db": "shop" });
    let outcome = load::run(server.address, 16, Duration::from_secs(5), |_, out| {
        find.write(out, |_| dice.below(number as u64) as i64)
    });
    println!(
        "random reads: {:.0}/s, p99 {:?}: {:?} MB",
        outcome.per_second(),
        outcome.percentile(0.99),
        server.memory_mb()
    );
}

fn insert(client: &mut Client, collection: &str, batch: Vec<bson::RawDocumentBuf>) {
    let batch: Vec<&RawDocument> = batch.iter().map(|order| &**order).collect();
    let mut request = Vec::new();
    let command = rawdoc! { "insert": collection, "ordered": true, "$db": "shop" };
    Template::with_documents(&command, "documents", &batch).write(&mut request, |_| 0);
    let frame = client.send(&request);
    assert!(is_ok(&frame), "{:?}", body(&frame));
}
