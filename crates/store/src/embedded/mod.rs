//! The engine in this process.

mod admin;
mod read;
mod session;
mod watch;
mod write;

pub(crate) use read::EmbeddedCursor;
pub(crate) use session::{EmbeddedSession, as_embedded};
pub(crate) use watch::EmbeddedStream;

use crate::collection::Collection;
use crate::error::Result;
use bson::{Bson, Document, RawBson, RawDocumentBuf};
use bytes::Bytes;
use engine::operation::Query;
use engine::{Context, Engine, Namespace};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};

#[derive(Clone)]
pub(crate) struct Embedded {
    engine: Engine,
}

impl Embedded {
    pub(crate) fn new(engine: Engine) -> Embedded {
        Embedded { engine }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
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

/// The context of an operation, in a session or not.
fn context(session: Option<&mut EmbeddedSession>) -> Context {
    session.map_or_else(plain, |session| session.context())
}

/// The context of an operation that may take a while at most.
fn bounded(session: Option<&mut EmbeddedSession>, max_time: Option<Duration>) -> Context {
    let mut context = context(session);
    context.deadline = max_time.map(|most| Instant::now() + most);
    context
}

fn raw(document: &Document) -> Result<RawDocumentBuf> {
    Ok(RawDocumentBuf::try_from(document)?)
}

fn raw_option(document: Option<&Document>) -> Result<Option<RawDocumentBuf>> {
    document.map(raw).transpose()
}

fn raw_value(value: Option<Bson>) -> Result<Option<RawBson>> {
    value.map(|value| Ok(RawBson::try_from(value)?)).transpose()
}

fn document(bytes: &Bytes) -> Result<Document> {
    Ok(Document::try_from(bson::RawDocument::from_bytes(bytes)?)?)
}

fn query(filter: &Document) -> Result<Query> {
    Ok(Query { filter: raw(filter)?, allow_disk_use: true, ..Query::default() })
}

fn namespace(collection: &Collection) -> Result<Namespace> {
    Ok(Namespace::new(&collection.database, &collection.name)?)
}
