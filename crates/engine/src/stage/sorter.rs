//! Sorting rows: in memory up to a bound, then in sorted runs on disk that are merged; the first `limit` rows alone when
//! no more are wanted.

use crate::document::{RawDocument, Row};
use crate::error::Result;
use crate::stage::spill::{Spill, SpillReader, too_much};
use crate::stage::{RowSource, Rows};
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::path::PathBuf;

/// About how many bytes a held row takes beside its own.
const OVERHEAD_BYTES: usize = 128;

/// How many runs are merged at once.
const MERGE_WIDTH: usize = 64;

/// A sort that is being fed.
pub struct Sorter {
    rows: Vec<Entry>,
    heap: BinaryHeap<Entry>,
    limit: Option<usize>,
    bytes: usize,
    number: u64,
    runs: Vec<SpillReader>,
    memory_bytes: usize,
    spill_folder: Option<PathBuf>,
}

/// A row with its key; equal keys keep the order of arrival.
struct Entry {
    key: Vec<u8>,
    number: u64,
    row: Row,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.key.len() + self.row.bytes().len() + OVERHEAD_BYTES
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.key.cmp(&other.key).then(self.number.cmp(&other.number))
    }
}

impl Sorter {
    /// A sort that holds at most `memory_bytes`; what exceeds them goes to `spill_folder`, or is refused where there is none.
    pub fn new(limit: Option<u64>, memory_bytes: usize, spill_folder: Option<PathBuf>) -> Sorter {
        // A limit that may not fit into the memory is treated as none: the merge stops at it.
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        Sorter {
            rows: Vec::new(),
            heap: BinaryHeap::new(),
            limit,
            bytes: 0,
            number: 0,
            runs: Vec::new(),
            memory_bytes,
            spill_folder,
        }
    }

    /// Takes a row by its key, whose byte order is the order wanted.
    ///
    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed` (292), and what writing a temporary file refuses.
    pub fn push(&mut self, key: Vec<u8>, row: Row) -> Result<()> {
        let entry = Entry { key, number: self.number, row };
        self.number += 1;
        if self.limit == Some(0) {
            return Ok(());
        }
        self.bytes += entry.bytes();
        match self.limit {
            Some(limit) if self.runs.is_empty() => {
                self.heap.push(entry);
                if self.heap.len() > limit
                    && let Some(last) = self.heap.pop()
                {
                    self.bytes -= last.bytes();
                }
            }
            _ => self.rows.push(entry),
        }
        if self.bytes > self.memory_bytes {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let Some(folder) = &self.spill_folder else { return Err(too_much("Sort", self.memory_bytes)) };
        self.rows.extend(std::mem::take(&mut self.heap));
        self.rows.sort_unstable();
        let mut run = Spill::new(folder)?;
        for entry in self.rows.drain(..).take(self.limit.unwrap_or(usize::MAX)) {
            let record = entry.row.record.as_deref().unwrap_or_default();
            run.push(&[&entry.key, &entry.number.to_be_bytes(), record, entry.row.bytes()])?;
        }
        self.runs.push(run.into_reader()?);
        self.bytes = 0;
        if self.runs.len() >= MERGE_WIDTH {
            self.merge_runs()?;
        }
        Ok(())
    }

    /// Merges the runs into one, so that their number stays bounded.
    fn merge_runs(&mut self) -> Result<()> {
        let Some(folder) = self.spill_folder.clone() else { return Ok(()) };
        let runs = std::mem::take(&mut self.runs);
        let mut merge = Merge::new(runs, Vec::new(), self.limit)?;
        let mut run = Spill::new(&folder)?;
        while let Some(entry) = merge.pop()? {
            let record = entry.row.record.as_deref().unwrap_or_default();
            run.push(&[&entry.key, &entry.number.to_be_bytes(), record, entry.row.bytes()])?;
        }
        self.runs.push(run.into_reader()?);
        Ok(())
    }

    /// The rows in order, each with its key beside it.
    ///
    /// # Errors
    /// What reading a temporary file refuses.
    pub fn finish(mut self) -> Result<Rows> {
        self.rows.extend(std::mem::take(&mut self.heap));
        self.rows.sort_unstable();
        if self.runs.is_empty() {
            if let Some(limit) = self.limit {
                self.rows.truncate(limit);
            }
            return Ok(Box::new(InMemory(self.rows.into_iter())));
        }
        Ok(Box::new(Merge::new(self.runs, self.rows, self.limit)?))
    }
}

struct InMemory(std::vec::IntoIter<Entry>);

impl RowSource for InMemory {
    fn next(&mut self) -> Result<Option<Row>> {
        Ok(self.0.next().map(with_key))
    }
}

fn with_key(entry: Entry) -> Row {
    let mut row = entry.row;
    row.sort_key = Some(Bytes::from(entry.key));
    row
}

/// The merge of sorted runs and of the rows still in memory.
struct Merge {
    runs: Vec<SpillReader>,
    memory: std::vec::IntoIter<Entry>,
    heads: BinaryHeap<std::cmp::Reverse<(Entry, usize)>>,
    left: usize,
}

impl Merge {
    fn new(runs: Vec<SpillReader>, memory: Vec<Entry>, limit: Option<usize>) -> Result<Merge> {
        let count = runs.len();
        let left = limit.unwrap_or(usize::MAX);
        let mut merge = Merge { runs, memory: memory.into_iter(), heads: BinaryHeap::new(), left };
        for run in 0..=count {
            merge.refill(run)?;
        }
        Ok(merge)
    }

    fn refill(&mut self, run: usize) -> Result<()> {
        let entry = match self.runs.get_mut(run) {
            Some(reader) => match reader.next::<4>()? {
                Some([key, number, record, bytes]) => {
                    RawDocument::from_bytes(&bytes)?;
                    let mut row = Row::stored(Bytes::from(bytes), Bytes::from(record))?;
                    row.record = row.record.filter(|record| !record.is_empty());
                    let number = number.try_into().map_or(0, u64::from_be_bytes);
                    Some(Entry { key, number, row })
                }
                None => None,
            },
            None => self.memory.next(),
        };
        if let Some(entry) = entry {
            self.heads.push(std::cmp::Reverse((entry, run)));
        }
        Ok(())
    }

    fn pop(&mut self) -> Result<Option<Entry>> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(std::cmp::Reverse((entry, run))) = self.heads.pop() else { return Ok(None) };
        self.left -= 1;
        self.refill(run)?;
        Ok(Some(entry))
    }
}

impl RowSource for Merge {
    fn next(&mut self) -> Result<Option<Row>> {
        Ok(self.pop()?.map(with_key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    fn sorted(limit: Option<u64>, memory_bytes: usize) -> Vec<(i32, i32)> {
        let mut sorter = Sorter::new(limit, memory_bytes, Some(std::env::temp_dir()));
        for number in 0..1000 {
            let value = (number * 7919) % 101;
            sorter.push(vec![u8::try_from(value).unwrap()], rawdoc! { "v": value, "n": number }.into()).unwrap();
        }
        let mut rows = sorter.finish().unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            found.push((row.document().get_i32("v").unwrap(), row.document().get_i32("n").unwrap()));
        }
        found
    }

    #[test]
    fn memory_disk_and_limit_give_the_same_order() {
        let mut expected: Vec<_> = (0..1000).map(|number| ((number * 7919) % 101, number)).collect();
        expected.sort_unstable();
        assert_eq!(sorted(None, 1 << 30), expected);
        assert_eq!(sorted(None, 1000), expected);
        assert_eq!(sorted(Some(10), 1 << 30), expected[..10]);
        assert_eq!(sorted(Some(300), 5000), expected[..300]);
        assert!(sorted(Some(0), 1000).is_empty());
    }

    #[test]
    fn without_disk_too_much_is_refused() {
        let mut sorter = Sorter::new(None, 1000, None);
        let failure = (0..100).find_map(|_| sorter.push(vec![1], rawdoc! { "v": 1 }.into()).err());
        assert_eq!(failure.unwrap().code.0, 292);
    }
}
