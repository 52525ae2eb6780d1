//! Change streams: the log's events as documents, from any position that the log still holds.
//!
//! ```text
//!   log record { position, time, note: [event, …], writes: [key -> document after, …] }
//!        └─ event k ──> { _id: token(time, position, k), operationType, …, fullDocument from the writes }
//! ```
//!
//! A resume token names a record and an event in it; the token of a batch without events names the whole record, so that a
//! stream that saw nothing of interest does not read the same records again.

use crate::database::{Inner, timestamp};
use crate::decoded::Decoded;
use crate::document::{Row, append, get};
use crate::error::{Code, Error, Result};
use crate::event::EventKind;
use crate::filter::Filter;
use crate::namespace::Namespace;
use crate::stage::RowSource;
use crate::storage;
use crate::storage::{LogReader, Position, View};
use crate::watch::{Area, Delivered, Found, Interest, Seat, choose_equality};
use bson::{DateTime, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, rawdoc};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// What a stream watches.
#[derive(Clone, Debug)]
pub enum Scope {
    /// One collection.
    Collection(Namespace),
    /// All collections of a database.
    Database(String),
    /// Everything.
    Deployment,
}

/// `fullDocument`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FullDocument {
    /// Only in inserts and replacements.
    #[default]
    Default,
    /// In updates, as it is when the event is read.
    UpdateLookup,
    /// In updates, as it was after them.
    WhenAvailable,
    /// As it was after them; an error where it is not available.
    Required,
}

/// `fullDocumentBeforeChange`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BeforeChange {
    /// Never.
    #[default]
    Off,
    /// Where the collection keeps it.
    WhenAvailable,
    /// An error where it is not available.
    Required,
}

/// Where a stream begins.
#[derive(Clone, Debug, Default)]
pub enum Start {
    /// With what happens from now on.
    #[default]
    Now,
    /// After the event of a token; an invalidate event ends it at once.
    ResumeAfter(RawDocumentBuf),
    /// After the event of a token, also after an invalidate event.
    StartAfter(RawDocumentBuf),
    /// With the first event at or after a time.
    AtTime(Timestamp),
}

/// The options of a `$changeStream` stage.
#[derive(Clone, Debug)]
pub struct ChangeStreamOptions {
    /// What it watches.
    pub scope: Scope,
    /// `fullDocument`.
    pub full_document: FullDocument,
    /// `fullDocumentBeforeChange`.
    pub before_change: BeforeChange,
    /// Whether events of definitions are shown.
    pub show_expanded_events: bool,
    /// Where it begins.
    pub start: Start,
}

/// A place between events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Token {
    time: u64,
    position: Position,
    /// The event in the record; [`WHOLE_RECORD`] stands behind all of them.
    event: u32,
    /// Whether it is an invalidate event's.
    invalidate: bool,
}

const WHOLE_RECORD: u32 = u32::MAX;
const TOKEN_VERSION: u8 = 0x53;
/// The bytes of a token; four more are the number of a fragment.
const TOKEN_BYTES: usize = 22;

/// The token of an event's fragment.
///
/// # Errors
/// A token that is none.
pub(crate) fn fragment_token(token: &RawDocument, fragment: u32) -> Result<RawDocumentBuf> {
    let data = token.get_str("_data").map_err(|_| broken())?;
    Ok(rawdoc! { "_data": format!("{data}{fragment:08X}") })
}

/// Which fragment of its event a token names: zero when it names the whole event.
fn fragment_of(token: &RawDocument) -> usize {
    let digits = token.get_str("_data").ok().and_then(|data| data.get(2 * TOKEN_BYTES..));
    digits.and_then(|digits| usize::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

impl Token {
    fn to_document(self) -> RawDocumentBuf {
        let mut bytes = vec![TOKEN_VERSION];
        bytes.extend_from_slice(&self.time.to_be_bytes());
        bytes.extend_from_slice(&self.position.to_be_bytes());
        bytes.extend_from_slice(&self.event.to_be_bytes());
        bytes.push(u8::from(self.invalidate));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        rawdoc! { "_data": hex }
    }

    fn parse(document: &RawDocument) -> Result<Token> {
        if document.get("_typeBits")?.is_some_and(|bits| bits.as_binary().is_none()) {
            return Err(Error::location(40648, "Bad resume token: _typeBits of wrong type"));
        }
        let data = document.get_str("_data").map_err(|_| {
            Error::location(40647, "Bad resume token: _data must be a string; use an event's whole _id")
        })?;
        if data.is_empty() {
            return Err(Error::location(40649, "The resume token is empty"));
        }
        if data.len() % 2 != 0 || !data.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(Error::failed_to_parse("resume token string was not a valid hex string"));
        }
        let bytes: Vec<u8> =
            (0..data.len()).step_by(2).map(|at| u8::from_str_radix(&data[at..at + 2], 16).unwrap_or(0)).collect();
        if ![TOKEN_BYTES, TOKEN_BYTES + 4].contains(&bytes.len()) || bytes[0] != TOKEN_VERSION {
            return Err(Error::new(
                Code::INVALID_RESUME_TOKEN,
                "the resume token was not made by this kind of server; begin a new stream",
            ));
        }
        let number = |from: usize| u64::from_be_bytes(bytes[from..from + 8].try_into().expect("eight bytes"));
        Ok(Token {
            time: number(1),
            position: number(9),
            event: u32::from_be_bytes(bytes[17..21].try_into().expect("four bytes")),
            invalidate: bytes[21] != 0,
        })
    }
}

impl Start {
    /// How many fragments of the event that it resumes at were seen before.
    pub(crate) fn fragments_seen(&self) -> usize {
        match self {
            Start::ResumeAfter(token) | Start::StartAfter(token) => fragment_of(token),
            _ => 0,
        }
    }
}

/// A stream of change events as a source of rows. It gives `None` when it has caught up and can be asked again.
pub(crate) struct ChangeStream {
    engine: Weak<Inner>,
    options: ChangeStreamOptions,
    /// Where events come from.
    place: Place,
    interest: Interest,
    pending: VecDeque<(Token, RawDocumentBuf)>,
    /// Events up to here were seen before.
    skip_until: Option<Token>,
    last: Arc<Mutex<Progress>>,
    ended: bool,
    /// Why it can't go on.
    failure: Option<Error>,
}

/// Where a stream's events come from.
enum Place {
    /// It reads the log itself.
    Log(LogReader),
    /// It has caught up, and the hub reads on for it.
    Seat(Arc<Seat>),
}

/// How far a stream is, as its cursor sees it.
struct Progress {
    token: Token,
    seat: Option<Arc<Seat>>,
    /// Whether it was ended by an invalidate event.
    ended: bool,
}

/// How far a stream is, shared with its cursor.
#[derive(Clone)]
pub(crate) struct Reached(Arc<Mutex<Progress>>);

impl Reached {
    /// The token, as a document.
    pub(crate) fn document(&self) -> RawDocumentBuf {
        self.0.lock().token.to_document()
    }

    /// Whether an invalidate event has ended the stream.
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().ended
    }

    /// The seat at which the stream waits for events.
    pub(crate) fn seat(&self) -> Option<Arc<Seat>> {
        self.0.lock().seat.clone()
    }
}

impl Inner {
    /// Opens a change stream; also gives the token that it has reached, now and later.
    ///
    /// # Errors
    /// `ChangeStreamHistoryLost` (286) when the log no longer reaches back that far, 9, 14, 260 for a bad token.
    pub(crate) fn change_stream(
        self: &Arc<Inner>,
        options: ChangeStreamOptions,
        filters: &[&Filter],
    ) -> Result<(ChangeStream, Reached)> {
        let flushed = self.storage.flushed();
        let now = Token { time: self.operation_time(), position: flushed, event: WHOLE_RECORD, invalidate: false };
        let (token, skip_until) = match &options.start {
            Start::Now => (now, None),
            Start::ResumeAfter(document) | Start::StartAfter(document) => {
                let token = Token::parse(document)?;
                if token.invalidate && matches!(options.start, Start::ResumeAfter(_)) {
                    return Err(Error::new(
                        Code::INVALID_RESUME_TOKEN,
                        "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.",
                    ));
                }
                let before = Token { event: token.event.saturating_sub(1), ..token };
                match (fragment_of(document), token.event) {
                    (0, _) => (token, Some(token)),
                    // The event is read again, for the fragments that follow.
                    (_, 0) => (token, None),
                    _ => (token, Some(before)),
                }
            }
            Start::AtTime(time) => {
                let time = u64::from(time.time) << 32 | u64::from(time.increment);
                match self.storage.position_at(time)? {
                    Some(position)
                        if position <= self.storage.oldest() && position > 1 && self.time_before(position, time) =>
                    {
                        return Err(history_lost());
                    }
                    Some(position) => (
                        Token { time, position: position.saturating_sub(1), event: WHOLE_RECORD, invalidate: false },
                        None,
                    ),
                    None => (Token { time, ..now }, None),
                }
            }
        };
        if token.position > flushed {
            return Err(Error::new(
                Code::CHANGE_STREAM_FATAL_ERROR,
                "cannot resume stream; the resume token was not found. It is ahead of this server's log",
            ));
        }
        let after = if token.event == WHOLE_RECORD { token.position } else { token.position.saturating_sub(1) };
        let reader = self.storage.read_log(after)?;
        let last = Arc::new(Mutex::new(Progress { token, seat: None, ended: false }));
        let stream = ChangeStream {
            engine: Arc::downgrade(self),
            interest: interest(&options, filters),
            options,
            place: Place::Log(reader),
            pending: VecDeque::new(),
            skip_until,
            last: last.clone(),
            ended: false,
            failure: None,
        };
        Ok((stream, Reached(last)))
    }

    /// Whether the log may have held something between a time and the oldest record that it still holds.
    fn time_before(&self, oldest: Position, time: u64) -> bool {
        match self.storage.read_log(oldest.saturating_sub(1)).map(|mut reader| reader.next()) {
            Ok(Some(Ok(record))) => record.time > time,
            _ => true,
        }
    }
}

fn history_lost() -> Error {
    Error::new(
        Code::CHANGE_STREAM_HISTORY_LOST,
        "Resume of change stream was not possible, as the resume point may no longer be in the log; begin a new stream",
    )
}

/// What the hub may look for in a stream's place.
fn interest(options: &ChangeStreamOptions, filters: &[&Filter]) -> Interest {
    let area = match &options.scope {
        Scope::Collection(namespace) => Area::Collection(namespace.clone()),
        Scope::Database(name) => Area::Database(name.clone()),
        Scope::Deployment => Area::Everything,
    };
    // A document that is looked up when the event is read may be another than the one that the hub sees.
    let looks_up = options.full_document == FullDocument::UpdateLookup;
    let in_updates = options.full_document != FullDocument::Default;
    let plain = filters.iter().filter(|filter| filter.collator().is_none());
    let equalities = plain.filter_map(|filter| filter.equalities().ok()).flatten();
    let equalities = equalities.map(|(path, value)| (path.as_str().to_owned(), value));
    let equalities = equalities.filter(|(path, _)| !looks_up || path == "documentKey._id");
    Interest { area, equality: choose_equality(equalities, in_updates) }
}

impl RowSource for ChangeStream {
    fn next(&mut self) -> Result<Option<Row>> {
        loop {
            if let Some((token, event)) = self.pending.pop_front() {
                self.last.lock().token = token;
                self.ended |= token.invalidate;
                return Ok(Some(Row::from(event)));
            }
            if self.ended {
                self.last.lock().ended = true;
                self.leave();
                return Ok(None);
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }
}

impl Drop for ChangeStream {
    fn drop(&mut self) {
        self.leave();
    }
}

impl ChangeStream {
    /// Looks at what comes next; false when it has caught up.
    fn advance(&mut self) -> Result<bool> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match &mut self.place {
            Place::Log(reader) => match reader.next() {
                Some(record) => {
                    let record = Decoded::new(record?)?;
                    let is_over = |pending: &VecDeque<(Token, RawDocumentBuf)>| {
                        pending.back().is_some_and(|(token, _)| token.invalidate)
                    };
                    for number in 0..record.len() {
                        self.read(&record, number)?;
                        if is_over(&self.pending) {
                            break;
                        }
                    }
                    let token =
                        Token { time: record.time, position: record.position, event: WHOLE_RECORD, invalidate: false };
                    if self.pending.is_empty() {
                        self.last.lock().token = token;
                    }
                    Ok(true)
                }
                None => self.take_seat(),
            },
            Place::Seat(seat) => {
                let Some(engine) = self.engine.upgrade() else { return Ok(false) };
                match seat.clone().take(&engine.hub) {
                    Found::Event((held, number)) => self.read_delivered(&(held, number)).map(|()| true),
                    Found::Nothing((position, time)) => {
                        let mut last = self.last.lock();
                        if position > last.token.position {
                            last.token = Token { time, position, event: WHOLE_RECORD, invalidate: false };
                        }
                        Ok(false)
                    }
                    Found::Lost => {
                        self.leave();
                        Ok(true)
                    }
                }
            }
        }
    }

    fn read_delivered(&mut self, (held, number): &Delivered) -> Result<()> {
        self.read(&held.record, *number)?;
        if self.pending.is_empty() {
            let (time, position) = (held.record.time, held.record.position);
            let token = Token { time, position, event: (*number as u32) * 2, invalidate: false };
            self.last.lock().token = token;
        }
        Ok(())
    }

    /// Lets the hub read on; false if it does, true if there is more to read first.
    fn take_seat(&mut self) -> Result<bool> {
        let Some(engine) = self.engine.upgrade() else { return Ok(false) };
        let Place::Log(reader) = &self.place else { return Ok(false) };
        let reached = (reader.next_position() - 1, engine.operation_time());
        let Some(seat) = engine.hub.take_seat(&engine.storage, self.interest.clone(), reached)? else {
            // The hub has gone further meanwhile, and so has the log.
            return Ok(engine.storage.flushed() > reached.0);
        };
        self.last.lock().seat = Some(seat.clone());
        self.place = Place::Seat(seat);
        Ok(true)
    }

    /// Gives the seat back, if it has one, to read the log itself from where it is.
    fn leave(&mut self) {
        let Place::Seat(seat) = &self.place else { return };
        let Some(engine) = self.engine.upgrade() else { return };
        engine.hub.leave(seat);
        let mut last = self.last.lock();
        last.seat = None;
        let token = last.token;
        let after = if token.event == WHOLE_RECORD { token.position } else { token.position.saturating_sub(1) };
        self.skip_until = Some(token);
        // Where the log no longer holds it, the stream fails at its next read.
        match engine.storage.read_log(after) {
            Ok(reader) => self.place = Place::Log(reader),
            Err(error) => self.failure = Some(error),
        }
    }

    /// Looks at one event of a record.
    fn read(&mut self, record: &Decoded, number: usize) -> Result<()> {
        let (kind, event) = record.event(number)?;
        let mut token =
            Token { time: record.time, position: record.position, event: (number as u32) * 2, invalidate: false };
        let seen = |token: &Token| {
            self.skip_until.as_ref().is_some_and(|until| (token.position, token.event) <= (until.position, until.event))
        };
        let skip = seen(&token);
        let shown = match kind {
            EventKind::Transaction => None,
            EventKind::Definition => self.definition(record, event, token)?,
            _ if skip || !self.in_scope(event)? => None,
            kind => Some(self.document_event(record, number, kind, event, token)?),
        };
        let invalidates = kind == EventKind::Definition && self.invalidates(event)?;
        let invalidate_token = Token { event: token.event + 1, invalidate: true, ..token };
        let is_invalidated = invalidates && !seen(&invalidate_token);
        if let (Some(shown), false) = (shown, skip) {
            self.pending.push_back((token, shown));
        }
        if is_invalidated {
            token = invalidate_token;
            let event = self.envelope("invalidate", record, token)?;
            self.pending.push_back((token, event));
        }
        Ok(())
    }

    fn in_scope(&self, event: &RawDocument) -> Result<bool> {
        let (database, collection) = names(event)?;
        Ok(match &self.options.scope {
            Scope::Collection(namespace) => namespace.database == database && namespace.collection == collection,
            Scope::Database(name) => name == database && !collection.starts_with("system."),
            Scope::Deployment => {
                !matches!(database, "admin" | "config" | "local") && !collection.starts_with("system.")
            }
        })
    }

    fn envelope(&self, operation: &str, record: &Decoded, token: Token) -> Result<RawDocumentBuf> {
        let wall_time = DateTime::from_millis((record.time >> 32) as i64 * 1000);
        let mut event = rawdoc! { "_id": token.to_document(), "operationType": operation };
        append(&mut event, "clusterTime", RawBsonRef::Timestamp(timestamp(record.time)))?;
        append(&mut event, "wallTime", RawBsonRef::DateTime(wall_time))?;
        if let Some(transaction) = &record.transaction {
            let mut session = RawDocumentBuf::new();
            append(&mut session, "id", get(transaction, "ls")?.ok_or_else(broken)?)?;
            append(&mut session, "uid", get(transaction, "uid")?.ok_or_else(broken)?)?;
            append(&mut event, "txnNumber", get(transaction, "tx")?.ok_or_else(broken)?)?;
            append(&mut event, "lsid", RawBsonRef::Document(&session))?;
        }
        Ok(event)
    }

    fn document_event(
        &self,
        record: &Decoded,
        number: usize,
        kind: EventKind,
        event: &RawDocument,
        token: Token,
    ) -> Result<RawDocumentBuf> {
        let operation = match kind {
            EventKind::Insert => "insert",
            EventKind::Update => "update",
            EventKind::Replace => "replace",
            _ => "delete",
        };
        let mut shown = self.envelope(operation, record, token)?;
        self.add_full_document(record, number, kind, event, &mut shown)?;
        let (database, collection) = names(event)?;
        shown.append(bson::raw::cstr!("ns"), rawdoc! { "db": database, "coll": collection });
        if self.options.show_expanded_events
            && let Some(uuid) = get(event, "ui")?
        {
            append(&mut shown, "collectionUUID", uuid)?;
        }
        let id = get(event, "id")?.ok_or_else(broken)?;
        let mut key = RawDocumentBuf::new();
        append(&mut key, "_id", id)?;
        append(&mut shown, "documentKey", RawBsonRef::Document(&key))?;
        if let Some(RawBsonRef::Document(description)) = get(event, "diff")? {
            let description = self.visible_description(description)?;
            append(&mut shown, "updateDescription", RawBsonRef::Document(&description))?;
        }
        if kind != EventKind::Insert && self.options.before_change != BeforeChange::Off {
            match get(event, "pre")? {
                Some(before) => append(&mut shown, "fullDocumentBeforeChange", before)?,
                None if self.options.before_change == BeforeChange::Required => return Err(no_image("pre")),
                None => append(&mut shown, "fullDocumentBeforeChange", RawBsonRef::Null)?,
            }
        }
        Ok(shown)
    }

    fn add_full_document(
        &self,
        record: &Decoded,
        number: usize,
        kind: EventKind,
        event: &RawDocument,
        shown: &mut RawDocumentBuf,
    ) -> Result<()> {
        let key = event.get_binary("key").map_err(|_| broken())?.bytes;
        let wanted = match kind {
            EventKind::Insert | EventKind::Replace => true,
            EventKind::Update => self.options.full_document != FullDocument::Default,
            _ => false,
        };
        if !wanted {
            return Ok(());
        }
        let is_update = kind == EventKind::Update;
        let image = match self.options.full_document {
            FullDocument::UpdateLookup if is_update => self.current(key)?,
            // The log would have it, but images are promised only where the collection keeps them.
            _ if is_update && get(event, "pre")?.is_none() => None,
            _ => record.image(number).cloned(),
        };
        let image = image.as_deref().map(RawDocument::from_bytes).transpose()?;
        match image {
            Some(image) => append(shown, "fullDocument", RawBsonRef::Document(image)),
            None if kind == EventKind::Update && self.options.full_document == FullDocument::Required => {
                Err(no_image("post"))
            }
            None => append(shown, "fullDocument", RawBsonRef::Null),
        }
    }

    /// The document as it is now.
    fn current(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let Some(engine) = self.engine.upgrade() else { return Ok(None) };
        let snapshot: storage::Snapshot = engine.storage.snapshot();
        snapshot.get(key)
    }

    /// The description without what only expanded streams show.
    fn visible_description(&self, description: &RawDocument) -> Result<RawDocumentBuf> {
        let mut visible = RawDocumentBuf::new();
        for field in description {
            let (name, value) = field?;
            if name.as_str() != "disambiguatedPaths" || self.options.show_expanded_events {
                append(&mut visible, name.as_str(), value)?;
            }
        }
        Ok(visible)
    }

    /// The event of a collection or a database, where the stream shows it.
    fn definition(&self, record: &Decoded, event: &RawDocument, token: Token) -> Result<Option<RawDocumentBuf>> {
        let (database, collection) = names(event)?;
        let detail = event.get_document("o").map_err(|_| broken())?;
        let first = detail.iter().next().transpose()?.map_or("", |field| field.0.as_str());
        let database_scope = match &self.options.scope {
            Scope::Collection(_) => false,
            Scope::Database(name) => name == database,
            Scope::Deployment => true,
        };
        let (operation, always) = match first {
            "drop" => ("drop", true),
            "renameCollection" => ("rename", true),
            "dropDatabase" => ("dropDatabase", true),
            "create" => ("create", false),
            "createIndexes" => ("createIndexes", false),
            "dropIndexes" => ("dropIndexes", false),
            "collMod" => ("modify", false),
            _ => return Ok(None),
        };
        let relevant = if first == "dropDatabase" {
            database_scope
        } else {
            self.in_scope(event)? || self.renamed_here(detail)?
        };
        if !relevant || !(always || self.options.show_expanded_events) {
            return Ok(None);
        }
        let mut shown = self.envelope(operation, record, token)?;
        if self.options.show_expanded_events
            && let Some(uuid) = get(event, "ui")?
        {
            append(&mut shown, "collectionUUID", uuid)?;
        }
        let namespace = if first == "dropDatabase" {
            rawdoc! { "db": database }
        } else {
            rawdoc! { "db": database, "coll": collection }
        };
        append(&mut shown, "ns", RawBsonRef::Document(&namespace))?;
        if first == "renameCollection" {
            let to = detail.get_str("to").map_err(|_| broken())?;
            let (db, coll) = to.split_once('.').ok_or_else(broken)?;
            append(&mut shown, "to", RawBsonRef::Document(&rawdoc! { "db": db, "coll": coll }))?;
        }
        if self.options.show_expanded_events && (!always || first == "renameCollection") {
            append(&mut shown, "operationDescription", RawBsonRef::Document(&description_of(first, detail)?))?;
        }
        Ok(Some(shown))
    }

    /// Whether another collection was renamed to the one that is watched.
    fn renamed_here(&self, detail: &RawDocument) -> Result<bool> {
        let Scope::Collection(namespace) = &self.options.scope else { return Ok(false) };
        Ok(detail.get_str("to").is_ok_and(|to| to == namespace.to_string()))
    }

    /// Whether the event ends the stream.
    fn invalidates(&self, event: &RawDocument) -> Result<bool> {
        let (database, _) = names(event)?;
        let detail = event.get_document("o").map_err(|_| broken())?;
        let first = detail.iter().next().transpose()?.map_or("", |field| field.0.as_str());
        Ok(match (&self.options.scope, first) {
            (Scope::Collection(_), "drop" | "renameCollection") => {
                self.in_scope(event)? || self.renamed_here(detail)?
            }
            (Scope::Database(name), "dropDatabase") => name == database,
            _ => false,
        })
    }
}

/// What an expanded event says of a definition.
fn description_of(kind: &str, detail: &RawDocument) -> Result<RawDocumentBuf> {
    let mut description = RawDocumentBuf::new();
    match kind {
        "renameCollection" => {
            let to = detail.get_str("to").map_err(|_| broken())?;
            let (db, coll) = to.split_once('.').ok_or_else(broken)?;
            append(&mut description, "to", RawBsonRef::Document(&rawdoc! { "db": db, "coll": coll }))?;
            if let Some(target) = get(detail, "dropTarget")? {
                append(&mut description, "dropTarget", target)?;
            }
        }
        "createIndexes" | "dropIndexes" => {
            if let Some(index) = get(detail, "index")? {
                let mut indexes = bson::RawArrayBuf::new();
                indexes.push(index);
                append(&mut description, "indexes", RawBsonRef::Array(&indexes))?;
            }
        }
        _ => {
            for field in detail.iter().skip(1) {
                let (name, value) = field?;
                append(&mut description, name.as_str(), value)?;
            }
        }
    }
    Ok(description)
}

fn names(event: &RawDocument) -> Result<(&str, &str)> {
    let name = |field| event.get_str(field).map_err(|_| broken());
    Ok((name("db")?, name("coll")?))
}

pub(crate) fn broken() -> Error {
    Error::internal("a log record's event is broken")
}

fn no_image(which: &str) -> Error {
    Error::new(
        Code::NO_MATCHING_DOCUMENT,
        format!(
            "Change stream was configured to require a {which}-image for all update events, but it was not found; turn on \
             changeStreamPreAndPostImages for the collection"
        ),
    )
}
