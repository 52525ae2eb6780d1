//! Tests of the storage as a whole.
#![allow(clippy::unwrap_used)]

mod crash;
pub(crate) mod faulty;
mod model;

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
