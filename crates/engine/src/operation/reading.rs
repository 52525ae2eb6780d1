//! What an operation reads, and the rows that a plan gives from it.
//!
//! An operation reads one published state, or what its transaction sees. A cursor keeps no snapshot between two batches: its
//! rows share a [`ViewCell`], which is emptied after each batch and filled with the newest state by the next; plans find
//! their place again in it.

use crate::catalog::Catalog;
use crate::context::Context;
use crate::database::Inner;
use crate::document::Row;
use crate::error::Result;
use crate::plan::{Execution, Polled};
use crate::stage::RowSource;
use crate::storage::{Ticket, View};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A view that can be shared between threads.
pub(crate) type SharedView = Arc<dyn View + Send + Sync>;

/// The longest that one snapshot is read from; it keeps the table file from reusing pages.
const SNAPSHOT_LIFETIME: Duration = Duration::from_secs(30);

/// How many rows are given between two looks at the clock and at the operation's interruption.
const ROWS_BETWEEN_CHECKS: u32 = 256;

/// How many steps of a plan are done between two looks when they give no row.
const STEPS_BETWEEN_CHECKS: u32 = 1024;

/// A consistent state to read from: what is published, or what a transaction sees.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) view: SharedView,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) cell: Arc<ViewCell>,
}

/// The view that the rows of a cursor read from, for as long as a batch takes.
pub(crate) struct ViewCell {
    engine: Weak<Inner>,
    /// A transaction's view does not change.
    pinned: bool,
    /// When a snapshot that reads come back to must be given up.
    until: Option<Instant>,
    current: Mutex<Option<Held>>,
    generation: AtomicU64,
}

struct Held {
    view: SharedView,
    since: Instant,
}

impl ViewCell {
    /// Gives the view up; the next row is read from the newest state.
    pub(crate) fn release(&self) {
        if !self.pinned {
            self.current.lock().take();
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether its snapshot's time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn release_if_old(&self) {
        let old = self.current.lock().as_ref().is_some_and(|held| held.since.elapsed() > SNAPSHOT_LIFETIME);
        if old {
            self.release();
        }
    }

    fn view(&self) -> Result<(SharedView, u64)> {
        let mut current = self.current.lock();
        let generation = self.generation.load(Ordering::Acquire);
        if let Some(held) = &*current {
            return Ok((held.view.clone(), generation));
        }
        let engine = self.engine.upgrade().ok_or_else(|| {
            crate::Error::new(crate::Code::SHUTDOWN_IN_PROGRESS, "the database was closed while the cursor was open")
        })?;
        let view: SharedView = Arc::new(engine.storage.snapshot());
        *current = Some(Held { view: view.clone(), since: Instant::now() });
        Ok((view, generation))
    }
}

impl Inner {
    /// What the operation reads.
    pub(crate) fn reading(self: &Arc<Inner>, context: &Context) -> Result<Reading> {
        let mut until = None;
        let (view, catalog, pinned): (SharedView, _, _) = match (context.transaction(), &context.snapshot) {
            (Some(session), _) => {
                let state = self.transaction_state(session)?;
                (state.view, state.catalog, true)
            }
            (None, Some(read)) => {
                let (state, end) = self.kept_snapshot(context, read)?;
                until = Some(end);
                (Arc::new(state.snapshot), state.catalog, true)
            }
            (None, None) => {
                let state = self.state();
                (Arc::new(state.snapshot), state.catalog, false)
            }
        };
        let held = Held { view: view.clone(), since: Instant::now() };
        let cell = ViewCell {
            engine: Arc::downgrade(self),
            pinned,
            until,
            current: Mutex::new(Some(held)),
            generation: AtomicU64::new(0),
        };
        Ok(Reading { view, catalog, cell: Arc::new(cell) })
    }

    /// What a statement finds its candidates in: everything executed so far, so that it sees what earlier statements of the same
    /// command wrote. Also gives the ticket of what it sees: nothing may be acknowledged before.
    pub(crate) fn reading_for_write(self: &Arc<Inner>, context: &Context) -> Result<(Reading, Ticket)> {
        if context.transaction().is_some() {
            return Ok((self.reading(context)?, self.storage.ticket(0)));
        }
        self.with_writer(|writer, working| {
            let view: SharedView = Arc::new(writer.executed());
            let held = Held { view: view.clone(), since: Instant::now() };
            let cell = ViewCell {
                engine: Arc::downgrade(self),
                pinned: true,
                until: None,
                current: Mutex::new(Some(held)),
                generation: AtomicU64::new(0),
            };
            let reading = Reading { view, catalog: working.catalog.clone(), cell: Arc::new(cell) };
            Ok((reading, self.storage.ticket(writer.position())))
        })
    }
}

/// The rows of a plan.
pub(crate) struct PlannedRows {
    execution: Execution,
    cell: Arc<ViewCell>,
    /// The view that the plan is in the middle of, with the cell's generation.
    view: Option<(SharedView, u64)>,
    context: Context,
    rows: u32,
}

impl PlannedRows {
    /// Rows of a plan that read from a cell.
    pub(crate) fn new(execution: Execution, cell: Arc<ViewCell>, context: &Context) -> PlannedRows {
        PlannedRows { execution, cell, view: None, context: context.clone(), rows: 0 }
    }
}

impl PlannedRows {
    /// Takes the cell's view if it is another one than before.
    fn follow_view(&mut self) -> Result<()> {
        let current = self.cell.generation.load(Ordering::Acquire);
        if self.view.as_ref().is_none_or(|(_, generation)| *generation != current) {
            if self.view.take().is_some() {
                self.execution.release();
            }
            self.view = Some(self.cell.view()?);
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.rows = 0;
        self.context.check()?;
        if self.cell.is_over() {
            return Err(crate::snapshots::too_old());
        }
        self.cell.release_if_old();
        Ok(())
    }
}

impl RowSource for PlannedRows {
    fn next(&mut self) -> Result<Option<Row>> {
        self.rows += 1;
        if self.rows >= ROWS_BETWEEN_CHECKS {
            self.check()?;
        }
        loop {
            self.follow_view()?;
            let (view, _) = self.view.as_ref().expect("it was set above");
            match self.execution.poll(&**view, STEPS_BETWEEN_CHECKS)? {
                Polled::Row(row) => return Ok(Some(row)),
                Polled::Pending => self.check()?,
                Polled::End => return Ok(None),
            }
        }
    }
}
