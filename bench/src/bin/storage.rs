//! The storage's own costs: commits by threads and flush, a point read, a range, a snapshot.
//!
//! `cargo run --release --bin storage -- [folder]`

use bytes::Bytes;
use engine::storage::{Changes, Direction, Flush, Options, Storage, View};
use sheafdb_bench::{Dice, cpu, key, mean, value};
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    println!("commits of one document of 300 bytes (and a note of 300 bytes), each waited for");
    for flush in [Flush::Durable, Flush::Skip] {
        for threads in [1, 16, 64] {
            commits(Path::new(&folder), flush, threads);
        }
    }
    reads(Path::new(&folder));
}

fn commits(folder: &Path, flush: Flush, threads: u64) {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let storage = Storage::open(folder.path(), Options { flush, ..Options::default() }).unwrap();
    let done = AtomicU64::new(0);
    let run = Duration::from_secs(4);
    let (started, cpu_before) = (Instant::now(), cpu());
    let mut waits: Vec<Duration> = std::thread::scope(|scope| {
        let run_thread = |thread: u64| {
            let (storage, done) = (&storage, &done);
            move || {
                let mut dice = Dice::new(thread);
                let mut waits = Vec::new();
                while started.elapsed() < run {
                    let document = Bytes::from(value(&mut dice, 300));
                    let writes = vec![(Bytes::copy_from_slice(&key(dice.below(1 << 40))), Some(document.clone()))];
                    let began = Instant::now();
                    let changes = Changes { time: 1, note: document, writes };
                    let ticket = storage.writer().unwrap().commit(changes).unwrap();
                    ticket.wait().unwrap();
                    waits.push(began.elapsed());
                    done.fetch_add(1, Ordering::Relaxed);
                }
                waits
            }
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(run_thread(thread))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let elapsed = started.elapsed();
    let commits = done.into_inner();
    waits.sort_unstable();
    let statistics = storage.statistics();
    println!(
        "{flush:?} {threads:2} threads: {:7.0} commits/s, p50 {:?}, p99 {:?}, {:.1} commits a flush, {:.1} us of cpu a \
         commit, {} folds (longest {:?}), {} waits",
        commits as f64 / elapsed.as_secs_f64(),
        waits[waits.len() / 2],
        waits[waits.len() * 99 / 100],
        commits as f64 / statistics.flushes as f64,
        (cpu() - cpu_before).as_secs_f64() * 1e6 / commits as f64,
        statistics.folds,
        statistics.fold_longest,
        statistics.writer_waits,
    );
}

fn reads(folder: &Path) {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let storage = Storage::open(folder.path(), Options { flush: Flush::Skip, ..Options::default() }).unwrap();
    let mut dice = Dice::new(1);
    let count = 500_000u64;
    let started = Instant::now();
    for batch in 0..count / 1000 {
        let writes = (batch * 1000..(batch + 1) * 1000)
            .map(|number| (Bytes::copy_from_slice(&key(number)), Some(Bytes::from(value(&mut dice, 300)))))
            .collect();
        storage.writer().unwrap().commit(Changes { writes, ..Changes::default() }).unwrap();
    }
    storage.checkpoint().unwrap();
    println!("{count} documents loaded and folded in {:?}", started.elapsed());
    read_costs("all in the tables", &storage, count);
    for batch in 0..100 {
        let writes = (0..1000)
            .map(|_| (Bytes::copy_from_slice(&key(dice.below(count))), Some(Bytes::from(value(&mut dice, 300)))))
            .collect();
        storage.writer().unwrap().commit(Changes { writes, time: batch, ..Changes::default() }).unwrap();
    }
    let last = storage.writer().unwrap().position();
    storage.ticket(last).wait().unwrap();
    read_costs("100,000 of them in the overlay too", &storage, count);
}

fn read_costs(what: &str, storage: &Storage, count: u64) {
    let mut dice = Dice::new(7);
    let snapshot = storage.snapshot();
    let warm = mean(400_000, || drop(snapshot.get(&key(dice.below(count))).unwrap().unwrap()));
    let before = cpu();
    let get = mean(400_000, || drop(snapshot.get(&key(dice.below(count))).unwrap().unwrap()));
    let get_cpu = (cpu() - before) / 400_000;
    let missing = mean(200_000, || assert!(snapshot.get(&key(count + dice.below(count))).unwrap().is_none()));
    let fresh = mean(400_000, || drop(storage.snapshot()));
    let range = |length: usize, direction| {
        let mut dice = Dice::new(9);
        mean(20_000, || {
            let from = key(dice.below(count));
            let range = match direction {
                Direction::Forward => snapshot.range(Bound::Included(&from), Bound::Unbounded, direction),
                Direction::Backward => snapshot.range(Bound::Unbounded, Bound::Included(&from), direction),
            };
            assert!(range.unwrap().take(length).count() > 0);
        })
    };
    let one = range(1, Direction::Forward);
    let hundred = range(100, Direction::Forward);
    let backward = range(100, Direction::Backward);
    let started = Instant::now();
    let scanned = snapshot.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward).unwrap().count();
    println!(
        "{what}: get {get:?} (cpu {get_cpu:?}; first pass {warm:?}), of a missing key {missing:?}, snapshot {fresh:?}, range of 1 \
         {one:?}, of 100 {hundred:?}, backward {backward:?}, scan {:?} an entry",
        started.elapsed() / scanned as u32
    );
    let threads = 2;
    let started = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let snapshot = snapshot.clone();
            scope.spawn(move || {
                let mut dice = Dice::new(thread);
                (0..400_000).for_each(|_| drop(snapshot.get(&key(dice.below(count))).unwrap().unwrap()));
            });
        }
    });
    println!("  two threads: {:.0} gets/s", 800_000.0 / started.elapsed().as_secs_f64());
}
