//! Sorted runs on the disk, and their merge.

use super::Member;
use super::sort::Sorted;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};

/// The bytes read from a run at once.
const READ_BYTES: usize = 64 * 1024;

/// A file of sorted rows, gone when it is closed.
pub(super) struct Run {
    file: BufReader<File>,
    left: u64,
}

impl Run {
    /// Writes rows in their order.
    pub(super) fn write(rows: Vec<Sorted>) -> Result<Run> {
        let left = rows.len() as u64;
        let mut file = BufWriter::new(tempfile::tempfile()?);
        for row in rows {
            file.write_all(&row.number.to_be_bytes())?;
            let document =
                row.member.document.as_ref().ok_or_else(|| Error::internal("a sorted row has no document"))?;
            for part in [&row.key, &row.member.record, document] {
                let length = u32::try_from(part.len()).map_err(|_| Error::internal("a sorted row beyond 4 GiB"))?;
                file.write_all(&length.to_be_bytes())?;
                file.write_all(part)?;
            }
        }
        let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(Run { file: BufReader::with_capacity(READ_BYTES, file), left })
    }

    fn next(&mut self) -> Result<Option<Sorted>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut number = [0; 8];
        self.file.read_exact(&mut number)?;
        let (key, record, document) = (self.part()?, self.part()?, self.part()?);
        let member = Member { record, document: Some(document), key: None, sort_key: None, generation: 0 };
        Ok(Some(Sorted { key, number: u64::from_be_bytes(number), member }))
    }

    fn part(&mut self) -> Result<Bytes> {
        let mut length = [0; 4];
        self.file.read_exact(&mut length)?;
        let mut part = vec![0; u32::from_be_bytes(length) as usize];
        self.file.read_exact(&mut part)?;
        Ok(Bytes::from(part))
    }
}

/// Runs that are merged.
pub(super) struct Runs {
    runs: Vec<Run>,
    heads: BinaryHeap<Reverse<(Sorted, usize)>>,
}

impl Runs {
    pub(super) fn new() -> Runs {
        Runs { runs: Vec::new(), heads: BinaryHeap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn push(&mut self, run: Run) {
        self.runs.push(run);
    }

    /// Reads the first row of each run.
    pub(super) fn begin(&mut self) -> Result<()> {
        for number in 0..self.runs.len() {
            self.refill(number)?;
        }
        Ok(())
    }

    /// The least row of all.
    pub(super) fn next(&mut self) -> Result<Option<Sorted>> {
        let Some(Reverse((row, number))) = self.heads.pop() else { return Ok(None) };
        self.refill(number)?;
        Ok(Some(row))
    }

    fn refill(&mut self, number: usize) -> Result<()> {
        if let Some(row) = self.runs[number].next()? {
            self.heads.push(Reverse((row, number)));
        }
        Ok(())
    }
}
