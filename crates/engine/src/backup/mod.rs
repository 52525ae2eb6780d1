//! Backups while everything goes on: ranges of keys copied from short snapshots, and the log from before the first of them.
//!
//! ```text
//!   log      ──┬────────────────────────────────────────────┬──────────────┬──>
//!            first                                        copied          last
//!   ranges     [a, f) at 12   [f, m) at 40   [m, z] at 71
//!
//!   restored = ranges, then every commit after `first` in order, up to `copied` at least
//! ```
//!
//! A range shows what was so at its own position, and ranges differ in theirs. But a commit in the log holds *resolved* writes:
//! keys with their whole new values. Doing one again that a range holds already changes nothing in the end, since all later ones
//! follow. So after the commits up to the last range's position every key has exactly the value that it had there: a state that
//! existed. Each commit beyond is one more such state, which is what point-in-time recovery stops at.
//!
//! The log is copied beside the ranges, so that a long backup never depends on how much of it the server keeps; and it can be
//! copied on later ([`append`]). Writers are not held up: a snapshot is kept for seconds only.
//!
//! A backup is a folder:
//!
//! | file | what it is |
//! |---|---|
//! | `backup.json` | the manifest; written last, so a folder without it is no backup |
//! | `keys.000001` … | keys with their values, in order |
//! | `log.000001` … | commits, in order |
//!
//! Parts are zstd streams of entries (see `part.rs`); the manifest has each part's length and crc32c.

mod manifest;
mod part;
mod restore;

pub use manifest::{Manifest, Part};
pub use restore::{Restored, check, restore};

use crate::error::{Code, Error, Result};
use crate::storage::{Direction, LogReader, Position, Storage, View};
use part::PartWriter;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The bytes of keys and values after which a part ends.
const PART_BYTES: u64 = 64 << 20;
/// The longest that one snapshot is read from.
const SNAPSHOT_LIFETIME: Duration = Duration::from_secs(20);
/// The entries between two reports.
const REPORT_ENTRIES: u64 = 10_000;

/// How far a backup or a restore is.
#[derive(Clone, Copy, Default, Debug)]
pub struct Progress {
    /// Keys copied so far.
    pub keys: u64,
    /// Their bytes and those of their values.
    pub key_bytes: u64,
    /// Commits copied or done so far.
    pub commits: u64,
}

/// Is told how far it is; an error stops it.
pub type Report<'r> = &'r mut dyn FnMut(Progress) -> Result<()>;

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::from(error).context(path.display().to_string())
}

fn refused(why: String) -> Error {
    Error::new(Code::INVALID_OPTIONS, why)
}

/// Copies a storage into a folder that is empty or not there yet.
///
/// # Errors
/// A folder that holds something, a full disk, a failing storage, what `report` returns.
pub fn create(storage: &Storage, folder: &Path, report: Report<'_>) -> Result<Manifest> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let mut entries = std::fs::read_dir(folder).map_err(|error| failed(folder, error))?;
    if entries.next().is_some() {
        return Err(refused(format!("{} is not empty: a backup goes into a folder of its own", folder.display())));
    }
    let (first, first_time) = {
        let writer = storage.writer()?;
        (writer.position(), writer.time())
    };
    storage.ticket(first).wait()?;
    let mut manifest = Manifest::begin(first, first_time);
    let mut log = LogCopy::begin(storage, folder, &manifest)?;
    let mut progress = Progress::default();
    let mut after: Option<bytes::Bytes> = None;
    loop {
        let (part, last, position) = copy_range(storage, folder, &manifest, after.as_deref(), &mut progress, report)?;
        manifest.copied = position;
        manifest.keys.extend(part);
        log.catch_up(&mut manifest, &mut progress, report)?;
        match last {
            Some(last) => after = Some(last),
            None => break,
        }
    }
    while manifest.last < manifest.copied {
        storage.ticket(manifest.copied).wait()?;
        log.catch_up(&mut manifest, &mut progress, report)?;
    }
    log.finish(&mut manifest)?;
    // Everything up to here is copied: the first state that can be restored is this one.
    (manifest.copied, manifest.copied_time) = (manifest.last, manifest.last_time);
    manifest.write(folder)?;
    Ok(manifest)
}

/// Copies the commits that came since into a backup.
///
/// # Errors
/// `ChangeStreamHistoryLost` (286) when the log no longer reaches back that far: make a new backup; and as [`create`].
pub fn append(storage: &Storage, folder: &Path, report: Report<'_>) -> Result<Manifest> {
    let mut manifest = Manifest::read(folder)?;
    check_same(storage, &manifest)?;
    let mut log = LogCopy::begin(storage, folder, &manifest)?;
    log.catch_up(&mut manifest, &mut Progress::default(), report)?;
    log.finish(&mut manifest)?;
    manifest.write(folder)?;
    Ok(manifest)
}

/// Refuses a backup of another storage, as far as its last commit can tell.
fn check_same(storage: &Storage, manifest: &Manifest) -> Result<()> {
    let Some(before) = manifest.last.checked_sub(1) else { return Ok(()) };
    let another = || refused("the backup is one of another database, or of a time before it was restored".to_owned());
    if manifest.last > storage.flushed() {
        return Err(another());
    }
    match storage.read_log(before)?.next().transpose()? {
        Some(record) if record.time == manifest.last_time => Ok(()),
        _ => Err(another()),
    }
}

/// What one range came to: its part, the last key unless it was the end, and its position.
type Range = (Option<Part>, Option<bytes::Bytes>, Position);

fn copy_range(
    storage: &Storage,
    folder: &Path,
    manifest: &Manifest,
    after: Option<&[u8]>,
    progress: &mut Progress,
    report: Report<'_>,
) -> Result<Range> {
    let begun = Instant::now();
    let snapshot = storage.snapshot();
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut part: Option<PartWriter> = None;
    let mut last = None;
    for entry in snapshot.range(from, Bound::Unbounded, Direction::Forward)? {
        let (key, value) = entry?;
        let writer = match &mut part {
            Some(writer) => writer,
            None => part.insert(PartWriter::create(folder, &format!("keys.{:06}", manifest.keys.len() + 1))?),
        };
        writer.entry(&key, &value)?;
        progress.keys += 1;
        progress.key_bytes += (key.len() + value.len()) as u64;
        let is_full = writer.bytes() >= PART_BYTES || begun.elapsed() >= SNAPSHOT_LIFETIME;
        if is_full {
            last = Some(key);
            break;
        }
        if progress.keys.is_multiple_of(REPORT_ENTRIES) {
            report(*progress)?;
        }
    }
    report(*progress)?;
    let position = snapshot.position();
    drop(snapshot);
    Ok((part.map(PartWriter::finish).transpose()?, last, position))
}

/// Copies commits into parts.
struct LogCopy {
    reader: LogReader,
    folder: PathBuf,
    part: Option<PartWriter>,
}

impl LogCopy {
    fn begin(storage: &Storage, folder: &Path, manifest: &Manifest) -> Result<LogCopy> {
        Ok(LogCopy { reader: storage.read_log(manifest.last)?, folder: folder.to_owned(), part: None })
    }

    /// Copies all that is flushed.
    fn catch_up(&mut self, manifest: &mut Manifest, progress: &mut Progress, report: Report<'_>) -> Result<()> {
        while let Some(record) = self.reader.next() {
            let record = record?;
            let writer = match &mut self.part {
                Some(writer) => writer,
                None => {
                    let name = format!("log.{:06}", manifest.log.len() + 1);
                    self.part.insert(PartWriter::create(&self.folder, &name)?)
                }
            };
            writer.commit(&record)?;
            manifest.last = record.position;
            manifest.last_time = record.time;
            progress.commits += 1;
            if progress.commits.is_multiple_of(REPORT_ENTRIES) {
                report(*progress)?;
            }
            if writer.bytes() >= PART_BYTES {
                self.finish(manifest)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, manifest: &mut Manifest) -> Result<()> {
        manifest.log.extend(self.part.take().map(PartWriter::finish).transpose()?);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
