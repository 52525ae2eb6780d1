//! Change streams: how much open streams with disjoint filters slow the writers of their collection, and how late they are.
//!
//! `cargo run --release --bin streams -- [folder] [streams] [writes/s]`
//!
//! Each stream has a connection of its own with a `getMore` outstanding; each write matches exactly one stream.

use bson::{RawBsonRef, rawdoc};
use sheafdb_bench::load;
use sheafdb_bench::message::{SLOT, Template, body, is_ok};
use sheafdb_bench::server::Server;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let streams: usize = arguments.next().map_or(1000, |count| count.parse().unwrap());
    let rate: u64 = arguments.next().map_or(5000, |rate| rate.parse().unwrap());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let server = Server::start(folder.path(), true);
    server.client().run(&rawdoc! { "create": "events", "$db": "shop" });
    for open in [0, streams / 10, streams] {
        let over = AtomicBool::new(false);
        let seen = AtomicU64::new(0);
        let ready = AtomicBool::new(open == 0);
        let lags = std::thread::scope(|scope| {
            let watching =
                scope.spawn(|| if open == 0 { Vec::new() } else { watch(&server, open, &over, &seen, &ready) });
            while !ready.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let memory = server.memory_mb();
            let paced = write(&server, streams, Some(rate), Duration::from_secs(6));
            let flat = write(&server, streams, None, Duration::from_secs(6));
            let expected = (paced.0.count + flat.0.count) * open as u64 / streams as u64;
            let began = Instant::now();
            while seen.load(Ordering::Relaxed) < expected * 9 / 10 && began.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(10));
            }
            println!(
                "{open} streams ({:?} MB): at {rate}/s asked {:.0}/s, p50 {:?}, p99 {:?}, {:.1} us of cpu a write; flat out {:.0}/s, \
                 {:.1} us; {} events seen of about {expected}, the last {:?} later",
                memory,
                paced.0.per_second(),
                paced.0.percentile(0.5),
                paced.0.percentile(0.99),
                paced.1,
                flat.0.per_second(),
                flat.1,
                seen.load(Ordering::Relaxed),
                began.elapsed(),
            );
            over.store(true, Ordering::Relaxed);
            watching.join().unwrap()
        });
        if let (Some(half), Some(late)) = (lags.get(lags.len() / 2), lags.get(lags.len() * 99 / 100)) {
            println!("   lag of an event (all phases): p50 {half:?}, p99 {late:?}");
        }
    }
}

fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

/// Writers on 16 connections, paced or as fast as they can; the server's processor time for a write in µs.
fn write(server: &Server, streams: usize, rate: Option<u64>, time: Duration) -> (load::Outcome, f64) {
    let document = rawdoc! { "at": SLOT, "stream": SLOT, "text": "x".repeat(200) };
    let command = rawdoc! { "insert": "events", "ordered": true, "$db": "shop" };
    let template = Template::with_documents(&command, "documents", &[&document]);
    let mut count = 0_u64;
    let started = Instant::now();
    let cpu = server.cpu();
    let outcome = load::run(server.address, 16, time, |_, out| {
        count += 1;
        if let Some(rate) = rate {
            let due = Duration::from_secs_f64(count as f64 / rate as f64);
            if let Some(early) = due.checked_sub(started.elapsed()) {
                std::thread::sleep(early);
            }
        }
        template.write(out, |slot| if slot == 0 { now_us() } else { (count % streams as u64) as i64 })
    });
    let used = (server.cpu() - cpu).as_secs_f64() * 1e6 / outcome.count as f64;
    (outcome, used)
}

/// Opens streams and follows them until it is over; gives the lags of their events.
fn watch(server: &Server, streams: usize, over: &AtomicBool, seen: &AtomicU64, ready: &AtomicBool) -> Vec<Duration> {
    let filter = rawdoc! { "$match": { "fullDocument.stream": SLOT } };
    let open =
        rawdoc! { "aggregate": "events", "pipeline": [{ "$changeStream": {} }, filter], "cursor": {}, "$db": "shop" };
    let open = Template::new(&open);
    let more =
        Template::new(&rawdoc! { "getMore": SLOT, "collection": "events", "maxTimeMS": 5000_i64, "$db": "shop" });
    let mut cursors = vec![0_i64; streams];
    let mut opened = 0;
    let mut lags = Vec::new();
    let cell = std::cell::RefCell::new(&mut cursors);
    load::run_until(
        server.address,
        streams,
        || over.load(Ordering::Relaxed),
        |number, out| match cell.borrow()[number] {
            0 => open.write(out, |_| number as i64),
            id => more.write(out, |_| id),
        },
        |number, frame| {
            assert!(is_ok(frame), "{:?}", body(frame));
            let cursor = body(frame).get_document("cursor").unwrap();
            if cell.borrow()[number] == 0 {
                cell.borrow_mut()[number] = cursor.get_i64("id").unwrap();
                opened += 1;
                ready.store(opened == streams, Ordering::Relaxed);
                return;
            }
            for event in cursor.get_array("nextBatch").unwrap() {
                let RawBsonRef::Document(event) = event.unwrap() else { panic!("an event is a document") };
                let document = event.get_document("fullDocument").unwrap();
                assert_eq!(document.get_i64("stream").unwrap(), number as i64);
                lags.push(Duration::from_micros((now_us() - document.get_i64("at").unwrap()).max(0) as u64));
                seen.fetch_add(1, Ordering::Relaxed);
            }
        },
    );
    lags.sort_unstable();
    lags
}
