//! Temporary files for what a blocking stage cannot hold in memory.

use crate::error::{Code, Error, Result};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file of byte records that is gone once it is dropped.
pub(super) struct Spill {
    file: BufWriter<File>,
    records: u64,
}

/// Reads a spilled file from its beginning.
pub(super) struct SpillReader {
    file: BufReader<File>,
    left: u64,
}

impl Spill {
    /// Makes an empty file in a folder. The name is removed at once; the file lives as long as it is open.
    pub(super) fn new(folder: &Path) -> Result<Spill> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("spill-{}-{number}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(Spill { file: BufWriter::new(file), records: 0 })
    }

    /// Appends a record made of parts.
    pub(super) fn push(&mut self, parts: &[&[u8]]) -> Result<()> {
        for part in parts {
            let length = u32::try_from(part.len()).map_err(|_| Error::internal("a spilled part is below 4 GiB"))?;
            self.file.write_all(&length.to_le_bytes())?;
            self.file.write_all(part)?;
        }
        self.records += 1;
        Ok(())
    }

    /// Turns to reading.
    pub(super) fn into_reader(self) -> Result<SpillReader> {
        let mut file = self.file.into_inner().map_err(|error| Error::from(error.into_error()))?;
        file.seek(SeekFrom::Start(0))?;
        Ok(SpillReader { file: BufReader::new(file), left: self.records })
    }
}

impl SpillReader {
    /// The next record, of `N` parts.
    pub(super) fn next<const N: usize>(&mut self) -> Result<Option<[Vec<u8>; N]>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut parts = [const { Vec::new() }; N];
        for part in &mut parts {
            let mut length = [0; 4];
            self.file.read_exact(&mut length)?;
            part.resize(u32::from_le_bytes(length) as usize, 0);
            self.file.read_exact(part)?;
        }
        Ok(Some(parts))
    }
}

/// The refusal to hold more in memory.
pub(super) fn too_much(what: &str, memory_bytes: usize) -> Error {
    Error::new(
        Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
        format!(
            "{what} exceeded memory limit of {memory_bytes} bytes, but did not opt in to external sorting. Aborting operation. \
             Pass allowDiskUse:true to opt in."
        ),
    )
}
