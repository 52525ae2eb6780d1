//! Reading the log: what change streams and backups follow.

use super::record::Record;
use super::segment::Scanner;
use crate::error::{Code, Error, Result};
use crate::storage::Position;
use crate::storage::core::Core;
use std::sync::Arc;

/// The flushed commits after a position, in order. `None` means that it has caught up; it can be asked again later.
pub struct LogReader {
    core: Arc<Core>,
    next: Position,
    scanner: Option<Scanner>,
}

impl LogReader {
    pub(in crate::storage) fn new(core: Arc<Core>, after: Position) -> Result<LogReader> {
        let next = after.saturating_add(1);
        let oldest = core.log.oldest().unwrap_or(core.progress.flushed() + 1);
        if next < oldest {
            return Err(lost(next, oldest));
        }
        Ok(LogReader { core, next, scanner: None })
    }

    /// The position of the next record.
    pub fn next_position(&self) -> Position {
        self.next
    }

    fn read(&mut self) -> Result<Record> {
        loop {
            let scanner = match &mut self.scanner {
                Some(scanner) => scanner,
                None => self.scanner.insert(locate(&self.core, self.next)?),
            };
            let limit = scanner.segment.written();
            match scanner.peek(limit)? {
                Some((header, _)) if header.position < self.next => scanner.skip(&header),
                Some((header, bytes)) if header.position == self.next => {
                    let record = header.decode(bytes)?;
                    scanner.skip(&header);
                    self.next += 1;
                    return Ok(record);
                }
                _ => {
                    // The segment's end, unless the position should have been in this one.
                    let number = scanner.segment.number;
                    let located = locate(&self.core, self.next)?;
                    if located.segment.number == number {
                        return Err(Error::new(
                            Code::MANUAL_INTERVENTION_REQUIRED,
                            format!("position {} of the log can't be read: its file is damaged", self.next),
                        ));
                    }
                    self.scanner = Some(located);
                }
            }
        }
    }
}

fn locate(core: &Core, position: Position) -> Result<Scanner> {
    let Some(segment) = core.log.segment_of(position) else {
        return Err(lost(position, core.log.oldest().unwrap_or(position + 1)));
    };
    let (offset, _) = segment.entrance(|mark| mark.position <= position);
    Ok(Scanner::new(segment, offset))
}

fn lost(wanted: Position, oldest: Position) -> Error {
    Error::new(
        Code::CHANGE_STREAM_HISTORY_LOST,
        format!(
            "the log begins at position {oldest} and no longer holds position {wanted}; start anew from the present \
             state, and let the log keep more (its size and age are options)"
        ),
    )
}

impl Iterator for LogReader {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        if self.next > self.core.progress.flushed() {
            return None;
        }
        Some(self.read())
    }
}
