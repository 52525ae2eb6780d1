//! `find`, `getMore` and `killCursors`.

use super::read::{Query, no_rows};
use super::reading::{Reading, ViewCell};
use super::scan::{only_id, stored_document};
use crate::changestream::Reached;
use crate::context::Context;
use crate::cursor::{Batch, Cursor, CursorInfo, DEFAULT_FIRST_BATCH, Tailing};
use crate::database::{Engine, Inner};
use crate::error::{Code, Error, Result};
use crate::namespace::Namespace;
use crate::series::listing::series_of_buckets;
use crate::stage::Rows;
use crate::watch::{SeatWait, Waiting};
use bson::RawDocumentBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A first batch of at most this many rows, each a few reads away, is filled in place.
const MAX_QUICK_ROWS: usize = 128;

/// How long an awaiting cursor waits when the client does not say.
pub const DEFAULT_AWAIT: Duration = Duration::from_secs(1);

/// A query with what its results look like.
#[derive(Clone, Debug)]
pub struct Find {
    /// Where.
    pub namespace: Namespace,
    /// Which documents, in which order.
    pub query: Query,
    /// Which parts of them; all when missing.
    pub projection: Option<RawDocumentBuf>,
    /// The documents of the first batch; 101 when missing.
    pub batch_size: Option<usize>,
    /// Whether there is only one batch.
    pub single_batch: bool,
    /// Whether the cursor stays open at the end.
    pub tailing: Tailing,
    /// Whether the cursor may stay unused for long.
    pub no_cursor_timeout: bool,
    /// Whether the index key is given in the document's place.
    pub return_key: bool,
    /// Whether `$recordId` is added.
    pub show_record_id: bool,
}

impl Find {
    /// A find of everything in a namespace.
    pub fn new(namespace: Namespace) -> Find {
        Find {
            namespace,
            query: Query::default(),
            projection: None,
            batch_size: None,
            single_batch: false,
            tailing: Tailing::No,
            no_cursor_timeout: false,
            return_key: false,
            show_record_id: false,
        }
    }
}

impl Engine {
    /// The first batch of a query's results.
    ///
    /// # Errors
    /// An invalid query, a failing storage, an interruption.
    pub fn find(&self, context: &Context, find: &Find) -> Result<Batch> {
        if let Some(batch) = self.inner.find_by_id(context, find)? {
            return Ok(batch);
        }
        let reading = self.inner.reading(context)?;
        let rows = self.inner.find_rows(context, find, &reading)?;
        self.inner.first_batch(context, find, rows, reading.cell)
    }

    /// The next batch of a cursor; `batch_size` zero or missing means as many as fit. An awaiting cursor blocks until
    /// there is something, at most for `await_at_most`.
    ///
    /// # Errors
    /// `CursorNotFound` (43), `Unauthorized` (13) for another session's cursor, and what reading refuses.
    pub fn get_more(
        &self,
        context: &Context,
        id: i64,
        namespace: &Namespace,
        batch_size: Option<usize>,
        await_at_most: Option<Duration>,
    ) -> Result<Batch> {
        let until = Instant::now() + await_at_most.unwrap_or(DEFAULT_AWAIT);
        loop {
            let (batch, wait) = self.try_get_more(context, id, namespace, batch_size)?;
            let left = until.saturating_duration_since(Instant::now());
            let Some(wait) = wait.filter(|_| !left.is_zero()) else { return Ok(batch) };
            context.check()?;
            context.block(|| wait.wait_for(left.min(Duration::from_millis(500))))?;
        }
    }

    /// The next batch of a cursor, without waiting. For an awaiting cursor that has nothing new, what to wait for is done once there
    /// may be something: wait for it, then ask again.
    ///
    /// # Errors
    /// As [`Engine::get_more`].
    pub fn try_get_more(
        &self,
        context: &Context,
        id: i64,
        namespace: &Namespace,
        batch_size: Option<usize>,
    ) -> Result<(Batch, Option<Waiting>)> {
        self.inner.try_get_more(context, id, namespace, batch_size)
    }

    /// Closes cursors; gives those that were open.
    pub fn kill_cursors(&self, namespace: &Namespace, ids: &[i64]) -> Vec<i64> {
        let of_namespace = |id: &i64| match self.inner.cursors.get(*id) {
            Ok(cursor) => cursor.try_lock().is_none_or(|cursor| cursor.namespace == *namespace),
            Err(_) => false,
        };
        ids.iter().copied().filter(of_namespace).filter(|id| self.inner.cursors.close(*id)).collect()
    }

    /// Closes a cursor, whatever it is on; false when there is none.
    pub fn kill_cursor(&self, id: i64) -> bool {
        self.inner.cursors.close(id)
    }

    /// How an open cursor ends and waits; none if there is no such cursor, or if it is in use.
    pub fn cursor_tailing(&self, id: i64) -> Option<Tailing> {
        self.inner.cursors.get(id).ok()?.try_lock().map(|cursor| cursor.tailing)
    }

    /// The open cursors that are not being read right now.
    pub fn idle_cursors(&self) -> Vec<CursorInfo> {
        self.inner.cursors.idle()
    }

    /// How many cursors are open.
    pub fn open_cursors(&self) -> usize {
        self.inner.cursors.len()
    }
}

impl Inner {
    /// The only batch of a find that says nothing but one `_id`, read from what is published: what most finds are, so it makes
    /// neither a plan nor a cursor.
    fn find_by_id(&self, context: &Context, find: &Find) -> Result<Option<Batch>> {
        let is_whole = find.single_batch || find.batch_size.is_none_or(|size| size > 1);
        if !is_whole || context.transaction().is_some() || context.snapshot.is_some() {
            return Ok(None);
        }
        let state = self.state();
        let Some(collection) = state.catalog.get(&find.namespace) else { return Ok(None) };
        let Some(id) = only_id(find, collection).filter(|_| !collection.is_view()) else { return Ok(None) };
        context.check()?;
        let stored = stored_document(&state.snapshot, collection, id)?;
        context.monitor.note_point_read(stored.is_some());
        Ok(Some(Batch {
            cursor: 0,
            namespace: find.namespace.clone(),
            documents: stored.into_iter().map(|(_, document)| document).collect(),
            resume_token: None,
        }))
    }

    fn find_rows(self: &Arc<Inner>, context: &Context, find: &Find, reading: &Reading) -> Result<Rows> {
        let collection = reading.catalog.get(&find.namespace);
        if collection.is_some_and(|collection| collection.is_view()) {
            return self.find_on_view(context, find);
        }
        if collection.is_none() && series_of_buckets(&reading.catalog, &find.namespace).is_some() {
            return self.find_on_view(context, find);
        }
        if let Some(collection) = collection
            && let Some(rows) = self.plain_point_read(reading, collection, find, context)?
        {
            return Ok(rows);
        }
        let parsed = self.parse_query(&find.query, collection.map(|collection| &**collection))?;
        match collection {
            Some(collection) => self.found(reading, collection, find, parsed, context),
            None => {
                self.check_find(find, &parsed)?;
                Ok(no_rows())
            }
        }
    }

    fn first_batch(&self, context: &Context, find: &Find, rows: Rows, cell: Arc<ViewCell>) -> Result<Batch> {
        let cursor = Cursor {
            namespace: find.namespace.clone(),
            rows,
            held: None,
            session: context.session.as_ref().map(|session| session.id),
            transaction: context.transaction().and_then(|session| session.txn_number),
            tailing: find.tailing,
            no_timeout: find.no_cursor_timeout,
            last_use: Instant::now(),
            reached: None,
            cell: Some(cell),
            opened_by: context.monitor.clone(),
        };
        self.open_cursor(context, cursor, Some(find.batch_size.unwrap_or(DEFAULT_FIRST_BATCH)), find.single_batch)
    }

    /// Fills a new cursor's first batch and keeps the cursor if there may be more.
    pub(crate) fn open_cursor(
        &self,
        context: &Context,
        mut cursor: Cursor,
        batch_size: Option<usize>,
        single_batch: bool,
    ) -> Result<Batch> {
        let is_small = batch_size.is_some_and(|size| size <= MAX_QUICK_ROWS);
        let (documents, ended) = if is_small && cursor.rows.is_quick() {
            cursor.fill(batch_size, context)?
        } else {
            context.block(|| cursor.fill(batch_size, context))?
        };
        let namespace = cursor.namespace.clone();
        let over = single_batch || (ended && is_at_its_end(&cursor));
        let resume_token = cursor.reached.as_ref().map(Reached::document);
        let id = if over { 0 } else { self.cursors.keep(cursor, || (self.options.random)())? };
        Ok(Batch { cursor: id, namespace, documents, resume_token })
    }

    /// The next batch; for an awaiting cursor that has none, also what to wait for.
    fn try_get_more(
        &self,
        context: &Context,
        id: i64,
        namespace: &Namespace,
        batch_size: Option<usize>,
    ) -> Result<(Batch, Option<Waiting>)> {
        let shared = self.cursors.get(id)?;
        let Some(mut cursor) = shared.try_lock() else {
            return Err(Error::new(Code::CURSOR_IN_USE, format!("cursor id {id} is already in use")));
        };
        check_owner(&cursor, context, id, namespace)?;
        cursor.last_use = Instant::now();
        let size = batch_size.filter(|size| *size > 0);
        let seen = self.storage.flushed();
        // What has a seat at the hub finds its events made ready.
        let is_ready = cursor.reached.as_ref().is_some_and(|reached| reached.seat().is_some());
        let filled = if is_ready { cursor.fill(size, context) } else { context.block(|| cursor.fill(size, context)) };
        cursor.last_use = Instant::now();
        let (documents, ended) = match filled {
            Ok(filled) => filled,
            Err(error) => {
                self.cursors.close(id);
                return Err(error);
            }
        };
        let over = ended && is_at_its_end(&cursor);
        if over {
            self.cursors.close(id);
        }
        let wait = (cursor.tailing == Tailing::Await && documents.is_empty() && !over).then(|| {
            match cursor.reached.as_ref().and_then(Reached::seat) {
                Some(seat) => Waiting::Event(SeatWait(seat)),
                None => Waiting::Flush(self.storage.wait_beyond(seen)),
            }
        });
        let batch = Batch {
            cursor: if over { 0 } else { id },
            namespace: cursor.namespace.clone(),
            documents,
            resume_token: cursor.reached.as_ref().map(Reached::document),
        };
        Ok((batch, wait))
    }
}

/// Whether a cursor whose rows have ended gets no more: one that tails goes on, unless what it tails is gone.
fn is_at_its_end(cursor: &Cursor) -> bool {
    cursor.tailing == Tailing::No || cursor.reached.as_ref().is_some_and(Reached::is_over)
}

fn check_owner(cursor: &Cursor, context: &Context, id: i64, namespace: &Namespace) -> Result<()> {
    if cursor.namespace != *namespace {
        return Err(Error::new(
            Code::UNAUTHORIZED,
            format!(
                "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
                cursor.namespace
            ),
        ));
    }
    let session = context.session.as_ref().map(|session| session.id);
    if cursor.session != session {
        return Err(Error::location(
            if cursor.session.is_none() { 50737 } else { 50738 },
            format!("Cannot run getMore on cursor {id}, which was created in another session or in none"),
        ));
    }
    let transaction = context.transaction().and_then(|session| session.txn_number);
    if cursor.transaction != transaction {
        return Err(Error::location(
            50740,
            format!("Cannot run getMore on cursor {id} outside the transaction that made it"),
        ));
    }
    Ok(())
}
