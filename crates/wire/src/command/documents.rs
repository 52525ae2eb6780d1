//! What the data commands share: collections and documents as arguments, cursors and write errors as replies.

use super::arguments::{Field, Path, Uuid};
use super::{Context, type_name};
use crate::bson::Writer;
use crate::message::{Sequence, SequenceIter};
use bson::raw::{RawArrayIter, RawBsonRef};
use bson::spec::BinarySubtype;
use bson::{RawArray, RawDocument, RawDocumentBuf, Timestamp};
use engine::operation::WriteError;
use engine::{Batch, Code, Error, Namespace, Result, SessionContext};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl<'c> Context<'c> {
    /// The engine's context of this command.
    pub(crate) fn engine_context(&self) -> engine::Context {
        let session = self.generic.session.map(|_| SessionContext {
            id: self.session_id(),
            user: self.client.login.digest(),
            txn_number: self.generic.transaction_number,
            in_transaction: self.generic.in_transaction,
            start_transaction: self.generic.starts_transaction,
            ahead: false,
            begun: Arc::new(AtomicBool::new(false)),
        });
        engine::Context {
            session,
            deadline: self.operation.deadline,
            monitor: self.operation.monitor.clone(),
            snapshot: self.generic.snapshot.clone().filter(|_| !self.generic.in_transaction),
            reporter: None,
            index_hints: None,
            is_patient: false,
            blocking: block,
        }
    }

    /// The time of the snapshot that the command has read.
    pub(crate) fn snapshot_time(&self) -> Option<Timestamp> {
        self.generic.snapshot.as_ref().and_then(|read| read.at())
    }

    /// The session's id in the engine: the client's, and different for each user.
    pub(crate) fn session_id(&self) -> engine::SessionId {
        let id = self.generic.session.unwrap_or_default();
        crate::session::SessionId { id, user: self.client.login.digest() }.in_engine()
    }

    /// The collection that the command's value names.
    pub(crate) fn collection(&self) -> Result<Namespace> {
        self.collection_of(self.value()?)
    }

    /// Refuses an operation on a collection that is no longer the one of the UUID that the client had in mind.
    pub(crate) fn check_uuid(&self, namespace: &Namespace, uuid: Option<Uuid<'_>>) -> Result<()> {
        let Some(Uuid(wanted)) = uuid else { return Ok(()) };
        let all = self.shared.engine.list_collections(&engine::Context::default(), &namespace.database)?;
        let actual = all.iter().find(|info| info.collection.uuid == wanted.bytes);
        let actual = actual.map(|info| info.collection.namespace.collection.as_str());
        if actual == Some(namespace.collection.as_str()) {
            return Ok(());
        }
        let mut extra = Writer::new();
        extra.put("db", namespace.database.as_str());
        extra.put("collectionUUID", wanted);
        extra.put("expectedCollection", namespace.collection.as_str());
        match actual {
            Some(actual) => extra.put("actualCollection", actual),
            None => extra.put("actualCollection", RawBsonRef::Null),
        }
        let message = "Collection UUID does not match that specified";
        Err(Error::new(Code::COLLECTION_UUID_MISMATCH, message).with_extra(extra.finish_document()))
    }

    /// The collection that the command's value names, to be written.
    pub(crate) fn written_collection(&self) -> Result<Namespace> {
        let namespace = self.collection()?;
        refuse_reserved(&namespace)?;
        Ok(namespace)
    }

    /// The collection that a value names: by its name, or by its UUID.
    pub(crate) fn collection_of(&self, value: RawBsonRef<'_>) -> Result<Namespace> {
        match value {
            RawBsonRef::String(name) => Namespace::new(self.database(), name),
            RawBsonRef::Binary(binary) if binary.subtype == BinarySubtype::Uuid => {
                let all = self.shared.engine.list_collections(&engine::Context::default(), self.database())?;
                let found = all.into_iter().find(|info| info.collection.uuid == binary.bytes);
                found.map(|info| info.collection.namespace.clone()).ok_or_else(|| {
                    Error::new(Code::NAMESPACE_NOT_FOUND, "there is no collection of this UUID in the database")
                })
            }
            other => {
                let message = format!("collection name has invalid type {}", type_name(other.element_type()));
                Err(Error::new(Code::INVALID_NAMESPACE, message))
            }
        }
    }
}

/// Refuses writes to the collections that only the user commands write.
pub(crate) fn refuse_reserved(namespace: &Namespace) -> Result<()> {
    if crate::auth::is_reserved(namespace) {
        let message = format!("{namespace} can't be written; use createUser, updateRole and the other commands for it");
        return Err(Error::new(Code::UNAUTHORIZED, message));
    }
    Ok(())
}

/// Runs what may block or take long, while another thread goes on with the other connections.
pub(crate) fn block(part: &mut dyn FnMut()) {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(part),
        _ => part(),
    }
}

/// An array of documents, in the body or as a document sequence.
#[derive(Clone, Copy)]
pub(crate) enum Documents<'a> {
    Array(&'a RawArray),
    Sequence(&'a Sequence),
}

impl<'a> Field<'a> for Documents<'a> {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        value.as_array().map(Documents::Array).ok_or_else(|| path.wrong_type(value, &["array"]))
    }

    fn from_sequence(_path: Path<'_>, sequence: &'a Sequence) -> Result<Self> {
        Ok(Documents::Sequence(sequence))
    }
}

impl<'a> Documents<'a> {
    /// The documents, in order; `field` is their path for messages.
    pub(crate) fn iter(self, parent: &'a str, field: &'a str) -> DocumentsIter<'a> {
        let inner = match self {
            Documents::Array(array) => Inner::Array(array.into_iter()),
            Documents::Sequence(sequence) => Inner::Sequence(sequence.iter()),
        };
        DocumentsIter { inner, parent, field, index: 0 }
    }

    /// About how many there are, to reserve room; exact for a sequence.
    pub(crate) fn size_hint(self) -> usize {
        match self {
            Documents::Array(_) => 1,
            Documents::Sequence(sequence) => sequence.count,
        }
    }
}

enum Inner<'a> {
    Array(RawArrayIter<'a>),
    Sequence(SequenceIter<'a>),
}

/// Walks documents.
pub(crate) struct DocumentsIter<'a> {
    inner: Inner<'a>,
    parent: &'a str,
    field: &'a str,
    index: usize,
}

impl<'a> Iterator for DocumentsIter<'a> {
    type Item = Result<&'a RawDocument>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.index;
        self.index += 1;
        match &mut self.inner {
            Inner::Sequence(sequence) => sequence.next().map(Ok),
            Inner::Array(array) => array.next().map(|element| {
                let element = element?;
                let document = element.as_document();
                document.ok_or_else(|| {
                    let field = format!("{}.{index}", self.field);
                    Path { parent: self.parent, field: &field }.wrong_type(element, &["object"])
                })
            }),
        }
    }
}

/// Owned documents of an optional array.
pub(crate) fn owned(array: Option<&RawArray>, path: Path<'_>) -> Result<Vec<RawDocumentBuf>> {
    let mut documents = Vec::new();
    for (index, element) in array.into_iter().flatten().enumerate() {
        let element = element?;
        let field = format!("{}.{index}", path.field);
        let path = Path { parent: path.parent, field: &field };
        documents.push(element.as_document().ok_or_else(|| path.wrong_type(element, &["object"]))?.to_owned());
    }
    Ok(documents)
}

/// A document's owned copy, if there is one.
pub(crate) fn to_owned(document: Option<&RawDocument>) -> Option<RawDocumentBuf> {
    document.map(ToOwned::to_owned)
}

/// A hint: an index's name or key pattern.
#[derive(Clone, Copy)]
pub(crate) struct Hint<'a>(RawBsonRef<'a>);

impl<'a> Field<'a> for Hint<'a> {
    const NULL_IS_MISSING: bool = false;

    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        match value {
            RawBsonRef::String(_) | RawBsonRef::Document(_) => Ok(Hint(value)),
            other => {
                let kind = type_name(other.element_type());
                Err(Error::failed_to_parse(format!("{path} must be a string or an object, not a {kind}")))
            }
        }
    }
}

impl Hint<'_> {
    /// An owned copy; an empty document is no hint.
    pub(crate) fn to_owned(self) -> Option<bson::RawBson> {
        match self.0 {
            RawBsonRef::Document(document) if document.is_empty() => None,
            value => Some(bson::RawBson::from(value)),
        }
    }
}

/// The statement numbers of a retryable write.
pub(crate) fn statement_ids(array: Option<&RawArray>) -> Result<Vec<i32>> {
    let mut ids = Vec::new();
    for element in array.into_iter().flatten() {
        let number = super::number(element?).and_then(|number| i32::try_from(number).ok());
        ids.push(number.ok_or_else(|| Error::type_mismatch("stmtIds are 32-bit integers"))?);
    }
    Ok(ids)
}

/// A reply's `cursor`.
pub(crate) fn write_batch(reply: &mut Writer, name: &str, batch: &Batch) -> Result<()> {
    write_batch_at(reply, name, batch, None)
}

/// A reply's `cursor`, with the time of the snapshot that was read.
pub(crate) fn write_batch_at(reply: &mut Writer, name: &str, batch: &Batch, at: Option<Timestamp>) -> Result<()> {
    reply.begin("cursor");
    reply.begin_array(name);
    for document in &batch.documents {
        reply.push(RawDocument::from_bytes(document)?);
    }
    reply.end();
    reply.put_some("atClusterTime", at);
    reply.put_some("postBatchResumeToken", batch.resume_token.as_ref());
    reply.put("id", batch.cursor);
    reply.put_joined("ns", &[&batch.namespace.database, ".", &batch.namespace.collection]);
    reply.end();
    Ok(())
}

/// `writeErrors`, if there are any.
pub(crate) fn write_errors(ctx: &Context<'_>, reply: &mut Writer, errors: &[WriteError]) {
    // Whoever asks for no acknowledgement gets no errors either.
    if errors.is_empty() || ctx.generic.write_concern.unacknowledged {
        return;
    }
    reply.begin_array("writeErrors");
    for WriteError { index, error } in errors {
        reply.begin_element();
        reply.put("index", *index as i32);
        reply.put("code", error.code.0);
        if let Some(details) = &error.details {
            if let Some(extra) = &details.extra {
                reply.put_all(extra);
            }
            reply.put_some("errInfo", details.info.as_ref());
        }
        reply.put("errmsg", error.message.replace('\0', "\\0").as_str());
        reply.end();
    }
    reply.end();
}

/// A count as MongoDB gives it: an `int` where it fits.
pub(crate) fn put_count(reply: &mut Writer, key: &str, count: u64) {
    match i32::try_from(count) {
        Ok(count) => reply.put(key, count),
        Err(_) => reply.put(key, count as i64),
    }
}
