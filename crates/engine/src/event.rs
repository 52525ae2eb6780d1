//! The change log's events: what a log record's note says about the writes beside it.
//!
//! A note is a row of BSON documents, one an event, in the order of the writes. The document after a write is not repeated:
//! it is the record's value for the event's record key.

use crate::context::SessionContext;
use crate::document::{append, with_room};
use crate::error::Result;
use crate::namespace::Namespace;
use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{RawBinaryRef, RawBsonRef, RawDocument, RawDocumentBuf};
use bytes::Bytes;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A document came to be.
    Insert,
    /// Fields of a document changed.
    Update,
    /// A document was replaced as a whole.
    Replace,
    /// A document went.
    Delete,
    /// Something happened to a collection or a database; the event's `detail` says what.
    Definition,
    /// The events after it in the note belong to a multi-document transaction.
    Transaction,
}

impl EventKind {
    fn code(self) -> &'static str {
        match self {
            EventKind::Insert => "i",
            EventKind::Update => "u",
            EventKind::Replace => "r",
            EventKind::Delete => "d",
            EventKind::Definition => "c",
            EventKind::Transaction => "t",
        }
    }

    fn from_code(code: &str) -> Option<EventKind> {
        use EventKind::{Definition, Delete, Insert, Replace, Transaction, Update};
        [Insert, Update, Replace, Delete, Definition, Transaction].into_iter().find(|kind| kind.code() == code)
    }
}

/// What most events take.
const EVENT_BYTES: usize = 320;

/// The notes of one commit while it is being made.
#[derive(Clone, Debug, Default)]
pub struct Note {
    bytes: Vec<u8>,
}

/// What a document event says.
#[derive(Clone, Copy, Debug)]
pub struct DocumentEvent<'a> {
    /// What happened.
    pub kind: EventKind,
    /// Where.
    pub namespace: &'a Namespace,
    /// The collection's UUID.
    pub uuid: [u8; 16],
    /// The document's key in the storage.
    pub storage_key: &'a [u8],
    /// The document's `_id`.
    pub id: RawBsonRef<'a>,
    /// The update's description, for [`EventKind::Update`].
    pub description: Option<&'a RawDocument>,
    /// The document before, where the collection keeps pre-images.
    pub before: Option<&'a RawDocument>,
    /// The document before, where the same commit had written it: the record no longer holds it otherwise.
    pub superseded: Option<&'a RawDocument>,
}

impl Note {
    /// Adds a document's event.
    ///
    /// # Errors
    /// None in practice: the field names are ours.
    pub fn document(&mut self, event: DocumentEvent<'_>) -> Result<()> {
        let mut document = with_room(EVENT_BYTES)?;
        document.append(cstr!("op"), event.kind.code());
        document.append(cstr!("db"), event.namespace.database.as_str());
        document.append(cstr!("coll"), event.namespace.collection.as_str());
        document.append(cstr!("ui"), binary(BinarySubtype::Uuid, &event.uuid));
        document.append(cstr!("key"), binary(BinarySubtype::Generic, event.storage_key));
        document.append(cstr!("id"), event.id);
        if let Some(description) = event.description {
            document.append(cstr!("diff"), description);
        }
        if let Some(before) = event.before {
            document.append(cstr!("pre"), before);
        }
        if let Some(superseded) = event.superseded {
            document.append(cstr!("was"), superseded);
        }
        self.bytes.extend_from_slice(document.as_bytes());
        Ok(())
    }

    /// Adds an event of a collection or a database, e.g. `{create: "orders"}`.
    ///
    /// # Errors
    /// None in practice: the field names are ours.
    pub fn definition(&mut self, namespace: &Namespace, uuid: Option<[u8; 16]>, detail: &RawDocument) -> Result<()> {
        let mut document = RawDocumentBuf::new();
        append(&mut document, "op", RawBsonRef::String(EventKind::Definition.code()))?;
        append(&mut document, "db", RawBsonRef::String(&namespace.database))?;
        append(&mut document, "coll", RawBsonRef::String(&namespace.collection))?;
        if let Some(uuid) = uuid {
            append(&mut document, "ui", binary(BinarySubtype::Uuid, &uuid))?;
        }
        append(&mut document, "o", RawBsonRef::Document(detail))?;
        self.bytes.extend_from_slice(document.as_bytes());
        Ok(())
    }

    /// The beginning of a transaction's note: which session's it is, and its number.
    ///
    /// # Errors
    /// None in practice: the field names are ours.
    pub fn of_transaction(session: &SessionContext) -> Result<Note> {
        let mut document = RawDocumentBuf::new();
        append(&mut document, "op", RawBsonRef::String(EventKind::Transaction.code()))?;
        append(&mut document, "ls", binary(BinarySubtype::Uuid, &session.client_id()))?;
        append(&mut document, "uid", binary(BinarySubtype::Generic, &session.user))?;
        append(&mut document, "tx", RawBsonRef::Int64(session.txn_number.unwrap_or_default()))?;
        Ok(Note { bytes: document.into_bytes() })
    }

    /// Takes over a later note.
    pub fn absorb(&mut self, later: Note) {
        self.bytes.extend_from_slice(&later.bytes);
    }

    /// The note's bytes for the log record.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from(self.bytes)
    }

    /// How many bytes it holds.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }
}

fn binary(subtype: BinarySubtype, bytes: &[u8]) -> RawBsonRef<'_> {
    RawBsonRef::Binary(RawBinaryRef { subtype, bytes })
}

/// The events in a record's note.
///
/// # Errors
/// `InvalidBSON` (22) when the note is malformed.
pub fn read_note(note: &[u8]) -> Result<Vec<(EventKind, &RawDocument)>> {
    let mut events = Vec::new();
    let mut rest = note;
    while rest.len() >= 4 {
        let length = u32::from_le_bytes(rest[..4].try_into().expect("four bytes")) as usize;
        let (first, others) = rest.split_at(length.clamp(4, rest.len()));
        let document = RawDocument::from_bytes(first)?;
        let kind = document.get_str("op").ok().and_then(EventKind::from_code);
        let kind = kind.ok_or_else(|| crate::Error::internal("a log record's note holds an unknown event"))?;
        events.push((kind, document));
        rest = others;
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn a_note_gives_back_its_events_in_order() {
        let namespace = Namespace::new("shop", "orders").unwrap();
        let mut note = Note::default();
        let event = DocumentEvent {
            kind: EventKind::Insert,
            namespace: &namespace,
            uuid: [7; 16],
            storage_key: b"key",
            id: RawBsonRef::Int32(5),
            description: None,
            before: None,
            superseded: None,
        };
        note.document(event).unwrap();
        note.definition(&namespace, None, &rawdoc! { "drop": "orders" }).unwrap();
        let bytes = note.into_bytes();
        let events = read_note(&bytes).unwrap();
        assert_eq!(events.iter().map(|event| event.0).collect::<Vec<_>>(), [EventKind::Insert, EventKind::Definition]);
        assert_eq!(events[0].1.get_i32("id").unwrap(), 5);
        assert_eq!(events[1].1.get_document("o").unwrap().get_str("drop").unwrap(), "orders");
    }
}
