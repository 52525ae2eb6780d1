//! The engine in this process.

use crate::collection::{Collection, Find, FindOneAndUpdate, Update, UpdateResult};
use crate::error::Result;
use crate::session::{Session, SessionKind};
use bson::{Bson, Document, RawBson, RawDocumentBuf, rawdoc};
use bytes::Bytes;
use engine::operation::{Count, Delete, DeleteStatement, FindAndModify, Insert, Modification, Query, UpdateStatement};
use engine::{Context, Engine, Namespace, SessionContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::{Handle, RuntimeFlavor};

#[derive(Clone)]
pub(crate) struct Embedded {
    engine: Engine,
}

pub(crate) struct EmbeddedSession {
    engine: Engine,
    id: [u8; 16],
    number: i64,
    open: bool,
    begun: Arc<AtomicBool>,
}

impl Drop for EmbeddedSession {
    fn drop(&mut self) {
        self.engine.end_sessions(&[self.id]);
    }
}

impl EmbeddedSession {
    pub(crate) fn start_transaction(&mut self) {
        self.number += 1;
        self.open = true;
        self.begun = Arc::default();
    }

    pub(crate) async fn commit(&mut self) -> Result<()> {
        let context = self.context();
        self.open = false;
        if !self.begun.load(Ordering::Relaxed) {
            return Ok(()); // nothing was done in it
        }
        self.engine.commit_transaction(&context)?.durable().await?;
        Ok(())
    }

    pub(crate) fn abort(&mut self) -> Result<()> {
        let context = self.context();
        self.open = false;
        if self.begun.load(Ordering::Relaxed) {
            self.engine.abort_transaction(&context)?;
        }
        Ok(())
    }

    fn context(&self) -> Context {
        let mut context = plain();
        if self.open {
            context.session = Some(SessionContext {
                id: self.id,
                txn_number: Some(self.number),
                in_transaction: true,
                start_transaction: true,
                begun: self.begun.clone(),
            });
        }
        context
    }
}

/// A context whose blocking parts give way to other tasks where the runtime can do that.
fn plain() -> Context {
    let blocking: fn(&mut dyn FnMut()) = |part| match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(part),
        _ => part(),
    };
    Context { blocking, ..Context::default() }
}

fn context(session: Option<&mut EmbeddedSession>) -> Context {
    session.map_or_else(plain, |session| session.context())
}

fn raw(document: &Document) -> Result<RawDocumentBuf> {
    Ok(RawDocumentBuf::try_from(document)?)
}

fn document(bytes: &Bytes) -> Result<Document> {
    Ok(Document::try_from(bson::RawDocument::from_bytes(bytes)?)?)
}

fn query(filter: &Document) -> Result<Query> {
    Ok(Query { filter: raw(filter)?, allow_disk_use: true, ..Query::default() })
}

fn first_error(errors: Vec<engine::operation::WriteError>) -> Result<()> {
    match errors.into_iter().next() {
        Some(failed) => Err(failed.error.into()),
        None => Ok(()),
    }
}

impl Embedded {
    pub(crate) fn new(engine: Engine) -> Embedded {
        Embedded { engine }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn start_session(&self) -> Session {
        let id = bson::Uuid::new().bytes();
        let session =
            EmbeddedSession { engine: self.engine.clone(), id, number: 0, open: false, begun: Arc::default() };
        Session { kind: SessionKind::Embedded(session) }
    }

    pub(crate) async fn insert(
        &self,
        collection: &Collection,
        documents: Vec<Document>,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<()> {
        let insert = Insert {
            namespace: namespace(collection)?,
            documents: documents.iter().map(raw).collect::<Result<_>>()?,
            ordered: true,
            bypass_document_validation: false,
            statement_ids: Vec::new(),
        };
        let reply = self.engine.insert(&context(session), insert)?.durable().await?;
        first_error(reply.errors)
    }

    pub(crate) fn find(
        &self,
        collection: &Collection,
        filter: Document,
        options: Find,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<Vec<Document>> {
        let context = context(session);
        let mut find = engine::operation::Find::new(namespace(collection)?);
        find.query = query(&filter)?;
        find.query.sort = options.sort.as_ref().map(raw).transpose()?;
        find.query.skip = options.skip;
        find.query.limit = options.limit.unsigned_abs();
        find.projection = options.projection.as_ref().map(raw).transpose()?;
        let mut batch = self.engine.find(&context, &find)?;
        let mut found = Vec::new();
        loop {
            for bytes in &batch.documents {
                found.push(document(bytes)?);
            }
            if batch.cursor == 0 {
                return Ok(found);
            }
            batch = self.engine.get_more(&context, batch.cursor, &find.namespace, None, None)?;
        }
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

    pub(crate) async fn update(
        &self,
        collection: &Collection,
        filter: Document,
        update: Document,
        options: Update,
        multi: bool,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<UpdateResult> {
        let statement = UpdateStatement {
            query: query(&filter)?,
            update: RawBson::Document(raw(&update)?),
            multi,
            upsert: options.upsert,
            array_filters: options.array_filters.iter().map(raw).collect::<Result<_>>()?,
        };
        let update = engine::operation::Update {
            namespace: namespace(collection)?,
            statements: vec![statement],
            ordered: true,
            bypass_document_validation: false,
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
        update: Document,
        options: FindOneAndUpdate,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<Option<Document>> {
        let mut query = query(&filter)?;
        query.sort = options.sort.as_ref().map(raw).transpose()?;
        let arguments = FindAndModify {
            namespace: namespace(collection)?,
            query,
            modification: Modification::Update {
                update: RawBson::Document(raw(&update)?),
                upsert: options.upsert,
                new: options.after,
                array_filters: Vec::new(),
            },
            fields: options.projection.as_ref().map(raw).transpose()?,
            bypass_document_validation: false,
            statement_id: 0,
        };
        let reply = self.engine.find_and_modify(&context(session), &arguments)?.durable().await?;
        reply.value.map(|value| Ok(Document::try_from(&*value)?)).transpose()
    }

    pub(crate) async fn delete(
        &self,
        collection: &Collection,
        filter: Document,
        multi: bool,
        session: Option<&mut EmbeddedSession>,
    ) -> Result<u64> {
        let delete = Delete {
            namespace: namespace(collection)?,
            statements: vec![DeleteStatement { query: query(&filter)?, multi }],
            ordered: true,
            statement_ids: Vec::new(),
        };
        let reply = self.engine.delete(&context(session), &delete)?.durable().await?;
        first_error(reply.errors)?;
        Ok(reply.n as u64)
    }

    pub(crate) async fn create_index(&self, collection: &Collection, keys: Document, unique: bool) -> Result<()> {
        let name: Vec<String> = keys.iter().map(|(path, kind)| format!("{path}_{}", kind_text(kind))).collect();
        let mut spec = rawdoc! { "key": raw(&keys)?, "name": name.join("_") };
        if unique {
            spec.append(bson::raw::cstr!("unique"), true);
        }
        self.engine.create_indexes(&plain(), &namespace(collection)?, &[spec])?.durable().await?;
        Ok(())
    }
}

fn kind_text(kind: &Bson) -> String {
    match kind {
        Bson::String(kind) => kind.clone(),
        other => other.to_string(),
    }
}

fn namespace(collection: &Collection) -> Result<Namespace> {
    Ok(Namespace::new(&collection.database, &collection.name)?)
}
