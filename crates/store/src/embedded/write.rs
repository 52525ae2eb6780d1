//! Writing to the engine in this process.

use super::read::stages;
use super::{Embedded, EmbeddedSession, context, namespace, query, raw, raw_option, raw_value};
use crate::collection::Collection;
use crate::error::Result;
use crate::options::{
    BulkWrite, BulkWriteResult, Delete, FindOneAndUpdate, InsertMany, InsertManyResult, Modifications, Update,
    UpdateResult, WriteError, WriteModel,
};
use bson::{Bson, Document, RawBson, RawDocumentBuf};
use engine::operation::{
    DeleteStatement, FindAndModify, Insert, MAX_WRITE_BATCH, Modification, Query, UpdateStatement,
};
use engine::storage::Ticket;
use engine::{Context, Namespace};

fn first_error(errors: Vec<engine::operation::WriteError>) -> Result<()> {
    match errors.into_iter().next() {
        Some(failed) => Err(failed.error.into()),
        None => Ok(()),
    }
}

/// Failures of a part that begins at `from` of the whole.
fn failures(errors: Vec<engine::operation::WriteError>, from: usize) -> impl Iterator<Item = WriteError> {
    errors.into_iter().map(move |failed| WriteError { index: from + failed.index, error: failed.error.into() })
}

fn modifications(update: Modifications) -> Result<RawBson> {
    match update {
        Modifications::Operators(operators) => Ok(RawBson::Document(raw(&operators)?)),
        Modifications::Pipeline(pipeline) => Ok(RawBson::Array(stages(&pipeline)?)),
    }
}

fn update_statement(filter: &Document, update: Modifications, options: Update, multi: bool) -> Result<UpdateStatement> {
    let mut query = query(filter)?;
    query.hint = raw_value(options.hint)?;
    query.collation = raw_option(options.collation.as_ref())?;
    Ok(UpdateStatement {
        query,
        update: modifications(update)?,
        multi,
        upsert: options.upsert,
        array_filters: options.array_filters.iter().map(raw).collect::<Result<_>>()?,
    })
}

impl Embedded {
    pub(crate) async fn insert(
        &self,
        collection: &Collection,
        documents: Vec<Document>,
        options: InsertMany,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<InsertManyResult> {
        let documents = documents.iter().map(raw).collect::<Result<_>>()?;
        self.insert_raw(collection, documents, options, session).await
    }

    pub(crate) async fn insert_raw(
        &self,
        collection: &Collection,
        documents: Vec<RawDocumentBuf>,
        options: InsertMany,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<InsertManyResult> {
        let context = context(session);
        let mut done = InsertManyResult::default();
        let mut last = None;
        for (number, chunk) in documents.chunks(MAX_WRITE_BATCH).enumerate() {
            let insert = Insert {
                namespace: namespace(collection)?,
                documents: chunk.to_vec(),
                ordered: options.ordered,
                bypass_document_validation: options.bypass_document_validation,
                statement_ids: Vec::new(),
            };
            let written = self.engine.insert(&context, insert)?;
            done.inserted += written.reply.n as u64;
            done.errors.extend(failures(written.reply.errors, number * MAX_WRITE_BATCH));
            written.ticket.keep_in(&mut last);
            if options.ordered && !done.errors.is_empty() {
                break;
            }
        }
        if let Some(ticket) = last {
            ticket.await?;
        }
        Ok(done)
    }

    pub(crate) async fn update(
        &self,
        collection: &Collection,
        filter: Document,
        update: Modifications,
        options: Update,
        multi: bool,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<UpdateResult> {
        let bypass_document_validation = options.bypass_document_validation;
        let update = engine::operation::Update {
            namespace: namespace(collection)?,
            statements: vec![update_statement(&filter, update, options, multi)?],
            ordered: true,
            bypass_document_validation,
            statement_ids: Vec::new(),
        };
        let reply = self.engine.update(&context(session), &update)?.durable().await?;
        first_error(reply.errors)?;
        let upserted = reply.upserted.into_iter().next().map(|(_, id)| Bson::try_from(id)).transpose()?;
        let matched = reply.n as u64 - u64::from(upserted.is_some());
        Ok(UpdateResult { matched, modified: reply.n_modified as u64, upserted })
    }

    pub(crate) async fn find_one_and_update(
        &self,
        collection: &Collection,
        filter: Document,
        update: Modifications,
        options: FindOneAndUpdate,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<Option<Document>> {
        let modification = Modification::Update {
            update: modifications(update)?,
            upsert: options.upsert,
            new: options.after,
            array_filters: options.array_filters.iter().map(raw).collect::<Result<_>>()?,
        };
        self.find_and_modify(collection, &filter, modification, options, session).await
    }

    pub(crate) async fn find_one_and_delete(
        &self,
        collection: &Collection,
        filter: Document,
        options: FindOneAndUpdate,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<Option<Document>> {
        self.find_and_modify(collection, &filter, Modification::Remove, options, session).await
    }

    async fn find_and_modify(
        &self,
        collection: &Collection,
        filter: &Document,
        modification: Modification,
        options: FindOneAndUpdate,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<Option<Document>> {
        let mut query = query(filter)?;
        query.sort = raw_option(options.sort.as_ref())?;
        query.hint = raw_value(options.hint)?;
        query.collation = raw_option(options.collation.as_ref())?;
        let arguments = FindAndModify {
            namespace: namespace(collection)?,
            query,
            modification,
            fields: raw_option(options.projection.as_ref())?,
            bypass_document_validation: options.bypass_document_validation,
            statement_id: 0,
        };
        let reply = self.engine.find_and_modify(&context(session), &arguments)?.durable().await?;
        reply.value.map(|value| Ok(Document::try_from(&*value)?)).transpose()
    }

    pub(crate) async fn delete(
        &self,
        collection: &Collection,
        filter: Document,
        options: Delete,
        multi: bool,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<u64> {
        let mut query = query(&filter)?;
        query.hint = raw_value(options.hint)?;
        query.collation = raw_option(options.collation.as_ref())?;
        let delete = engine::operation::Delete {
            namespace: namespace(collection)?,
            statements: vec![DeleteStatement { query, multi }],
            ordered: true,
            statement_ids: Vec::new(),
        };
        let reply = self.engine.delete(&context(session), &delete)?.durable().await?;
        first_error(reply.errors)?;
        Ok(reply.n as u64)
    }

    /// Runs a bulk: neighbours of one kind in one collection are one statement batch of the engine.
    pub(crate) async fn bulk_write(
        &self,
        models: Vec<(Collection, WriteModel)>,
        options: BulkWrite,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<BulkWriteResult> {
        let context = context(session);
        let mut done = BulkWriteResult::default();
        let mut last = None;
        let mut from = 0;
        let mut models = models.into_iter().peekable();
        while let Some((collection, model)) = models.next() {
            let namespace = namespace(&collection)?;
            let mut run = Run::new(model)?;
            while run.len() < MAX_WRITE_BATCH
                && let Some((_, model)) = models.next_if(|(other, model)| {
                    other.database == collection.database && other.name == collection.name && run.takes(model)
                })
            {
                run.add(model)?;
            }
            let length = run.len();
            self.run(&context, namespace, run, options, from, &mut done)?.keep_in(&mut last);
            from += length;
            if options.ordered && !done.errors.is_empty() {
                break;
            }
        }
        if let Some(ticket) = last {
            ticket.await?;
        }
        Ok(done)
    }

    fn run(
        &self,
        context: &Context,
        namespace: Namespace,
        run: Run,
        options: BulkWrite,
        from: usize,
        done: &mut BulkWriteResult,
    ) -> Result<Ticket> {
        let BulkWrite { ordered, bypass_document_validation } = options;
        let statement_ids = Vec::new();
        match run {
            Run::Insert(documents) => {
                let insert = Insert { namespace, documents, ordered, bypass_document_validation, statement_ids };
                let written = self.engine.insert(context, insert)?;
                done.inserted += written.reply.n as u64;
                done.errors.extend(failures(written.reply.errors, from));
                Ok(written.ticket)
            }
            Run::Update(statements) => {
                let update = engine::operation::Update {
                    namespace,
                    statements,
                    ordered,
                    bypass_document_validation,
                    statement_ids,
                };
                let written = self.engine.update(context, &update)?;
                done.matched += (written.reply.n - written.reply.upserted.len()) as u64;
                done.modified += written.reply.n_modified as u64;
                for (index, id) in written.reply.upserted {
                    done.upserted.push((from + index, Bson::try_from(id)?));
                }
                done.errors.extend(failures(written.reply.errors, from));
                Ok(written.ticket)
            }
            Run::Delete(statements) => {
                let delete = engine::operation::Delete { namespace, statements, ordered, statement_ids };
                let written = self.engine.delete(context, &delete)?;
                done.deleted += written.reply.n as u64;
                done.errors.extend(failures(written.reply.errors, from));
                Ok(written.ticket)
            }
        }
    }
}

/// Neighbouring writes of one kind in one collection.
enum Run {
    Insert(Vec<bson::RawDocumentBuf>),
    Update(Vec<UpdateStatement>),
    Delete(Vec<DeleteStatement>),
}

impl Run {
    fn new(model: WriteModel) -> Result<Run> {
        let mut run = match &model {
            WriteModel::Insert(_) => Run::Insert(Vec::new()),
            WriteModel::Update { .. } | WriteModel::Replace { .. } => Run::Update(Vec::new()),
            WriteModel::Delete { .. } => Run::Delete(Vec::new()),
        };
        run.add(model)?;
        Ok(run)
    }

    fn len(&self) -> usize {
        match self {
            Run::Insert(all) => all.len(),
            Run::Update(all) => all.len(),
            Run::Delete(all) => all.len(),
        }
    }

    fn takes(&self, model: &WriteModel) -> bool {
        match self {
            Run::Insert(_) => matches!(model, WriteModel::Insert(_)),
            Run::Update(_) => matches!(model, WriteModel::Update { .. } | WriteModel::Replace { .. }),
            Run::Delete(_) => matches!(model, WriteModel::Delete { .. }),
        }
    }

    fn add(&mut self, model: WriteModel) -> Result<()> {
        match (self, model) {
            (Run::Insert(all), WriteModel::Insert(document)) => all.push(raw(&document)?),
            (Run::Update(all), WriteModel::Update { filter, update, many, options }) => {
                all.push(update_statement(&filter, update, options, many)?);
            }
            (Run::Update(all), WriteModel::Replace { filter, replacement, upsert }) => {
                let options = Update { upsert, ..Update::default() };
                all.push(update_statement(&filter, replacement.into(), options, false)?);
            }
            (Run::Delete(all), WriteModel::Delete { filter, many }) => {
                let query: Query = query(&filter)?;
                all.push(DeleteStatement { query, multi: many });
            }
            _ => unreachable!("a run takes only writes of its own kind"),
        }
        Ok(())
    }
}
