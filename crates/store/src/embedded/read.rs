//! Reading from the engine in this process.

use super::{Embedded, EmbeddedSession, bounded, context, namespace, query, raw, raw_option, raw_value};
use crate::collection::Collection;
use crate::cursor::{Cursor, CursorKind};
use crate::error::Result;
use crate::options::{Aggregate, Find};
use bson::{Bson, Document, RawArrayBuf, RawDocumentBuf};
use bytes::Bytes;
use engine::operation::{Count, Distinct};
use engine::{Batch, Context, Engine, Namespace};

/// An open cursor of the engine. Dropping it closes it.
pub(crate) struct EmbeddedCursor {
    engine: Engine,
    context: Context,
    namespace: Namespace,
    cursor: i64,
    documents: std::vec::IntoIter<Bytes>,
    batch_size: Option<usize>,
}

impl EmbeddedCursor {
    fn new(engine: &Engine, context: Context, batch: Batch, batch_size: Option<u32>) -> EmbeddedCursor {
        EmbeddedCursor {
            engine: engine.clone(),
            context,
            namespace: batch.namespace,
            cursor: batch.cursor,
            documents: batch.documents.into_iter(),
            batch_size: batch_size.map(|size| size as usize),
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<RawDocumentBuf>> {
        Ok(self.next_bytes()?.map(|bytes| RawDocumentBuf::from_bytes(Vec::from(bytes))).transpose()?)
    }

    pub(crate) fn next_bytes(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(bytes) = self.documents.next() {
                return Ok(Some(bytes));
            }
            if self.cursor == 0 {
                return Ok(None);
            }
            let batch = self.engine.get_more(&self.context, self.cursor, &self.namespace, self.batch_size, None)?;
            self.cursor = batch.cursor;
            self.documents = batch.documents.into_iter();
        }
    }
}

impl Drop for EmbeddedCursor {
    fn drop(&mut self) {
        if self.cursor != 0 {
            self.engine.kill_cursor(self.cursor);
        }
    }
}

impl Embedded {
    pub(crate) fn find(
        &self,
        collection: &Collection,
        filter: Document,
        options: Find,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<Cursor> {
        let context = bounded(session, options.max_time);
        let mut find = engine::operation::Find::new(namespace(collection)?);
        find.query = query(&filter)?;
        find.query.sort = raw_option(options.sort.as_ref())?;
        find.query.skip = options.skip;
        find.query.limit = options.limit.unsigned_abs();
        find.query.hint = raw_value(options.hint)?;
        find.query.collation = raw_option(options.collation.as_ref())?;
        find.projection = raw_option(options.projection.as_ref())?;
        find.batch_size = options.batch_size.map(|size| size as usize);
        find.single_batch = options.limit < 0;
        let batch = self.engine.find(&context, &find)?;
        let cursor = EmbeddedCursor::new(&self.engine, context, batch, options.batch_size);
        Ok(Cursor { kind: CursorKind::Embedded(cursor) })
    }

    pub(crate) fn aggregate(
        &self,
        collection: &Collection,
        pipeline: Vec<Document>,
        options: Aggregate,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<Cursor> {
        let context = bounded(session, options.max_time);
        let namespace = match collection.name.as_str() {
            "" => Namespace { database: collection.database.clone(), collection: String::new() },
            _ => namespace(collection)?,
        };
        let mut aggregate = engine::operation::Aggregate::new(namespace, stages(&pipeline)?);
        aggregate.hint = raw_value(options.hint)?;
        aggregate.collation = raw_option(options.collation.as_ref())?;
        aggregate.variables = raw_option(options.variables.as_ref())?;
        aggregate.batch_size = options.batch_size.map(|size| size as usize);
        let batch = self.engine.aggregate(&context, &aggregate)?;
        let cursor = EmbeddedCursor::new(&self.engine, context, batch, options.batch_size);
        Ok(Cursor { kind: CursorKind::Embedded(cursor) })
    }

    pub(crate) fn count(
        &self,
        collection: &Collection,
        filter: Document,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<u64> {
        let count = Count { namespace: namespace(collection)?, query: query(&filter)? };
        Ok(self.engine.count(&context(session), &count)?)
    }

    pub(crate) fn distinct(
        &self,
        collection: &Collection,
        key: &str,
        filter: Document,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<Vec<Bson>> {
        let distinct = Distinct { namespace: namespace(collection)?, key: key.to_owned(), query: query(&filter)? };
        let values = self.engine.distinct(&context(session), &distinct)?;
        values.into_iter().map(|value| Ok(Bson::try_from(value?)?)).collect()
    }
}

/// A pipeline as the engine takes it.
pub(super) fn stages(pipeline: &[Document]) -> Result<RawArrayBuf> {
    let mut stages = RawArrayBuf::new();
    for stage in pipeline {
        stages.push(raw(stage)?);
    }
    Ok(stages)
}
