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
use crate::plan::{Execution, Polled, Shown};
use crate::stage::RowSource;
use crate::storage::{Ticket, View};
use bson::RawDocument;
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
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) cell: Arc<ViewCell>,
}

/// The view that the rows of a cursor read from, for as long as a batch takes.
pub(crate) struct ViewCell {
    engine: Weak<Inner>,
    /// Which view comes after the one that is given up.
    next: NextView,
    /// When a snapshot that reads come back to must be given up.
    until: Option<Instant>,
    current: Mutex<Option<Held>>,
    generation: AtomicU64,
}

/// What a cell is filled with when its view was given up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextView {
    /// Nothing: a transaction's view does not change, nor does a snapshot that reads come back to.
    Same,
    /// What is published by then.
    Published,
    /// What is executed by then, for statements that write.
    Executed,
}

struct Held {
    view: SharedView,
    since: Instant,
}

impl ViewCell {
    /// Gives the view up; the next row is read from the newest state.
    pub(crate) fn release(&self) {
        if self.next != NextView::Same {
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

    /// The present view, with the generation that it belongs to.
    pub(crate) fn view(&self) -> Result<(SharedView, u64)> {
        let mut current = self.current.lock();
        let generation = self.generation.load(Ordering::Acquire);
        if let Some(held) = &*current {
            return Ok((held.view.clone(), generation));
        }
        let engine = self.engine.upgrade().ok_or_else(|| {
            crate::Error::new(crate::Code::SHUTDOWN_IN_PROGRESS, "the database was closed while the cursor was open")
        })?;
        let view: SharedView = Arc::new(match self.next {
            NextView::Executed => engine.storage.writer()?.executed(),
            NextView::Same | NextView::Published => engine.storage.snapshot(),
        });
        *current = Some(Held { view: view.clone(), since: Instant::now() });
        Ok((view, generation))
    }
}

impl Reading {
    /// The view to read from now.
    pub(crate) fn view(&self) -> Result<SharedView> {
        Ok(self.cell.view()?.0)
    }
}

impl Inner {
    /// What the operation reads.
    pub(crate) fn reading(self: &Arc<Inner>, context: &Context) -> Result<Reading> {
        let mut until = None;
        let (view, catalog, next): (SharedView, _, _) = match (context.transaction(), &context.snapshot) {
            (Some(session), _) => {
                let state = self.transaction_state(session)?;
                (state.view, state.catalog, NextView::Same)
            }
            (None, Some(read)) => {
                let (state, end) = self.kept_snapshot(context, read)?;
                until = Some(end);
                (Arc::new(state.snapshot), state.catalog, NextView::Same)
            }
            (None, None) => {
                let state = self.state();
                (Arc::new(state.snapshot), state.catalog, NextView::Published)
            }
        };
        let held = Held { view, since: Instant::now() };
        let cell = ViewCell {
            engine: Arc::downgrade(self),
            next,
            until,
            current: Mutex::new(Some(held)),
            generation: AtomicU64::new(0),
        };
        Ok(Reading { catalog, cell: Arc::new(cell) })
    }

    /// What a statement finds its candidates in: everything executed so far, so that it sees what earlier statements of the same
    /// command wrote. Also gives the ticket of what it sees: nothing may be acknowledged before.
    pub(crate) fn reading_for_write(self: &Arc<Inner>, context: &Context) -> Result<(Reading, Ticket)> {
        if context.transaction().is_some() {
            return Ok((self.reading(context)?, self.storage.ticket(0)));
        }
        self.with_writer(|writer, working| {
            let view: SharedView = Arc::new(writer.executed());
            let held = Held { view, since: Instant::now() };
            let cell = ViewCell {
                engine: Arc::downgrade(self),
                next: NextView::Executed,
                until: None,
                current: Mutex::new(Some(held)),
                generation: AtomicU64::new(0),
            };
            let reading = Reading { catalog: working.catalog.clone(), cell: Arc::new(cell) };
            Ok((reading, self.storage.ticket(writer.position())))
        })
    }
}

/// The rows of a plan.
pub(crate) struct PlannedRows {
    execution: Execution,
    cell: Arc<ViewCell>,
    /// The view that the plan is in the middle of, with the cell's generation. The cell alone keeps it.
    view: Option<(WeakView, u64)>,
    context: Context,
    rows: u32,
}

type WeakView = Weak<dyn View + Send + Sync>;

impl PlannedRows {
    /// Rows of a plan that was made on a view of a cell.
    pub(crate) fn new(
        execution: Execution,
        cell: Arc<ViewCell>,
        view: &SharedView,
        generation: u64,
        context: &Context,
    ) -> PlannedRows {
        PlannedRows {
            execution,
            cell,
            view: Some((Arc::downgrade(view), generation)),
            context: context.clone(),
            rows: 0,
        }
    }

    /// Whether the records are read one after the other, in their own order.
    pub(crate) fn is_record_scan(&self) -> bool {
        self.execution.is_record_scan()
    }

    /// The cell's view; the plan lets go of the one before if it is another.
    fn follow_view(&mut self) -> Result<SharedView> {
        let current = self.cell.generation.load(Ordering::Acquire);
        if let Some((view, generation)) = &self.view {
            if *generation == current
                && let Some(view) = view.upgrade()
            {
                return Ok(view);
            }
            self.view = None;
            self.execution.release();
        }
        let (view, generation) = self.cell.view()?;
        self.view = Some((Arc::downgrade(&view), generation));
        Ok(view)
    }

    fn check(&mut self) -> Result<()> {
        self.rows = 0;
        self.context.check()?;
        // A long scan keeps a core for milliseconds at a time otherwise, which is what a small operation then waits for.
        std::thread::yield_now();
        if self.cell.is_over() {
            return Err(crate::snapshots::too_old());
        }
        self.cell.release_if_old();
        Ok(())
    }
}

impl RowSource for PlannedRows {
    fn is_quick(&self) -> bool {
        self.execution.is_quick()
    }

    fn next(&mut self) -> Result<Option<Row>> {
        self.rows += 1;
        if self.rows >= ROWS_BETWEEN_CHECKS {
            self.check()?;
        }
        loop {
            let view = self.follow_view()?;
            match self.execution.poll(&*view, STEPS_BETWEEN_CHECKS)? {
                Polled::Row(row) => return Ok(Some(row)),
                Polled::Pending => self.check()?,
                Polled::End => return Ok(None),
            }
        }
    }

    fn each(&mut self, see: &mut dyn FnMut(&RawDocument) -> Result<()>) -> Result<()> {
        loop {
            let view = self.follow_view()?;
            match self.execution.show(&*view, see)? {
                Some(Shown::All) => return Ok(()),
                Some(Shown::Some) => self.check()?,
                None => match self.next()? {
                    Some(row) => see(row.document())?,
                    None => return Ok(()),
                },
            }
        }
    }
}
