//! Change streams that have caught up with the log, and the one thread that reads on for all of them.
//!
//! ```text
//!   log ──hub thread──> record, decoded once ──┬─ by namespace ──> seats of streams that want all of it
//!                                              └─ by the value of a path ──> seats of streams with an equality on it
//! ```
//!
//! A stream that has reached the end of the log takes a [`Seat`]. From then on the hub looks at each event in its place and
//! puts into the seat's inbox only what the stream may want; whoever waits at the seat is woken only then. So an event
//! costs each of a thousand streams with disjoint equality filters nothing but the one that it is for.
//!
//! An inbox is bounded, and so is what all of them hold. A stream that is too slow loses its seat and reads the log itself
//! again, from where it was.

use crate::decoded::Decoded;
use crate::document::RawBsonRef;
use crate::document::traverse::{Leaf, visit};
use crate::error::Result;
use crate::event::EventKind;
use crate::key;
use crate::namespace::Namespace;
use crate::storage::{LogReader, Position, Storage, Ticket};
use bson::RawDocument;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

/// The most events in an inbox.
const MAX_INBOX: usize = 512;
/// The most bytes of records that all inboxes hold together.
const MAX_HELD_BYTES: usize = 64 * 1024 * 1024;

/// Where a stream looks.
#[derive(Clone, Debug)]
pub(crate) enum Area {
    Collection(Namespace),
    Database(String),
    Everything,
}

/// What a stream may want: everything in its area, or only events with a value at a path.
#[derive(Clone, Debug)]
pub(crate) struct Interest {
    pub(crate) area: Area,
    pub(crate) equality: Option<(Source, Vec<u8>)>,
}

/// Where the value of an equality is found.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Source {
    /// At a path of the document that the event shows; `in_updates` says whether updates show one.
    Document { path: String, in_updates: bool },
    /// In the document's `_id`.
    Id,
}

/// How far the hub has read: a position with its time.
pub(crate) type Reached = (Position, u64);

/// An event of a record.
pub(crate) type Delivered = (Arc<Held>, usize);

/// A record that inboxes hold.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) record: Decoded,
    held_bytes: Arc<AtomicUsize>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.held_bytes.fetch_sub(self.record.size_bytes(), Ordering::Relaxed);
    }
}

/// A stream's place at the hub.
#[derive(Debug)]
pub(crate) struct Seat {
    number: u64,
    /// What the stream has read itself.
    after: Position,
    inbox: Mutex<Inbox>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Inbox {
    events: VecDeque<Delivered>,
    /// Whether something did not fit.
    lost: bool,
    waker: Option<Waker>,
}

/// What a stream finds at its seat.
pub(crate) enum Found {
    Event(Delivered),
    /// Nothing; all up to there was looked at.
    Nothing(Reached),
    /// The seat is lost: the stream has to read the log itself.
    Lost,
}

impl Seat {
    /// Takes the next event.
    pub(crate) fn take(&self, hub: &Hub) -> Found {
        // What the hub has passed by now is in the inbox, if it is for this stream.
        let reached = *hub.0.reached.lock();
        let mut inbox = self.inbox.lock();
        match inbox.events.pop_front() {
            Some(event) => Found::Event(event),
            None if inbox.lost => Found::Lost,
            None => Found::Nothing(reached),
        }
    }

    fn put(&self, held: &Arc<Held>, number: usize, has_room: bool) {
        let mut inbox = self.inbox.lock();
        if inbox.lost {
            return;
        }
        if inbox.events.len() < MAX_INBOX && has_room {
            inbox.events.push_back((held.clone(), number));
        } else {
            inbox.lost = true;
        }
        self.filled.notify_all();
        if let Some(waker) = inbox.waker.take() {
            waker.wake();
        }
    }

    fn lose(&self) {
        let mut inbox = self.inbox.lock();
        inbox.lost = true;
        self.filled.notify_all();
        if let Some(waker) = inbox.waker.take() {
            waker.wake();
        }
    }
}

/// What an awaiting cursor that has nothing waits for.
pub enum Waiting {
    /// The next flush.
    Flush(Ticket),
    /// An event for its seat.
    Event(SeatWait),
}

/// A claim on the next event of a stream's seat.
pub struct SeatWait(pub(crate) Arc<Seat>);

impl Waiting {
    /// Blocks until there may be something, at most for a while.
    ///
    /// # Errors
    /// A failed flush.
    pub fn wait_for(&self, at_most: Duration) -> Result<()> {
        match self {
            Waiting::Flush(ticket) => ticket.wait_for(at_most).transpose().map(drop),
            Waiting::Event(SeatWait(seat)) => {
                let until = Instant::now() + at_most;
                let mut inbox = seat.inbox.lock();
                while inbox.events.is_empty() && !inbox.lost {
                    if seat.filled.wait_until(&mut inbox, until).timed_out() {
                        break;
                    }
                }
                Ok(())
            }
        }
    }
}

impl Future for Waiting {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Waiting::Flush(ticket) => Pin::new(ticket).poll(context).map_ok(drop),
            Waiting::Event(SeatWait(seat)) => {
                let mut inbox = seat.inbox.lock();
                if !inbox.events.is_empty() || inbox.lost {
                    return Poll::Ready(Ok(()));
                }
                inbox.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The hub: the seats, and the thread while there are any.
#[derive(Default)]
pub(crate) struct Hub(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// How far all seats have been looked after. The lock on `seats` comes before this one.
    reached: Mutex<Reached>,
    seats: Mutex<Seats>,
    stopping: AtomicBool,
    held_bytes: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Seats {
    thread: Option<(Thread, JoinHandle<()>)>,
    running: bool,
    next_number: u64,
    interests: HashMap<u64, Interest>,
    collections: HashMap<String, Table>,
    databases: HashMap<String, Vec<Arc<Seat>>>,
    everything: Vec<Arc<Seat>>,
}

/// The seats of a collection.
#[derive(Default)]
struct Table {
    all: Vec<Arc<Seat>>,
    by_value: HashMap<Source, HashMap<Vec<u8>, Vec<Arc<Seat>>>>,
}

impl Hub {
    /// Gives a stream that has read the log up to `reached` a seat, unless the hub is further: then the stream has to read on.
    ///
    /// # Errors
    /// A log that can't be read.
    pub(crate) fn take_seat(
        &self,
        storage: &Storage,
        interest: Interest,
        reached: Reached,
    ) -> Result<Option<Arc<Seat>>> {
        let mut seats = self.0.seats.lock();
        if !seats.running {
            if let Some((_, over)) = seats.thread.take() {
                // It has nothing left to do but to return.
                drop(over);
            }
            *self.0.reached.lock() = reached;
            let reader = storage.read_log(reached.0)?;
            let (shared, more) = (self.0.clone(), storage.ticket(0));
            let spawned = std::thread::Builder::new().name("sheaf-streams".into()).spawn(move || {
                if let Err(error) = shared.run(reader, &more) {
                    tracing::warn!(%error, "nobody reads the log for all change streams any more");
                    shared.close();
                }
            })?;
            seats.thread = Some((spawned.thread().clone(), spawned));
            seats.running = true;
        } else if self.0.reached.lock().0 > reached.0 {
            return Ok(None);
        }
        let number = seats.next_number;
        seats.next_number += 1;
        let seat = Arc::new(Seat { number, after: reached.0, inbox: Mutex::default(), filled: Condvar::new() });
        seats.list(&interest).push(seat.clone());
        seats.interests.insert(number, interest);
        Ok(Some(seat))
    }

    /// Takes a seat back.
    pub(crate) fn leave(&self, seat: &Seat) {
        let mut seats = self.0.seats.lock();
        let Some(interest) = seats.interests.remove(&seat.number) else { return };
        seats.list(&interest).retain(|other| other.number != seat.number);
        seats.tidy(&interest);
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.0.stopping.store(true, Ordering::Release);
        let thread = self.0.seats.lock().thread.take();
        if let Some((thread, running)) = thread {
            thread.unpark();
            // The thread catches no panic: if it had one, its streams read the log themselves.
            let _ = running.join();
        }
    }
}

impl Seats {
    fn list(&mut self, interest: &Interest) -> &mut Vec<Arc<Seat>> {
        match &interest.area {
            Area::Everything => &mut self.everything,
            Area::Database(name) => self.databases.entry(name.clone()).or_default(),
            Area::Collection(namespace) => {
                let table = self.collections.entry(namespace.to_string()).or_default();
                match &interest.equality {
                    None => &mut table.all,
                    Some((source, value)) => {
                        table.by_value.entry(source.clone()).or_default().entry(value.clone()).or_default()
                    }
                }
            }
        }
    }

    /// Takes out what an interest that is gone leaves empty.
    fn tidy(&mut self, interest: &Interest) {
        match &interest.area {
            Area::Everything => {}
            Area::Database(name) => {
                if self.databases.get(name).is_some_and(Vec::is_empty) {
                    self.databases.remove(name);
                }
            }
            Area::Collection(namespace) => {
                let name = namespace.to_string();
                let Some(table) = self.collections.get_mut(&name) else { return };
                if let Some((source, value)) = &interest.equality
                    && let Some(values) = table.by_value.get_mut(source)
                {
                    if values.get(value).is_some_and(Vec::is_empty) {
                        values.remove(value);
                    }
                    if values.is_empty() {
                        table.by_value.remove(source);
                    }
                }
                if table.all.is_empty() && table.by_value.is_empty() {
                    self.collections.remove(&name);
                }
            }
        }
    }

    fn each(&self, see: &mut dyn FnMut(&Arc<Seat>)) {
        let of_tables = self.collections.values().flat_map(|table| {
            table.all.iter().chain(table.by_value.values().flat_map(|values| values.values().flatten()))
        });
        self.everything.iter().chain(self.databases.values().flatten()).chain(of_tables).for_each(see);
    }

    /// Puts each event of a record into the inboxes of those who may want it.
    fn offer(&self, held: &Arc<Held>, has_room: bool) -> Result<()> {
        let record = &held.record;
        let mut value_key = Vec::new();
        for number in 0..record.len() {
            let (kind, event) = record.event(number)?;
            if kind == EventKind::Transaction {
                continue;
            }
            let mut deliver = |seat: &Arc<Seat>| {
                if seat.after < record.position {
                    seat.put(held, number, has_room);
                }
            };
            if kind == EventKind::Definition {
                self.each(&mut deliver);
                continue;
            }
            let (Ok(database), Ok(collection)) = (event.get_str("db"), event.get_str("coll")) else { continue };
            self.everything.iter().for_each(&mut deliver);
            if let Some(seats) = self.databases.get(database) {
                seats.iter().for_each(&mut deliver);
            }
            let Some(table) = self.collections.get(&format!("{database}.{collection}")) else { continue };
            table.all.iter().for_each(&mut deliver);
            for (source, values) in &table.by_value {
                let mut found = |value: RawBsonRef<'_>| -> Result<()> {
                    value_key.clear();
                    key::encode(value, None, &mut value_key)?;
                    if let Some(seats) = values.get(&value_key) {
                        seats.iter().for_each(&mut deliver);
                    }
                    Ok(())
                };
                match source {
                    Source::Id => {
                        if let Some(id) = crate::document::get(event, "id")? {
                            found(id)?;
                        }
                    }
                    Source::Document { path, in_updates } => {
                        if kind == EventKind::Delete || (kind == EventKind::Update && !in_updates) {
                            continue;
                        }
                        let Some(image) = record.image(number) else { continue };
                        each_value(RawDocument::from_bytes(image)?, path, &mut found)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Shows each value once that an equality on a path compares with.
fn each_value(image: &RawDocument, path: &str, found: &mut dyn FnMut(RawBsonRef<'_>) -> Result<()>) -> Result<()> {
    let mut values = Vec::new();
    visit(image, path, Leaf::ElementsAndArray, &mut |value, _| {
        values.extend(value);
        Ok(false)
    })?;
    if let [value] = values[..] {
        return found(value);
    }
    let mut shown = std::collections::HashSet::new();
    for value in values {
        let mut encoded = Vec::new();
        key::encode(value, None, &mut encoded)?;
        if shown.insert(encoded) {
            found(value)?;
        }
    }
    Ok(())
}

impl Shared {
    /// Reads the log and offers what it holds, until nobody has a seat or the engine ends.
    fn run(&self, mut reader: LogReader, more: &Ticket) -> Result<()> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            for record in reader.by_ref() {
                if self.stopping.load(Ordering::Acquire) {
                    return Ok(());
                }
                self.offer(Decoded::new(record?)?)?;
            }
            {
                let mut seats = self.seats.lock();
                if seats.interests.is_empty() {
                    seats.running = false;
                    return Ok(());
                }
            }
            let mut ticket = more.at(reader.next_position());
            loop {
                if self.stopping.load(Ordering::Acquire) {
                    return Ok(());
                }
                match Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(flushed) => {
                        flushed?;
                        break;
                    }
                    Poll::Pending => std::thread::park(),
                }
            }
        }
    }

    fn offer(&self, record: Decoded) -> Result<()> {
        let reached = (record.position, record.time);
        let bytes = record.size_bytes();
        let has_room = self.held_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= MAX_HELD_BYTES;
        let held = Arc::new(Held { record, held_bytes: self.held_bytes.clone() });
        let seats = self.seats.lock();
        seats.offer(&held, has_room)?;
        *self.reached.lock() = reached;
        Ok(())
    }

    /// Nobody reads on: all seats are lost.
    fn close(&self) {
        let mut seats = self.seats.lock();
        seats.running = false;
        seats.each(&mut |seat| seat.lose());
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Waiting::Flush(_) => "the next flush",
            Waiting::Event(_) => "an event for a seat",
        })
    }
}

/// The equality, of those that a stream's filters demand, by which its events are found.
pub(crate) fn choose_equality(
    equalities: impl IntoIterator<Item = (String, bson::RawBson)>,
    in_updates: bool,
) -> Option<(Source, Vec<u8>)> {
    for (path, value) in equalities {
        let source = match path.strip_prefix("fullDocument.") {
            Some(rest) => Source::Document { path: rest.to_owned(), in_updates },
            None if path == "documentKey._id" => Source::Id,
            None => continue,
        };
        use bson::RawBson as B;
        let is_plain = matches!(
            value,
            B::Int32(_) | B::Int64(_) | B::Double(_) | B::String(_) | B::ObjectId(_) | B::Boolean(_) | B::DateTime(_)
        );
        let mut encoded = Vec::new();
        if is_plain && key::encode(value.as_raw_bson_ref(), None, &mut encoded).is_ok() {
            return Some((source, encoded));
        }
    }
    None
}
