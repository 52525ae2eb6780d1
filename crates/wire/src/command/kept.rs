//! Settings of the server that are kept in the `config` database, each as one document, where MongoDB keeps them too.

use bson::{RawDocument, RawDocumentBuf, rawdoc};
use engine::operation::{Find, Query, Update, UpdateStatement};
use engine::{Engine, Namespace, Result, Written};

fn namespace(collection: &str) -> Result<Namespace> {
    Namespace::new("config", collection)
}

/// The document of an id.
///
/// # Errors
/// A failing storage.
pub(super) fn read(engine: &Engine, collection: &str, id: &str) -> Result<Option<RawDocumentBuf>> {
    let query = Query { filter: rawdoc! { "_id": id }, ..Query::default() };
    let batch = engine.find(&engine::Context::default(), &Find { query, ..Find::new(namespace(collection)?) })?;
    Ok(match batch.documents.first() {
        Some(document) => Some(RawDocument::from_bytes(document)?.to_owned()),
        None => None,
    })
}

/// Puts a document, which has the id, in the place of the old one.
///
/// # Errors
/// A failing storage.
pub(super) fn replace(engine: &Engine, collection: &str, id: &str, new: RawDocumentBuf) -> Result<Written<()>> {
    let statement = UpdateStatement {
        query: Query { filter: rawdoc! { "_id": id }, ..Query::default() },
        update: new.into(),
        multi: false,
        upsert: true,
        array_filters: Vec::new(),
    };
    let update = Update {
        namespace: namespace(collection)?,
        statements: vec![statement],
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    let mut written = engine.update(&engine::Context::default(), &update)?;
    match written.reply.errors.pop() {
        Some(failed) => Err(failed.error),
        None => Ok(Written { reply: (), ticket: written.ticket }),
    }
}
