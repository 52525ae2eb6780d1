//! `explain`: how an operation would find its documents, and what that costs.

use super::aggregate::Aggregate;
use super::scan::Wanted;
use super::{Count, Distinct, Find, Query};
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
    Update(Namespace, Query),
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
                let needed = Some([distinct.key.clone()].into());
                let purpose = Purpose::Distinct(distinct.key.clone());
                let wanted = Wanted { needed, purpose, ..Wanted::documents() };
                self.explain_query(context, &distinct.namespace, &distinct.query, wanted, verbosity)
            }
            Explain::Update(namespace, query) => {
                let plan = self.explain_query(context, namespace, query, Wanted::documents(), verbosity)?;
                wrap(&plan, "UPDATE")
            }
            Explain::Delete(namespace, query) => {
                let plan = self.explain_query(context, namespace, query, Wanted::documents(), verbosity)?;
                wrap(&plan, "DELETE")
            }
            Explain::Aggregate(aggregate) => self.explain_aggregate(context, aggregate, verbosity),
        }
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
                let plan = plan::plan(&collection.target, query, &*reading.view()?, &self.plans)?;
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

/// Puts the stage that writes on top of a plan.
fn wrap(explained: &RawDocument, stage: &str) -> Result<RawDocumentBuf> {
    let mut wrapped = RawDocumentBuf::new();
    for field in explained {
        let (name, value) = field?;
        match (name.as_str(), value) {
            ("queryPlanner", RawBsonRef::Document(planner)) => {
                let planner = replace_field(planner, "winningPlan", stage)?;
                append(&mut wrapped, "queryPlanner", RawBsonRef::Document(&planner))?;
            }
            ("executionStats", RawBsonRef::Document(stats)) => {
                let stats = replace_field(stats, "executionStages", stage)?;
                append(&mut wrapped, "executionStats", RawBsonRef::Document(&stats))?;
            }
            (name, value) => append(&mut wrapped, name, value)?,
        }
    }
    Ok(wrapped)
}

fn replace_field(document: &RawDocument, field: &str, stage: &str) -> Result<RawDocumentBuf> {
    let mut replaced = RawDocumentBuf::new();
    for entry in document {
        let (name, value) = entry?;
        if name.as_str() == field {
            let mut outer = rawdoc! { "stage": stage };
            if let Some(returned) = value.as_document().map(|inner| get(inner, "nReturned")).transpose()?.flatten() {
                append(&mut outer, if stage == "DELETE" { "nWouldDelete" } else { "nMatched" }, returned)?;
            }
            append(&mut outer, "inputStage", value)?;
            append(&mut replaced, field, RawBsonRef::Document(&outer))?;
        } else {
            append(&mut replaced, name.as_str(), value)?;
        }
    }
    Ok(replaced)
}
