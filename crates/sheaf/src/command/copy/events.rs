//! What changed since the copy began: the change stream's events, put into the target in order.

use super::state::{Journal, is_own};
use crate::transfer::{Result, Selection};
use bson::{Bson, Document, doc};
use std::time::{Duration, Instant};
use store::{BulkWrite, ChangeStream, Index, Start, Store, Watch, WriteModel};

/// The writes of one bulk.
const BULK_WRITES: usize = 500;
/// How long writes are gathered at most.
const BULK_TIME: Duration = Duration::from_millis(500);
/// The code of something that is there already.
const NAMESPACE_EXISTS: i32 = 48;

/// Opens the change stream of what is selected.
pub(super) async fn open(from: &Store, selection: &Selection, watch: Watch) -> Result<ChangeStream> {
    Ok(match (&selection.db, &selection.collection) {
        (Some(database), Some(collection)) => from.collection(database, collection).watch(watch).await?,
        (Some(database), None) => from.watch_database(database, watch).await?,
        _ => from.watch(watch).await?,
    })
}

/// Follows a source.
pub(super) struct Follower {
    stream: ChangeStream,
    to: Store,
    selection: Selection,
    pending: Vec<(store::Collection, WriteModel)>,
    gathered_since: Instant,
    events: u64,
    writes: u64,
}

impl Follower {
    pub(super) async fn open(from: &Store, to: &Store, token: Document, selection: &Selection) -> Result<Follower> {
        let watch = super::watch(Start::StartAfter(token), Duration::from_millis(200));
        Ok(Follower {
            stream: open(from, selection, watch).await?,
            to: to.clone(),
            selection: selection.clone(),
            pending: Vec::new(),
            gathered_since: Instant::now(),
            events: 0,
            writes: 0,
        })
    }

    /// Puts in what happened so far: until nothing comes for a while, or what comes is newer than this call.
    pub(super) async fn catch_up(&mut self, journal: &mut Journal, quiet: Duration) -> Result<()> {
        let called = bson::Timestamp { time: seconds_now().saturating_add(1), increment: 0 };
        let mut last = Instant::now();
        while self.stream.is_alive() {
            match self.stream.next_if_any().await? {
                Some(event) => {
                    last = Instant::now();
                    let is_newer = event.get_timestamp("clusterTime").is_ok_and(|time| time > called);
                    self.take(event, journal).await?;
                    if is_newer {
                        break;
                    }
                }
                None if last.elapsed() >= quiet => break,
                None => {}
            }
        }
        self.flush(journal).await
    }

    /// Puts in what happens until the process is told to stop.
    pub(super) async fn follow(&mut self, journal: &mut Journal) -> Result<()> {
        let stop = tokio::signal::ctrl_c();
        tokio::pin!(stop);
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
            .map_err(crate::transfer::at("signals".as_ref()))?;
        while self.stream.is_alive() {
            let event = tokio::select! {
                event = self.stream.next_if_any() => event?,
                _ = &mut stop => break,
                _ = terminate.recv() => break,
            };
            match event {
                Some(event) => self.take(event, journal).await?,
                None => self.flush(journal).await?,
            }
            if self.gathered_since.elapsed() >= BULK_TIME {
                self.flush(journal).await?;
            }
        }
        self.flush(journal).await
    }

    /// What was done, in a line.
    pub(super) fn report(&self, json: bool) -> String {
        if json {
            return format!("{}\n", serde_json::json!({ "events": self.events, "writes": self.writes }));
        }
        format!("{} events of changes, {} writes\n", self.events, self.writes)
    }

    async fn take(&mut self, event: Document, journal: &mut Journal) -> Result<()> {
        self.events += 1;
        let namespace = event.get_document("ns").ok();
        let database = namespace.and_then(|ns| ns.get_str("db").ok()).unwrap_or_default().to_owned();
        let name = namespace.and_then(|ns| ns.get_str("coll").ok()).unwrap_or_default().to_owned();
        let is_selected = (name.is_empty() || self.selection.holds(&database, &name)) && !is_own(&database, &name);
        if !is_selected {
            return Ok(());
        }
        let kind = event.get_str("operationType").unwrap_or_default();
        let key = event.get_document("documentKey").cloned().unwrap_or_default();
        let collection = self.to.collection(&database, &name);
        match kind {
            "insert" | "update" | "replace" => {
                // A document that is gone by now has its delete event still to come.
                if let Ok(document) = event.get_document("fullDocument") {
                    let filter = doc! { "_id": key.get("_id").cloned().unwrap_or(Bson::Null) };
                    self.push(collection, WriteModel::Replace { filter, replacement: document.clone(), upsert: true });
                }
            }
            "delete" => {
                let filter = doc! { "_id": key.get("_id").cloned().unwrap_or(Bson::Null) };
                self.push(collection, WriteModel::Delete { filter, many: false });
            }
            _ => {
                self.flush(journal).await?;
                self.define(kind, &database, &name, &event).await?;
            }
        }
        if self.pending.len() >= BULK_WRITES {
            self.flush(journal).await?;
        }
        Ok(())
    }

    fn push(&mut self, collection: store::Collection, write: WriteModel) {
        if self.pending.is_empty() {
            self.gathered_since = Instant::now();
        }
        self.pending.push((collection, write));
    }

    async fn flush(&mut self, journal: &mut Journal) -> Result<()> {
        if !self.pending.is_empty() {
            let writes = std::mem::take(&mut self.pending);
            self.writes += writes.len() as u64;
            let options = BulkWrite { ordered: true, bypass_document_validation: true };
            self.to.bulk_write(writes, options, None).await?.ok()?;
        }
        self.gathered_since = Instant::now();
        match self.stream.resume_token() {
            Some(token) if journal.token().as_ref() != Some(&token) => journal.applied(token).await,
            _ => Ok(()),
        }
    }

    /// Does again what was done to a collection or a database.
    async fn define(&mut self, kind: &str, database: &str, name: &str, event: &Document) -> Result<()> {
        let collection = self.to.collection(database, name);
        let description = event.get_document("operationDescription").cloned().unwrap_or_default();
        match kind {
            "drop" => collection.drop().await?,
            "dropDatabase" => self.to.drop_database(database).await?,
            "rename" => {
                let to = event.get_document("to").ok().and_then(|to| to.get_str("coll").ok()).unwrap_or_default();
                match collection.rename(to, true).await {
                    // It was renamed before the documents were copied.
                    Err(error) if error.code == Some(26) => {}
                    done => drop(done?),
                }
            }
            "create" => {
                let mut options = description;
                for own in ["idIndex", "create", "uuid"] {
                    options.remove(own);
                }
                match collection.create(options).await {
                    Err(error) if error.code == Some(NAMESPACE_EXISTS) => {}
                    done => done?,
                }
            }
            "createIndexes" => {
                let indexes = description.get_array("indexes").into_iter().flatten().filter_map(Bson::as_document);
                let indexes: Vec<Index> = indexes.filter_map(as_index).collect();
                collection.create_indexes(indexes).await?;
            }
            "dropIndexes" => {
                let indexes = description.get_array("indexes").into_iter().flatten().filter_map(Bson::as_document);
                for index in indexes {
                    match collection.drop_index(index.get_str("name").unwrap_or_default()).await {
                        Err(error) if matches!(error.code, Some(26 | 27)) => {}
                        done => done?,
                    }
                }
            }
            "modify" => collection.modify(description).await?,
            // An invalidate event ends the stream of one collection.
            _ => {}
        }
        Ok(())
    }
}

fn as_index(index: &Document) -> Option<Index> {
    let keys = index.get_document("key").ok()?.clone();
    let options = index.iter().filter(|(name, _)| !["key", "ns"].contains(&name.as_str()));
    Some(Index { keys, options: options.map(|(name, value)| (name.clone(), value.clone())).collect() })
}

fn seconds_now() -> u32 {
    let now = bson::DateTime::now().timestamp_millis() / 1000;
    u32::try_from(now).unwrap_or(u32::MAX)
}
