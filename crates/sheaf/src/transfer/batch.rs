//! Writing documents in batches, several at once.

use super::Result;
use bson::RawDocumentBuf;
use store::{Collection, InsertMany, InsertManyResult};
use tokio::task::JoinSet;

/// The documents of a batch.
const BATCH_DOCUMENTS: usize = 1000;
/// The bytes of a batch.
const BATCH_BYTES: usize = 4 << 20;
/// The batches that are on their way at once.
const IN_FLIGHT: usize = 4;

/// Inserts documents.
pub(crate) struct Inserter {
    collection: Collection,
    options: InsertMany,
    batch: Vec<RawDocumentBuf>,
    bytes: usize,
    running: JoinSet<store::Result<InsertManyResult>>,
    /// How many were inserted so far.
    pub(crate) inserted: u64,
    /// How many were refused.
    pub(crate) failed: u64,
    /// The first refusal.
    pub(crate) first_failure: Option<store::Error>,
}

impl Inserter {
    /// Inserts into a collection; `stop` at the first document that is refused, else all others are inserted.
    pub(crate) fn new(collection: Collection, stop: bool, bypass_document_validation: bool) -> Inserter {
        Inserter {
            collection,
            options: InsertMany { ordered: stop, bypass_document_validation },
            batch: Vec::new(),
            bytes: 0,
            running: JoinSet::new(),
            inserted: 0,
            failed: 0,
            first_failure: None,
        }
    }

    /// Adds a document; inserts when there is a batch of them.
    pub(crate) async fn push(&mut self, document: RawDocumentBuf) -> Result<()> {
        self.bytes += document.as_bytes().len();
        self.batch.push(document);
        if self.batch.len() >= BATCH_DOCUMENTS || self.bytes >= BATCH_BYTES {
            self.send().await?;
        }
        Ok(())
    }

    async fn send(&mut self) -> Result<()> {
        let most = if self.options.ordered { 1 } else { IN_FLIGHT };
        while self.running.len() >= most {
            self.take_one().await?;
        }
        let (batch, collection, options) = (std::mem::take(&mut self.batch), self.collection.clone(), self.options);
        self.bytes = 0;
        self.running.spawn(async move { collection.insert_raw_many(batch, options).await });
        Ok(())
    }

    async fn take_one(&mut self) -> Result<()> {
        let Some(done) = self.running.join_next().await else { return Ok(()) };
        let done = done.map_err(|error| super::Trouble::Usage(error.to_string()))??;
        self.inserted += done.inserted;
        self.failed += done.errors.len() as u64;
        if let Some(first) = done.errors.into_iter().next() {
            if self.options.ordered {
                return Err(first.error.into());
            }
            self.first_failure.get_or_insert(first.error);
        }
        Ok(())
    }

    /// Inserts what is left and waits for all.
    pub(crate) async fn finish(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            self.send().await?;
        }
        while !self.running.is_empty() {
            self.take_one().await?;
        }
        Ok(())
    }
}
