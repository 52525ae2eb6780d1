//! `aggregate`: a pipeline over a collection, a view, the log, or nothing.
//!
//! What stands at the beginning of a pipeline (filters, an order, skip and limit) is handed to the planner; the rest pulls rows
//! through its stages. A view is its own pipeline with the asked one behind it.

use super::find::Find;
use super::read::{Parsed, Query};
use super::reading::Reading;
use super::scan::Wanted;
use super::{Count, Distinct};
use crate::catalog::Collection;
use crate::changestream::{BeforeChange, ChangeStreamOptions, FullDocument, Scope, Start};
use crate::context::Context;
use crate::cursor::{Batch, Cursor, DEFAULT_FIRST_BATCH, Tailing};
use crate::database::{Engine, Inner};
use crate::document::collation::Collator;
use crate::document::{append, get};
use crate::error::{Code, Error, Result};
use crate::expression::{Environment, Parser};
use crate::filter::{Filter, Node};
use crate::namespace::Namespace;
use crate::plan::Verbosity;
use crate::resumable::Resumable;
use crate::series::Series;
use crate::series::listing::series_of_buckets;
use crate::split_event::{self, Splitter};
use crate::stage::context::MEMORY_BYTES;
use crate::stage::{Collections, Leading, ParseContext, Pipeline, Place, Rows, SortPattern, StageContext};
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf, rawdoc};
use std::sync::Arc;
use std::time::Instant;

/// The most views on views.
pub(crate) const MAX_VIEW_DEPTH: usize = 20;

/// A pipeline and what it runs on.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// Where; the collection is empty for `aggregate: 1`.
    pub namespace: Namespace,
    /// The stages.
    pub pipeline: RawArrayBuf,
    /// Values for `$$name`.
    pub variables: Option<RawDocumentBuf>,
    /// How strings compare; the collection's way when missing.
    pub collation: Option<RawDocumentBuf>,
    /// An index's name or key pattern.
    pub hint: Option<RawBson>,
    /// The documents of the first batch; 101 when missing.
    pub batch_size: Option<usize>,
    /// Whether blocking stages may use the disk.
    pub allow_disk_use: bool,
    /// Whether `$merge` and `$out` pass the validator by.
    pub bypass_document_validation: bool,
}

impl Aggregate {
    /// A pipeline on a collection.
    pub fn new(namespace: Namespace, pipeline: RawArrayBuf) -> Aggregate {
        Aggregate {
            namespace,
            pipeline,
            variables: None,
            collation: None,
            hint: None,
            batch_size: None,
            allow_disk_use: true,
            bypass_document_validation: false,
        }
    }
}

impl Engine {
    /// The first batch of a pipeline's results.
    ///
    /// # Errors
    /// An invalid pipeline, what its stages refuse, a failing storage, an interruption.
    pub fn aggregate(&self, context: &Context, aggregate: &Aggregate) -> Result<Batch> {
        self.inner.aggregate(context, aggregate)
    }
}

/// A pipeline ready to run.
struct Prepared {
    pipeline: Arc<Pipeline>,
    stages: Arc<StageContext>,
    collections: Arc<EngineCollections>,
}

impl Inner {
    fn aggregate(self: &Arc<Inner>, context: &Context, aggregate: &Aggregate) -> Result<Batch> {
        if let Some((options, rest)) = change_stream_stage(aggregate)? {
            return self.watch(context, aggregate, options, rest);
        }
        let reading = self.reading(context)?;
        let cell = reading.cell.clone();
        let prepared = self.prepare(context, aggregate, reading)?;
        let writes = prepared.pipeline.writes().is_some();
        if writes && context.transaction().is_some() {
            return Err(Error::new(
                Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "$out and $merge can't be used in a transaction",
            ));
        }
        if let Some(name) = prepared.pipeline.outside_transactions().filter(|_| context.transaction().is_some()) {
            return Err(Error::new(
                Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                format!(
                    "Operation not permitted in transaction :: caused by :: Aggregation stage {name} cannot run within a multi-document transaction"
                ),
            ));
        }
        let rows = prepared.collections.run(
            &aggregate.namespace,
            &prepared.pipeline,
            &prepared.stages,
            aggregate.hint.clone(),
        )?;
        let mut cursor = self.new_cursor(context, &aggregate.namespace, rows);
        cursor.cell = Some(cell);
        self.open_cursor(context, cursor, Some(aggregate.batch_size.unwrap_or(DEFAULT_FIRST_BATCH)), false)
    }

    fn new_cursor(&self, context: &Context, namespace: &Namespace, rows: Rows) -> Cursor {
        let mut namespace = namespace.clone();
        if namespace.collection.is_empty() {
            "$cmd.aggregate".clone_into(&mut namespace.collection);
        }
        Cursor {
            namespace,
            rows,
            held: None,
            session: context.session.as_ref().map(|session| session.id),
            transaction: context.transaction().and_then(|session| session.txn_number),
            tailing: Tailing::No,
            no_timeout: false,
            last_use: Instant::now(),
            reached: None,
            cell: None,
            opened_by: context.monitor.clone(),
        }
    }

    fn prepare(self: &Arc<Inner>, context: &Context, aggregate: &Aggregate, reading: Reading) -> Result<Prepared> {
        let collection = reading.catalog.get(&aggregate.namespace).cloned();
        let default = collection.as_ref().and_then(|collection| collection.settings.collation.as_ref());
        let collator = super::collator(aggregate.collation.as_deref(), default)?;
        let mut environment = self.environment();
        environment.collator = collator.clone();
        let mut parser = Parser::new();
        super::bind_variables(aggregate.variables.as_deref(), &mut parser, &mut environment)?;
        let pipeline = parse_pipeline(&aggregate.pipeline, &mut parser, collator, &aggregate.namespace, Place::Top)?;
        let collections = Arc::new(EngineCollections {
            engine: self.clone(),
            reading,
            context: context.clone(),
            bypass_validation: aggregate.bypass_document_validation,
        });
        let stages = self.stage_context(context, aggregate, environment, collections.clone());
        Ok(Prepared { pipeline: Arc::new(pipeline), stages: Arc::new(stages), collections })
    }

    fn stage_context(
        &self,
        context: &Context,
        aggregate: &Aggregate,
        environment: Environment,
        collections: Arc<dyn Collections>,
    ) -> StageContext {
        let context = context.clone();
        StageContext {
            environment,
            namespace: aggregate.namespace.clone(),
            collections,
            memory_bytes: MEMORY_BYTES,
            allow_disk_use: aggregate.allow_disk_use,
            spill_folder: std::env::temp_dir(),
            interrupt: Arc::new(move || context.check()),
        }
    }

    /// Opens a change stream with the stages behind it.
    fn watch(
        self: &Arc<Inner>,
        context: &Context,
        aggregate: &Aggregate,
        options: ChangeStreamOptions,
        rest: RawArrayBuf,
    ) -> Result<Batch> {
        if context.transaction().is_some() {
            return Err(Error::new(
                Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "$changeStream can't be used in a transaction",
            ));
        }
        refuse_unwatchable(&options)?;
        let reading = self.reading(context)?;
        if let Some(collection) = reading.catalog.get(&aggregate.namespace) {
            crate::statement::refuse_view(collection)?;
            if collection.settings.series.is_some() {
                return Err(Error::new(
                    Code::COMMAND_NOT_SUPPORTED_ON_VIEW,
                    format!("a change stream can't be opened on the time-series collection {}", aggregate.namespace),
                ));
            }
        }
        let mut asked = aggregate.clone();
        let (rest, splits) = split_event::take_stage(&rest)?;
        asked.pipeline = rest;
        if asked.namespace.collection.is_empty() {
            "$cmd.aggregate".clone_into(&mut asked.namespace.collection);
        }
        let prepared = self.prepare(context, &asked, reading)?;
        if !prepared.pipeline.is_row_wise() {
            return Err(Error::new(
                Code::ILLEGAL_OPERATION,
                "a change stream's pipeline may only hold stages that work on one event at a time: $match, $project, \
                 $addFields, $set, $unset, $replaceRoot, $replaceWith and $redact",
            ));
        }
        let seen = options.start.fragments_seen();
        let (stream, reached) = self.change_stream(options, &prepared.pipeline.leading().filters)?;
        let rows = prepared.pipeline.open(0, Box::new(stream), &prepared.stages)?;
        let mut rows: Rows = Box::new(Resumable::new(rows, reached.clone()));
        if splits {
            rows = Box::new(Splitter::new(rows, seen));
        }
        let mut cursor = self.new_cursor(context, &aggregate.namespace, rows);
        cursor.tailing = Tailing::Await;
        cursor.reached = Some(reached);
        self.open_cursor(context, cursor, Some(aggregate.batch_size.unwrap_or(DEFAULT_FIRST_BATCH)), false)
    }

    /// A find on a view, as the pipeline that it stands for.
    pub(crate) fn find_on_view(self: &Arc<Inner>, context: &Context, find: &Find) -> Result<Rows> {
        let aggregate = find_as_aggregate(find)?;
        let prepared = self.prepare(context, &aggregate, self.reading(context)?)?;
        prepared.collections.run(&aggregate.namespace, &prepared.pipeline, &prepared.stages, None)
    }

    /// A count on a view.
    pub(crate) fn count_view(self: &Arc<Inner>, context: &Context, count: &Count) -> Result<u64> {
        let find = Find { query: count.query.clone(), ..Find::new(count.namespace.clone()) };
        let mut rows = self.find_on_view(context, &find)?;
        let mut counted = 0;
        while rows.next()?.is_some() {
            counted += 1;
        }
        Ok(counted)
    }

    /// The rows of a view for distinct values.
    pub(crate) fn distinct_rows_of_view(self: &Arc<Inner>, context: &Context, distinct: &Distinct) -> Result<Rows> {
        let find = Find { query: distinct.query.clone(), ..Find::new(distinct.namespace.clone()) };
        self.find_on_view(context, &find)
    }

    /// The hash of a pipeline's shape, as `explain` tells it.
    pub(crate) fn aggregate_shape_hash(self: &Arc<Inner>, context: &Context, aggregate: &Aggregate) -> Result<String> {
        let prepared = self.prepare(context, aggregate, self.reading(context)?)?;
        let (namespace, pipeline) =
            prepared.collections.resolve(&aggregate.namespace, &prepared.pipeline, &prepared.stages)?;
        super::shape::query_shape_hash(&namespace, &pipeline.documents(0)?)
    }

    /// Explains a pipeline.
    pub(crate) fn explain_aggregate(
        self: &Arc<Inner>,
        context: &Context,
        aggregate: &Aggregate,
        verbosity: Verbosity,
    ) -> Result<RawDocumentBuf> {
        let prepared = self.prepare(context, aggregate, self.reading(context)?)?;
        let (namespace, pipeline) =
            prepared.collections.resolve(&aggregate.namespace, &prepared.pipeline, &prepared.stages)?;
        let hash = super::shape::query_shape_hash(&namespace, &pipeline.documents(0)?)?;
        if pipeline.has_source() {
            return Ok(rawdoc! { "stages": documents(&pipeline, 0)?, "queryShapeHash": hash });
        }
        let (query, steps) = prepared.collections.leading_query(&pipeline, &prepared.stages, aggregate.hint.clone())?;
        let explained = self.explain_plan(context, &namespace, &query, verbosity)?;
        let mut shown = RawDocumentBuf::new();
        for field in &explained {
            let (name, value) = field?;
            if name.as_str() != "queryShapeHash" {
                append(&mut shown, name.as_str(), value)?;
            }
        }
        if steps < pipeline.len() {
            let mut stages = RawArrayBuf::new();
            stages.push(rawdoc! { "$cursor": shown });
            for stage in pipeline.documents(steps)? {
                stages.push(stage);
            }
            shown = rawdoc! { "stages": stages };
        }
        append(&mut shown, "queryShapeHash", RawBsonRef::String(&hash))?;
        Ok(shown)
    }
}

fn documents(pipeline: &Pipeline, from: usize) -> Result<RawArrayBuf> {
    Ok(pipeline.documents(from)?.into_iter().collect())
}

pub(super) fn parse_pipeline(
    stages: &bson::RawArray,
    parser: &mut Parser,
    collator: Option<Arc<Collator>>,
    namespace: &Namespace,
    place: Place,
) -> Result<Pipeline> {
    Pipeline::parse(
        stages,
        &mut ParseContext { parser, collator, namespace: namespace.clone(), place, depth: 0, in_facet: false },
    )
}

/// The pipeline that a find stands for.
pub(crate) fn find_as_aggregate(find: &Find) -> Result<Aggregate> {
    let mut pipeline = RawArrayBuf::new();
    let query = &find.query;
    if query.filter.iter().next().is_some() {
        pipeline.push(rawdoc! { "$match": query.filter.clone() });
    }
    if let Some(sort) = query.sort.as_ref().filter(|sort| sort.iter().next().is_some())
        && get(sort, "$natural")?.is_none()
    {
        pipeline.push(rawdoc! { "$sort": sort.clone() });
    }
    if query.skip > 0 {
        pipeline.push(rawdoc! { "$skip": query.skip as i64 });
    }
    if query.limit > 0 {
        pipeline.push(rawdoc! { "$limit": query.limit as i64 });
    }
    if let Some(projection) = find.projection.as_ref().filter(|fields| fields.iter().next().is_some()) {
        pipeline.push(rawdoc! { "$project": projection.clone() });
    }
    let mut aggregate = Aggregate::new(find.namespace.clone(), pipeline);
    aggregate.variables.clone_from(&query.variables);
    aggregate.collation.clone_from(&query.collation);
    aggregate.batch_size = find.batch_size;
    Ok(aggregate)
}

/// The options of a leading `$changeStream`, and the stages behind it.
fn change_stream_stage(aggregate: &Aggregate) -> Result<Option<(ChangeStreamOptions, RawArrayBuf)>> {
    let mut stages = aggregate.pipeline.into_iter();
    let Some(first) = stages.next().transpose()? else { return Ok(None) };
    let Some(argument) = first.as_document().map(|stage| get(stage, "$changeStream")).transpose()?.flatten() else {
        return Ok(None);
    };
    let RawBsonRef::Document(argument) = argument else {
        return Err(Error::location(6_188_500, "$changeStream must take a nested object"));
    };
    let scope = match aggregate.namespace.collection.as_str() {
        "" | "$cmd.aggregate" => Scope::Database(aggregate.namespace.database.clone()),
        _ => Scope::Collection(aggregate.namespace.clone()),
    };
    let mut options = ChangeStreamOptions {
        scope,
        full_document: FullDocument::Default,
        before_change: BeforeChange::Off,
        show_expanded_events: false,
        start: Start::Now,
    };
    for field in argument {
        let (name, value) = field?;
        change_stream_option(&mut options, name.as_str(), value, aggregate)?;
    }
    let mut rest = RawArrayBuf::new();
    for stage in stages {
        rest.push(stage?);
    }
    Ok(Some((options, rest)))
}

/// Refuses a stream on what belongs to the server.
fn refuse_unwatchable(options: &ChangeStreamOptions) -> Result<()> {
    let (namespace, what) = match &options.scope {
        Scope::Collection(namespace) if namespace.is_system() => (namespace.to_string(), "a system collection"),
        Scope::Collection(namespace) if matches!(namespace.database.as_str(), "admin" | "config" | "local") => {
            (namespace.to_string(), "a collection of a database of the server's own")
        }
        Scope::Database(database) if matches!(database.as_str(), "admin" | "config" | "local") => {
            (database.clone(), "a database of the server's own")
        }
        _ => return Ok(()),
    };
    Err(Error::new(Code::INVALID_NAMESPACE, format!("$changeStream may not be opened on {what}: {namespace}")))
}

fn change_stream_option(
    options: &mut ChangeStreamOptions,
    name: &str,
    value: RawBsonRef<'_>,
    aggregate: &Aggregate,
) -> Result<()> {
    let wrong = || Error::type_mismatch(format!("BSON field '$changeStream.{name}' has the wrong type"));
    let invalid = |given: &str| {
        Error::bad_value(format!("Enumeration value '{given}' for field '$changeStream.{name}' is not a valid value."))
    };
    let start_once = |options: &ChangeStreamOptions| match options.start {
        Start::Now => Ok(()),
        Start::ResumeAfter(_) | Start::StartAfter(_) if name != "startAtOperationTime" => {
            Err(Error::location(50865, "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage"))
        }
        _ => Err(Error::location(
            40674,
            "Only one type of resume option is allowed, but multiple were found: resumeAfter, startAfter or startAtOperationTime",
        )),
    };
    let is_flag = matches!(name, "allChangesForCluster" | "showExpandedEvents");
    if !is_flag && matches!(value, RawBsonRef::Null | RawBsonRef::Undefined) {
        return Ok(());
    }
    match name {
        "fullDocument" => {
            options.full_document = match value.as_str().ok_or_else(wrong)? {
                "default" => FullDocument::Default,
                "updateLookup" => FullDocument::UpdateLookup,
                "whenAvailable" => FullDocument::WhenAvailable,
                "required" => FullDocument::Required,
                other => return Err(invalid(other)),
            };
        }
        "fullDocumentBeforeChange" => {
            options.before_change = match value.as_str().ok_or_else(wrong)? {
                "off" => BeforeChange::Off,
                "whenAvailable" => BeforeChange::WhenAvailable,
                "required" => BeforeChange::Required,
                other => return Err(invalid(other)),
            };
        }
        "resumeAfter" => {
            start_once(options)?;
            options.start = Start::ResumeAfter(value.as_document().ok_or_else(wrong)?.to_owned());
        }
        "startAfter" => {
            start_once(options)?;
            options.start = Start::StartAfter(value.as_document().ok_or_else(wrong)?.to_owned());
        }
        "startAtOperationTime" => {
            start_once(options)?;
            options.start = Start::AtTime(value.as_timestamp().ok_or_else(wrong)?);
        }
        "allChangesForCluster" => {
            if value.as_bool().ok_or_else(wrong)? {
                if aggregate.namespace.database != "admin" || !aggregate.namespace.collection.is_empty() {
                    return Err(Error::new(
                        Code::INVALID_OPTIONS,
                        "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name",
                    ));
                }
                options.scope = Scope::Deployment;
            }
        }
        "showExpandedEvents" => options.show_expanded_events = value.as_bool().ok_or_else(wrong)?,
        "showSystemEvents" | "showMigrationEvents" => {}
        _ => {
            return Err(Error::location(40415, format!("BSON field '$changeStream.{name}' is an unknown field.")));
        }
    }
    Ok(())
}

/// An order as the planner takes it; `None` when a part of it is not a field.
fn sort_document(order: &SortPattern) -> Result<Option<RawDocumentBuf>> {
    let mut document = RawDocumentBuf::new();
    for part in order.parts() {
        let Some(path) = &part.path else { return Ok(None) };
        append(&mut document, path.as_str(), RawBsonRef::Int32(if part.descending { -1 } else { 1 }))?;
    }
    Ok(Some(document))
}

/// The collections as stages see them.
pub(super) struct EngineCollections {
    pub(super) engine: Arc<Inner>,
    pub(super) reading: Reading,
    pub(super) context: Context,
    pub(super) bypass_validation: bool,
}

impl EngineCollections {
    /// The collection below a view, with the view's stages before the asked ones.
    pub(super) fn resolve(
        &self,
        namespace: &Namespace,
        pipeline: &Arc<Pipeline>,
        stages: &StageContext,
    ) -> Result<(Namespace, Arc<Pipeline>)> {
        let (mut namespace, mut pipeline) = (namespace.clone(), pipeline.clone());
        for _ in 0..=MAX_VIEW_DEPTH {
            let Some(collection) = self.reading.catalog.get(&namespace) else { return Ok((namespace, pipeline)) };
            let Some(view) = &collection.settings.view else { return Ok((namespace, pipeline)) };
            let asked = stages.environment.collator.as_ref();
            if !super::read::same_collation(asked, collection.settings.collation.as_ref()) {
                return Err(Error::new(
                    Code::OPTION_NOT_SUPPORTED_ON_VIEW,
                    format!("Cannot override the default collation of the view {namespace}"),
                ));
            }
            let below = Namespace { database: namespace.database.clone(), collection: view.on.clone() };
            let definition: RawArrayBuf = view.pipeline.iter().cloned().collect();
            let collator = stages.environment.collator.clone();
            let own = parse_pipeline(&definition, &mut Parser::new(), collator, &below, Place::View)?;
            pipeline = Arc::new(own.then(&pipeline));
            namespace = below;
        }
        Err(Error::new(
            Code::VIEW_DEPTH_LIMIT_EXCEEDED,
            format!("views are defined on each other more than {MAX_VIEW_DEPTH} levels deep at {namespace}"),
        ))
    }

    fn series_of_buckets(&self, namespace: &Namespace) -> Option<(&Arc<Collection>, &Arc<Series>)> {
        let shown = series_of_buckets(&self.reading.catalog, namespace)?;
        Some((shown, shown.settings.series.as_ref()?))
    }

    /// What the planner is asked for the beginning of a pipeline, and how many steps that is.
    fn leading_query(
        &self,
        pipeline: &Pipeline,
        stages: &StageContext,
        hint: Option<RawBson>,
    ) -> Result<(crate::plan::Query, usize)> {
        let mut leading = pipeline.leading();
        let sort = match leading.order.map(sort_document).transpose()? {
            Some(None) => {
                leading = Leading::default(); // an order that no plan can give
                None
            }
            Some(sort) => sort,
            None => None,
        };
        let collator = stages.environment.collator.clone();
        let filter = match &leading.filters[..] {
            [] => Filter::parse(&RawDocumentBuf::new(), &mut Parser::new(), collator.clone())?,
            [filter] => Filter::clone(filter),
            filters => Filter::from_node(
                Node::And(filters.iter().map(|filter| filter.root().clone()).collect()),
                collator.clone(),
            ),
        };
        let query = Query {
            sort,
            skip: leading.skip,
            limit: leading.limit.unwrap_or(0),
            hint,
            allow_disk_use: stages.allow_disk_use,
            ..Query::default()
        };
        let parsed = Parsed {
            filter: Arc::new(filter),
            environment: Arc::new(stages.environment.clone()),
            collator,
            parser: Parser::new(),
        };
        Ok((self.engine.plan_query(&query, &parsed, Wanted::bounded())?, leading.steps))
    }

    /// The rows of a pipeline on a collection or a view.
    pub(super) fn run(
        &self,
        namespace: &Namespace,
        pipeline: &Arc<Pipeline>,
        stages: &Arc<StageContext>,
        hint: Option<RawBson>,
    ) -> Result<Rows> {
        let (namespace, pipeline) = self.resolve(namespace, pipeline, stages)?;
        if pipeline.has_source() {
            return pipeline.open_source(stages);
        }
        let Some(collection) = self.reading.catalog.get(&namespace) else {
            if let Some((shown, series)) = self.series_of_buckets(&namespace) {
                let rows = crate::series::listing::rows(&self.engine, self.reading.view()?, shown, series);
                return pipeline.open(0, rows, stages);
            }
            return pipeline.open(0, super::read::no_rows(), stages);
        };
        let (query, steps) = self.leading_query(&pipeline, stages, hint)?;
        let rows = self.engine.planned(&self.reading, collection, &query, &self.context)?;
        pipeline.open(steps, rows, stages)
    }
}
