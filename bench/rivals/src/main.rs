//! The embedded engine beside SQLite (jsonb, WAL, full synchronisation), in process and in one run: durable single inserts by one and 16 threads, inserts in batches of 1,000, point reads, an indexed
//! equality with sort and limit 20, and aggregation over all.
//!
//! `cargo run --release -p sheafdb-rivals -- [folder] [documents]`

#[allow(dead_code, reason = "shared with the other measurements")]
#[path = "../../src/common.rs"]
mod common;
mod sheaf;
mod sqlite;

use crate::common::cpu;
use std::time::Instant;

/// What each of them can be asked.
trait Rival: Sync {
    fn name(&self) -> &'static str;
    fn insert(&self, from: i64, to: i64);
    fn index(&self);
    fn point(&self, id: i64);
    fn sorted(&self, user: i64);
    fn group(&self) -> Option<usize>;
    fn match_group(&self) -> Option<usize>;
    fn top(&self) -> Option<usize>;
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let documents: i64 = arguments.next().map_or(200_000, |count| count.parse().unwrap());
    let folder = tempfile::tempdir_in(folder).unwrap();
    run(&sheaf::Sheaf::open(&folder.path().join("sheaf")), documents);
    run(&sqlite::Sqlite::open(&folder.path().join("sqlite.db")), documents);
}

fn run(rival: &dyn Rival, documents: i64) {
    let measure = |what: &str, count: i64, body: &mut dyn FnMut()| {
        let (used, began) = (cpu(), Instant::now());
        body();
        let (used, took) = ((cpu() - used).as_secs_f64() * 1e6, began.elapsed().as_secs_f64());
        println!(
            "{:7} {what:34} {:10.0}/s {:9.2} us of cpu each, {took:6.2} s",
            rival.name(),
            count as f64 / took,
            used / count as f64
        );
    };
    measure("insert in batches of 1,000", documents, &mut || {
        for start in (0..documents).step_by(1000) {
            rival.insert(start, (start + 1000).min(documents));
        }
    });
    measure("index on user and time", documents, &mut || rival.index());
    let mut next = documents;
    measure("durable insert, 1 thread", 300, &mut || {
        for _ in 0..300 {
            rival.insert(next, next + 1);
            next += 1;
        }
    });
    measure("durable insert, 16 threads", 3200, &mut || {
        std::thread::scope(|scope| {
            for thread in 0..16 {
                scope.spawn(move || {
                    (0..200).for_each(|number| {
                        let id = next + 1_000_000 + thread * 1000 + number;
                        rival.insert(id, id + 1);
                    })
                });
            }
        });
    });
    let mut dice = crate::common::Dice::new(3);
    measure("point read", 100_000, &mut || {
        for _ in 0..100_000 {
            rival.point(dice.below(documents as u64) as i64);
        }
    });
    measure("equality, sort, limit 20", 20_000, &mut || {
        for _ in 0..20_000 {
            rival.sorted(dice.below(100_000) as i64);
        }
    });
    for (what, ask) in [
        ("$group by city, sum and count", Rival::group as fn(&dyn Rival) -> Option<usize>),
        ("$match + $group", |rival| rival.match_group()),
        ("$sort + $limit 10", |rival| rival.top()),
    ] {
        measure(what, documents, &mut || {
            if ask(rival).is_none() {
                println!("(not supported)");
            }
        });
    }
    println!("{:7} memory {:?} MB (now, most, all so far)", rival.name(), crate::common::memory_mb("self"));
}
