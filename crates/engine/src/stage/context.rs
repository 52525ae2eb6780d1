//! What a running pipeline sees around it.

use crate::document::{RawBson, RawDocumentBuf, Value};
use crate::error::Result;
use crate::expression::{Environment, VariableId};
use crate::namespace::Namespace;
use crate::stage::{Pipeline, Rows};
use bson::{RawBsonRef, RawDocument};
use std::path::PathBuf;
use std::sync::Arc;

/// How many bytes a sort or a group may hold before it goes to the disk.
pub const MEMORY_BYTES: usize = 100 * 1024 * 1024;

/// What stays the same while a pipeline runs.
#[derive(Clone)]
pub struct StageContext {
    /// Clock, variables, collation, randomness.
    pub environment: Environment,
    /// The collection that the pipeline was asked of; its collection is empty for `aggregate: 1`.
    pub namespace: Namespace,
    /// The other collections.
    pub collections: Arc<dyn Collections>,
    /// How many bytes a blocking stage may hold, [`MEMORY_BYTES`] unless a test says less.
    pub memory_bytes: usize,
    /// Whether what exceeds the memory may go to temporary files.
    pub allow_disk_use: bool,
    /// Where temporary files are made.
    pub spill_folder: PathBuf,
    /// Fails once the operation shall stop: killed, or its time is over.
    pub interrupt: Arc<dyn Fn() -> Result<()> + Send + Sync>,
}

impl std::fmt::Debug for StageContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StageContext").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl StageContext {
    /// The same context with more variables, for a sub-pipeline.
    pub fn with_variables(&self, variables: Vec<(VariableId, Value<'static>)>) -> StageContext {
        let mut context = self.clone();
        context.environment.variables.retain(|(known, _)| variables.iter().all(|(id, _)| id != known));
        context.environment.variables.extend(variables);
        context
    }

    /// The same context on another collection.
    pub fn on(&self, namespace: Namespace) -> StageContext {
        StageContext { namespace, ..self.clone() }
    }
}

/// The collections that stages read and write beside their input. The engine implements it; tests have their own.
pub trait Collections: Send + Sync {
    /// Runs a pipeline on a collection or a view, which may use its leading stages to plan ([`Pipeline::leading`]). A
    /// collection that does not exist has no rows.
    ///
    /// # Errors
    /// What planning and opening refuse.
    fn aggregate(&self, namespace: &Namespace, pipeline: &Arc<Pipeline>, context: &Arc<StageContext>) -> Result<Rows>;

    /// Runs a part that may take long, while others get room for their work. The default runs it in place.
    fn block(&self, part: &mut dyn FnMut()) {
        part();
    }

    /// Whether an index answers equality on a path by itself, so that [`Collections::matching`] is cheap for each value.
    ///
    /// # Errors
    /// What reading the catalogue refuses.
    fn has_index(&self, namespace: &Namespace, path: &str, context: &StageContext) -> Result<bool>;

    /// The documents that `{path: {$eq: value}}` matches.
    ///
    /// # Errors
    /// What reading refuses.
    fn matching(
        &self,
        namespace: &Namespace,
        path: &str,
        value: RawBsonRef<'_>,
        context: &Arc<StageContext>,
    ) -> Result<Rows>;

    /// The unique index on exactly these fields, in any order, that is not partial and has the operation's collation: what
    /// `$merge` needs to match `on`. The `_id` of a collection that does not exist counts.
    ///
    /// # Errors
    /// What reading the catalogue refuses.
    fn unique_index(
        &self,
        namespace: &Namespace,
        fields: &[String],
        context: &StageContext,
    ) -> Result<Option<UniqueIndex>>;

    /// Refuses to put a time series in the place of another kind of collection, or of one with other options.
    ///
    /// # Errors
    /// `Location7268700`, `Location7406103`.
    fn check_series(&self, target: &Namespace, timeseries: &RawDocument) -> Result<()> {
        let _ = (target, timeseries);
        Ok(())
    }

    /// Refuses a target that `$merge` or `$out` may not write: a view, a system collection, a capped one.
    ///
    /// # Errors
    /// MongoDB's code for the kind of target.
    fn check_writable(&self, target: &Namespace, replace: bool, context: &StageContext) -> Result<()>;

    /// Executes writes in order, for `$merge`; one outcome for each. All are tried, also behind one that fails.
    ///
    /// # Errors
    /// The first write's refusal.
    fn write(&self, target: &Namespace, writes: Vec<Write>, context: &StageContext) -> Result<Vec<WriteOutcome>>;

    /// Replaces a collection by rows, for `$out`: its indexes and options stay, and nothing changes when it fails.
    ///
    /// # Errors
    /// What the rows or the target refuse.
    fn replace(
        &self,
        target: &Namespace,
        rows: Rows,
        timeseries: Option<&RawDocument>,
        context: &Arc<StageContext>,
    ) -> Result<()>;

    /// The rows of `$collStats`, `$indexStats`, `$currentOp`, `$listSessions` and `$listLocalSessions`.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26) and what the stage's options ask in vain.
    fn report(&self, report: Report, options: &RawDocument, context: &StageContext) -> Result<Vec<RawDocumentBuf>>;
}

/// What `$merge` must know of the index that it matches by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UniqueIndex {
    /// Whether it leaves out documents without the fields.
    pub sparse: bool,
}

/// What a stage reports on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// `$collStats`.
    Collection,
    /// `$indexStats`.
    Indexes,
    /// `$planCacheStats`.
    Plans,
    /// `$listClusterCatalog`.
    Catalog,
    /// `$querySettings`.
    QuerySettings,
    /// `$currentOp`.
    Operations,
    /// `$listSessions`.
    Sessions,
    /// `$listLocalSessions`.
    LocalSessions,
}

/// One write of `$merge`.
#[derive(Clone, Debug)]
pub enum Write {
    /// Inserts a document; an existing one is an error.
    Insert(RawDocumentBuf),
    /// Updates the one document that the filter finds.
    Update {
        /// Equality on the fields of `on`.
        filter: RawDocumentBuf,
        /// An update document, a replacement, or a pipeline (an array).
        update: RawBson,
        /// The variables that the pipeline may use.
        variables: RawDocumentBuf,
        /// The document to insert when nothing matches.
        insert: Option<RawDocumentBuf>,
    },
}

/// What came of one write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteOutcome {
    /// Whether an existing document matched.
    pub matched: bool,
}
