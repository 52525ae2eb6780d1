//! The storage itself: what all its parts share, the flusher thread, and the face.

use super::folder::Fold;
use super::log::{Encoder, Log, LogReader, Place, Record};
use super::medium::{Folder, Medium, Memory};
use super::overlay::Generation;
use super::statistics::{Counters, Statistics, nanos};
use super::tables::file::FileTables;
use super::tables::memory::MemoryTables;
use super::tables::{Reached, Tables};
use super::ticket::{Progress, Ticket};
use super::turns::Turns;
use super::view::{Snapshot, State};
use super::writer::{Changes, Writer};
use super::{Flush, Options, Position};
use crate::error::{Code, Error, Result};
use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A store of ordered bytes: one writer at a time, any number of readers, durable commits in groups.
///
/// Cloning shares it. The last clone's drop flushes what was committed and stops the threads.
#[derive(Clone)]
pub struct Storage {
    core: Arc<Core>,
    threads: Arc<Threads>,
}

/// Called with a position after it is flushed and before it becomes visible.
type Hook = Box<dyn Fn(Position) + Send + Sync>;

/// What the storage's handles and threads share.
pub(super) struct Core {
    pub(super) options: Options,
    pub(super) tables: Box<dyn Tables>,
    pub(super) log: Log,
    pub(super) published: ArcSwap<State>,
    /// Held while `published` is replaced.
    shape: Mutex<()>,
    pub(super) progress: Arc<Progress>,
    /// The writer lock.
    /// The writer lock, taken before `writing`, which others also lock for a moment.
    pub(super) turns: Turns,
    pub(super) writing: Mutex<Writing>,
    /// The last executed position, for those who don't hold the lock.
    pub(super) executed: AtomicU64,
    /// Signalled, with the writer lock, when a frozen generation has been folded or can't be.
    pub(super) room: Condvar,
    pub(super) queue: Queue,
    pub(super) fold: Fold,
    hooks: Mutex<Vec<Hook>>,
    pub(super) counters: Counters,
    opened: Instant,
    /// The claim on the medium; dropped after all that uses it.
    _lock: Box<dyn Send + Sync>,
}

/// The name of the tables' file.
const TABLES_NAME: &str = "tables.redb";

/// The segments of a storage in memory are at most this large.
const MEMORY_SEGMENT_BYTES: u64 = 4 << 20;
/// A storage in memory keeps at most this much of its log for readers.
const MEMORY_RETAIN_BYTES: u64 = 64 << 20;

/// What the writer lock protects: the last executed commit.
pub(super) struct Writing {
    pub(super) position: Position,
    pub(super) time: u64,
}

/// A commit that is executed but not flushed.
pub(super) struct Pending {
    pub(super) position: Position,
    pub(super) changes: Changes,
    pub(super) place: Place,
}

/// The open batch. It is bounded by the overlay, which holds the same bytes and makes writers wait.
#[derive(Default)]
pub(super) struct Queue {
    open: Mutex<Open>,
    filled: Condvar,
}

struct Open {
    batch: Vec<Pending>,
    /// When the first commit of the batch came, while all of it is patient.
    patient_since: Option<Instant>,
    patience: Duration,
    closed: bool,
}

impl Default for Open {
    fn default() -> Open {
        Open { batch: Vec::new(), patient_since: None, patience: PATIENCE, closed: false }
    }
}

/// How long a patient commit waits for others whose flush takes it along.
const PATIENCE: Duration = Duration::from_micros(500);

impl Queue {
    /// Adds a commit; a patient one may wait a moment for others.
    pub(super) fn push(&self, pending: Pending, is_patient: bool) {
        let mut open = self.open.lock();
        open.patient_since = match (is_patient, open.batch.is_empty()) {
            (true, true) => Some(Instant::now()),
            (true, false) => open.patient_since,
            (false, _) => None,
        };
        open.batch.push(pending);
        drop(open);
        self.filled.notify_one();
    }

    /// Takes all that is queued, waiting for something; `None` once it is closed and empty.
    fn take(&self) -> Option<Vec<Pending>> {
        let mut open = self.open.lock();
        loop {
            match open.patient_since.map(|since| open.patience.saturating_sub(since.elapsed())) {
                _ if open.closed && open.batch.is_empty() => return None,
                _ if open.batch.is_empty() => self.filled.wait(&mut open),
                Some(left) if !left.is_zero() && !open.closed => drop(self.filled.wait_for(&mut open, left)),
                _ => {
                    open.patient_since = None;
                    return Some(std::mem::take(&mut open.batch));
                }
            }
        }
    }

    fn close(&self) {
        self.open.lock().closed = true;
        self.filled.notify_one();
    }
}

impl Core {
    pub(super) fn ticket(&self, position: Position) -> Ticket {
        Ticket::new(self.progress.clone(), position)
    }

    /// Replaces what readers see.
    pub(super) fn reshape(&self, change: impl FnOnce(&State) -> State) {
        let _held = self.shape.lock();
        let state = change(&self.published.load());
        assert!(!state.generations.is_empty(), "there is always an active generation");
        self.published.store(Arc::new(state));
    }

    pub(super) fn overlay_bytes(&self) -> usize {
        self.published.load().generations.iter().map(|generation| generation.size_bytes()).sum()
    }

    /// Freezes the active generation if it has reached the soft limit and the folder is idle.
    pub(super) fn freeze_if_due(&self, writing: &mut Writing) -> bool {
        let active_bytes = self.published.load().generations[0].size_bytes();
        active_bytes >= self.options.overlay_bytes && self.freeze(writing)
    }

    /// Hands the active generation to the folder, unless that still has one. The caller holds the writer lock.
    pub(super) fn freeze(&self, writing: &mut Writing) -> bool {
        if !self.fold.is_idle() {
            return false;
        }
        let reached = Reached { position: writing.position, time: writing.time };
        self.reshape(|state| {
            let mut generations = vec![Arc::new(Generation::new(self.options.overlay_bytes))];
            generations.extend(state.generations.iter().cloned());
            State { position: state.position, tables: state.tables.clone(), generations }
        });
        self.fold.begin(reached);
        true
    }

    /// The flusher: one write and one flush for all that has queued up, then the position is published.
    fn flush_batches(&self) {
        let mut encoder = Encoder::default();
        while let Some(batch) = self.queue.take() {
            let last = batch.last().expect("a batch is never empty").position;
            let started = Instant::now();
            let count = batch.len() as u64;
            if let Err(error) = self.log.append(batch, self.progress.flushed(), &mut encoder) {
                self.fail(error.context(
                    "a flush of the log failed, so that it is unknown what reached the medium: nothing more is \
                     written until the storage is opened anew",
                ));
                return;
            }
            Counters::add(&self.counters.flush_nanos, nanos(started.elapsed()));
            Counters::add(&self.counters.flushes, 1);
            Counters::add(&self.counters.commits, count);
            self.publish(last);
        }
    }

    fn publish(&self, position: Position) {
        for hook in self.hooks.lock().iter() {
            hook(position);
        }
        self.reshape(|state| State { position, tables: state.tables.clone(), generations: state.generations.clone() });
        self.progress.advance(position);
    }

    /// Refuses all writes from now on; reads go on.
    pub(super) fn fail(&self, reason: Error) {
        self.progress.end(reason);
        // The lock makes sure that a writer about to wait is waiting by now.
        drop(self.writing.lock());
        self.room.notify_all();
    }
}

impl Storage {
    /// Opens a storage in a folder, creating it if there is none, and recovers what a crash left.
    ///
    /// Errors: `DBPathInUse` if another process has it open; `ManualInterventionRequired` if something acknowledged is
    /// missing or damaged; `UnsupportedFormat` if another release wrote it.
    pub fn open(folder: &Path, options: Options) -> Result<Storage> {
        Storage::open_on(Arc::new(Folder::open(folder)?), options)
    }

    /// Opens a storage on any medium.
    pub fn open_on(medium: Arc<dyn Medium>, options: Options) -> Result<Storage> {
        let lock = medium.lock()?;
        let file = medium.open(TABLES_NAME)?;
        let opened = FileTables::open(file.clone(), &options);
        let tables = match opened {
            // The log is created after the tables, so without one their creation was interrupted.
            Err(_) if !Log::exists(&*medium)? => {
                file.resize(0)?;
                FileTables::open(file, &options)?
            }
            opened => opened?,
        };
        if options.flush == Flush::Durable {
            medium.sync()?;
        }
        Storage::start(options, Box::new(tables), medium, lock)
    }

    /// A storage in memory, with the same behaviour and no durability.
    pub fn in_memory(options: Options) -> Storage {
        let segment_bytes = options.segment_bytes.min(MEMORY_SEGMENT_BYTES);
        let retain_bytes = options.retain_bytes.min(MEMORY_RETAIN_BYTES);
        let options = Options { flush: Flush::Skip, segment_bytes, retain_bytes, ..options };
        let started =
            Storage::start(options, Box::new(MemoryTables::default()), Arc::new(Memory::default()), Box::new(()));
        started.expect("there is nothing to recover in memory")
    }

    fn start(
        options: Options,
        tables: Box<dyn Tables>,
        medium: Arc<dyn Medium>,
        lock: Box<dyn Send + Sync>,
    ) -> Result<Storage> {
        // Zero would never be reached by writing.
        let options = Options { overlay_bytes: options.overlay_bytes.max(1), ..options };
        let mut replay =
            Replay { tables: &*tables, generation: Generation::new(options.overlay_bytes), end: tables.reached()? };
        let replay_bytes = options.overlay_bytes;
        let mut apply = |record: Record| replay.apply(record, replay_bytes);
        let (log, Reached { position, time }) = Log::open(medium, &options, tables.reached()?, &mut apply)?;
        let generations = vec![Arc::new(replay.generation)];
        let folded = tables.reached()?.position;
        let state = State { position, tables: tables.view()?, generations };
        let core = Arc::new(Core {
            options,
            tables,
            log,
            published: ArcSwap::from_pointee(state),
            shape: Mutex::new(()),
            progress: Arc::new(Progress::new(position)),
            turns: Turns::default(),
            writing: Mutex::new(Writing { position, time }),
            executed: AtomicU64::new(position),
            room: Condvar::new(),
            queue: Queue::default(),
            fold: Fold::new(folded),
            hooks: Mutex::new(Vec::new()),
            counters: Counters::default(),
            opened: Instant::now(),
            _lock: lock,
        });
        let threads = Arc::new(Threads {
            running: Mutex::new(vec![
                spawn("flusher", core.clone(), Core::flush_batches)?,
                spawn("folder", core.clone(), Core::fold_generations)?,
                spawn("preparer", core.clone(), |core| core.log.prepare_spares())?,
            ]),
            core: core.clone(),
        });
        Ok(Storage { core, threads })
    }

    /// What is published now. It is cheap: two reference counts.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.core.published.load_full())
    }

    /// Takes the writer lock, waiting for its holder, and for the folder if the overlay is full.
    ///
    /// The overlay's hard limit is checked here and not by [`Writer::commit`], so a writer should be kept for few
    /// commits only. A thread that holds one must not ask for another, nor for a [checkpoint](Storage::checkpoint).
    ///
    /// Errors: the reason of a failed flush, or of a failed fold once the overlay is full; `ShutdownInProgress` after
    /// [`close`](Storage::close).
    pub fn writer(&self) -> Result<Writer<'_>> {
        let core = &*self.core;
        let turn = core.turns.take();
        let mut writing = core.writing.lock();
        loop {
            core.progress.check()?;
            core.freeze_if_due(&mut writing);
            if core.overlay_bytes() < core.options.overlay_bytes.saturating_mul(2) {
                break;
            }
            core.fold.check()?;
            Counters::add(&core.counters.writer_waits, 1);
            core.room.wait(&mut writing);
        }
        Ok(Writer { core, writing, turn, state: core.published.load_full(), is_patient: false })
    }

    #[cfg(test)]
    pub(super) fn set_patience(&self, patience: Duration) {
        self.core.queue.open.lock().patience = patience;
        self.core.queue.filled.notify_one();
    }

    /// The last flushed and published position.
    pub fn flushed(&self) -> Position {
        self.core.progress.flushed()
    }

    /// A ticket for any position, also a future one.
    pub fn ticket(&self, position: Position) -> Ticket {
        self.core.ticket(position)
    }

    /// A ticket that completes once anything newer than a position is flushed.
    pub fn wait_beyond(&self, position: Position) -> Ticket {
        self.core.ticket(position.saturating_add(1))
    }

    /// The flushed commits after a position, in order.
    ///
    /// The reader returns `None` when it has caught up and can be asked again later.
    /// Errors: `ChangeStreamHistoryLost` if the log no longer reaches back that far.
    pub fn read_log(&self, after: Position) -> Result<LogReader> {
        LogReader::new(self.core.clone(), after)
    }

    /// The oldest position that [`read_log`](Storage::read_log) can still deliver; one beyond the last if there is none.
    pub fn oldest(&self) -> Position {
        self.core.log.oldest().unwrap_or(self.flushed() + 1)
    }

    /// The first flushed commit in the log with a time of at least `time`.
    pub fn position_at(&self, time: u64) -> Result<Option<Position>> {
        let before = self.core.log.before_time(time).unwrap_or(self.oldest() - 1);
        for record in self.read_log(before)? {
            let record = record?;
            if record.time >= time {
                return Ok(Some(record.position));
            }
        }
        Ok(None)
    }

    /// Folds everything executed so far into the tables and waits for it.
    pub fn checkpoint(&self) -> Result<()> {
        let core = &*self.core;
        let mut writing = core.writing.lock();
        let wanted = writing.position;
        while core.fold.folded() < wanted {
            core.progress.check()?;
            core.fold.check()?;
            if !core.freeze(&mut writing) {
                core.room.wait(&mut writing);
            }
        }
        Ok(())
    }

    /// Adds a hook that is called with each newly flushed position before it becomes visible. It must be quick, must
    /// not write, and must not own the storage.
    pub fn on_publish(&self, hook: Box<dyn Fn(Position) + Send + Sync>) {
        self.core.hooks.lock().push(hook);
    }

    /// Flushes and folds everything, then refuses further writes, also through other clones.
    pub fn close(self) -> Result<()> {
        let outcome = self.checkpoint();
        self.threads.stop();
        outcome
    }

    #[cfg(test)]
    pub(super) fn core_for_tests(&self) -> Arc<Core> {
        self.core.clone()
    }

    /// Why nothing is written any more, after a failed flush.
    pub fn failure(&self) -> Option<Error> {
        self.core.progress.check().err()
    }

    /// The size of the overlay at which writers wait for the folder.
    pub fn overlay_limit_bytes(&self) -> usize {
        self.core.options.overlay_bytes.saturating_mul(2)
    }

    /// How long there has been something to fold: since the last fold, or since opening. Zero where all is folded.
    pub fn checkpoint_age(&self) -> Duration {
        if self.core.fold.folded() >= self.flushed() {
            return Duration::ZERO;
        }
        self.core.fold.last().unwrap_or(self.core.opened).elapsed()
    }

    /// Counters and sizes.
    pub fn statistics(&self) -> Statistics {
        let core = &*self.core;
        let counters = &core.counters;
        Statistics {
            executed: core.executed.load(Ordering::Relaxed),
            flushed: self.flushed(),
            folded: core.fold.folded(),
            oldest: self.oldest(),
            commits: Counters::count(&counters.commits),
            flushes: Counters::count(&counters.flushes),
            flush_time: Counters::time(&counters.flush_nanos),
            overlay_bytes: core.overlay_bytes() as u64,
            folds: Counters::count(&counters.folds),
            fold_time: Counters::time(&counters.fold_nanos),
            fold_longest: Counters::time(&counters.fold_longest_nanos),
            folds_failed: Counters::count(&counters.folds_failed),
            writer_waits: Counters::count(&counters.writer_waits),
            table_bytes: core.tables.size_bytes(),
            ..core.log.statistics()
        }
    }
}

/// Recovery's way from the log into the overlay, and from there into the tables when it grows too large.
struct Replay<'t> {
    tables: &'t dyn Tables,
    generation: Generation,
    end: Reached,
}

impl Replay<'_> {
    fn apply(&mut self, record: Record, overlay_bytes: usize) -> Result<()> {
        if self.generation.size_bytes() >= overlay_bytes {
            let full = std::mem::replace(&mut self.generation, Generation::new(overlay_bytes));
            self.tables.commit(&mut full.newest(), self.end)?;
        }
        self.end = Reached { position: record.position, time: record.time };
        for (key, value) in record.writes {
            self.generation.put(key, value, record.position);
        }
        Ok(())
    }
}

/// The storage's threads, stopped when the last handle goes.
struct Threads {
    core: Arc<Core>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    fn stop(&self) {
        self.core.queue.close();
        for thread in self.running.lock().drain(..) {
            if thread.thread().name() == Some("flusher") {
                self.join(thread);
                self.core.fail(Error::new(Code::SHUTDOWN_IN_PROGRESS, "the storage is closed"));
                self.core.fold.stop();
                self.core.log.stop();
            } else {
                self.join(thread);
            }
        }
    }

    fn join(&self, thread: JoinHandle<()>) {
        // A waker or hook may drop the last handle on one of the threads themselves.
        if thread.thread().id() != std::thread::current().id() {
            thread.join().expect("the threads catch their panics");
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(name: &str, core: Arc<Core>, body: fn(&Core)) -> Result<JoinHandle<()>> {
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(|| body(&core))).is_err() {
            core.fail(Error::internal("a thread of the storage panicked: nothing more is written"));
        }
    };
    Ok(std::thread::Builder::new().name(name.to_owned()).spawn(guarded)?)
}
