//! Notes: what a caller wants written together with a job, whatever becomes of it.
//!
//! A caller that remembers what it answered (an idempotency record) would need a commit of its own after the job's, and
//! a process that ends between the two would have done the job and forgotten the answer. With a note the answer is
//! written in the transaction that decides the job: both are there or neither.

use crate::error::{Error, Result};
use bson::Document;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a note is written.
#[derive(Clone, Debug, PartialEq)]
pub enum NoteWrite {
    /// As a new document, whose `_id` nobody else uses.
    Insert(Document),
    /// As a change to the first document that matches, if one does.
    Update {
        /// Which.
        filter: Document,
        /// What changes.
        change: Document,
    },
}

type Make<T> = dyn Fn(&Result<T>) -> Option<NoteWrite> + Send + Sync;

/// What is to be noted of a job that gives a `T` or is refused. Clones are the same note.
pub struct Note<T> {
    pub(crate) database: Arc<str>,
    pub(crate) collection: Arc<str>,
    make: Arc<Make<T>>,
    made: Arc<AtomicBool>,
    written: Arc<AtomicBool>,
}

impl<T> Clone for Note<T> {
    fn clone(&self) -> Note<T> {
        Note {
            database: self.database.clone(),
            collection: self.collection.clone(),
            make: self.make.clone(),
            made: self.made.clone(),
            written: self.written.clone(),
        }
    }
}

impl<T> fmt::Debug for Note<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Note").field("database", &self.database).field("collection", &self.collection).finish()
    }
}

impl<T> Note<T> {
    /// A note in a collection, made of a job's outcome; `None` notes nothing. It may be made more than once, when the
    /// job's transaction has to run again, so it must have no effects; only the last one is written.
    pub fn new<F>(database: &str, collection: &str, make: F) -> Note<T>
    where
        F: Fn(&Result<T>) -> Option<NoteWrite> + Send + Sync + 'static,
    {
        Note {
            database: database.into(),
            collection: collection.into(),
            make: Arc::new(make),
            made: Arc::default(),
            written: Arc::default(),
        }
    }

    /// Whether it was written, durably. It is not when the job's transaction failed, or when what was asked for was refused
    /// before there was one.
    pub fn is_written(&self) -> bool {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn make(&self, outcome: &Result<T>) -> Option<NoteWrite> {
        let write = (self.make)(outcome);
        self.made.store(write.is_some(), Ordering::Release);
        write
    }

    /// The job's transaction is over.
    pub(crate) fn settle(&self, outcome: &Result<T>) {
        let decided = !matches!(outcome, Err(Error::Store(_) | Error::Busy));
        self.written.store(decided && self.made.load(Ordering::Acquire), Ordering::Release);
    }
}
