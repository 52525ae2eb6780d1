//! A record of the log as change streams look at it: its events, and the document after each.

use crate::changestream::broken;
use crate::document::get;
use crate::error::Result;
use crate::event::{EventKind, read_note};
use crate::storage::{Position, Record};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Range;

/// A record of the log, taken apart once for all who look at it.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) position: Position,
    pub(crate) time: u64,
    note: Bytes,
    events: Vec<Event>,
    /// The transaction that the events belong to.
    pub(crate) transaction: Option<RawDocumentBuf>,
    size_bytes: usize,
}

/// An event of a record.
#[derive(Debug)]
struct Event {
    kind: EventKind,
    /// Where it is in the note.
    range: Range<usize>,
    /// The document after it.
    image: Option<Bytes>,
}

impl Decoded {
    /// Takes a record apart.
    ///
    /// # Errors
    /// `InvalidBSON` (22) and `InternalError` (1) for a note that is none.
    pub(crate) fn new(record: Record) -> Result<Decoded> {
        let noted = read_note(&record.note)?;
        let mut events = Vec::with_capacity(noted.len());
        // From the last event to the first: what a later one found is what an earlier one left.
        let mut found: HashMap<&[u8], Option<Bytes>> = HashMap::new();
        if noted.len() > 1 {
            found.extend(record.writes.iter().map(|(key, value)| (&key[..], value.clone())));
        }
        let mut size_bytes = record.note.len();
        let mut transaction = None;
        for (kind, event) in noted.into_iter().rev() {
            let start = event.as_bytes().as_ptr() as usize - record.note.as_ptr() as usize;
            let range = start..start + event.as_bytes().len();
            let mut image = None;
            if kind == EventKind::Transaction {
                transaction = Some(event.to_owned());
            } else if kind != EventKind::Definition {
                let key = event.get_binary("key").map_err(|_| broken())?.bytes;
                image = match found.get(key) {
                    Some(image) => image.clone(),
                    None => record.writes.iter().rev().find(|write| write.0 == key).and_then(|write| write.1.clone()),
                };
                if let Some(RawBsonRef::Document(superseded)) = get(event, "was")? {
                    found.insert(key, Some(record.note.slice_ref(superseded.as_bytes())));
                }
            }
            size_bytes += image.as_ref().map_or(0, Bytes::len) + size_of::<Event>();
            events.push(Event { kind, range, image });
        }
        events.reverse();
        let (position, time, note) = (record.position, record.time, record.note.clone());
        Ok(Decoded { position, time, note, events, transaction, size_bytes })
    }

    /// How many events it has.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// An event with its kind.
    ///
    /// # Errors
    /// None: it was read before.
    pub(crate) fn event(&self, number: usize) -> Result<(EventKind, &RawDocument)> {
        let event = &self.events[number];
        Ok((event.kind, RawDocument::from_bytes(&self.note[event.range.clone()])?))
    }

    /// The document after an event.
    pub(crate) fn image(&self, number: usize) -> Option<&Bytes> {
        self.events[number].image.as_ref()
    }

    /// About how many bytes it holds.
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
