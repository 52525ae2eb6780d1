//! What stages may do with collections besides reading their input: `$lookup`, `$merge`, `$out`, reports.

use super::aggregate::EngineCollections;
use super::read::Query;
use super::update::{Done, UpdateStatement};
use super::{Create, Find, Rename};
use crate::catalog::Collection;
use crate::database::Engine;
use crate::document::{append, get, validated};
use crate::error::{Code, Error, Result};
use crate::index::FieldKind;
use crate::namespace::Namespace;
use crate::stage::context::Report;
use crate::stage::{Collections, Pipeline, Rows, StageContext, UniqueIndex, Write, WriteOutcome};
use crate::storage::Ticket;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use std::sync::Arc;

/// The bytes of rows that `$out` inserts at once.
const OUT_STEP_BYTES: usize = 4 << 20;

/// The rows that it inserts at once.
const OUT_STEP_ROWS: usize = 1000;

impl Collections for EngineCollections {
    fn aggregate(&self, namespace: &Namespace, pipeline: &Arc<Pipeline>, context: &Arc<StageContext>) -> Result<Rows> {
        self.run(namespace, pipeline, context, None)
    }

    fn block(&self, part: &mut dyn FnMut()) {
        self.context.block(part);
    }

    fn has_index(&self, namespace: &Namespace, path: &str, _: &StageContext) -> Result<bool> {
        let Some(collection) = self.reading.catalog.get(namespace) else { return Ok(true) };
        let usable = |collection: &Collection| {
            collection.indexes.iter().any(|index| {
                let first = index.spec.fields().first();
                index.ready
                    && !index.spec.hidden()
                    && !index.spec.sparse()
                    && index.spec.partial().is_none()
                    && first.is_some_and(|field| {
                        field.path == path && !field.kind.is_wildcard() && field.kind != FieldKind::Hashed
                    })
            })
        };
        Ok(!collection.is_view() && (path == "_id" || usable(collection)))
    }

    fn matching(
        &self,
        namespace: &Namespace,
        path: &str,
        value: RawBsonRef<'_>,
        context: &Arc<StageContext>,
    ) -> Result<Rows> {
        let Some(collection) = self.reading.catalog.get(namespace) else { return Ok(super::read::no_rows()) };
        let is_plain = !matches!(
            value,
            RawBsonRef::RegularExpression(_) | RawBsonRef::Array(_) | RawBsonRef::Undefined | RawBsonRef::Null
        );
        if path == "_id" && is_plain && !collection.is_view() && collection.settings.series.is_none() {
            let wanted = context.environment.collator.as_ref();
            if super::read::same_collation(wanted, collection.settings.collation.as_ref()) {
                return self.engine.document_of(&self.reading, collection, value, None, &self.context);
            }
        }
        let mut equals = RawDocumentBuf::new();
        append(&mut equals, "$eq", value)?;
        let mut filter = RawDocumentBuf::new();
        append(&mut filter, path, RawBsonRef::Document(&equals))?;
        let query = Query { filter, allow_disk_use: context.allow_disk_use, ..Query::default() };
        let mut parsed = self.engine.parse_query(&query, Some(collection))?;
        parsed.collator.clone_from(&context.environment.collator);
        if parsed.collator.is_some() || collection.settings.collation.is_some() {
            let filter = crate::filter::Filter::parse(&query.filter, &mut parsed.parser, parsed.collator.clone())?;
            parsed.filter = Arc::new(filter);
            parsed.environment = Arc::new(context.environment.clone());
        }
        self.engine.candidates(&self.reading, collection, &query, &parsed, &self.context)
    }

    fn unique_index(
        &self,
        namespace: &Namespace,
        fields: &[String],
        context: &StageContext,
    ) -> Result<Option<UniqueIndex>> {
        let by_id = matches!(fields, [field] if field == "_id");
        let state = self.engine.state();
        let Some(collection) = state.catalog.get(namespace) else {
            return Ok(by_id.then_some(UniqueIndex { sparse: false }));
        };
        let wanted = context.environment.collator.as_ref();
        if by_id && super::read::same_collation(wanted, collection.settings.collation.as_ref()) {
            return Ok(Some(UniqueIndex { sparse: false }));
        }
        let found = collection.indexes.iter().find(|index| {
            let spec = &index.spec;
            index.ready
                && spec.unique()
                && spec.partial().is_none()
                && spec.fields().len() == fields.len()
                && spec.fields().iter().all(|field| fields.contains(&field.path))
                && super::read::same_collation(wanted, spec.collator())
        });
        Ok(found.map(|index| UniqueIndex { sparse: index.spec.sparse() }))
    }

    fn check_series(&self, target: &Namespace, timeseries: &RawDocument) -> Result<()> {
        let state = self.engine.state();
        let Some(collection) = state.catalog.get(target) else { return Ok(()) };
        let Some(existing) = &collection.settings.time_series else {
            return Err(Error::location(7_268_700, format!("$out: {target} is no time-series collection")));
        };
        let same = |name: &str| get(existing, name).ok().flatten() == get(timeseries, name).ok().flatten();
        let names = ["timeField", "metaField", "granularity", "bucketMaxSpanSeconds", "bucketRoundingSeconds"];
        if !names.into_iter().all(same) {
            return Err(Error::location(7_406_103, format!("$out: the time series {target} has other options")));
        }
        Ok(())
    }

    fn check_writable(&self, target: &Namespace, replace: bool, _: &StageContext) -> Result<()> {
        let state = self.engine.state();
        if let Some(collection) = state.catalog.get(target) {
            crate::statement::refuse_view(collection)?;
            if !replace && collection.settings.series.is_some() {
                return Err(Error::new(
                    Code::COMMAND_NOT_SUPPORTED_ON_VIEW,
                    format!("$merge can't write to the time-series collection {target}"),
                ));
            }
            if replace && collection.settings.capped.is_some() {
                return Err(Error::location(
                    17152,
                    format!("namespace '{target}' is capped so it can't be used for $out"),
                ));
            }
        }
        super::insert::refuse_system(target)
    }

    fn write(&self, target: &Namespace, writes: Vec<Write>, _: &StageContext) -> Result<Vec<WriteOutcome>> {
        let mut outcomes = Vec::with_capacity(writes.len());
        let (mut last, mut failure) = (None, None);
        for write in writes {
            match self.write_one(target, write, &mut last) {
                Ok(matched) => outcomes.push(WriteOutcome { matched }),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        if let Some(ticket) = last {
            self.context.block(|| ticket.wait())?;
        }
        failure.map_or(Ok(outcomes), Err)
    }
    fn replace(
        &self,
        target: &Namespace,
        mut rows: Rows,
        timeseries: Option<&RawDocument>,
        _: &Arc<StageContext>,
    ) -> Result<()> {
        let engine = Engine { inner: self.engine.clone() };
        let state = self.engine.state();
        let existing = state.catalog.get(target).cloned();
        let number = (self.engine.options.random)();
        let temporary =
            Namespace { database: target.database.clone(), collection: format!("tmp.agg_out.{number:016x}") };
        let mut options = existing.as_ref().map_or_else(RawDocumentBuf::new, |collection| collection.options.clone());
        if let (Some(timeseries), None) = (timeseries, &existing) {
            append(&mut options, "timeseries", RawBsonRef::Document(timeseries))?;
        }
        engine.create(&self.context, &Create { namespace: temporary.clone(), options })?.wait()?;
        let filled = self.fill(&engine, &temporary, existing.as_deref(), &mut rows);
        if let Err(error) = filled {
            engine.drop_collection(&self.context, &temporary)?.wait()?;
            return Err(error);
        }
        if self.engine.clears_before_drop(target)? {
            return self.copy_over(&engine, &temporary, target);
        }
        let rename = Rename { from: temporary, to: target.clone(), drop_target: true };
        engine.rename(&self.context, &rename)?.wait()
    }

    fn report(&self, report: Report, options: &RawDocument, context: &StageContext) -> Result<Vec<RawDocumentBuf>> {
        match report {
            Report::Collection => self.collection_report(&context.namespace, options),
            Report::Indexes => self.index_report(&context.namespace),
            Report::Catalog => self.catalog_report(&context.namespace.database, options),
            Report::Plans => self.plan_report(&context.namespace),
            Report::Operations | Report::Sessions | Report::LocalSessions | Report::QuerySettings => {
                match &self.context.reporter {
                    Some(reporter) => reporter(report, options),
                    None => Ok(Vec::new()),
                }
            }
        }
    }
}

impl EngineCollections {
    /// Executes one write of `$merge`; whether a document matched.
    fn write_one(&self, target: &Namespace, write: Write, last: &mut Option<Ticket>) -> Result<bool> {
        Ok(match write {
            Write::Insert(document) => {
                let document = validated(document)?;
                let done = self.engine.write(&self.context, |statement| {
                    statement.bypass_validation = self.bypass_validation;
                    let collection = statement.collection_or_create(target)?;
                    statement.insert(&collection, document.clone())
                })?;
                done.ticket.keep_in(last);
                false
            }
            Write::Update { filter, update, variables, insert } => {
                let query = Query { filter, variables: Some(variables), ..Query::default() };
                let statement =
                    UpdateStatement { query, update, multi: false, upsert: false, array_filters: Vec::new() };
                let collection = self.engine.state().catalog.get(target).cloned();
                let mut prepared = self.engine.prepare_update(&statement, collection.as_deref())?;
                prepared.bypass_validation = self.bypass_validation;
                prepared.instead = insert.map(validated).transpose()?;
                prepared.upsert = prepared.instead.is_some();
                let nothing = |_: &super::update::ChangedOne| RawDocumentBuf::new();
                let done = self.engine.change_one(&self.context, target, &prepared, 0, &nothing)?;
                done.ticket.keep_in(last);
                matches!(done.reply, Done::Now(Some(changed)) if changed.before.is_some())
            }
        })
    }

    /// Replaces the documents of a collection that hooks keep by those of another one, which goes: each is deleted and
    /// inserted as any other, in bounded steps.
    fn copy_over(&self, engine: &Engine, temporary: &Namespace, target: &Namespace) -> Result<()> {
        self.engine.delete_many(&self.context, target, &Query::default())?.wait()?;
        let find = Find { batch_size: Some(OUT_STEP_ROWS), ..Find::new(temporary.clone()) };
        let mut batch = engine.find(&self.context, &find)?;
        loop {
            for document in &batch.documents {
                let document = RawDocument::from_bytes(document)?;
                let written = self.engine.write(&self.context, |statement| {
                    statement.bypass_validation = self.bypass_validation;
                    let collection = statement.collection_or_create(target)?;
                    statement.insert(&collection, document.to_owned())
                });
                match written {
                    Ok(written) => drop(written.ticket),
                    Err(error) => {
                        engine.drop_collection(&self.context, temporary)?.wait()?;
                        return Err(error);
                    }
                }
            }
            if batch.cursor == 0 {
                break;
            }
            batch = engine.get_more(&self.context, batch.cursor, temporary, None, None)?;
        }
        engine.drop_collection(&self.context, temporary)?.wait()?;
        Ok(())
    }

    /// Inserts rows into the collection that will take the target's place, and gives it the target's indexes.
    fn fill(
        &self,
        engine: &Engine,
        temporary: &Namespace,
        existing: Option<&Collection>,
        rows: &mut Rows,
    ) -> Result<()> {
        if let Some(existing) = existing {
            let specs: Vec<_> = existing.indexes.iter().map(|index| index.spec.document().to_owned()).collect();
            if !specs.is_empty() {
                engine.create_indexes(&self.context, temporary, &specs)?.wait()?;
            }
        }
        let mut ended = false;
        while !ended {
            let mut documents = Vec::new();
            let mut bytes = 0;
            while documents.len() < OUT_STEP_ROWS && bytes < OUT_STEP_BYTES {
                let Some(row) = rows.next()? else {
                    ended = true;
                    break;
                };
                bytes += row.bytes().len();
                documents.push(validated(row.document().to_owned())?);
            }
            let written = self.engine.write(&self.context, |statement| {
                statement.bypass_validation = self.bypass_validation;
                let collection = statement.collection_or_create(temporary)?;
                documents.iter().try_for_each(|document| statement.insert(&collection, document.clone()))
            })?;
            written.wait()?;
        }
        Ok(())
    }
}
