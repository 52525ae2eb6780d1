//! Making a storage of a backup again.

use super::manifest::{Manifest, Part};
use super::part::PartReader;
use super::{Progress, Report, failed, refused};
use crate::error::Result;
use crate::storage::{Changes, Options, Position, Storage, Ticket};
use bytes::Bytes;
use std::path::Path;

/// The bytes of one commit of keys.
const COMMIT_BYTES: usize = 4 << 20;
/// The time of the commits that hold keys: before all others.
const KEYS_TIME: u64 = 1;
/// The keys or commits between two reports.
const REPORT_ENTRIES: u64 = 10_000;

/// What was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The position, in the log of the database that was backed up, of the state that was restored.
    pub position: Position,
    /// When that state was, in milliseconds since 1970.
    pub time_ms: i64,
    /// Keys copied.
    pub keys: u64,
    /// Commits done again.
    pub commits: u64,
}

/// Makes a storage of a backup in a folder that is empty or not there yet: the latest state, or the last one at or before a
/// time (milliseconds since 1970; commits are told apart by seconds).
///
/// Resume tokens of change streams don't go over: what was restored is a new log.
///
/// # Errors
/// A folder that holds something, damaged parts, a time before the backup was whole.
pub fn restore(
    backup: &Path,
    to: &Path,
    until_ms: Option<i64>,
    options: Options,
    report: Report<'_>,
) -> Result<Restored> {
    let manifest = Manifest::read(backup)?;
    let until =
        until_ms.map(|ms| (ms.div_euclid(1000).clamp(0, i64::from(u32::MAX)) as u64) << 32 | u64::from(u32::MAX));
    if until.is_some_and(|until| until < manifest.copied_time) {
        let earliest = bson::DateTime::from_millis(manifest.earliest_ms()).try_to_rfc3339_string().unwrap_or_default();
        return Err(refused(format!("the backup was whole at {earliest} only: restore to that time or a later one")));
    }
    std::fs::create_dir_all(to).map_err(|error| failed(to, error))?;
    if std::fs::read_dir(to).map_err(|error| failed(to, error))?.next().is_some() {
        return Err(refused(format!("{} is not empty: a backup is restored into a folder of its own", to.display())));
    }
    // The log is written only to get into the tables: nobody will read it.
    let storage = Storage::open(to, Options { retain_bytes: 0, ..options })?;
    let done = Restoring { storage: &storage, report, progress: Progress::default(), last: None }
        .run(backup, &manifest, until);
    let restored = done?;
    storage.close()?;
    Ok(restored)
}

/// Reads a whole backup and compares all checksums, without restoring it.
///
/// # Errors
/// Damaged or missing parts.
pub fn check(backup: &Path) -> Result<Manifest> {
    let manifest = Manifest::read(backup)?;
    for part in &manifest.keys {
        let mut reader = PartReader::open(backup, part)?;
        while reader.entry()?.is_some() {}
    }
    let mut expected = manifest.first;
    for part in &manifest.log {
        let mut reader = PartReader::open(backup, part)?;
        while let Some(record) = reader.commit()? {
            expected += 1;
            if record.position != expected {
                return Err(gap(part, expected));
            }
        }
    }
    Ok(manifest)
}

fn gap(part: &Part, expected: Position) -> crate::Error {
    crate::Error::new(
        crate::Code::MANUAL_INTERVENTION_REQUIRED,
        format!("{} does not go on with commit {expected}: a part of the backup is missing", part.name),
    )
}

struct Restoring<'s, 'r> {
    storage: &'s Storage,
    report: Report<'r>,
    progress: Progress,
    last: Option<Ticket>,
}

impl Restoring<'_, '_> {
    fn run(mut self, backup: &Path, manifest: &Manifest, until: Option<u64>) -> Result<Restored> {
        for part in &manifest.keys {
            self.copy(backup, part)?;
        }
        let (position, time) = self.replay(backup, manifest, until)?;
        // Cluster time goes on from here, also where there was no commit to do again.
        self.commit(time, Vec::new())?;
        if let Some(ticket) = self.last.take() {
            ticket.wait()?;
        }
        let time_ms = ((time >> 32) as i64).saturating_mul(1000);
        Ok(Restored { position, time_ms, keys: self.progress.keys, commits: self.progress.commits })
    }

    fn copy(&mut self, backup: &Path, part: &Part) -> Result<()> {
        let mut reader = PartReader::open(backup, part)?;
        let (mut writes, mut bytes) = (Vec::new(), 0);
        while let Some((key, value)) = reader.entry()? {
            bytes += key.len() + value.len();
            self.progress.keys += 1;
            self.progress.key_bytes += (key.len() + value.len()) as u64;
            writes.push((key, Some(value)));
            if bytes >= COMMIT_BYTES {
                self.commit(KEYS_TIME, std::mem::take(&mut writes))?;
                bytes = 0;
                (self.report)(self.progress)?;
            }
        }
        if writes.is_empty() { Ok(()) } else { self.commit(KEYS_TIME, writes) }
    }

    fn commit(&mut self, time: u64, writes: Vec<(Bytes, Option<Bytes>)>) -> Result<()> {
        let ticket = self.storage.writer()?.commit(Changes { time, note: Bytes::new(), writes })?;
        self.last = Some(ticket);
        Ok(())
    }

    /// Does the commits again that came after the first range began, up to a time.
    fn replay(&mut self, backup: &Path, manifest: &Manifest, until: Option<u64>) -> Result<(Position, u64)> {
        let (mut reached, mut time) = (manifest.first, manifest.copied_time);
        for part in &manifest.log {
            let mut reader = PartReader::open(backup, part)?;
            while let Some(record) = reader.commit()? {
                if record.position != reached + 1 {
                    return Err(gap(part, reached + 1));
                }
                if until.is_some_and(|until| record.time > until) && reached >= manifest.copied {
                    return Ok((reached, time));
                }
                (reached, time) = (record.position, record.time);
                self.progress.commits += 1;
                if !record.writes.is_empty() {
                    self.commit(record.time, record.writes)?;
                }
                if self.progress.commits.is_multiple_of(REPORT_ENTRIES) {
                    (self.report)(self.progress)?;
                }
            }
        }
        Ok((reached, time))
    }
}
