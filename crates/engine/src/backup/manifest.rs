//! The manifest of a backup: what its parts are and how far they reach.

use super::{failed, refused};
use crate::error::{Code, Error, Result};
use crate::storage::Position;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The manifest's file.
const NAME: &str = "backup.json";
/// The version of the folder's format.
const FORMAT: u64 = 1;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The position before the first commit in the backup's log.
    pub first: Position,
    /// The position of the last range: the first state that the backup can restore.
    pub copied: Position,
    /// When that was, as a commit's time.
    pub copied_time: u64,
    /// The last commit.
    pub last: Position,
    /// When it was.
    pub last_time: u64,
    /// The parts with keys.
    pub keys: Vec<Part>,
    /// The parts with commits.
    pub log: Vec<Part>,
}

/// A part of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its file's name.
    pub name: String,
    /// Its entries.
    pub entries: u64,
    /// Its file's bytes.
    pub bytes: u64,
    /// The crc32c of its file.
    pub checksum: u32,
}

impl Manifest {
    pub(super) fn begin(first: Position, time: u64) -> Manifest {
        Manifest {
            first,
            copied: first,
            copied_time: time,
            last: first,
            last_time: time,
            keys: Vec::new(),
            log: Vec::new(),
        }
    }

    /// The keys in it.
    pub fn key_count(&self) -> u64 {
        self.keys.iter().map(|part| part.entries).sum()
    }

    /// The bytes of its files.
    pub fn size_bytes(&self) -> u64 {
        self.keys.iter().chain(&self.log).map(|part| part.bytes).sum()
    }

    /// The earliest state that can be restored, in milliseconds since 1970.
    pub fn earliest_ms(&self) -> i64 {
        milliseconds(self.copied_time)
    }

    /// The latest.
    pub fn latest_ms(&self) -> i64 {
        milliseconds(self.last_time)
    }

    /// Reads the manifest of a folder.
    ///
    /// # Errors
    /// A folder that is no backup, or one of a newer release.
    pub fn read(folder: &Path) -> Result<Manifest> {
        let path = folder.join(NAME);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(refused(format!("{} holds no backup, or an unfinished one", folder.display())));
            }
            read => read.map_err(|error| failed(&path, error))?,
        };
        let broken = || Error::new(Code::MANUAL_INTERVENTION_REQUIRED, format!("{} is damaged", path.display()));
        let json: Value = serde_json::from_str(&text).map_err(|_| broken())?;
        if json["format"].as_u64() != Some(FORMAT) {
            return Err(Error::new(
                Code::UNSUPPORTED_FORMAT,
                format!("{} was written by another release: its format is {}", path.display(), json["format"]),
            ));
        }
        let number = |name: &str| json[name].as_u64().ok_or_else(broken);
        let parts = |name: &str| -> Result<Vec<Part>> {
            json[name].as_array().ok_or_else(broken)?.iter().map(|part| Part::read(part).ok_or_else(broken)).collect()
        };
        Ok(Manifest {
            first: number("first")?,
            copied: number("copied")?,
            copied_time: number("copiedTime")?,
            last: number("last")?,
            last_time: number("lastTime")?,
            keys: parts("keys")?,
            log: parts("log")?,
        })
    }

    /// Writes the manifest, in one step.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let parts = |parts: &[Part]| parts.iter().map(Part::to_json).collect::<Vec<_>>();
        let json = json!({
            "format": FORMAT,
            "first": self.first,
            "copied": self.copied,
            "copiedTime": self.copied_time,
            "last": self.last,
            "lastTime": self.last_time,
            "earliest": text_of(self.earliest_ms()),
            "latest": text_of(self.latest_ms()),
            "keys": parts(&self.keys),
            "log": parts(&self.log),
        });
        let (path, new) = (folder.join(NAME), folder.join("backup.json.part"));
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(format!("{json:#}\n").as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            File::open(folder)?.sync_all()
        };
        write().map_err(|error| failed(&path, error))
    }
}

impl Part {
    fn read(json: &Value) -> Option<Part> {
        Some(Part {
            name: json["name"].as_str()?.to_owned(),
            entries: json["entries"].as_u64()?,
            bytes: json["bytes"].as_u64()?,
            checksum: u32::try_from(json["crc32c"].as_u64()?).ok()?,
        })
    }

    fn to_json(&self) -> Value {
        json!({ "name": self.name, "entries": self.entries, "bytes": self.bytes, "crc32c": self.checksum })
    }
}

/// A commit's time in milliseconds: the seconds that it holds.
fn milliseconds(time: u64) -> i64 {
    ((time >> 32) as i64).saturating_mul(1000)
}

fn text_of(ms: i64) -> String {
    bson::DateTime::from_millis(ms).try_to_rfc3339_string().unwrap_or_default()
}
