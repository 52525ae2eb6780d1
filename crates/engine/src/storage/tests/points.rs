//! Point reads of old and new snapshots while folds change what the points cache holds.

use super::{all, commit, faulty, put};
use crate::storage::*;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const KEYS: u64 = 60;

/// Ends the readers, also when the writer fails.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn key(number: u64) -> Bytes {
    Bytes::from(format!("key {number:02}"))
}

/// Reads every key by itself, some twice, and compares with the range, which the cache has no part in.
fn agrees(snapshot: &Snapshot, expected: &[(Bytes, Bytes)]) {
    for number in (0..KEYS).chain(0..KEYS / 2) {
        let key = key(number);
        let found = expected.iter().find(|(other, _)| *other == key).map(|(_, value)| value.clone());
        assert_eq!(snapshot.get(&key).unwrap(), found, "{key:?} at {}", snapshot.position());
    }
}

#[test]
fn old_and_new_snapshots_read_their_own_values_while_folds_go_on() {
    // A cache of a few entries, of some, and of all.
    for point_bytes in [16 << 10, 128 << 10, 1 << 20] {
        let options = Options { overlay_bytes: 8 << 10, point_bytes, cache_bytes: 1 << 20, ..Options::default() };
        let storage = Storage::open_on(Arc::new(Memory::default()), options).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (storage, stop) = (&storage, &stop);
                scope.spawn(move || {
                    let mut dice = faulty::Dice::new(thread);
                    let mut kept: Vec<(Snapshot, Vec<(Bytes, Bytes)>)> = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let snapshot = storage.snapshot();
                        let entries = all(&snapshot, Direction::Forward);
                        agrees(&snapshot, &entries);
                        if kept.len() == 4 {
                            kept.swap_remove(dice.roll(4) as usize);
                        }
                        kept.push((snapshot, entries));
                        let (old, entries) = &kept[dice.roll(kept.len() as u64) as usize];
                        agrees(old, entries);
                    }
                });
            }
            let _stop = Stop(&stop);
            let mut dice = faulty::Dice::new(99);
            for number in 0..1500_u64 {
                // Few keys change often, and one in four goes.
                let below = dice.roll(KEYS) + 1;
                let key = key(dice.roll(below));
                let write = if dice.roll(4) == 0 { (key, None) } else { (key, Some(number.to_string().into())) };
                let ticket = commit(&storage, vec![write]);
                if number % 10 == 0 {
                    ticket.wait().unwrap();
                }
                if number % 50 == 0 {
                    storage.checkpoint().unwrap();
                }
            }
        });
        assert!(storage.statistics().folds > 20);
        storage.checkpoint().unwrap();
        let last = storage.snapshot();
        agrees(&last, &all(&last, Direction::Forward));
    }
}

#[test]
fn a_writer_reads_what_it_wrote_over_what_the_cache_holds() {
    let options = Options { overlay_bytes: 64 << 10, ..Options::default() };
    let storage = Storage::open_on(Arc::new(Memory::default()), options).unwrap();
    commit(&storage, vec![put("a", "1"), put("b", "1")]).wait().unwrap();
    storage.checkpoint().unwrap();
    let before = storage.snapshot();
    assert_eq!(before.get(b"a").unwrap().unwrap(), "1");
    assert_eq!(before.get(b"a").unwrap().unwrap(), "1", "now from the cache");
    let mut writer = storage.writer().unwrap();
    writer.commit(Changes { writes: vec![put("a", "2"), (Bytes::from("b"), None)], ..Changes::default() }).unwrap();
    assert_eq!(writer.get(b"a").unwrap().unwrap(), "2");
    assert_eq!(writer.get(b"b").unwrap(), None);
    let mut layer = Layer::new(&before);
    layer.put("a", "3");
    assert_eq!(layer.get(b"a").unwrap().unwrap(), "3");
    drop(writer);
    storage.checkpoint().unwrap();
    assert_eq!(storage.snapshot().get(b"a").unwrap().unwrap(), "2");
    assert_eq!(storage.snapshot().get(b"b").unwrap(), None);
    assert_eq!(before.get(b"b").unwrap().unwrap(), "1", "the older snapshot keeps its view");
}
