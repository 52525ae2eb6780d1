//! `explain`: how an operation would find its documents, and what that costs.

use super::aggregate::Aggregate;
use super::read::Parsed;
use super::scan::Wanted;
use super::{Count, Distinct, Find, Query, UpdateStatement};
use crate::context::Context;
use crate::database::{Engine, Inner};
use crate::document::{append, get};
use crate::error::Result;
use crate::namespace::Namespace;
use crate::plan::{self, Purpose, Verbosity};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use std::sync::Arc;

/// What is to be explained.
#[derive(Clone, Debug)]
pub enum Explain {
    /// A find.
    Find(Box<Find>),
    /// A count.
    Count(Count),
    /// A distinct.
    Distinct(Distinct),
    /// An update or a `findAndModify` that updates.
    Update(Namespace, Box<UpdateStatement>),
    /// A delete or a `findAndModify` that removes.
    Delete(Namespace, Query),
    /// An aggregation.
    Aggregate(Box<Aggregate>),
}

impl Engine {
    /// `queryPlanner` and, if asked for, `executionStats`; for an aggregation with stages behind its plan, `stages`.
    ///
    /// # Errors
    /// What the operation itself refuses.
    pub fn explain(&self, context: &Context, explain: &Explain, verbosity: Verbosity) -> Result<RawDocumentBuf> {
        context.block(|| self.inner.explain(context, explain, verbosity))
    }
}

impl Engine {
    /// The hash by which the shape of a find, distinct or aggregation is named; none for other operations.
    ///
    /// # Errors
    /// What the operation itself refuses.
    pub fn query_shape_hash(&self, context: &Context, explain: &Explain) -> Result<Option<String>> {
        let inner = &self.inner;
        let hash = |namespace: &Namespace, query: &Query, make: &dyn Fn(Parsed) -> Result<plan::Query>| {
            let collection = inner.reading(context)?.catalog.get(namespace).cloned();
            let query = make(inner.parse_query(query, collection.as_deref())?)?;
            Ok(Some(plan::query_shape_hash(&namespace.to_string(), &query)))
        };
        match explain {
            Explain::Find(find) => hash(&find.namespace, &find.query, &|parsed| inner.find_query(find, parsed)),
            Explain::Distinct(distinct) => hash(&distinct.namespace, &distinct.query, &|parsed| {
                inner.plan_query(&distinct.query, &parsed, distinct_wants(distinct))
            }),
            Explain::Aggregate(aggregate) => inner.aggregate_shape_hash(context, aggregate).map(Some),
            _ => Ok(None),
        }
    }
}

/// What a distinct needs of documents.
fn distinct_wants(distinct: &Distinct) -> Wanted {
    let needed = Some([distinct.key.clone()].into());
    Wanted { needed, purpose: Purpose::Distinct(distinct.key.clone()), ..Wanted::documents() }
}

impl Inner {
    fn explain(
        self: &Arc<Inner>,
        context: &Context,
        explain: &Explain,
        verbosity: Verbosity,
    ) -> Result<RawDocumentBuf> {
        match explain {
            Explain::Find(find) => {
                let collection = self.reading(context)?.catalog.get(&find.namespace).cloned();
                if collection.as_ref().is_some_and(|collection| collection.is_view()) {
                    return self.explain_aggregate(context, &super::aggregate::find_as_aggregate(find)?, verbosity);
                }
                let parsed = self.parse_query(&find.query, collection.as_deref())?;
                let query = self.find_query(find, parsed)?;
                self.explain_plan(context, &find.namespace, &query, verbosity)
            }
            Explain::Count(count) => {
                let wanted = Wanted { purpose: Purpose::Count, ..Wanted::bounded() };
                let explained = self.explain_query(context, &count.namespace, &count.query, wanted, verbosity)?;
                Ok(explained)
            }
            Explain::Distinct(distinct) => {
                let wanted = distinct_wants(distinct);
                self.explain_query(context, &distinct.namespace, &distinct.query, wanted, verbosity)
            }
            Explain::Update(namespace, update) => {
                let plan = self.explain_query(context, namespace, &update.query, Wanted::documents(), verbosity)?;
                let would = match verbosity {
                    Verbosity::QueryPlanner => RawDocumentBuf::new(),
                    _ => self.would_update(context, namespace, update)?,
                };
                wrap(&plan, "UPDATE", &would)
            }
            Explain::Delete(namespace, query) => {
                let plan = self.explain_query(context, namespace, query, Wanted::documents(), verbosity)?;
                wrap(&plan, "DELETE", &RawDocumentBuf::new())
            }
            Explain::Aggregate(aggregate) => self.explain_aggregate(context, aggregate, verbosity),
        }
    }

    /// How many documents an update would match and change, and whether it would insert one.
    fn would_update(
        self: &Arc<Inner>,
        context: &Context,
        namespace: &Namespace,
        update: &UpdateStatement,
    ) -> Result<RawDocumentBuf> {
        let reading = self.reading(context)?;
        let collection = reading.catalog.get(namespace).cloned();
        let prepared = self.prepare_update(update, collection.as_deref())?;
        let (mut matched, mut modified) = (0_i64, 0_i64);
        let stored = collection.filter(|collection| !collection.is_view() && collection.settings.series.is_none());
        if let Some(collection) = &stored {
            let mut rows = self.candidates(&reading, collection, &prepared.query, &prepared.parsed, context)?;
            while let Some(row) = rows.next()? {
                matched += 1;
                modified += i64::from(prepared.applied(row.document())?.is_some());
                if !update.multi {
                    break;
                }
            }
        }
        let upserted = i64::from(update.upsert && matched == 0);
        let mut would = RawDocumentBuf::new();
        for (name, number) in [("nMatched", matched), ("nWouldModify", modified), ("nWouldUpsert", upserted)] {
            put_count(&mut would, name, number)?;
        }
        Ok(would)
    }

    fn explain_query(
        self: &Arc<Inner>,
        context: &Context,
        namespace: &Namespace,
        query: &Query,
        wanted: Wanted,
        verbosity: Verbosity,
    ) -> Result<RawDocumentBuf> {
        let collection = self.reading(context)?.catalog.get(namespace).cloned();
        let parsed = self.parse_query(query, collection.as_deref())?;
        let query = self.plan_query(query, &parsed, wanted)?;
        self.explain_plan(context, namespace, &query, verbosity)
    }

    /// Explains a plan; one of a collection that does not exist reads nothing.
    pub(crate) fn explain_plan(
        self: &Arc<Inner>,
        context: &Context,
        namespace: &Namespace,
        query: &plan::Query,
        verbosity: Verbosity,
    ) -> Result<RawDocumentBuf> {
        let reading = self.reading(context)?;
        match reading.catalog.get(namespace) {
            Some(collection) => {
                let plan = self.plan_on(collection, query, &*reading.view()?, context)?;
                plan.explain(&*reading.view()?, verbosity)
            }
            None => Ok(explain_nothing(namespace, verbosity)),
        }
    }
}

fn explain_nothing(namespace: &Namespace, verbosity: Verbosity) -> RawDocumentBuf {
    let mut explained = rawdoc! {
        "queryPlanner": {
            "namespace": namespace.to_string(),
            "indexFilterSet": false,
            "parsedQuery": {},
            "winningPlan": { "isCached": false, "stage": "EOF" },
            "rejectedPlans": [],
        },
    };
    if verbosity != Verbosity::QueryPlanner {
        let stats = rawdoc! {
            "executionSuccess": true, "nReturned": 0, "executionTimeMillis": 0, "totalKeysExamined": 0,
            "totalDocsExamined": 0, "executionStages": { "stage": "EOF", "nReturned": 0, "works": 1, "advanced": 0, "isEOF": 1 },
        };
        explained.append(bson::raw::cstr!("executionStats"), stats);
    }
    explained
}

/// A number as the narrowest integer that holds it.
fn put_count(document: &mut RawDocumentBuf, name: &str, number: i64) -> Result<()> {
    append(document, name, i32::try_from(number).map_or(RawBsonRef::Int64(number), RawBsonRef::Int32))
}

/// Puts the stage that writes on top of a plan, with what it would do.
fn wrap(explained: &RawDocument, stage: &str, would: &RawDocument) -> Result<RawDocumentBuf> {
    let mut wrapped = RawDocumentBuf::new();
    for field in explained {
        let (name, value) = field?;
        match (name.as_str(), value) {
            ("queryPlanner", RawBsonRef::Document(planner)) => {
                let planner = replace_field(planner, "winningPlan", stage, &RawDocumentBuf::new())?;
                append(&mut wrapped, "queryPlanner", RawBsonRef::Document(&planner))?;
            }
            ("executionStats", RawBsonRef::Document(stats)) => {
                let stats = replace_field(stats, "executionStages", stage, would)?;
                append(&mut wrapped, "executionStats", RawBsonRef::Document(&stats))?;
            }
            (name, value) => append(&mut wrapped, name, value)?,
        }
    }
    Ok(wrapped)
}

fn replace_field(document: &RawDocument, field: &str, stage: &str, would: &RawDocument) -> Result<RawDocumentBuf> {
    let mut replaced = RawDocumentBuf::new();
    for entry in document {
        let (name, value) = entry?;
        if name.as_str() == field {
            let mut outer = rawdoc! { "stage": stage };
            let returned = value.as_document().map(|inner| get(inner, "nReturned")).transpose()?.flatten();
            if let Some(returned) = returned.filter(|_| stage == "DELETE") {
                append(&mut outer, "nWouldDelete", returned)?;
            }
            for entry in would {
                let (name, number) = entry?;
                append(&mut outer, name.as_str(), number)?;
            }
            append(&mut outer, "inputStage", value)?;
            append(&mut replaced, field, RawBsonRef::Document(&outer))?;
        } else {
            append(&mut replaced, name.as_str(), value)?;
        }
    }
    Ok(replaced)
}
