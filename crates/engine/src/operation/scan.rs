//! From a query to rows: what the planner is asked, and what is done to the rows it gives.

use super::STEP_WRITES;
use super::find::Find;
use super::read::{Parsed, Query, exact_id, no_rows, same_collation};
use super::reading::{PlannedRows, Reading};
use crate::catalog::Collection;
use crate::context::Context;
use crate::cursor::Tailing;
use crate::database::Inner;
use crate::document::{Row, append};
use crate::error::Result;
use crate::expression::Environment;
use crate::filter::Filter;
use crate::keyspace;
use crate::plan::{self, KeyRange, Order, Purpose, Seen};
use crate::projection::{Mode, Projection};
use crate::stage::{RowSource, Rows};
use crate::storage::View;
use crate::{Error, key};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a plan's rows are for.
#[derive(Clone)]
pub(crate) struct Wanted {
    /// The paths that are looked at; `None` for whole documents.
    pub(crate) needed: Option<BTreeSet<String>>,
    /// The projection, to be shown in the plan.
    pub(crate) projection: Option<RawDocumentBuf>,
    /// Whether it only takes fields in or out.
    pub(crate) is_simple_projection: bool,
    /// What the rows are for.
    pub(crate) purpose: Purpose,
    /// Whether the plan passes over the query's skip and stops at its limit.
    pub(crate) bounded: bool,
    /// Whether rows carry what they were sorted by.
    pub(crate) sort_key: bool,
}

impl Wanted {
    /// Whole documents, all that match.
    pub(crate) fn documents() -> Wanted {
        Wanted {
            needed: None,
            projection: None,
            is_simple_projection: false,
            purpose: Purpose::Find,
            bounded: false,
            sort_key: false,
        }
    }

    /// Whole documents, as many as the query says.
    pub(crate) fn bounded() -> Wanted {
        Wanted { bounded: true, ..Wanted::documents() }
    }
}

/// The record keys that a statement on many documents works through: each once, also where what it writes moves a
/// document along the index that is read, and whatever views its rows are read from.
pub(super) struct Candidates {
    rows: Rows,
    /// Missing where the records are read in their own order, in which no write moves one.
    seen: Option<Seen>,
}

impl Candidates {
    /// The next ones, for one step or several; none at the end.
    pub(super) fn next(&mut self) -> Result<Vec<Bytes>> {
        let mut keys = Vec::with_capacity(STEP_WRITES);
        while keys.len() < STEP_WRITES {
            let Some(row) = self.rows.next()? else { break };
            let key = row.record.expect("a candidate has its record key");
            let is_new = self.seen.as_mut().map_or(Ok(true), |seen| seen.insert(&key))?;
            if is_new {
                keys.push(key);
            }
        }
        Ok(keys)
    }
}

impl Inner {
    /// What the planner is asked.
    pub(crate) fn plan_query(&self, query: &Query, parsed: &Parsed, wanted: Wanted) -> Result<plan::Query> {
        let mut planned = plan::Query::new(parsed.filter.clone(), parsed.environment.clone());
        planned.order = match &query.sort {
            Some(sort) => Order::parse(sort)?,
            None => None,
        };
        planned.hint = query.hint.clone();
        let given = |bound: &Option<RawDocumentBuf>| bound.clone().filter(|bound| bound.iter().next().is_some());
        if given(&query.min).is_some() || given(&query.max).is_some() {
            planned.key_range = Some(KeyRange { min: given(&query.min), max: given(&query.max) });
        }
        if wanted.bounded {
            planned.skip = query.skip;
            planned.limit = query.limit;
        }
        planned.allow_disk_use = query.allow_disk_use;
        planned.needed = wanted.needed;
        planned.projection = wanted.projection;
        planned.is_simple_projection = wanted.is_simple_projection;
        planned.purpose = wanted.purpose;
        planned.wants_sort_key = wanted.sort_key;
        Ok(planned)
    }

    /// The rows of a query's plan.
    pub(crate) fn planned(
        &self,
        reading: &Reading,
        collection: &Collection,
        query: &plan::Query,
        context: &Context,
    ) -> Result<Rows> {
        Ok(Box::new(self.planned_rows(reading, collection, query, context)?))
    }

    fn planned_rows(
        &self,
        reading: &Reading,
        collection: &Collection,
        query: &plan::Query,
        context: &Context,
    ) -> Result<PlannedRows> {
        let (view, generation) = reading.cell.view()?;
        let mut execution = self.plan_on(collection, query, &*view, context)?.into_execution();
        execution.report_to(&context.monitor);
        self.index_uses.count(collection.id, &execution.indexes());
        Ok(PlannedRows::new(execution, reading.cell.clone(), &view, generation, context))
    }

    /// The plan of a query, from the indexes that it may use.
    pub(crate) fn plan_on(
        &self,
        collection: &Collection,
        query: &plan::Query,
        view: &dyn View,
        context: &Context,
    ) -> Result<plan::Plan> {
        let hints = context.index_hints.iter().flat_map(|hints| hints.iter());
        let allowed = hints.filter(|(namespace, _)| *namespace == collection.namespace).map(|(_, allowed)| allowed);
        for target in allowed.map(|allowed| collection.target.restricted(allowed)) {
            if !target.indexes.is_empty() {
                let unhinted = plan::Query { hint: None, ..query.clone() };
                return plan::plan(&target, &unhinted, view, &self.plans);
            }
        }
        plan::plan(&collection.target, query, view, &self.plans)
    }

    /// The documents that match, in the query's order, each with its record key; skip and limit are not applied.
    pub(crate) fn candidates(
        &self,
        reading: &Reading,
        collection: &Arc<Collection>,
        query: &Query,
        parsed: &Parsed,
        context: &Context,
    ) -> Result<Rows> {
        if let Some(rows) = self.point_read(reading, collection, query, parsed, context)? {
            return Ok(rows);
        }
        let query = self.plan_query(query, parsed, Wanted::documents())?;
        self.planned(reading, collection, &query, context)
    }

    /// As [`Inner::candidates`], for a statement that writes to all of them.
    pub(super) fn all_candidates(
        &self,
        reading: &Reading,
        collection: &Arc<Collection>,
        query: &Query,
        parsed: &Parsed,
        context: &Context,
    ) -> Result<Candidates> {
        if let Some(rows) = self.point_read(reading, collection, query, parsed, context)? {
            return Ok(Candidates { rows, seen: None });
        }
        let query = self.plan_query(query, parsed, Wanted::documents())?;
        let rows = self.planned_rows(reading, collection, &query, context)?;
        let seen = (!rows.is_record_scan()).then(Seen::default);
        Ok(Candidates { rows: Box::new(rows), seen })
    }

    /// The row of a query that names one `_id`, without a plan.
    fn point_read(
        &self,
        reading: &Reading,
        collection: &Collection,
        query: &Query,
        parsed: &Parsed,
        context: &Context,
    ) -> Result<Option<Rows>> {
        let default = collection.settings.collation.as_ref();
        let plain = collection.settings.series.is_none()
            && query.hint.is_none()
            && query.min.is_none()
            && query.max.is_none()
            && query.skip == 0;
        let id = exact_id(&query.filter).filter(|_| plain && same_collation(parsed.collator.as_ref(), default));
        let Some(id) = id else { return Ok(None) };
        let others = query.filter.iter().nth(1).is_some().then_some(parsed);
        self.document_of(reading, collection, id, others, context).map(Some)
    }

    /// The row of a find that says nothing but one `_id`: nothing needs to be parsed, let alone planned.
    pub(crate) fn plain_point_read(
        &self,
        reading: &Reading,
        collection: &Collection,
        find: &Find,
        context: &Context,
    ) -> Result<Option<Rows>> {
        match only_id(find, collection) {
            Some(id) => self.document_of(reading, collection, id, None, context).map(Some),
            None => Ok(None),
        }
    }

    /// The row of the document with an `_id`, if it matches what else is asked.
    pub(super) fn document_of(
        &self,
        reading: &Reading,
        collection: &Collection,
        id: RawBsonRef<'_>,
        others: Option<&Parsed>,
        context: &Context,
    ) -> Result<Rows> {
        let stored = stored_document(&*reading.view()?, collection, id)?;
        context.monitor.note_point_read(stored.is_some());
        let Some((record_key, bytes)) = stored else { return Ok(no_rows()) };
        let row = Row::stored(bytes, record_key)?;
        let found = match others {
            Some(parsed) => parsed.filter.matches(row.document(), &parsed.environment)?,
            None => true,
        };
        Ok(Box::new(OneRow(found.then_some(row))))
    }

    /// A find's rows, as the client shall see them.
    pub(crate) fn found(
        &self,
        reading: &Reading,
        collection: &Arc<Collection>,
        find: &Find,
        mut parsed: Parsed,
        context: &Context,
    ) -> Result<Rows> {
        let projection = parse_projection(find, &mut parsed)?;
        let plain = find.query.limit <= 1 && !find.return_key && !find.show_record_id;
        let point = if plain { self.point_read(reading, collection, &find.query, &parsed, context)? } else { None };
        let rows = match point {
            Some(rows) => rows,
            None => {
                let query = self.plan_query(&find.query, &parsed, wanted(find, projection.as_ref()))?;
                self.planned(reading, collection, &query, context)?
            }
        };
        if projection.is_none() && !find.show_record_id && !find.return_key {
            return Ok(rows);
        }
        let index = if find.return_key { self.index_of(reading, collection, find, &parsed)? } else { None };
        Ok(Box::new(Shown {
            rows,
            projection,
            filter: parsed.filter,
            environment: parsed.environment,
            show_record_id: find.show_record_id,
            return_key: find.return_key.then_some(index.unwrap_or_default()),
        }))
    }

    /// The key pattern of the index that a find uses, for `returnKey`.
    fn index_of(
        &self,
        reading: &Reading,
        collection: &Collection,
        find: &Find,
        parsed: &Parsed,
    ) -> Result<Option<RawDocumentBuf>> {
        let query = self.plan_query(&find.query, parsed, Wanted::documents())?;
        let plan = plan::plan(&collection.target, &query, &*reading.view()?, &self.plans)?;
        let names = plan.indexes();
        let found = collection.target.indexes.iter().find(|index| names.iter().any(|name| name == index.spec.name()));
        Ok(found.map(|index| index.spec.pattern().to_owned()))
    }

    /// What the planner is asked for a find.
    pub(crate) fn find_query(&self, find: &Find, mut parsed: Parsed) -> Result<plan::Query> {
        let projection = parse_projection(find, &mut parsed)?;
        self.plan_query(&find.query, &parsed, wanted(find, projection.as_ref()))
    }

    /// Refuses an invalid projection or order where there is nothing to read.
    pub(crate) fn check_find(&self, find: &Find, parsed: &Parsed) -> Result<()> {
        let mut parsed = Parsed {
            filter: parsed.filter.clone(),
            environment: parsed.environment.clone(),
            collator: parsed.collator.clone(),
            parser: parsed.parser.clone(),
        };
        parse_projection(find, &mut parsed)?;
        if let Some(sort) = &find.query.sort {
            Order::parse(sort)?;
        }
        Ok(())
    }

    /// The documents of a collection that match, in an order if one is asked for, in a view that is borrowed.
    pub(crate) fn find_in_view(
        &self,
        view: &dyn View,
        collection: &Collection,
        filter: &RawDocument,
        sort: Option<&RawDocument>,
        limit: usize,
    ) -> Result<Vec<RawDocumentBuf>> {
        let sort = sort.map(RawDocument::to_owned);
        let query = Query { filter: filter.to_owned(), sort, limit: limit as u64, ..Query::default() };
        let parsed = self.parse_query(&query, Some(collection))?;
        let query = self.plan_query(&query, &parsed, Wanted::bounded())?;
        let mut execution = plan::plan(&collection.target, &query, view, &self.plans)?.into_execution();
        let mut found = Vec::new();
        while let Some(row) = execution.next(view)? {
            found.push(row.document().to_owned());
        }
        Ok(found)
    }
}

/// The `_id` of a find that says nothing else.
pub(super) fn only_id<'f>(find: &'f Find, collection: &Collection) -> Option<RawBsonRef<'f>> {
    let query = &find.query;
    let says_more = query.sort.is_some()
        || query.hint.is_some()
        || query.min.is_some()
        || query.max.is_some()
        || query.collation.is_some()
        || query.variables.is_some()
        || find.projection.is_some()
        || find.return_key
        || find.show_record_id
        || query.skip > 0
        || query.limit > 1;
    let has_ids = collection.settings.series.is_none();
    if says_more || !has_ids || find.tailing != Tailing::No || query.filter.iter().nth(1).is_some() {
        return None;
    }
    exact_id(&query.filter)
}

/// The record key and the document of an `_id`.
pub(super) fn stored_document(
    view: &dyn View,
    collection: &Collection,
    id: RawBsonRef<'_>,
) -> Result<Option<(Bytes, Bytes)>> {
    let is_clustered = collection.settings.clustered;
    let kind = if is_clustered { keyspace::RECORDS } else { keyspace::IDS };
    let mut key = Vec::with_capacity(32);
    key.extend_from_slice(&keyspace::prefix(kind, collection.id));
    let start = key.len();
    key::encode(id, collection.settings.collation.as_deref(), &mut key)?;
    let Some(found) = view.get(&key)? else { return Ok(None) };
    if is_clustered {
        return Ok(Some((Bytes::copy_from_slice(&key[start..]), found)));
    }
    key.clear();
    key.extend_from_slice(&keyspace::prefix(keyspace::RECORDS, collection.id));
    key.extend_from_slice(&found);
    Ok(view.get(&key)?.map(|document| (found, document)))
}

fn parse_projection(find: &Find, parsed: &mut Parsed) -> Result<Option<Projection>> {
    let fields = find.projection.as_deref().filter(|fields| fields.iter().next().is_some());
    let Some(fields) = fields else { return Ok(None) };
    let projection = Projection::parse(fields, Some(&parsed.filter), &mut parsed.parser, Mode::Find)?;
    if projection.needs_sort_key() && find.query.sort.is_none() {
        return Err(Error::location(40218, "query requires sort key metadata, but it is not available: add a sort"));
    }
    Ok(Some(projection).filter(|projection| !projection.is_identity()))
}

fn wanted(find: &Find, projection: Option<&Projection>) -> Wanted {
    let needed = match projection {
        Some(_) if find.return_key => None,
        Some(projection) if projection.needs_position() => None,
        Some(projection) => projection.dependencies(),
        None => None,
    };
    Wanted {
        needed,
        projection: find.projection.clone().filter(|_| projection.is_some()),
        is_simple_projection: projection.is_some_and(|projection| projection.only_fields().is_some()),
        purpose: Purpose::Find,
        bounded: true,
        sort_key: projection.is_some_and(Projection::needs_sort_key),
    }
}

struct OneRow(Option<Row>);

impl RowSource for OneRow {
    fn next(&mut self) -> Result<Option<Row>> {
        Ok(self.0.take())
    }

    fn is_quick(&self) -> bool {
        true
    }
}

/// Rows as a client shall see them.
struct Shown {
    rows: Rows,
    projection: Option<Projection>,
    filter: Arc<Filter>,
    environment: Arc<Environment>,
    show_record_id: bool,
    /// The pattern of the index whose key is shown in the document's place.
    return_key: Option<RawDocumentBuf>,
}

impl RowSource for Shown {
    fn next(&mut self) -> Result<Option<Row>> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        let mut shown = match (&self.return_key, &self.projection) {
            (Some(pattern), _) => index_key(row.document(), pattern)?,
            (None, None) => row.document().to_owned(),
            (None, Some(projection)) => {
                let position = match projection.needs_position() {
                    true => self.filter.matched_position(row.document(), &self.environment)?.map(|found| found.1),
                    false => None,
                };
                if projection.needs_sort_key() {
                    let sort_key = row.sort_key.as_deref().map(bson::RawDocument::from_bytes).transpose()?;
                    let sort_key = sort_key.and_then(|wrapped| wrapped.iter().next()?.ok()).map(|field| field.1);
                    projection.apply_sorted(row.document(), sort_key, &self.environment, position)?
                } else {
                    projection.apply(row.document(), &self.environment, position)?
                }
            }
        };
        let shows_record = self.show_record_id && self.return_key.is_none();
        if let (true, Some(record)) = (shows_record, row.record.as_deref()) {
            let number = record.try_into().map(i64::from_be_bytes).unwrap_or_default();
            append(&mut shown, "$recordId", RawBsonRef::Int64(number))?;
        }
        Ok(Some(row.with_document(shown)))
    }

    fn is_quick(&self) -> bool {
        let computes = self.projection.as_ref().is_some_and(Projection::computes);
        !computes && self.rows.is_quick()
    }
}

/// The fields of an index's key, as the document has them.
fn index_key(document: &RawDocument, pattern: &RawDocument) -> Result<RawDocumentBuf> {
    let mut shown = RawDocumentBuf::new();
    for field in pattern {
        let path = field?.0.as_str();
        let value = crate::document::FieldPath::unchecked(path).evaluate(RawBsonRef::Document(document))?;
        append(&mut shown, path, value.or_null())?;
    }
    Ok(shown)
}
