//! Open cursors: results that a client fetches in batches.

use crate::changestream::Reached;
use crate::context::{Context, SessionId};
use crate::document::Row;
use crate::error::{Code, Error, Result};
use crate::monitor::Monitor;
use crate::namespace::Namespace;
use crate::operation::ViewCell;
use crate::stage::{RowSource, Rows};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an unused cursor stays open.
pub const CURSOR_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The most cursors open at once.
pub const MAX_CURSORS: usize = 200_000;

/// The most bytes in one batch.
pub const MAX_BATCH_BYTES: usize = 16 * 1024 * 1024;

/// The documents of a first batch when the client does not say.
pub const DEFAULT_FIRST_BATCH: usize = 101;

/// A batch of results.
#[derive(Debug)]
pub struct Batch {
    /// The cursor to ask for more; zero when there is no more.
    pub cursor: i64,
    /// What the cursor is on.
    pub namespace: Namespace,
    /// The documents' bytes.
    pub documents: Vec<Bytes>,
    /// For change streams: the token to resume after this batch.
    pub resume_token: Option<bson::RawDocumentBuf>,
}

/// How a cursor ends and waits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Tailing {
    /// It ends with its rows.
    #[default]
    No,
    /// It stays open at the end.
    Tailable,
    /// It stays open, and a `getMore` waits for new rows.
    Await,
}

/// An open cursor, as others may see it.
#[derive(Clone, Debug)]
pub struct CursorInfo {
    /// Its id.
    pub id: i64,
    /// What it is on.
    pub namespace: Namespace,
    /// How it ends and waits.
    pub tailing: Tailing,
    /// Whether it may stay unused for long.
    pub no_timeout: bool,
    /// How long nobody used it.
    pub unused: Duration,
    /// Its plan in short.
    pub plan_summary: Option<String>,
}

/// Rows that can't be read any more.
struct Failing(Error);

impl RowSource for Failing {
    fn next(&mut self) -> Result<Option<Row>> {
        Err(self.0.clone())
    }
}

pub(crate) struct Cursor {
    pub(crate) namespace: Namespace,
    pub(crate) rows: Rows,
    /// A row that did not fit into the last batch.
    pub(crate) held: Option<Bytes>,
    pub(crate) session: Option<SessionId>,
    pub(crate) transaction: Option<i64>,
    pub(crate) tailing: Tailing,
    pub(crate) no_timeout: bool,
    pub(crate) last_use: Instant,
    /// For change streams: how far it has read.
    pub(crate) reached: Option<Reached>,
    /// What its rows read from; given up between two batches.
    pub(crate) cell: Option<Arc<ViewCell>>,
    /// The monitor of the operation that opened it: its rows report there.
    pub(crate) opened_by: Arc<Monitor>,
}

/// All open cursors.
#[derive(Default)]
pub(crate) struct Cursors {
    open: Mutex<HashMap<i64, Arc<Mutex<Cursor>>>>,
}

impl Cursors {
    /// Keeps a cursor; gives its id.
    pub(crate) fn keep(&self, cursor: Cursor, random: impl Fn() -> u64) -> Result<i64> {
        let mut open = self.open.lock();
        if open.len() >= MAX_CURSORS {
            return Err(Error::new(
                Code::OPERATION_FAILED,
                format!("there are {MAX_CURSORS} open cursors; close some (killCursors) or read them to their end"),
            ));
        }
        loop {
            let id = (random() >> 1) as i64;
            if id != 0 && !open.contains_key(&id) {
                open.insert(id, Arc::new(Mutex::new(cursor)));
                return Ok(id);
            }
        }
    }

    /// The cursor of that id.
    ///
    /// # Errors
    /// `CursorNotFound` (43).
    pub(crate) fn get(&self, id: i64) -> Result<Arc<Mutex<Cursor>>> {
        let found = self.open.lock().get(&id).cloned();
        found.ok_or_else(|| Error::new(Code::CURSOR_NOT_FOUND, format!("cursor id {id} not found")))
    }

    /// Closes a cursor; false when there is none.
    pub(crate) fn close(&self, id: i64) -> bool {
        let closed = self.open.lock().remove(&id);
        closed.is_some()
    }

    /// Makes the cursors that `which` picks fail when they are read next.
    pub(crate) fn fail_where(&self, error: &Error, which: impl Fn(&Cursor) -> bool) {
        let open: Vec<_> = self.open.lock().values().cloned().collect();
        for cursor in open {
            if let Some(mut cursor) = cursor.try_lock().filter(|cursor| which(cursor)) {
                cursor.held = None;
                cursor.tailing = Tailing::No;
                cursor.no_timeout = false;
                cursor.rows = Box::new(Failing(error.clone()));
            }
        }
    }

    /// Closes the cursors that `which` picks.
    pub(crate) fn close_where(&self, which: impl Fn(&Cursor) -> bool) {
        let mut open = self.open.lock();
        let picked: Vec<i64> =
            open.iter().filter(|(_, cursor)| cursor.try_lock().is_some_and(|c| which(&c))).map(|(id, _)| *id).collect();
        let closed: Vec<_> = picked.iter().filter_map(|id| open.remove(id)).collect();
        drop(open);
        drop(closed);
    }

    /// Closes cursors that nobody used for long.
    pub(crate) fn expire(&self) {
        self.close_where(|cursor| {
            cursor.cell.as_ref().is_some_and(|cell| cell.is_over())
                || !cursor.no_timeout && cursor.last_use.elapsed() >= CURSOR_TIMEOUT
        });
    }

    /// What may be told of those that are not being read right now.
    pub(crate) fn idle(&self) -> Vec<CursorInfo> {
        let open: Vec<_> = self.open.lock().iter().map(|(id, cursor)| (*id, cursor.clone())).collect();
        let info = |(id, cursor): &(i64, Arc<Mutex<Cursor>>)| {
            let cursor = cursor.try_lock()?;
            Some(CursorInfo {
                id: *id,
                namespace: cursor.namespace.clone(),
                tailing: cursor.tailing,
                no_timeout: cursor.no_timeout,
                unused: cursor.last_use.elapsed(),
                plan_summary: cursor.opened_by.observed().plan_summary,
            })
        };
        open.iter().filter_map(info).collect()
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().len()
    }
}

impl Cursor {
    /// The next batch: at most `batch_size` documents (zero: as many as fit) and 16 MiB. The flag says whether the rows ended.
    pub(crate) fn fill(&mut self, batch_size: Option<usize>, context: &Context) -> Result<(Vec<Bytes>, bool)> {
        let before = self.opened_by.examined();
        let filled = self.pull(batch_size, context);
        if !Arc::ptr_eq(&self.opened_by, &context.monitor) {
            context.monitor.add_since(&self.opened_by, before);
        }
        if let Some(cell) = &self.cell {
            cell.release();
        }
        filled
    }

    fn pull(&mut self, batch_size: Option<usize>, context: &Context) -> Result<(Vec<Bytes>, bool)> {
        let most = batch_size.unwrap_or(usize::MAX);
        let mut documents = Vec::new();
        let mut bytes = 0;
        while documents.len() < most {
            if documents.len() % 64 == 0 {
                context.check()?;
            }
            let row = match self.held.take() {
                Some(row) => row,
                None => match self.rows.next()? {
                    Some(row) => row.bytes().clone(),
                    None => return Ok((documents, true)),
                },
            };
            if bytes + row.len() > MAX_BATCH_BYTES && !documents.is_empty() {
                self.held = Some(row);
                break;
            }
            bytes += row.len();
            documents.push(row);
        }
        Ok((documents, false))
    }
}
