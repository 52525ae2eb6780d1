//! What crashes and failing media do to a storage. Each test names its incident; each case can be replayed by its
//! operation and seed. `SHEAF_CRASH_SEED` moves all seeds, to search beyond the cases that are always run.

use super::faulty::{Dice, Fault, Faulty, Wreck};
use super::{all, put};
use crate::error::{Code, Result};
use crate::storage::*;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

type Model = BTreeMap<Bytes, Bytes>;

fn options() -> Options {
    Options {
        segment_bytes: 16 << 10,
        overlay_bytes: 24 << 10,
        cache_bytes: 1 << 20,
        retain_bytes: 40 << 10,
        ..Options::default()
    }
}

fn base_seed() -> u64 {
    std::env::var("SHEAF_CRASH_SEED").map_or(0, |seed| seed.parse::<u64>().unwrap() * 1_000_003)
}

/// The commit at a position, always the same one.
fn changes_at(position: Position) -> Changes {
    let mut dice = Dice::new(position);
    let mut writes = Vec::new();
    for _ in 0..=dice.roll(4) {
        let key = format!("key {:02}", dice.roll(40));
        if dice.roll(5) == 0 {
            writes.push((Bytes::from(key), None));
        } else {
            let length = if dice.roll(8) == 0 { 3000 } else { dice.roll(300) };
            let value: String = (0..length).map(|_| char::from(b'a' + dice.roll(26) as u8)).collect();
            writes.push(put(&key, &format!("{position} {value}")));
        }
    }
    Changes { time: position * 10, note: Bytes::from(format!("note {position}")), writes }
}

/// What the storage must hold at a position.
fn model_at(position: Position) -> Model {
    let mut model = Model::new();
    for position in 1..=position {
        for (key, value) in changes_at(position).writes {
            match value {
                Some(value) => model.insert(key, value),
                None => model.remove(&key),
            };
        }
    }
    model
}

fn open(medium: &Faulty) -> Result<Storage> {
    Storage::open_on(Arc::new(medium.clone()), options())
}

/// Commits one after the other until something fails; every few commits it doesn't wait.
fn write_until_failure(storage: &Storage, medium: &Faulty, to: Position) -> Result<()> {
    loop {
        let mut writer = storage.writer()?;
        let position = writer.position() + 1;
        if position > to {
            return Ok(());
        }
        let ticket = writer.commit(changes_at(position))?;
        drop(writer);
        if !position.is_multiple_of(3) {
            ticket.wait()?;
            medium.acknowledged.store(position, Ordering::SeqCst);
        }
        if position.is_multiple_of(50) {
            storage.checkpoint()?;
        }
    }
}

/// Asserts that a storage is exactly at one position, at or beyond what was acknowledged.
fn check(storage: &Storage, acknowledged: Position, context: &str) -> Position {
    let snapshot = storage.snapshot();
    let position = snapshot.position();
    assert!(position >= acknowledged, "{context}: {acknowledged} was acknowledged, {position} is left");
    let content: Model = all(&snapshot, Direction::Forward).into_iter().collect();
    assert!(content == model_at(position), "{context}: the content isn't that of position {position}");
    while let Err(error) = check_log(storage, position) {
        // The folder prunes meanwhile.
        assert_eq!(error.code, Code::CHANGE_STREAM_HISTORY_LOST, "{context}: {error}");
    }
    position
}

/// Asserts that the log holds the right records up to a position.
fn check_log(storage: &Storage, position: Position) -> Result<()> {
    let mut next = storage.oldest();
    // Later ones may be flushed by now.
    let count = (position + 1).saturating_sub(next) as usize;
    for record in storage.read_log(next - 1)?.take(count) {
        let record = record?;
        let expected = changes_at(next);
        assert_eq!(record.position, next);
        assert_eq!((record.time, record.note, record.writes), (expected.time, expected.note, expected.writes));
        next += 1;
    }
    assert!(next > position, "the log ends early, before {next}");
    Ok(())
}

/// Opens what a cut left, checks it, writes on, and checks again.
fn check_wreck(wreck: &Wreck, context: &str) {
    let storage = open(&wreck.medium).unwrap_or_else(|error| panic!("{context}: {error}"));
    let position = check(&storage, wreck.acknowledged, context);
    write_until_failure(&storage, &wreck.medium, position + 20).unwrap();
    storage.ticket(position + 20).wait().unwrap();
    check(&storage, position + 20, context);
    storage.close().unwrap();
    check(&open(&wreck.medium).unwrap(), position + 20, context);
}

fn run_until_cut(operation: u64, seed: u64) -> Option<Wreck> {
    let medium = Faulty::new(Fault::Cut { operation, seed });
    if let Ok(storage) = open(&medium) {
        write_until_failure(&storage, &medium, 220).err();
    }
    medium.take_wreck()
}

#[test]
fn power_cut_at_any_operation() {
    let mut operation = 1;
    let mut cuts = 0;
    let base = base_seed();
    while let Some(wreck) = run_until_cut(operation, base + operation * 7) {
        check_wreck(&wreck, &format!("operation {operation}, seed {}", base + operation * 7));
        operation += if operation < 60 { 1 } else { 7 };
        cuts += 1;
    }
    assert!(cuts > 100, "only {cuts} cuts");
}

#[test]
fn power_cut_while_recovering_from_a_power_cut() {
    for case in base_seed()..base_seed() + 40 {
        let operation = 150 + case % 40 * 11;
        let Some(first) = run_until_cut(operation, case) else { break };
        let mut acknowledged = first.acknowledged;
        let mut medium = first.medium;
        for round in 1..4 {
            medium.set_fault(Fault::Cut { operation: medium.operations() + 1 + (case * 5) % 23, seed: case + round });
            medium.acknowledged.store(acknowledged, Ordering::SeqCst);
            if let Ok(storage) = open(&medium) {
                check(&storage, acknowledged, &format!("case {case}, round {round}"));
                write_until_failure(&storage, &medium, storage.flushed() + 100).err();
            }
            let Some(wreck) = medium.take_wreck() else { break };
            acknowledged = wreck.acknowledged;
            medium = wreck.medium;
        }
        medium.set_fault(Fault::Never);
        check_wreck(&Wreck { medium, acknowledged }, &format!("case {case}"));
    }
}

#[test]
fn a_killed_process_then_a_power_cut() {
    let mut dice = Dice::new(base_seed());
    for _ in 0..60 {
        let (operation, seed) = (20 + dice.roll(500), dice.roll(1 << 32));
        let context = format!("operation {operation}, seed {seed}");
        let medium = Faulty::new(Fault::Kill { operation });
        if let Ok(storage) = open(&medium) {
            write_until_failure(&storage, &medium, 220).err();
        }
        medium.set_fault(Fault::Never);
        // Whoever reads now may act on it, so that it must survive from now on, acknowledged or not.
        let storage = open(&medium).unwrap_or_else(|error| panic!("{context}: {error}"));
        let position = check(&storage, medium.acknowledged.load(Ordering::SeqCst), &context);
        medium.acknowledged.store(position, Ordering::SeqCst);
        check_wreck(&medium.cut(seed), &context);
    }
}

/// Commits of one size, of which the last three are flushed as one batch.
fn batch_of_three() -> (Faulty, Vec<Changes>) {
    let changes = |number: u32| Changes { writes: vec![put("key", &format!("{number:4}"))], ..Changes::default() };
    let medium = Faulty::new(Fault::Never);
    let storage = open(&medium).unwrap();
    let gate = Arc::new(parking_lot::Mutex::new(()));
    let hook_gate = gate.clone();
    storage.on_publish(Box::new(move |_| drop(hook_gate.lock())));
    let commit = |number| storage.writer().unwrap().commit(changes(number)).unwrap();
    let closed = gate.lock();
    let first = commit(1);
    while storage.statistics().flushes == 0 {
        std::thread::yield_now();
    }
    let rest = [commit(2), commit(3), commit(4)];
    drop(closed);
    first.wait().unwrap();
    for ticket in rest {
        ticket.wait().unwrap();
    }
    assert_eq!(storage.statistics().flushes, 2);
    (medium, (1..10).map(changes).collect())
}

#[test]
fn what_lies_beyond_a_torn_record_never_comes_back() {
    let (medium, changes) = batch_of_three();
    // The batch of 2, 3 and 4 is torn: 2 is damaged, 3 and 4 are whole.
    let log = medium.names().into_iter().find(|name| name.starts_with("log")).unwrap();
    medium.damage(&log, |content| {
        let used = content.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let record_bytes = (used - 64).div_ceil(4).next_multiple_of(8);
        assert_eq!(&content[64 + record_bytes..][..4], b"SFR1");
        content[64 + record_bytes + 42] ^= 1;
    });
    let storage = open(&medium).unwrap();
    assert_eq!(storage.flushed(), 1);
    // A new record takes exactly the torn one's place.
    storage.writer().unwrap().commit(changes[7].clone()).unwrap().wait().unwrap();
    drop(storage);
    let storage = open(&medium).unwrap();
    assert_eq!(storage.flushed(), 2);
    assert_eq!(storage.snapshot().get(b"key").unwrap().unwrap(), "   8");
}

#[test]
fn reads_beyond_the_cache_go_on_after_the_tables_failed() {
    let medium = Faulty::new(Fault::Never);
    let small = Options { cache_bytes: 64 << 10, overlay_bytes: 1 << 20, ..options() };
    let storage = Storage::open_on(Arc::new(medium.clone()), small).unwrap();
    let value = "v".repeat(1000);
    let commit = |from: u32, to: u32| {
        let writes = (from..to).map(|number| put(&format!("{number:05}"), &value)).collect();
        storage.writer().unwrap().commit(Changes { writes, ..Changes::default() }).unwrap().wait().unwrap();
    };
    commit(0, 2000);
    storage.checkpoint().unwrap();
    medium.set_fault(Fault::Sync { operation: 0, prefix: "tables" });
    commit(1000, 2500);
    assert!(storage.checkpoint().is_err());
    for _ in 0..2 {
        let snapshot = storage.snapshot();
        assert_eq!(all(&snapshot, Direction::Forward).len(), 2500);
        assert_eq!(snapshot.get(b"00500").unwrap().unwrap(), value);
        commit(2500, 2500);
    }
    drop(storage);
    assert_eq!(all(&open(&medium).unwrap().snapshot(), Direction::Backward).len(), 2500);
}

#[test]
fn many_writers_then_a_power_cut() {
    for seed in base_seed()..base_seed() + 15 {
        let medium = Faulty::new(Fault::Cut { operation: 60 + seed % 15 * 13, seed });
        if let Ok(storage) = open(&medium) {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        loop {
                            let Ok(mut writer) = storage.writer() else { return };
                            let position = writer.position() + 1;
                            let Ok(ticket) = writer.commit(changes_at(position)) else { return };
                            drop(writer);
                            let Ok(position) = ticket.wait() else { return };
                            medium.acknowledged.fetch_max(position, Ordering::SeqCst);
                        }
                    });
                }
            });
        }
        let wreck = medium.take_wreck().unwrap();
        check_wreck(&wreck, &format!("seed {seed}"));
    }
}

#[test]
fn after_a_failed_flush_of_the_log_writes_are_refused_and_reads_go_on() {
    let mut failures = 0;
    for operation in (30..300).step_by(27) {
        let medium = Faulty::new(Fault::Never);
        let storage = open(&medium).unwrap();
        medium.set_fault(Fault::Sync { operation, prefix: "log" });
        // It may hit a segment that is being prepared: then that is made again.
        let Err(error) = write_until_failure(&storage, &medium, 400) else { continue };
        failures += 1;
        let acknowledged = medium.acknowledged.load(Ordering::SeqCst);
        assert_eq!(error.code, Code::FILE_STREAM_FAILED, "{error}");
        assert!(storage.writer().is_err());
        assert!(storage.wait_beyond(storage.flushed()).wait().is_err());
        check(&storage, acknowledged, &format!("operation {operation}"));
        drop(storage);
        // What the failed flush should have written never reached the disk, though it can still be read.
        let wreck = if failures % 2 == 0 {
            let restarted = open(&medium).unwrap();
            let position = check(&restarted, acknowledged, &format!("operation {operation}, restarted"));
            medium.acknowledged.store(position, Ordering::SeqCst);
            medium.cut(base_seed() + operation)
        } else {
            medium.cut(base_seed() + operation)
        };
        check_wreck(&wreck, &format!("operation {operation}"));
    }
    assert!(failures > 5, "only {failures} flushes failed");
}

#[test]
fn a_failed_flush_of_the_tables_loses_nothing_and_folding_goes_on() {
    for operation in (30..400).step_by(37) {
        let context = format!("operation {operation}");
        let medium = Faulty::new(Fault::Never);
        let storage = open(&medium).unwrap();
        let reader = storage.snapshot();
        medium.set_fault(Fault::Sync { operation, prefix: "tables" });
        let error = write_until_failure(&storage, &medium, 3000).unwrap_err();
        assert!(error.message.contains("table file"), "{error}");
        let acknowledged = medium.acknowledged.load(Ordering::SeqCst);
        let position = check(&storage, acknowledged, &context);
        assert!(storage.statistics().folds_failed > 0);
        check_wreck(&medium.cut(base_seed() + operation), &context);
        if operation % 2 == 0 {
            // Folding is tried again once the readers of the old state are gone.
            drop(reader);
            while write_until_failure(&storage, &medium, position + 100).is_err() {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            storage.checkpoint().unwrap();
            check(&storage, position + 100, &context);
            check_wreck(&medium.cut(base_seed() + operation), &context);
        }
        drop(storage);
        check_wreck(&Wreck { medium, acknowledged }, &context);
    }
}

#[test]
fn a_reader_keeps_its_state_while_a_failed_fold_is_tried_again() {
    let medium = Faulty::new(Fault::Never);
    let storage = open(&medium).unwrap();
    write_until_failure(&storage, &medium, 100).unwrap();
    storage.checkpoint().unwrap();
    let reader = storage.snapshot();
    medium.set_fault(Fault::Sync { operation: 0, prefix: "tables" });
    write_until_failure(&storage, &medium, 1000).unwrap_err();
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert!(storage.checkpoint().is_err());
    let content: Model = all(&reader, Direction::Forward).into_iter().collect();
    assert!(content == model_at(100));
    drop(reader);
    while storage.checkpoint().is_err() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    check(&storage, 100, "after the reader");
}

#[test]
fn a_full_disk_refuses_writes_and_leaves_reads_alone() {
    for extra in (0..2_000_000).step_by(130_000) {
        let medium = Faulty::new(Fault::Never);
        let keeping = Options { retain_bytes: u64::MAX, ..options() };
        let storage = Storage::open_on(Arc::new(medium.clone()), keeping).unwrap();
        write_until_failure(&storage, &medium, 60).unwrap();
        medium.leave_room(extra);
        let error = write_until_failure(&storage, &medium, 20_000).unwrap_err();
        assert_eq!(error.code, Code::OUT_OF_DISK_SPACE, "{error}");
        let acknowledged = medium.acknowledged.load(Ordering::SeqCst);
        let position = check(&storage, acknowledged, &format!("{extra} bytes left"));
        medium.set_capacity(u64::MAX);
        if extra % 4 == 0 {
            // With room again, writing goes on by itself: a flush writes into room that was claimed before, so that a full
            // disk never breaks one.
            let mut attempts = 0;
            while let Err(error) = write_until_failure(&storage, &medium, position + 300) {
                assert!(!error.message.contains("a flush of the log failed"), "{error}");
                attempts += 1;
                assert!(attempts < 1_000, "writing does not go on: {error}");
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            check(&storage, position, "with room again");
        }
        drop(storage);
        let wreck = medium.cut(base_seed() + extra);
        check_wreck(&wreck, &format!("{extra} bytes left"));
    }
}

/// A storage whose log lies in several segments, all of it beyond the tables.
fn long_log() -> (Faulty, Position) {
    let medium = Faulty::new(Fault::Never);
    let roomy = Options { overlay_bytes: 64 << 20, ..options() };
    let storage = Storage::open_on(Arc::new(medium.clone()), roomy).unwrap();
    for position in 1..=400 {
        storage.writer().unwrap().commit(changes_at(position)).unwrap().wait().unwrap();
    }
    (medium, 400)
}

#[test]
fn damage_to_a_flushed_record_refuses_to_open() {
    let mut dice = Dice::new(5);
    for _ in 0..40 {
        let (medium, _) = long_log();
        let logs: Vec<String> = medium.names().into_iter().filter(|name| name.starts_with("log")).collect();
        let name = &logs[dice.roll(logs.len() as u64 - 2) as usize];
        medium.damage(name, |content| {
            let used = content.iter().rposition(|byte| *byte != 0).unwrap();
            let at = dice.roll(used as u64) as usize;
            content[at] ^= 1 << dice.roll(8);
        });
        match open(&medium) {
            Err(error) => assert_eq!(error.code, Code::MANUAL_INTERVENTION_REQUIRED, "{error}"),
            // Padding and the reserved part of a header aren't covered by a checksum, and don't matter.
            Ok(storage) => assert_eq!(check(&storage, 400, "damaged padding"), 400),
        }
    }
}

#[test]
fn a_missing_log_refuses_to_open() {
    let (medium, _) = long_log();
    let storage = open(&medium).unwrap();
    storage.checkpoint().unwrap();
    write_until_failure(&storage, &medium, 420).unwrap();
    drop(storage);
    for name in medium.names().into_iter().filter(|name| name.starts_with("log")) {
        medium.delete(&name);
    }
    assert_eq!(open(&medium).err().unwrap().code, Code::MANUAL_INTERVENTION_REQUIRED);
}

#[test]
fn missing_tables_refuse_to_open_once_the_log_is_pruned() {
    let medium = Faulty::new(Fault::Never);
    let pruning = Options { retain_bytes: 0, ..options() };
    let storage = Storage::open_on(Arc::new(medium.clone()), pruning).unwrap();
    write_until_failure(&storage, &medium, 400).unwrap();
    storage.checkpoint().unwrap();
    assert!(storage.oldest() > 1);
    assert_eq!(storage.read_log(0).err().unwrap().code, Code::CHANGE_STREAM_HISTORY_LOST);
    check(&storage, 400, "pruned");
    drop(storage);
    medium.delete("tables.redb");
    assert_eq!(open(&medium).err().unwrap().code, Code::MANUAL_INTERVENTION_REQUIRED);
}

#[test]
fn damage_to_the_very_last_record_ends_the_log_there() {
    // Allowed: nothing after it says that it had been flushed, so it looks like a write that a crash tore.
    let (medium, _) = long_log();
    let last = medium.names().into_iter().rfind(|name| name.starts_with("log")).unwrap();
    let name = medium.names().into_iter().filter(|name| name.starts_with("log")).rfind(|name| *name <= last).unwrap();
    let mut damaged = false;
    medium.damage(&name, |content| {
        let used = content.iter().rposition(|byte| *byte != 0).unwrap();
        if used > 100 {
            content[used] ^= 1;
            damaged = true;
        }
    });
    let storage = open(&medium).unwrap();
    assert_eq!(check(&storage, 0, "last record"), if damaged { 399 } else { 400 });
}

/// Names the folder in which a child process writes until it is killed.
const CHILD_FOLDER: &str = "SHEAF_CRASH_CHILD_FOLDER";

/// Not a test of its own: what the killed child does.
#[test]
#[ignore = "run by kill_9_in_the_middle_of_writing"]
fn child_that_is_killed() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    let storage = Storage::open(folder.as_ref(), options()).unwrap();
    let mut stdout = std::io::stdout();
    for position in storage.flushed() + 1.. {
        storage.writer().unwrap().commit(changes_at(position)).unwrap().wait().unwrap();
        writeln!(stdout, "acknowledged {position}").unwrap();
    }
}

#[test]
fn kill_9_in_the_middle_of_writing() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "storage::tests::crash::child_that_is_killed", "--ignored", "--nocapture"])
            .env(CHILD_FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(std::io::Result::ok);
        let mut position_of = |line: String| line.strip_prefix("acknowledged ")?.parse::<Position>().ok();
        let enough = acknowledged + 30 + round * 17;
        while acknowledged < enough {
            let line = lines.next().expect("the child writes until it is killed");
            acknowledged = position_of(line).unwrap_or(acknowledged);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged = lines.filter_map(&mut position_of).last().unwrap_or(acknowledged);
        let storage = Storage::open(folder.path(), options()).unwrap();
        acknowledged = check(&storage, acknowledged, &format!("round {round}"));
    }
}
