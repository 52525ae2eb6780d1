//! Write hooks: what keeps a model true inside the very write that would break it.
//!
//! ```text
//!   statement ── document write ──> hooks ── further document writes ──> hooks … (four levels, 1,000 writes)
//!        └─────────────── one layer: all of it is committed, or nothing ───────────────┘
//! ```
//!
//! The engine knows this trait and nothing of models. A hook runs for each document written, in the statement's own
//! layer, whatever driver or background task made the write; in a multi-document transaction it runs at commit, on
//! the latest state, once for each document that the transaction changed.

use crate::error::Result;
use crate::namespace::Namespace;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};

/// How many document writes the hooks of one statement may add.
pub const MAX_HOOK_WRITES: usize = 1_000;

/// How deep hooks may cause hooks.
pub const MAX_HOOK_DEPTH: usize = 4;

/// One document write, as a hook sees it.
#[derive(Clone, Copy, Debug)]
pub struct DocumentWrite<'a> {
    /// Where.
    pub namespace: &'a Namespace,
    /// The document before; `None` for an insert.
    pub before: Option<&'a RawDocument>,
    /// The document after; `None` for a delete.
    pub after: Option<&'a RawDocument>,
    /// Whether a hook caused this write, not a client.
    pub by_hook: bool,
}

/// Something that watches writes and may refuse them or add to them.
pub trait WriteHook: Send + Sync {
    /// Whether it wants to see the writes of a namespace; asked for each write, so it must be quick.
    fn watches(&self, namespace: &Namespace) -> bool;

    /// The layer that it belongs to, by the name that [`HookScope::require_layer`] knows it by.
    fn layer(&self) -> Option<&'static str> {
        None
    }

    /// Whether the documents of a namespace must be deleted one by one before it goes as a whole: dropped, or replaced
    /// by `$out`. Such a namespace can't be renamed.
    ///
    /// # Errors
    /// A namespace that must not go at all.
    fn clears_before_drop(&self, namespace: &Namespace) -> Result<bool> {
        let _ = namespace;
        Ok(false)
    }

    /// Sees a write before it is made. It may refuse it by an error, give another document to store in its place
    /// (never for a delete), and write other documents through `scope`.
    ///
    /// # Errors
    /// Whatever the hook refuses; the statement then fails with that error and leaves no trace.
    fn before_write(&self, write: DocumentWrite<'_>, scope: &mut dyn HookScope) -> Result<Option<RawDocumentBuf>>;
}

/// Makes another document of a stored one, with the same `_id`; `None` leaves it as it is.
pub type Changing<'c> = dyn FnMut(&RawDocument, &dyn HookScope) -> Result<Option<RawDocumentBuf>> + 'c;

/// What a hook may do besides refusing.
pub trait HookScope {
    /// The document with that `_id`, as the statement sees it.
    ///
    /// # Errors
    /// A failing storage.
    fn get(&self, namespace: &Namespace, id: RawBsonRef<'_>) -> Result<Option<RawDocumentBuf>>;

    /// The documents that match a filter, at most `limit`, as the statement sees them.
    ///
    /// # Errors
    /// An invalid filter, a failing storage.
    fn find(&self, namespace: &Namespace, filter: &RawDocument, limit: usize) -> Result<Vec<RawDocumentBuf>>;

    /// The first `limit` documents in an order that match a filter, as the statement sees them.
    ///
    /// # Errors
    /// An invalid filter or sort pattern, a failing storage.
    fn find_sorted(
        &self,
        namespace: &Namespace,
        filter: &RawDocument,
        sort: &RawDocument,
        limit: usize,
    ) -> Result<Vec<RawDocumentBuf>>;

    /// Inserts a document.
    ///
    /// # Errors
    /// A duplicate key, a validator's refusal, the bounds on hooks.
    fn insert(&mut self, namespace: &Namespace, document: RawDocumentBuf) -> Result<()>;

    /// Puts another document in the place of the one with the same `_id`; false when there is none.
    ///
    /// # Errors
    /// As [`HookScope::insert`].
    fn replace(&mut self, namespace: &Namespace, document: RawDocumentBuf) -> Result<bool>;

    /// Puts what `change` makes of the document with that `_id` in its place, if it makes anything of it; false when there
    /// is no such document. It is found and read once.
    ///
    /// # Errors
    /// As [`HookScope::insert`], and those of `change`.
    fn change(&mut self, namespace: &Namespace, id: RawBsonRef<'_>, change: &mut Changing<'_>) -> Result<bool>;

    /// Deletes the document with that `_id`; false when there is none.
    ///
    /// # Errors
    /// The bounds on hooks.
    fn delete(&mut self, namespace: &Namespace, id: RawBsonRef<'_>) -> Result<bool>;

    /// The statement's time, in milliseconds since 1970.
    fn now(&self) -> i64;

    /// How many document writes the hooks of this statement may still add.
    fn writes_left(&self) -> usize;

    /// From this commit on, the engine opens only together with a hook of that layer, or again without it.
    fn require_layer(&mut self, layer: &str, required: bool);
}
