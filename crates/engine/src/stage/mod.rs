//! Aggregation stages: rows in, rows out.
//!
//! One file per stage: module doc, table row, parsed struct, behaviour, and what the planner wants to know ([`Stage`]'s
//! default methods). [`STAGES`] alone drives parsing, the error for an unknown stage and COMPAT.md. Rows are pulled one at a
//! time ([`RowSource`]); a stage holds only what its meaning demands, and what may be large goes through [`sorter`] or
//! [`spill`] to temporary files. A stage sees other collections only through [`Collections`].

mod accumulation;
mod add_fields;
mod bucket;
mod bucket_auto;
mod coll_stats;
pub mod context;
mod count;
mod current_op;
mod densify;
mod documents;
mod facet;
mod fill;
mod granularity;
mod graph_lookup;
mod group;
mod index_stats;
mod join;
mod limit;
mod list_cluster_catalog;
mod list_local_sessions;
mod list_sessions;
mod lookup;
mod r#match;
mod merge;
mod options;
mod out;
pub mod pipeline;
mod plan_cache_stats;
mod project;
mod query_settings;
mod redact;
mod replace_root;
mod replace_with;
mod report;
mod sample;
mod set;
mod set_window_fields;
mod skip;
mod sort;
mod sort_by_count;
pub mod sort_pattern;
pub mod sorter;
mod spill;
mod union_with;
mod unset;
mod unwind;

pub use context::{Collections, Report, StageContext, UniqueIndex, Write, WriteOutcome};
pub use pipeline::{Leading, ParseContext, Pipeline, Place};
pub use sort_pattern::SortPattern;
pub use sorter::Sorter;

use crate::document::Row;
use crate::error::{Code, Error, Result};
use crate::expression::Environment;
use crate::filter::Filter;
use crate::namespace::Namespace;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use std::fmt::Debug;
use std::sync::Arc;

/// Rows, pulled one at a time.
pub trait RowSource: Send {
    /// The next row; `None` at the end (a tailing source may give more later).
    ///
    /// # Errors
    /// What reading or computing the row refuses.
    fn next(&mut self) -> Result<Option<Row>>;

    /// Shows all remaining documents to someone who keeps none of them: what can, shows them where they lie.
    ///
    /// # Errors
    /// As [`RowSource::next`], and what `see` returns.
    fn each(&mut self, see: &mut dyn FnMut(&RawDocument) -> Result<()>) -> Result<()> {
        while let Some(row) = self.next()? {
            see(row.document())?;
        }
        Ok(())
    }

    /// Whether each row is a few reads away, so that no other work need make room for some of them.
    fn is_quick(&self) -> bool {
        false
    }
}

/// A boxed source.
pub type Rows = Box<dyn RowSource>;

/// What every stage's parsed struct does.
pub trait Stage: Debug + Send + Sync {
    /// Puts the stage behind its input. A stage that makes its own rows ignores the input.
    ///
    /// # Errors
    /// What can only be refused once the pipeline runs.
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows>;

    /// The filter, for a stage that only filters.
    fn filter(&self) -> Option<&Filter> {
        None
    }

    /// The order, for a stage that only sorts.
    fn order(&self) -> Option<&SortPattern> {
        None
    }

    /// The bound, for a stage that only limits.
    fn limit(&self) -> Option<u64> {
        None
    }

    /// How many rows it leaves out, for a stage that only skips.
    fn skip(&self) -> Option<u64> {
        None
    }

    /// The same sort with a limit pulled into it, for a stage that sorts.
    fn with_limit(&self, limit: u64) -> Option<Arc<dyn Stage>> {
        let _ = limit;
        None
    }

    /// The path whose array's elements it gives a row for each of, and whether it keeps rows without, for a stage that only
    /// unwinds.
    fn unwinds(&self) -> Option<(&str, bool)> {
        None
    }

    /// The same stage with an unwinding of the array at a path behind it, for one that makes that array.
    fn with_unwinding(&self, path: &str, preserve: bool) -> Option<Arc<dyn Stage>> {
        let _ = (path, preserve);
        None
    }

    /// Whether it gives at most one row for each input row, in the same order, and reads nothing else.
    fn is_row_wise(&self) -> bool {
        false
    }

    /// What a row-wise stage makes of one document.
    ///
    /// # Errors
    /// What its expressions refuse; `InternalError` (1) for a stage that is not row-wise.
    fn map(&self, document: &RawDocument, environment: &Environment) -> Result<Option<RawDocumentBuf>> {
        let _ = (document, environment);
        Err(Error::internal("only row-wise stages map documents"))
    }

    /// Whether a row-wise stage gives a row for each, with little work: no expression is computed, no row left out.
    fn is_quick(&self) -> bool {
        false
    }

    /// The other collections that it reads.
    fn reads(&self) -> Vec<Namespace> {
        Vec::new()
    }

    /// The collection that it writes.
    fn writes(&self) -> Option<Namespace> {
        None
    }
}

/// Where in a pipeline a stage may stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Anywhere.
    Anywhere,
    /// Only first: it makes its own rows.
    First,
    /// Only first, and only where there is no collection (`aggregate: 1`).
    FirstWithoutCollection,
    /// Only last: it writes.
    Last,
}

/// A row of the stage table.
pub struct StageKind {
    /// The name with its `$`.
    pub name: &'static str,
    /// Where it may stand.
    pub position: Position,
    /// Whether it may stand inside `$facet`.
    pub in_facet: bool,
    /// Whether it may run in a transaction.
    pub in_transaction: bool,
    /// Parses the stage's argument into the stages that it stands for.
    parse: Parse,
}

/// Parses a stage's argument into the stages that it stands for.
type Parse = fn(RawBsonRef<'_>, &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>>;

impl StageKind {
    const fn new(name: &'static str, parse: Parse) -> StageKind {
        StageKind { name, position: Position::Anywhere, in_facet: true, in_transaction: true, parse }
    }

    const fn at(mut self, position: Position) -> StageKind {
        self.position = position;
        self.in_facet = false;
        self
    }

    const fn in_facet(mut self) -> StageKind {
        self.in_facet = true;
        self
    }

    const fn not_in_facet(mut self) -> StageKind {
        self.in_facet = false;
        self
    }

    const fn not_in_transaction(mut self) -> StageKind {
        self.in_transaction = false;
        self
    }
}

/// All stages, sorted by name.
pub static STAGES: &[StageKind] = &[
    add_fields::STAGE,
    bucket::STAGE,
    bucket_auto::STAGE,
    coll_stats::STAGE,
    count::STAGE,
    current_op::STAGE,
    densify::STAGE,
    documents::STAGE,
    facet::STAGE,
    fill::STAGE,
    graph_lookup::STAGE,
    group::STAGE,
    index_stats::STAGE,
    limit::STAGE,
    list_cluster_catalog::STAGE,
    list_local_sessions::STAGE,
    list_sessions::STAGE,
    lookup::STAGE,
    r#match::STAGE,
    merge::STAGE,
    out::STAGE,
    plan_cache_stats::STAGE,
    project::STAGE,
    query_settings::STAGE,
    redact::STAGE,
    replace_root::STAGE,
    replace_with::STAGE,
    sample::STAGE,
    set::STAGE,
    set_window_fields::STAGE,
    skip::STAGE,
    sort::STAGE,
    sort_by_count::STAGE,
    union_with::STAGE,
    unset::STAGE,
    unwind::STAGE,
];

/// Known names that are not our aim; refused by name.
pub static UNSUPPORTED: &[&str] = &[
    "$_internalInhibitOptimization",
    "$geoNear",
    "$listCatalog",
    "$listSampledQueries",
    "$listSearchIndexes",
    "$queryStats",
    "$rankFusion",
    "$scoreFusion",
    "$search",
    "$searchBeta",
    "$searchMeta",
    "$shardedDataDistribution",
    "$vectorSearch",
];

/// Stages of a change stream alone: they stand in front, never inside another stage.
static OF_CHANGE_STREAMS: &[&str] = &["$changeStream", "$changeStreamSplitLargeEvent"];

/// The table row of that name.
pub fn find(name: &str) -> Option<&'static StageKind> {
    STAGES.binary_search_by(|kind| kind.name.cmp(name)).ok().map(|found| &STAGES[found])
}

/// The refusal of a stage that does not exist, or is not our aim.
fn unknown(name: &str, place: Place, in_facet: bool) -> Error {
    let known = UNSUPPORTED.contains(&name);
    if place == Place::View && OF_CHANGE_STREAMS.contains(&name) {
        let message = format!("{name} may not be used in the definition of a view");
        return Error::new(Code::OPTION_NOT_SUPPORTED_ON_VIEW, message);
    }
    if in_facet && (known || OF_CHANGE_STREAMS.contains(&name)) {
        return Error::location(40600, format!("{name} is not allowed to be used within a $facet stage"));
    }
    if known {
        return Error::new(
            Code::COMMAND_NOT_SUPPORTED,
            match name {
                "$search" | "$searchMeta" | "$vectorSearch" | "$listSearchIndexes" => {
                    format!(
                        "the stage '{name}' is not supported by Sheaf: there is no search, which MongoDB has on Atlas alone"
                    )
                }
                _ => format!("the stage '{name}' is not supported by Sheaf: see COMPAT.md"),
            },
        );
    }
    Error::location(40324, format!("Unrecognized pipeline stage name: '{name}'"))
}

/// A source without rows.
#[derive(Debug)]
pub struct NoRows;

impl RowSource for NoRows {
    fn next(&mut self) -> Result<Option<Row>> {
        Ok(None)
    }
}

/// A source over rows at hand.
pub struct Ready(std::vec::IntoIter<Row>);

impl Ready {
    /// A source that gives these rows in order.
    pub fn new(rows: Vec<Row>) -> Ready {
        Ready(rows.into_iter())
    }
}

impl RowSource for Ready {
    fn next(&mut self) -> Result<Option<Row>> {
        Ok(self.0.next())
    }
}

/// A source that maps each row of another to one row or none.
struct Mapped<F> {
    input: Rows,
    map: F,
    /// Whether each row gives one, with little work.
    is_quick: bool,
}

impl<F: FnMut(Row) -> Result<Option<Row>> + Send> RowSource for Mapped<F> {
    fn next(&mut self) -> Result<Option<Row>> {
        while let Some(row) = self.input.next()? {
            if let Some(row) = (self.map)(row)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn is_quick(&self) -> bool {
        self.is_quick && self.input.is_quick()
    }
}

/// Puts a function that leaves rows out behind a source.
fn filtered(input: Rows, map: impl FnMut(Row) -> Result<Option<Row>> + Send + 'static) -> Rows {
    Box::new(Mapped { input, map, is_quick: false })
}

/// Puts a row-wise stage behind a source.
fn mapped_by(stage: Arc<dyn Stage>, input: Rows, context: &Arc<StageContext>) -> Rows {
    let context = Arc::clone(context);
    let is_quick = stage.is_quick();
    let map = move |row: Row| {
        let document = stage.map(row.document(), &context.environment)?;
        Ok(document.map(|document| row.with_document(document)))
    };
    Box::new(Mapped { input, map, is_quick })
}

/// A source that is made when its first row is asked for: blocking stages read their input then.
struct Deferred<F> {
    make: Option<F>,
    rows: Option<Rows>,
}

impl<F: FnOnce() -> Result<Rows> + Send> RowSource for Deferred<F> {
    fn next(&mut self) -> Result<Option<Row>> {
        if let Some(make) = self.make.take() {
            self.rows = Some(make()?);
        }
        self.rows.as_mut().map_or(Ok(None), |rows| rows.next())
    }

    fn each(&mut self, see: &mut dyn FnMut(&RawDocument) -> Result<()>) -> Result<()> {
        if let Some(make) = self.make.take() {
            self.rows = Some(make()?);
        }
        self.rows.as_mut().map_or(Ok(()), |rows| rows.each(see))
    }
}

/// Defers the making of a source.
fn deferred(make: impl FnOnce() -> Result<Rows> + Send + 'static) -> Rows {
    Box::new(Deferred { make: Some(make), rows: None })
}
