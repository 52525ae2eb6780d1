//! The table store on our own access pattern: few, sorted, durable commits and many random reads. redb against LMDB.
//!
//! `cargo run --release --bin tables -- [folder] [entries]`

use heed::types::Bytes as Raw;
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use sheafdb_bench::{Dice, cpu, key, mean, value};
use std::ops::Bound;
use std::path::Path;
use std::time::{Duration, Instant};

const BATCH: u64 = 150_000;
const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");

type Entry = ([u8; 24], Vec<u8>);

trait Store {
    fn commit(&self, batch: &[Entry]);
    fn reads(&self, count: u64);
    fn size(&self) -> u64;
}

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let entries: u64 = std::env::args().nth(2).map_or(1_500_000, |entries| entries.parse().unwrap());
    let folder = tempfile::tempdir_in(folder).unwrap();
    println!("{entries} entries of 324 bytes, in batches of {BATCH} in random places");
    measure("redb", &Redb::open(folder.path()), entries);
    measure("lmdb", &Lmdb::open(folder.path()), entries);
}

fn measure(name: &str, store: &dyn Store, entries: u64) {
    let mut dice = Dice::new(3);
    let mut load = Vec::new();
    let mut update = Vec::new();
    let cpu_before = cpu();
    for start in (0..entries).step_by(BATCH as usize) {
        let batch = (start..(start + BATCH).min(entries)).map(|number| (key(number), value(&mut dice, 300))).collect();
        load.push(commit(store, batch));
    }
    let loaded = cpu();
    println!("{name}: load {}, cpu {:?}, {} MB", times(&load), loaded - cpu_before, store.size() >> 20);
    for _ in 0..4 {
        let batch = (0..BATCH).map(|_| (key(dice.below(entries)), value(&mut dice, 300))).collect();
        update.push(commit(store, batch));
    }
    println!("{name}: update {}, cpu {:?}, {} MB", times(&update), cpu() - loaded, store.size() >> 20);
    let small =
        (0..20).map(|_| commit(store, (0..20).map(|_| (key(dice.below(entries)), value(&mut dice, 300))).collect()));
    println!("{name}: a commit of 20 entries {}", times(&small.collect::<Vec<_>>()));
    store.reads(entries);
}

fn commit(store: &dyn Store, mut batch: Vec<Entry>) -> Duration {
    batch.sort_unstable();
    let started = Instant::now();
    store.commit(&batch);
    started.elapsed()
}

fn times(times: &[Duration]) -> String {
    let total: Duration = times.iter().sum();
    format!("mean {:?}, longest {:?}", total / times.len() as u32, times.iter().max().unwrap())
}

fn report(name: &str, entries: u64, get: impl Fn(&[u8]) -> usize, range: impl Fn(&[u8]) -> usize) {
    let mut dice = Dice::new(11);
    let mut read = || assert!(get(&key(dice.below(entries))) == 300);
    let first = mean(300_000, &mut read);
    let before = cpu();
    let second = mean(300_000, &mut read);
    let used = (cpu() - before) / 300_000;
    let mut dice = Dice::new(13);
    let hundred = mean(10_000, || assert!(range(&key(dice.below(entries))) > 0));
    println!("{name}: get {second:?} (first pass {first:?}; cpu {used:?}), range of 100 {hundred:?}");
}

struct Redb {
    database: redb::Database,
    path: std::path::PathBuf,
}

impl Redb {
    fn open(folder: &Path) -> Redb {
        let path = folder.join("redb");
        let database = redb::Builder::new().set_cache_size(512 << 20).create(&path).unwrap();
        Redb { database, path }
    }
}

impl Store for Redb {
    fn commit(&self, batch: &[Entry]) {
        let mut transaction = self.database.begin_write().unwrap();
        transaction.set_quick_repair(true);
        {
            let mut table = transaction.open_table(TABLE).unwrap();
            for (key, value) in batch {
                table.insert(&key[..], &value[..]).unwrap();
            }
        }
        transaction.commit().unwrap();
    }

    fn reads(&self, entries: u64) {
        let table = self.database.begin_read().unwrap().open_table(TABLE).unwrap();
        report(
            "redb",
            entries,
            |key| ReadableTable::get(&table, key).unwrap().unwrap().value().len(),
            |key| table.range_owned::<&[u8]>((Bound::Included(key), Bound::Unbounded)).unwrap().take(100).count(),
        );
    }

    fn size(&self) -> u64 {
        std::fs::metadata(&self.path).unwrap().len()
    }
}

struct Lmdb {
    environment: heed::Env,
    database: heed::Database<Raw, Raw>,
    path: std::path::PathBuf,
}

impl Lmdb {
    fn open(folder: &Path) -> Lmdb {
        let path = folder.join("lmdb");
        std::fs::create_dir_all(&path).unwrap();
        let mut options = heed::EnvOpenOptions::new();
        options.map_size(16 << 30);
        // SAFETY: nobody else opens this folder.
        let environment = unsafe { options.open(&path) }.unwrap();
        let mut transaction = environment.write_txn().unwrap();
        let database = environment.create_database(&mut transaction, None).unwrap();
        transaction.commit().unwrap();
        Lmdb { environment, database, path: path.join("data.mdb") }
    }
}

impl Store for Lmdb {
    fn commit(&self, batch: &[Entry]) {
        let mut transaction = self.environment.write_txn().unwrap();
        for (key, value) in batch {
            self.database.put(&mut transaction, key, value).unwrap();
        }
        transaction.commit().unwrap();
    }

    fn reads(&self, entries: u64) {
        let transaction = self.environment.read_txn().unwrap();
        report(
            "lmdb",
            entries,
            |key| self.database.get(&transaction, key).unwrap().unwrap().len(),
            |key| {
                let bounds = (Bound::Included(key), Bound::Unbounded);
                self.database.range(&transaction, &bounds).unwrap().take(100).count()
            },
        );
    }

    fn size(&self) -> u64 {
        std::fs::metadata(&self.path).unwrap().len()
    }
}
