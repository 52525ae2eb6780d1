//! What runs beside the operations: ending what was left open, deleting what expired, building what was left unbuilt.

use crate::catalog::Collection;
use crate::context::Context;
use crate::database::Inner;
use crate::error::{Error, Result};
use crate::operation::{Query, Unfinished};
use bson::{DateTime, RawDocumentBuf, rawdoc};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How often it looks.
const PERIOD: Duration = Duration::from_secs(1);

/// How often expired documents are deleted.
pub(crate) const TTL_PERIOD: Duration = Duration::from_secs(60);

/// How far the wall clock may run away from the steady one between two looks before deleting by time pauses.
const MAX_CLOCK_JUMP_MS: i64 = 60_000;

/// Starts the thread; it ends with the engine.
pub(crate) fn start(engine: &Arc<Inner>) {
    // Read here, before anybody writes: later, a build that runs would look like one that a crash left.
    let left = LeftOver::of(engine);
    let engine: Weak<Inner> = Arc::downgrade(engine);
    let run = move || {
        let mut keeper = Keeper { last_look: Instant::now(), last_clock_ms: None, last_ttl: Instant::now() };
        if let Some(engine) = engine.upgrade() {
            left.finish(&engine);
        }
        drop(left);
        loop {
            std::thread::sleep(PERIOD);
            let Some(engine) = engine.upgrade() else { return };
            keeper.look(&engine);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("sheaf-housekeeping".into()).spawn(run) {
        tracing::error!(%error, "the housekeeping thread can't be started: nothing expires");
    }
}

/// What a crash interrupted.
struct LeftOver {
    /// The prefixes of data that was being dropped.
    orphans: Vec<[u8; 5]>,
    builds: Vec<Unfinished>,
}

impl LeftOver {
    /// What a crash had interrupted when the engine was opened.
    fn of(engine: &Arc<Inner>) -> LeftOver {
        let state = engine.state();
        let orphans = engine.orphans(&state).unwrap_or_else(|error| {
            tracing::error!(%error, "dropped data can't be looked for; it is looked for again at the next start");
            Vec::new()
        });
        LeftOver { orphans, builds: Unfinished::of(&state) }
    }

    /// Brings it to its end.
    fn finish(&self, engine: &Arc<Inner>) {
        for prefix in &self.orphans {
            if let Err(error) = engine.delete_prefix(prefix) {
                tracing::error!(%error, "dropped data can't be deleted now; it is tried again at the next start");
            }
        }
        for build in &self.builds {
            if let Err(error) = engine.resume_build(build) {
                tracing::error!(%error, "an index build can't be finished now; it is tried again at the next start");
            }
        }
    }
}

struct Keeper {
    last_look: Instant,
    last_clock_ms: Option<i64>,
    last_ttl: Instant,
}

impl Keeper {
    fn look(&mut self, engine: &Arc<Inner>) {
        engine.cursors.expire();
        engine.snapshots.expire();
        engine.expire_sessions();
        if let Err(error) = engine.pack_due(false) {
            tracing::error!(%error, "measurements of a time series can't be packed");
        }
        let jumped = self.clock_jumped((engine.options.clock)());
        if jumped {
            tracing::warn!("the wall clock jumped: deleting expired documents pauses for one round");
            self.last_ttl = Instant::now();
        } else if self.last_ttl.elapsed() >= engine.ttl_period() {
            self.last_ttl = Instant::now();
            if let Err(error) = engine.delete_expired() {
                tracing::error!(%error, "expired documents can't be deleted");
            }
        }
    }

    /// Whether the wall clock went another way than the steady one since the last look.
    fn clock_jumped(&mut self, clock_ms: i64) -> bool {
        let steady_ms = self.last_look.elapsed().as_millis() as i64;
        self.last_look = Instant::now();
        let before = self.last_clock_ms.replace(clock_ms);
        before.is_some_and(|before| (clock_ms - before - steady_ms).abs() > MAX_CLOCK_JUMP_MS)
    }
}

impl Inner {
    /// Deletes the documents whose time is over, in bounded steps; the deletes are ordinary ones and stand in the change log.
    pub(crate) fn delete_expired(self: &Arc<Inner>) -> Result<u64> {
        let now_ms = (self.options.clock)();
        let state = self.state();
        let mut deleted = 0;
        for collection in state.catalog.all() {
            for filter in expired_filters(collection, now_ms) {
                let query = Query { filter, ..Query::default() };
                // One that a hook keeps, say, does not keep those that expired after it.
                let (mut stay, mut first) = (0_u64, None);
                let mut failed = |error: Error| {
                    stay += 1;
                    first.get_or_insert(error);
                    self.storage.failure().map_or(Ok(()), Err)
                };
                let done = self.delete_each(&Context::default(), &collection.namespace, &query, &mut failed);
                match done {
                    Ok(done) => deleted += done.reply as u64,
                    Err(error) => first = first.or(Some(error)),
                }
                if let Some(error) = first {
                    tracing::warn!(namespace = %collection.namespace, stay, %error, "expired documents stay");
                }
            }
        }
        Ok(deleted)
    }
}

/// What the expired documents of a collection match, for each of its TTL indexes.
fn expired_filters(collection: &Collection, now_ms: i64) -> Vec<RawDocumentBuf> {
    let before = |seconds: i64| DateTime::from_millis(now_ms.saturating_sub(seconds.saturating_mul(1000)));
    let mut filters = Vec::new();
    for index in collection.indexes.iter().filter(|index| index.ready) {
        let (Some(seconds), [field]) = (index.spec.expire_after_seconds(), index.spec.fields()) else { continue };
        let mut limit = RawDocumentBuf::new();
        limit.append(bson::raw::cstr!("$lt"), before(seconds));
        let mut filter = RawDocumentBuf::new();
        if crate::document::append(&mut filter, &field.path, (&*limit).into()).is_err() {
            continue;
        }
        match index.spec.document().get_document("partialFilterExpression") {
            Ok(partial) => filters.push(rawdoc! { "$and": [filter, partial.to_owned()] }),
            Err(_) => filters.push(filter),
        }
    }
    if let (true, Some(seconds)) = (collection.settings.clustered, collection.settings.expire_after_seconds) {
        filters.push(rawdoc! { "_id": { "$lt": before(seconds) } });
    }
    if let (Some(series), Some(seconds)) = (&collection.settings.series, collection.settings.expire_after_seconds) {
        // Whole windows go, so that no bucket is rewritten for a part of it.
        let window = series.window_of(before(seconds).timestamp_millis());
        let mut limit = RawDocumentBuf::new();
        limit.append(bson::raw::cstr!("$lt"), DateTime::from_millis(window));
        let mut filter = RawDocumentBuf::new();
        if crate::document::append(&mut filter, &series.time_field, (&*limit).into()).is_ok() {
            filters.push(filter);
        }
    }
    filters
}
