//! The rows that answer a query.

use super::find::Find;
use super::read::{Parsed, Query, Reading, exact_id, no_rows, same_collation};
use crate::catalog::Collection;
use crate::context::Context;
use crate::database::Inner;
use crate::document::Row;
use crate::error::Result;
use crate::expression::Environment;
use crate::filter::Filter;
use crate::key;
use crate::keyspace;
use crate::projection::{Mode, Projection};
use crate::stage::{RowSource, Rows};
use crate::storage::{Direction, View};
use bson::{RawDocument, RawDocumentBuf};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

impl Inner {
    /// The documents that match, in the query's order, each with its record key; skip and limit are left to the caller.
    pub(crate) fn candidates(
        &self,
        reading: &Reading,
        collection: &Arc<Collection>,
        query: &Query,
        parsed: &Parsed,
        _context: &Context,
    ) -> Result<Rows> {
        let default = collection.settings.collation.as_ref();
        if let Some(id) = exact_id(&query.filter).filter(|_| same_collation(parsed.collator.as_ref(), default)) {
            let mut encoded = Vec::new();
            key::encode(id, default.map(|collator| &**collator), &mut encoded)?;
            let Some(record_key) = reading.view.get(&keyspace::id(collection.id, &encoded))? else {
                return Ok(no_rows());
            };
            let Some(bytes) = reading.view.get(&keyspace::record(collection.id, &record_key))? else {
                return Ok(no_rows());
            };
            let row = Row::stored(bytes, record_key)?;
            let found = parsed.filter.matches(row.document(), &parsed.environment)?;
            return Ok(Box::new(OneRow(found.then_some(row))));
        }
        Ok(Box::new(Scan {
            view: reading.view.clone(),
            collection: collection.id,
            after: None,
            buffer: Vec::new().into_iter(),
            filter: parsed.filter.clone(),
            environment: parsed.environment.clone(),
        }))
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
        let rows = self.candidates(reading, collection, &find.query, &parsed, context)?;
        let projection = find.projection.as_deref().filter(|fields| fields.iter().next().is_some());
        let projection = projection
            .map(|fields| Projection::parse(fields, Some(&parsed.filter), &mut parsed.parser, Mode::Find))
            .transpose()?;
        Ok(Box::new(Shown {
            rows,
            skip: find.query.skip,
            left: if find.query.limit == 0 { u64::MAX } else { find.query.limit },
            projection,
            filter: parsed.filter,
            environment: parsed.environment,
        }))
    }

    pub(crate) fn find_on_view(&self, _: &Context, find: &Find) -> Result<Rows> {
        Err(views(&find.namespace))
    }

    pub(crate) fn count_view(&self, _: &Context, count: &super::Count) -> Result<u64> {
        Err(views(&count.namespace))
    }

    pub(crate) fn distinct_view(&self, _: &Context, distinct: &super::Distinct) -> Result<bson::RawArrayBuf> {
        Err(views(&distinct.namespace))
    }

    /// Refuses an invalid projection where there is nothing to project.
    pub(crate) fn check_projection(&self, find: &Find, parsed: &Parsed) -> Result<()> {
        if let Some(fields) = find.projection.as_deref().filter(|fields| fields.iter().next().is_some()) {
            Projection::parse(fields, Some(&parsed.filter), &mut parsed.parser.clone(), Mode::Find)?;
        }
        Ok(())
    }

    /// The documents of a collection that match, in a view that is borrowed.
    pub(crate) fn find_in_view(
        &self,
        view: &dyn View,
        collection: &Collection,
        filter: &RawDocument,
        limit: usize,
    ) -> Result<Vec<RawDocumentBuf>> {
        let query = Query { filter: filter.to_owned(), ..Query::default() };
        let parsed = self.parse_query(&query, Some(collection))?;
        let prefix = keyspace::prefix(keyspace::RECORDS, collection.id);
        let mut end = None;
        let (from, to) = keyspace::bounds(&prefix, &mut end);
        let mut found = Vec::new();
        for entry in view.range(from, to, Direction::Forward)? {
            let (_, bytes) = entry?;
            let document = RawDocument::from_bytes(&bytes)?;
            if found.len() < limit && parsed.filter.matches(document, &parsed.environment)? {
                found.push(document.to_owned());
            }
        }
        Ok(found)
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

/// How many entries are read from the storage at once.
const CHUNK: usize = 128;

/// A scan of a whole collection, in the order of its records.
struct Scan {
    view: Arc<dyn View + Send + Sync>,
    collection: u32,
    after: Option<Bytes>,
    buffer: std::vec::IntoIter<(Bytes, Bytes)>,
    filter: Arc<Filter>,
    environment: Arc<Environment>,
}

impl RowSource for Scan {
    fn next(&mut self) -> Result<Option<Row>> {
        loop {
            let Some((key, bytes)) = self.buffer.next() else {
                let prefix = keyspace::prefix(keyspace::RECORDS, self.collection);
                let end = keyspace::after_prefix(&prefix).expect("a collection's prefix does not end the key space");
                let from = match &self.after {
                    Some(after) => Bound::Excluded(&after[..]),
                    None => Bound::Included(&prefix[..]),
                };
                let range = self.view.range(from, Bound::Excluded(&end), Direction::Forward)?;
                let chunk = range.take(CHUNK).collect::<Result<Vec<_>>>()?;
                let Some(last) = chunk.last() else { return Ok(None) };
                self.after = Some(last.0.clone());
                self.buffer = chunk.into_iter();
                continue;
            };
            let row = Row::stored(bytes, key.slice(keyspace::RECORD_PREFIX_BYTES..))?;
            if self.filter.matches(row.document(), &self.environment)? {
                return Ok(Some(row));
            }
        }
    }
}

/// Skip, limit and projection.
struct Shown {
    rows: Rows,
    skip: u64,
    left: u64,
    projection: Option<Projection>,
    filter: Arc<Filter>,
    environment: Arc<Environment>,
}

impl RowSource for Shown {
    fn next(&mut self) -> Result<Option<Row>> {
        while self.skip > 0 {
            self.skip -= 1;
            if self.rows.next()?.is_none() {
                return Ok(None);
            }
        }
        if self.left == 0 {
            return Ok(None);
        }
        let Some(row) = self.rows.next()? else { return Ok(None) };
        self.left -= 1;
        let Some(projection) = &self.projection else { return Ok(Some(row)) };
        let position = match projection.needs_position() {
            true => self.filter.matched_position(row.document(), &self.environment)?.map(|found| found.1),
            false => None,
        };
        let shown = projection.apply(row.document(), &self.environment, position)?;
        Ok(Some(row.with_document(shown)))
    }

    fn is_quick(&self) -> bool {
        self.rows.is_quick()
    }
}

fn views(namespace: &crate::Namespace) -> crate::Error {
    crate::Error::new(crate::Code::COMMAND_NOT_SUPPORTED_ON_VIEW, format!("{namespace} is a view"))
}
