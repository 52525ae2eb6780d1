//! The stage that reads everything before it gives anything, in order.
//!
//! With a limit only the first rows are kept. Without one, what grows beyond [`MAX_SORT_BYTES`] goes to the disk in sorted
//! runs where that is allowed, and is refused where it is not.

use super::simple::Nothing;
use super::spill::{Run, Runs};
use super::{Counters, Cx, Member, Running, SHOWN_AT_ONCE, Settings, Shown, State, Work};
use crate::error::{Code, Error, Result};
use crate::plan::sort::SortPattern;
use bson::RawDocument;
use bytes::Bytes;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The most bytes that a sort holds in memory.
pub(super) const MAX_SORT_BYTES: usize = 100 * 1024 * 1024;

/// What a row costs beside its bytes.
const ROW_BYTES: usize = 160;

/// A row with what orders it; rows with the same key keep their order.
#[derive(Debug)]
pub(super) struct Sorted {
    pub(super) key: Bytes,
    pub(super) number: u64,
    pub(super) member: Member,
}

impl PartialEq for Sorted {
    fn eq(&self, other: &Sorted) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Sorted {}

impl PartialOrd for Sorted {
    fn partial_cmp(&self, other: &Sorted) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sorted {
    fn cmp(&self, other: &Sorted) -> std::cmp::Ordering {
        self.key.cmp(&other.key).then(self.number.cmp(&other.number))
    }
}

/// A blocking sort.
pub(super) struct Sort {
    pattern: Arc<SortPattern>,
    limit: u64,
    allow_disk_use: bool,
    child: Running,
    held: BinaryHeap<Sorted>,
    held_bytes: usize,
    number: u64,
    runs: Runs,
    output: Option<Output>,
}

/// Where sorted rows come from.
enum Output {
    Memory(std::vec::IntoIter<Sorted>),
    Disk(Runs),
}

impl Sort {
    pub(super) fn new(pattern: Arc<SortPattern>, limit: u64, settings: &Settings, child: Running) -> Sort {
        Sort {
            pattern,
            limit,
            allow_disk_use: settings.allow_disk_use,
            child,
            held: BinaryHeap::new(),
            held_bytes: 0,
            number: 0,
            runs: Runs::new(),
            output: None,
        }
    }

    /// Takes a row that may come out, which is made by `make` only then.
    fn take(&mut self, key: Vec<u8>, counters: &mut Counters, make: impl FnOnce() -> Member) -> Result<()> {
        let number = self.number;
        self.number += 1;
        if self.limit > 0 && self.held.len() as u64 >= self.limit {
            let Some(mut greatest) = self.held.peek_mut() else { return Ok(()) };
            // Among equals the earlier one stays.
            if key[..] < greatest.key[..] {
                let row = Sorted { key: Bytes::from(key), number, member: make() };
                let size = bytes_of(&row.key, &row.member);
                counters.sorted_bytes += size as u64;
                self.held_bytes = self.held_bytes + size - bytes_of(&greatest.key, &greatest.member);
                *greatest = row;
            }
        } else {
            let row = Sorted { key: Bytes::from(key), number, member: make() };
            let size = bytes_of(&row.key, &row.member);
            counters.sorted_bytes += size as u64;
            self.held_bytes += size;
            self.held.push(row);
        }
        if self.held_bytes > MAX_SORT_BYTES {
            self.spill(counters)?;
        }
        Ok(())
    }

    /// Takes what the child shows; `None` when it must be stepped.
    fn take_shown(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<Option<Shown>> {
        let mut child = std::mem::replace(&mut self.child, Running::new(Nothing));
        let pattern = self.pattern.clone();
        let shown = child.show(cx, SHOWN_AT_ONCE, &mut |record, document| {
            let key = pattern.key(document, cx.environment.collator())?;
            self.take(key, counters, || Member {
                record: Bytes::copy_from_slice(record),
                document: Some(Bytes::copy_from_slice(document.as_bytes())),
                key: None,
                sort_key: None,
                generation: cx.generation,
            })?;
            Ok(true)
        });
        self.child = child;
        shown
    }

    fn spill(&mut self, counters: &mut Counters) -> Result<()> {
        if !self.allow_disk_use {
            return Err(Error::new(
                Code::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                format!(
                    "Executor error during find command :: caused by :: Sort exceeded memory limit of {MAX_SORT_BYTES} bytes, \
                     but did not opt in to external sorting. Pass allowDiskUse: true, add an index, or limit the sort."
                ),
            ));
        }
        counters.spills += 1;
        counters.spilled_bytes += self.held_bytes as u64;
        let rows = std::mem::take(&mut self.held).into_sorted_vec();
        self.held_bytes = 0;
        self.runs.push(Run::write(rows)?);
        Ok(())
    }

    fn finish(&mut self, counters: &mut Counters) -> Result<Output> {
        if self.runs.is_empty() {
            let rows = std::mem::take(&mut self.held).into_sorted_vec();
            return Ok(Output::Memory(rows.into_iter()));
        }
        self.spill(counters)?;
        let mut runs = std::mem::replace(&mut self.runs, Runs::new());
        runs.begin()?;
        Ok(Output::Disk(runs))
    }
}

fn bytes_of(key: &Bytes, member: &Member) -> usize {
    key.len() + member.document.as_ref().map_or(0, Bytes::len) + ROW_BYTES
}

impl Work for Sort {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        if let Some(output) = &mut self.output {
            let next = match output {
                Output::Memory(rows) => rows.next(),
                Output::Disk(runs) => runs.next()?,
            };
            return Ok(match next {
                Some(Sorted { key, mut member, .. }) => {
                    member.sort_key = Some(key);
                    State::Row(Box::new(member))
                }
                None => State::End,
            });
        }
        if cx.in_bulk {
            match self.take_shown(cx, counters)? {
                Some(Shown::Some) => return Ok(State::NeedTime),
                Some(Shown::All) => {
                    self.output = Some(self.finish(counters)?);
                    return Ok(State::NeedTime);
                }
                None => {}
            }
        }
        match self.child.step(cx)? {
            State::Row(member) => {
                let document = member.document.as_ref();
                let document = document.ok_or_else(|| Error::internal("a sorted row has no document"))?;
                let key = self.pattern.key(RawDocument::from_bytes(document)?, cx.environment.collator())?;
                self.take(key, counters, || *member)?;
            }
            State::NeedTime => {}
            State::End => self.output = Some(self.finish(counters)?),
        }
        Ok(State::NeedTime)
    }

    fn children(&self) -> Vec<&Running> {
        vec![&self.child]
    }

    fn release(&mut self) {
        self.child.release();
    }
}
