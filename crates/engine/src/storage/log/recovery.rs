//! Opening the log: where it ends, and whether that can be believed.
//!
//! A crash may leave the records of the last, unflushed batch in pieces: the first bad record then ends the log, and
//! what follows is erased before anything new is written, so that it can't be taken for a continuation later. Damage to
//! flushed records looks the same at first. But every record says what had been flushed when it was written: if one
//! beyond the end says that the end had been flushed, or if the tables reach further, then something acknowledged is
//! lost, and opening is refused.

use super::record::{Header, Record};
use super::segment::{self, HEADER_BYTES, Mark, Scanner, Segment};
use crate::error::{Code, Error, Result};
use crate::storage::medium::Medium;
use crate::storage::tables::Reached;
use crate::storage::{Flush, Options, Position};
use std::collections::VecDeque;
use std::sync::Arc;

/// The log as recovery found and left it.
pub(super) struct Recovered {
    /// At least one; the last is the one to append to.
    pub(super) segments: VecDeque<Arc<Segment>>,
    /// The last record, or how far the tables reach if there is none beyond.
    pub(super) end: Reached,
}

/// A segment's file as found.
struct Found {
    segment: Arc<Segment>,
    /// Whether its header is complete.
    begun: bool,
    first: Option<Position>,
}

/// Finds the log's end and hands every record beyond what the tables reach to `apply`, in order.
pub(super) fn recover(
    medium: &dyn Medium,
    options: &Options,
    reached: Reached,
    apply: &mut dyn FnMut(Record) -> Result<()>,
) -> Result<Recovered> {
    let mut found = find(medium)?;
    let scan_from = first_needed(&found, reached)?;
    for older in &found[..scan_from] {
        older.segment.settle(older.segment.capacity);
    }
    if options.flush == Flush::Durable {
        // They may have been written by a process that crashed before it flushed them.
        for needed in &found[scan_from..] {
            needed.segment.sync()?;
        }
    }
    let (last, end) = scan(&found[scan_from..], reached, options.flush, apply)?;
    let tail = scan_from + last;
    let dirty = check_beyond(&found[tail..], end.position, reached)?;
    clear_beyond(medium, &mut found, tail, dirty, options)?;
    let segments = drop_gaps(medium, found)?;
    Ok(Recovered { segments, end })
}

fn find(medium: &dyn Medium) -> Result<Vec<Found>> {
    let mut numbers: Vec<u64> = medium.names()?.iter().filter_map(|name| segment::number(name)).collect();
    numbers.sort_unstable();
    let mut all = Vec::with_capacity(numbers.len());
    for number in numbers {
        let (segment, begun) = Segment::open(medium, number)?;
        let segment = Arc::new(segment);
        let mut scanner = Scanner::new(segment.clone(), HEADER_BYTES);
        let first = if begun { scanner.peek(u64::MAX)?.map(|(header, _)| header) } else { None };
        if let Some(header) = &first {
            segment.mark(Mark { position: header.position, time: header.time, offset: HEADER_BYTES });
        }
        all.push(Found { segment, begun, first: first.map(|header| header.position) });
    }
    Ok(all)
}

/// The index of the segment that holds the first record beyond the tables, or would.
fn first_needed(found: &[Found], reached: Reached) -> Result<usize> {
    if reached.position > 0 && !found.iter().any(|found| found.begun) {
        return Err(refused(format!(
            "the tables reach position {}, but the log's files are missing or damaged",
            reached.position
        )));
    }
    let needed = reached.position + 1;
    let Some(oldest) = found.iter().find_map(|found| found.first) else {
        return Ok(found.iter().position(|found| found.begun).unwrap_or(0));
    };
    if oldest > needed {
        return Err(refused(format!(
            "the log begins at position {oldest}, but the tables reach only position {}",
            reached.position
        )));
    }
    let last = found.iter().rposition(|found| found.first.is_some_and(|first| first <= needed));
    Ok(last.expect("the oldest is one of them"))
}

/// Reads records as long as they follow one another. Returns the index of the last segment that belongs to the log.
fn scan(
    found: &[Found],
    reached: Reached,
    flush: Flush,
    apply: &mut dyn FnMut(Record) -> Result<()>,
) -> Result<(usize, Reached)> {
    let mut end = reached;
    let mut next = found.first().and_then(|found| found.first).unwrap_or(reached.position + 1);
    let mut last = 0;
    let mut unproven = Unproven::default();
    for (index, Found { segment, begun, first }) in found.iter().enumerate() {
        if index > 0 && *first != Some(next) {
            break;
        }
        last = index;
        if !begun {
            continue;
        }
        let mut scanner = Scanner::new(segment.clone(), HEADER_BYTES);
        while let Some((header, bytes)) = scanner.peek(u64::MAX)? {
            if header.position != next {
                break;
            }
            unproven.add(&header, bytes, segment, segment.written());
            if header.position > reached.position {
                apply(header.decode(bytes)?)?;
            }
            segment.mark(Mark { position: header.position, time: header.time, offset: segment.written() });
            end = Reached { position: header.position, time: header.time };
            next += 1;
            scanner.skip(&header);
            segment.settle(scanner.offset);
        }
    }
    if flush == Flush::Durable {
        unproven.write_again()?;
    }
    Ok((last, end))
}

/// The records of which no later one says that they had been flushed.
///
/// If the flush of the last batch failed and the process was restarted, the system may still show what it was unable to
/// write, and report nothing on the next flush. So they are written again before anyone sees them.
#[derive(Default)]
struct Unproven {
    records: VecDeque<(Position, Arc<Segment>, u64, Vec<u8>)>,
}

impl Unproven {
    fn add(&mut self, header: &Header, bytes: &[u8], segment: &Arc<Segment>, offset: u64) {
        while self.records.front().is_some_and(|record| record.0 <= header.flushed) {
            self.records.pop_front();
        }
        let bytes = bytes[..header.checked_bytes()].to_vec();
        self.records.push_back((header.position, segment.clone(), offset, bytes));
    }

    fn write_again(&self) -> Result<()> {
        for (_, segment, offset, bytes) in &self.records {
            segment.write(*offset, bytes)?;
        }
        for (_, segment, ..) in &self.records {
            segment.sync()?;
        }
        Ok(())
    }
}

/// Refuses a log that ends before something that had been flushed. `found` begins with its last segment; the result
/// says whether that has anything but zeros beyond its end.
fn check_beyond(found: &[Found], end: Position, reached: Reached) -> Result<bool> {
    let Some(tail) = found.first() else { return Ok(false) };
    let mut tail_is_dirty = false;
    if end < reached.position {
        return Err(refused(format!(
            "{} ends or is damaged after position {end}, but the tables reach position {}",
            segment::name(tail.segment.number),
            reached.position
        )));
    }
    for (index, Found { segment, begun, .. }) in found.iter().enumerate() {
        let start = if index == 0 && *begun { segment.written() } else { 0 };
        let survey = Scanner::new(segment.clone(), start).survey()?;
        let headless = !begun && survey.records > 0;
        if survey.flushed > end || headless {
            return Err(refused(format!(
                "{} is damaged after position {end}, though a record in {} says that position {} had been flushed",
                segment::name(tail.segment.number),
                segment::name(segment.number),
                survey.flushed
            )));
        }
        tail_is_dirty |= index == 0 && survey.dirty;
    }
    Ok(tail_is_dirty)
}

/// Erases what a crash left beyond the end, and makes sure that there is a segment to append to.
fn clear_beyond(
    medium: &dyn Medium,
    found: &mut Vec<Found>,
    tail: usize,
    dirty: bool,
    options: &Options,
) -> Result<()> {
    while found.len() > tail + 1 || found.last().is_some_and(|found| !found.begun) {
        let beyond = found.pop().expect("checked to be there");
        medium.remove(&segment::name(beyond.segment.number))?;
    }
    match found.last() {
        Some(Found { segment, .. }) => {
            if dirty {
                segment.erase(segment.written())?;
                if options.flush == Flush::Durable {
                    segment.sync()?;
                }
            }
        }
        None => {
            let segment = Segment::create(medium, 1, super::planned_bytes(1, options.segment_bytes), options.flush)?;
            found.push(Found { segment: Arc::new(segment), begun: true, first: None });
        }
    }
    if options.flush == Flush::Durable {
        medium.sync()?;
    }
    Ok(())
}

/// Removes what lies before a gap in the history: a crash interrupted the pruning of those segments.
fn drop_gaps(medium: &dyn Medium, found: Vec<Found>) -> Result<VecDeque<Arc<Segment>>> {
    let mut kept: VecDeque<Arc<Segment>> = VecDeque::new();
    let mut gap = false;
    for Found { segment, first, .. } in found.into_iter().rev() {
        let follows = kept.front().is_none_or(|newer| newer.number == segment.number + 1 && first.is_some());
        gap |= !follows;
        if gap {
            medium.remove(&segment::name(segment.number))?;
        } else {
            kept.push_front(segment);
        }
    }
    Ok(kept)
}

fn refused(what: String) -> Error {
    Error::new(
        Code::MANUAL_INTERVENTION_REQUIRED,
        format!(
            "refused to open: {what}. Acknowledged writes would be lost: restore the missing or damaged files, or a \
             backup"
        ),
    )
}
