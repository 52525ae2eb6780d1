//! Users and roles in the engine: `admin.system.users` and `admin.system.roles`.
//!
//! What is in memory is what counts while the server runs; each change is written, and durable, before it takes effect.

use super::record;
use super::users::State;
use bson::raw::{RawBson, RawDocumentBuf};
use bson::{RawDocument, rawdoc};
use engine::operation::{Delete, DeleteStatement, Find, Query, Update, UpdateStatement};
use engine::{Batch, Context, Engine, Error, Namespace, Result};

/// The collections, which no other command may write.
const USERS: &str = "system.users";
const ROLES: &str = "system.roles";

fn collection(name: &str) -> Namespace {
    Namespace { database: "admin".to_owned(), collection: name.to_owned() }
}

/// Whether a namespace is one of the two collections.
pub(crate) fn is_reserved(namespace: &Namespace) -> bool {
    namespace.database == "admin" && matches!(namespace.collection.as_str(), USERS | ROLES)
}

/// Reads all users and roles.
///
/// # Errors
/// A failing storage, a document that can't be read.
pub(crate) fn load(engine: &Engine) -> Result<State> {
    let mut state = State::default();
    each(engine, USERS, |document| {
        let (name, user) = record::parse_user(document)?;
        state.users.insert(name, user);
        Ok(())
    })?;
    each(engine, ROLES, |document| {
        let (name, role) = record::parse_role(document)?;
        state.roles.insert(name, role);
        Ok(())
    })?;
    Ok(state)
}

fn each(engine: &Engine, name: &str, mut read: impl FnMut(&RawDocument) -> Result<()>) -> Result<()> {
    let context = Context::default();
    let namespace = collection(name);
    let mut batch: Batch = engine.find(&context, &Find::new(namespace.clone()))?;
    loop {
        for document in &batch.documents {
            let document = RawDocument::from_bytes(document)?;
            let broken = |error: Error| error.context(format!("a document of {namespace} can't be read"));
            read(document).map_err(broken)?;
        }
        if batch.cursor == 0 {
            return Ok(());
        }
        batch = engine.get_more(&context, batch.cursor, &namespace, None, None)?;
    }
}

/// Writes what differs between two states, and waits until it is durable.
///
/// # Errors
/// A failing storage.
pub(crate) fn save(engine: &Engine, old: &State, new: &State) -> Result<()> {
    let users = |state: &State| -> Vec<RawDocumentBuf> {
        state.users.iter().map(|(name, user)| record::user_document(name, user)).collect()
    };
    let roles = |state: &State| -> Vec<RawDocumentBuf> {
        state.roles.iter().map(|(name, role)| record::role_document(name, role)).collect()
    };
    save_collection(engine, USERS, &users(old), &users(new))?;
    save_collection(engine, ROLES, &roles(old), &roles(new))
}

fn id(document: &RawDocument) -> Result<&str> {
    Ok(document.get_str("_id")?)
}

fn by_id(document: &RawDocument) -> Result<Query> {
    Ok(Query { filter: rawdoc! { "_id": id(document)? }, ..Query::default() })
}

fn save_collection(engine: &Engine, name: &str, old: &[RawDocumentBuf], new: &[RawDocumentBuf]) -> Result<()> {
    let context = Context::default();
    let changed = new.iter().filter(|document| !old.contains(document));
    let mut updates = Vec::new();
    for document in changed {
        updates.push(UpdateStatement {
            query: by_id(document)?,
            update: RawBson::Document(document.clone()),
            multi: false,
            upsert: true,
            array_filters: Vec::new(),
        });
    }
    let gone = old.iter().filter(|document| !new.iter().any(|kept| id(kept).ok() == id(document).ok()));
    let mut deletes = Vec::new();
    for document in gone {
        deletes.push(DeleteStatement { query: by_id(document)?, multi: false });
    }
    if !updates.is_empty() {
        let update = Update {
            namespace: collection(name),
            statements: updates,
            ordered: true,
            bypass_document_validation: true,
            statement_ids: Vec::new(),
        };
        let written = engine.update(&context, &update)?.wait()?;
        fail_first(written.errors.into_iter().map(|failed| failed.error))?;
    }
    if !deletes.is_empty() {
        let delete =
            Delete { namespace: collection(name), statements: deletes, ordered: true, statement_ids: Vec::new() };
        let written = engine.delete(&context, &delete)?.wait()?;
        fail_first(written.errors.into_iter().map(|failed| failed.error))?;
    }
    Ok(())
}

fn fail_first(mut errors: impl Iterator<Item = Error>) -> Result<()> {
    errors.next().map_or(Ok(()), Err)
}
