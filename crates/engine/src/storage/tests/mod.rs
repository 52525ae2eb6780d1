//! Tests of the storage as a whole.
#![allow(clippy::unwrap_used)]

mod crash;
pub(crate) mod faulty;
mod model;
mod points;

use super::*;
use bytes::Bytes;
use std::ops::Bound;

fn put(key: &str, value: &str) -> (Bytes, Option<Bytes>) {
    (Bytes::copy_from_slice(key.as_bytes()), Some(Bytes::copy_from_slice(value.as_bytes())))
}

fn commit(storage: &Storage, writes: Vec<(Bytes, Option<Bytes>)>) -> Ticket {
    storage.writer().unwrap().commit(Changes { writes, ..Changes::default() }).unwrap()
}

fn all(view: &dyn View, direction: Direction) -> Vec<(Bytes, Bytes)> {
    view.range(Bound::Unbounded, Bound::Unbounded, direction).unwrap().collect::<crate::Result<_>>().unwrap()
}

#[test]
fn a_commit_is_seen_by_the_writer_at_once_and_by_snapshots_once_flushed() {
    let storage = Storage::in_memory(Options::default());
    let before = storage.snapshot();
    let mut writer = storage.writer().unwrap();
    let ticket = writer.commit(Changes { writes: vec![put("a", "1"), put("b", "2")], ..Changes::default() }).unwrap();
    assert_eq!(writer.get(b"a").unwrap().unwrap(), "1");
    drop(writer);
    assert_eq!(ticket.wait().unwrap(), 1);
    let after = storage.snapshot();
    assert_eq!(before.get(b"a").unwrap(), None);
    assert_eq!(after.position(), 1);
    assert_eq!(all(&after, Direction::Backward)[0].0, "b");
    storage.checkpoint().unwrap();
    assert_eq!(all(&after, Direction::Forward), all(&storage.snapshot(), Direction::Forward));
    let record = storage.read_log(0).unwrap().next().unwrap().unwrap();
    assert_eq!(record.writes, vec![put("a", "1"), put("b", "2")]);
    storage.close().unwrap();
}

#[test]
fn a_patient_commit_is_flushed_with_the_next_one_or_soon() {
    let patient = |storage: &Storage, key: &str| {
        let mut writer = storage.writer().unwrap();
        writer.is_patient = true;
        writer.commit(Changes { writes: vec![put(key, "1")], ..Changes::default() }).unwrap()
    };
    let storage = Storage::in_memory(Options::default());
    patient(&storage, "soon").wait().unwrap();
    let flushes = storage.statistics().flushes;
    storage.set_patience(std::time::Duration::from_secs(3600));
    let (first, second) = (patient(&storage, "first"), patient(&storage, "second"));
    assert!(first.wait_for(std::time::Duration::from_millis(50)).is_none(), "it waits");
    commit(&storage, vec![put("next", "1")]).wait().unwrap();
    assert!(first.is_flushed() && second.is_flushed());
    assert_eq!(storage.statistics().flushes, flushes + 1, "one flush for all three");
    let last = patient(&storage, "last");
    storage.set_patience(std::time::Duration::ZERO);
    storage.close().unwrap();
    assert!(last.is_flushed());
}

#[test]
fn a_layer_hides_what_it_deletes_and_shows_what_it_puts() {
    let storage = Storage::in_memory(Options::default());
    commit(&storage, vec![put("a", "1"), put("b", "2"), put("c", "3")]).wait().unwrap();
    let snapshot = storage.snapshot();
    let mut layer = Layer::new(&snapshot);
    layer.delete("b");
    layer.put("d", "4");
    let keys: Vec<_> = all(&layer, Direction::Backward).into_iter().map(|entry| entry.0).collect();
    assert_eq!(keys, ["d", "c", "a"]);
}

#[test]
fn what_was_acknowledged_is_there_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 1 << 20, overlay_bytes: 64 << 10, ..Options::default() };
    for round in 0..3u32 {
        let storage = Storage::open(folder.path(), options.clone()).unwrap();
        for number in 0..500u32 {
            let key = format!("{:03}", number % 200);
            commit(&storage, vec![put(&key, &format!("{round}-{number}-{}", "x".repeat(1000)))]);
        }
        let last = storage.writer().unwrap().position();
        storage.ticket(last).wait().unwrap();
        assert_eq!(last, u64::from(round + 1) * 500);
        assert!(storage.snapshot().get(b"150").unwrap().unwrap().starts_with(format!("{round}-350-").as_bytes()));
        assert_eq!(all(&storage.snapshot(), Direction::Forward).len(), 200);
        let positions: Vec<_> = storage.read_log(0).unwrap().map(|record| record.unwrap().position).collect();
        assert_eq!(positions, (1..=last).collect::<Vec<_>>());
        if round == 1 {
            storage.close().unwrap();
        }
    }
    let second = Storage::open(folder.path(), options.clone()).unwrap();
    let refused = Storage::open(folder.path(), options).err().unwrap();
    assert_eq!(refused.code, crate::Code::DB_PATH_IN_USE);
    assert_eq!(second.flushed(), 1500);
}

/// A waker that says when it was woken.
#[derive(Default)]
struct Woken(std::sync::atomic::AtomicBool);

impl std::task::Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn a_ticket_is_a_future_and_waiting_beyond_needs_no_polling() {
    use std::future::Future;
    let storage = Storage::in_memory(Options::default());
    let woken = std::sync::Arc::new(Woken::default());
    let waker = std::task::Waker::from(woken.clone());
    let mut context = std::task::Context::from_waker(&waker);
    let mut beyond = Box::pin(storage.wait_beyond(0));
    assert!(beyond.as_mut().poll(&mut context).is_pending());
    assert!(!woken.0.load(std::sync::atomic::Ordering::SeqCst));
    commit(&storage, vec![put("a", "1")]).wait().unwrap();
    while !woken.0.load(std::sync::atomic::Ordering::SeqCst) {
        std::thread::yield_now();
    }
    assert!(beyond.as_mut().poll(&mut context).is_ready());
    let never = storage.wait_beyond(1);
    assert!(never.wait_for(std::time::Duration::from_millis(10)).is_none());
    let closing = std::thread::spawn(move || never.wait());
    storage.close().unwrap();
    assert_eq!(closing.join().unwrap().unwrap_err().code, crate::Code::SHUTDOWN_IN_PROGRESS);
}

#[test]
fn a_hook_runs_before_the_position_is_visible() {
    let storage = Storage::in_memory(Options::default());
    let seen = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (in_hook, core) = (seen.clone(), std::sync::Arc::downgrade(&storage.core_for_tests()));
    storage.on_publish(Box::new(move |position| {
        let visible = core.upgrade().map(|core| core.published.load().position);
        in_hook.lock().push((position, visible.unwrap(), core.upgrade().unwrap().progress.flushed()));
    }));
    for number in 1..=3 {
        commit(&storage, vec![put("a", &number.to_string())]).wait().unwrap();
    }
    assert_eq!(*seen.lock(), [(1, 0, 0), (2, 1, 1), (3, 2, 2)]);
}

#[test]
fn a_position_is_found_by_its_time() {
    let options = Options { segment_bytes: 1 << 20, overlay_bytes: 1 << 20, retain_age: 3000, ..Options::default() };
    let medium = std::sync::Arc::new(Memory::default());
    let storage = Storage::open_on(medium.clone(), options.clone()).unwrap();
    let mut dice = faulty::Dice::new(1);
    for number in 1..=4000u64 {
        let value: Vec<u8> = (0..900).map(|_| dice.roll(256) as u8).collect();
        let writes = vec![(Bytes::from(number.to_be_bytes().to_vec()), Some(Bytes::from(value)))];
        storage.writer().unwrap().commit(Changes { time: number * 2, writes, ..Changes::default() }).unwrap();
    }
    storage.checkpoint().unwrap();
    assert!(storage.oldest() > 1 && storage.statistics().log_segments > 1);
    for time in [1, 2, 3, 1999, 2000, 2001, 5555, 7999, 8000] {
        let oldest = storage.oldest();
        assert_eq!(storage.position_at(time).unwrap(), Some(time.div_ceil(2).max(oldest)), "time {time}");
    }
    assert_eq!(storage.position_at(8001).unwrap(), None);
    drop(storage);
    let storage = Storage::open_on(medium, options).unwrap();
    let oldest = storage.oldest();
    assert!((1001..=2501).contains(&oldest), "what is older than 3000 before the last is pruned: {oldest}");
    assert_eq!(storage.position_at(7000).unwrap(), Some(3500));
    assert_eq!(storage.position_at(0).unwrap(), Some(oldest));
    assert_eq!(storage.read_log(oldest - 2).err().unwrap().code, crate::Code::CHANGE_STREAM_HISTORY_LOST);
}

#[test]
fn a_large_commit_works_and_a_larger_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { overlay_bytes: 8 << 20, segment_bytes: 4 << 20, ..Options::default() };
    let storage = Storage::open(folder.path(), options.clone()).unwrap();
    let value =
        Bytes::from((0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>());
    let key = |number: u32| Bytes::from(number.to_be_bytes().to_vec());
    let writes: Vec<_> = (0..48).map(|number| (key(number), Some(value.clone()))).collect();
    commit(&storage, writes.clone()).wait().unwrap();
    commit(&storage, vec![put("after", "1")]).wait().unwrap();
    let refused =
        Changes { writes: vec![(key(0), Some(Bytes::from(vec![0; MAX_COMMIT_BYTES])))], ..Changes::default() };
    let error = storage.writer().unwrap().commit(refused).err().unwrap();
    assert_eq!(error.code, crate::Code::TRANSACTION_TOO_LARGE);
    drop(storage);
    let storage = Storage::open(folder.path(), options).unwrap();
    assert_eq!(storage.snapshot().get(&key(47)).unwrap().unwrap(), value);
    assert_eq!(storage.read_log(0).unwrap().next().unwrap().unwrap().writes, writes);
    storage.close().unwrap();
}

#[test]
fn writers_wait_for_the_folder_when_the_overlay_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { overlay_bytes: 100 << 10, ..Options::default() };
    let storage = Storage::open(folder.path(), options).unwrap();
    for number in 0..2000u32 {
        commit(&storage, vec![(Bytes::from(number.to_be_bytes().to_vec()), Some(Bytes::from(vec![1; 1000])))]);
        assert!(storage.statistics().overlay_bytes < 210 << 10);
    }
    let statistics = storage.statistics();
    assert!(statistics.writer_waits > 0 && statistics.folds > 5, "{statistics:?}");
    storage.checkpoint().unwrap();
    assert_eq!(all(&storage.snapshot(), Direction::Forward).len(), 2000);
}

#[test]
fn snapshots_are_consistent_while_everything_moves() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { overlay_bytes: 50 << 10, cache_bytes: 1 << 20, flush: Flush::Skip, ..Options::default() };
    let storage = Storage::open(folder.path(), options).unwrap();
    let account = |number: u64| Bytes::from(format!("account {number:03}"));
    let amount = |value: Option<Bytes>| value.map_or(0, |value| i64::from_be_bytes(value[..8].try_into().unwrap()));
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let storage = &storage;
            scope.spawn(move || {
                let mut dice = faulty::Dice::new(thread);
                for _ in 0..4000 {
                    // Move something from one account to another, in a layer; an empty account is deleted.
                    let (from, to) = (account(dice.roll(50)), account(50 + dice.roll(50)));
                    let moved = dice.roll(100) as i64 - 50;
                    let mut writer = storage.writer().unwrap();
                    let mut layer = Layer::new(&writer);
                    for (key, change) in [(from, -moved), (to, moved)] {
                        match amount(layer.get(&key).unwrap()) + change {
                            0 => layer.delete(key),
                            sum => layer.put(key, sum.to_be_bytes().to_vec()),
                        }
                    }
                    let writes = layer.into_writes().into_vec();
                    writer.commit(Changes { writes, ..Changes::default() }).unwrap();
                }
            });
        }
        let readers: Vec<_> = [Direction::Forward, Direction::Backward]
            .map(|direction| {
                let (storage, stop) = (&storage, &stop);
                scope.spawn(move || {
                    let mut seen = 0;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) || seen == 0 {
                        let snapshot = storage.snapshot();
                        let entries = all(&snapshot, direction);
                        let total: i64 = entries.iter().map(|(_, value)| amount(Some(value.clone()))).sum();
                        assert_eq!(total, 0, "at position {}", snapshot.position());
                        for (key, value) in &entries {
                            assert_eq!(snapshot.get(key).unwrap().as_ref(), Some(value));
                        }
                        seen += 1;
                    }
                })
            })
            .into_iter()
            .collect();
        while storage.flushed() < 8000 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert!(!readers.iter().all(|reader| reader.is_finished()), "a reader failed");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(storage.statistics().folds > 10);
}
