//! Collections and databases: `create`, `drop`, `dropDatabase`, `renameCollection`, `listCollections`, `listDatabases`.

use crate::catalog::{Collection, Settings};
use crate::context::Context;
use crate::database::{Engine, Inner, State, Totals, Written, totals_key};
use crate::error::{Code, Error, Result};
use crate::keyspace;
use crate::namespace::Namespace;
use crate::operation::Query;
use crate::statement::Statement;
use crate::storage::{Direction, View};
use bson::{RawDocument, RawDocumentBuf, rawdoc};
use std::collections::HashSet;
use std::sync::Arc;

/// The keys that one step of dropping deletes.
const DROP_STEP_KEYS: usize = 10_000;

/// How often a drop that must delete the documents first begins again when others insert meanwhile.
const MAX_DROP_ATTEMPTS: usize = 10;

/// A collection or view to create.
#[derive(Clone, Debug)]
pub struct Create {
    /// Its name.
    pub namespace: Namespace,
    /// Its options as `listCollections` shows them, checked by whoever read the command.
    pub options: RawDocumentBuf,
}

/// A collection to rename.
#[derive(Clone, Debug)]
pub struct Rename {
    /// The collection.
    pub from: Namespace,
    /// Its new name.
    pub to: Namespace,
    /// Whether a collection of the new name is dropped.
    pub drop_target: bool,
}

/// What is known of a collection.
#[derive(Clone, Debug)]
pub struct CollectionInfo {
    /// Its entry in the catalogue.
    pub collection: Arc<Collection>,
    /// How many documents it holds, and their bytes.
    pub totals: Totals,
}

impl Engine {
    /// Creates a collection or a view.
    ///
    /// # Errors
    /// `NamespaceExists` (48), and what the options refuse; for a view also what its definition can't be.
    pub fn create(&self, context: &Context, create: &Create) -> Result<Written<()>> {
        self.inner.write(context, |statement| {
            if let Some(existing) = statement.catalog.get(&create.namespace) {
                if existing.options == create.options && context.transaction().is_none() {
                    return Ok(());
                }
                return Err(Error::new(
                    Code::NAMESPACE_EXISTS,
                    format!(
                        "namespace {} already exists, with these options: {}",
                        create.namespace,
                        crate::document::text(&existing.options)
                    ),
                ));
            }
            super::views::check_view(&statement.catalog, &create.namespace, &create.options)?;
            statement.create_collection(&create.namespace, create.options.clone())
        })
    }

    /// Drops a collection or a view; false when there is none. Gives the number of its indexes.
    ///
    /// # Errors
    /// A failing storage.
    pub fn drop_collection(&self, context: &Context, namespace: &Namespace) -> Result<Written<Option<usize>>> {
        let clears = self.inner.clears_before_drop(namespace)?;
        let mut attempts = 0;
        let dropped = loop {
            if clears {
                self.inner.delete_many(context, namespace, &Query::default())?.wait()?;
                attempts += 1;
            }
            let dropped = self.inner.write(context, |statement| {
                let Some(collection) = statement.catalog.get(namespace).cloned() else { return Ok(Some(None)) };
                if clears && holds_documents(statement, &collection)? {
                    return Ok(None);
                }
                drop_entry(statement, &collection)?;
                Ok(Some(Some(collection)))
            })?;
            match dropped.reply {
                Some(reply) => break Written { reply, ticket: dropped.ticket },
                None if attempts < MAX_DROP_ATTEMPTS => {}
                None => {
                    return Err(Error::new(
                        Code::CONFLICTING_OPERATION_IN_PROGRESS,
                        format!("{namespace} can't be dropped: others keep inserting into it; stop them first"),
                    ));
                }
            }
        };
        let Some(collection) = dropped.reply else { return Ok(Written { reply: None, ticket: dropped.ticket }) };
        self.inner.discard(context, &collection)?;
        let indexes = collection.indexes.len() + collection.implicit_indexes();
        Ok(Written { reply: Some(indexes), ticket: dropped.ticket })
    }

    /// Drops all collections of a database; false when there is none.
    ///
    /// # Errors
    /// A failing storage.
    pub fn drop_database(&self, context: &Context, database: &str) -> Result<Written<bool>> {
        for info in self.list_collections(context, database)? {
            self.inner.clears_before_drop(&info.collection.namespace)?;
        }
        let dropped = self.inner.write(context, |statement| {
            let all: Vec<_> = statement.catalog.database(database).cloned().collect();
            for collection in &all {
                drop_entry(statement, collection)?;
            }
            if !all.is_empty() {
                let namespace = Namespace { database: database.to_owned(), collection: "$cmd".to_owned() };
                statement.define(&namespace, None, &rawdoc! { "dropDatabase": 1 })?;
            }
            Ok(all)
        })?;
        for collection in &dropped.reply {
            self.inner.discard(context, collection)?;
        }
        Ok(Written { reply: !dropped.reply.is_empty(), ticket: dropped.ticket })
    }

    /// Renames a collection.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), `NamespaceExists` (48), `IllegalOperation` (20) for the same name.
    pub fn rename(&self, context: &Context, rename: &Rename) -> Result<Written<()>> {
        for namespace in [&rename.from, &rename.to] {
            if self.inner.clears_before_drop(namespace)? {
                return Err(Error::new(
                    Code::ILLEGAL_OPERATION,
                    format!("{namespace} is kept as it is named: a collection can't be renamed from or to it"),
                ));
            }
        }
        let renamed = self.inner.write(context, |statement| {
            let source = statement.catalog.get(&rename.from).cloned().ok_or_else(|| {
                Error::new(Code::NAMESPACE_NOT_FOUND, format!("Source collection {} does not exist", rename.from))
            })?;
            crate::statement::refuse_view(&source)?;
            if rename.from == rename.to {
                return Err(Error::new(Code::ILLEGAL_OPERATION, "Can't rename a collection to itself"));
            }
            let target = statement.catalog.get(&rename.to).cloned();
            if target.is_some() && !rename.drop_target {
                return Err(Error::new(Code::NAMESPACE_EXISTS, "target namespace exists"));
            }
            let mut detail = rawdoc! {
                "renameCollection": rename.from.to_string(),
                "to": rename.to.to_string(),
            };
            if let Some(target) = &target {
                remove_entry(statement, target);
                detail.append(bson::raw::cstr!("dropTarget"), uuid_binary(&target.uuid));
            }
            statement.define(&rename.from, Some(source.uuid), &detail)?;
            statement.change_catalog(|catalog| {
                catalog.remove(&rename.from);
            });
            let mut moved = Collection::clone(&source);
            moved.namespace = rename.to.clone();
            statement.put_collection(moved)?;
            Ok(target)
        })?;
        if let Some(target) = &renamed.reply {
            self.inner.discard(context, target)?;
        }
        Ok(Written { reply: (), ticket: renamed.ticket })
    }

    /// Replaces a collection's options (`collMod`), e.g. another validator.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26), and what `change` and the new options refuse.
    pub fn modify_options(
        &self,
        context: &Context,
        namespace: &Namespace,
        change: impl Fn(&RawDocument) -> Result<RawDocumentBuf>,
    ) -> Result<Written<()>> {
        self.inner.write(context, |statement| {
            let collection = statement.catalog.require(namespace)?.clone();
            let options = change(&collection.options)?;
            super::views::check_view(&statement.catalog, namespace, &options)?;
            let mut changed = Collection::clone(&collection);
            changed.settings = Settings::parse(&options)?;
            changed.options = options;
            let detail = rawdoc! { "collMod": namespace.collection.as_str(), "options": changed.options.clone() };
            statement.define(namespace, Some(collection.uuid), &detail)?;
            statement.put_collection(changed)
        })
    }

    /// The collections and views of a database, by name.
    ///
    /// # Errors
    /// A failing storage.
    pub fn list_collections(&self, context: &Context, database: &str) -> Result<Vec<CollectionInfo>> {
        let reading = self.inner.reading(context)?;
        let info = |collection: &Arc<Collection>| {
            let totals = self.inner.totals(&*reading.view()?, collection.id)?;
            Ok(CollectionInfo { collection: collection.clone(), totals })
        };
        reading.catalog.database(database).map(info).collect()
    }

    /// One collection or view.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26).
    pub fn collection(&self, context: &Context, namespace: &Namespace) -> Result<CollectionInfo> {
        let reading = self.inner.reading(context)?;
        let collection = reading.catalog.require(namespace)?.clone();
        let totals = self.inner.totals(&*reading.view()?, collection.id)?;
        Ok(CollectionInfo { collection, totals })
    }

    /// The databases, with the bytes that their collections and indexes take.
    ///
    /// # Errors
    /// A failing storage.
    pub fn list_databases(&self, context: &Context) -> Result<Vec<(String, u64)>> {
        let reading = self.inner.reading(context)?;
        let mut databases: Vec<(String, u64)> = Vec::new();
        for collection in reading.catalog.all() {
            let sizes = self.inner.sizes(&*reading.view()?, collection)?;
            let size = sizes.storage_bytes + sizes.index_bytes();
            match databases.last_mut() {
                Some((name, bytes)) if *name == collection.namespace.database => *bytes += size,
                _ => databases.push((collection.namespace.database.clone(), size)),
            }
        }
        Ok(databases)
    }
}

fn holds_documents(statement: &Statement<'_>, collection: &Collection) -> Result<bool> {
    let prefix = keyspace::prefix(keyspace::RECORDS, collection.id);
    let mut end = None;
    let (from, to) = keyspace::bounds(&prefix, &mut end);
    Ok(statement.view().range(from, to, Direction::Forward)?.next().transpose()?.is_some())
}

fn uuid_binary(uuid: &[u8; 16]) -> bson::Binary {
    bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: uuid.to_vec() }
}

/// Removes a collection from the catalogue and notes that it was dropped.
fn drop_entry(statement: &mut Statement<'_>, collection: &Arc<Collection>) -> Result<()> {
    let detail = rawdoc! { "drop": collection.namespace.collection.as_str() };
    statement.define(&collection.namespace, Some(collection.uuid), &detail)?;
    remove_entry(statement, collection);
    Ok(())
}

fn remove_entry(statement: &mut Statement<'_>, collection: &Arc<Collection>) {
    statement.remove(collection.entry_key());
    statement.change_catalog(|catalog| {
        catalog.remove(&collection.namespace);
    });
}

impl Inner {
    /// Whether a hook wants the documents of a namespace deleted one by one before it goes as a whole.
    pub(crate) fn clears_before_drop(&self, namespace: &Namespace) -> Result<bool> {
        let mut clears = false;
        for hook in self.hooks.load().iter() {
            clears |= hook.clears_before_drop(namespace)?;
        }
        Ok(clears)
    }

    /// Deletes the data of a collection that is no longer in the catalogue, in bounded steps.
    pub(crate) fn discard(&self, context: &Context, collection: &Collection) -> Result<()> {
        if context.transaction().is_some() {
            return Ok(());
        }
        let prefixes =
            [keyspace::RECORDS, keyspace::BUCKETS, keyspace::IDS].map(|kind| keyspace::prefix(kind, collection.id));
        let indexes = collection.indexes.iter().map(|index| keyspace::prefix(keyspace::INDEXES, index.id));
        for prefix in prefixes.into_iter().chain(indexes) {
            self.delete_prefix(&prefix)?;
        }
        let _ = self.write(&Context::default(), |statement| {
            statement.remove(totals_key(collection.id));
            Ok(())
        })?;
        self.counters.forget(collection.id);
        self.series.forget(collection.id);
        self.index_uses.forget(collection.id, None);
        self.plans.clear(collection.id);
        self.plans.clear_filters(collection.id, None);
        // A change stream still has its drop and invalidate events to give.
        let message = format!("collection dropped. UUID {}", bson::Uuid::from_bytes(collection.uuid));
        let dropped = Error::new(Code::QUERY_PLAN_KILLED, message);
        self.cursors
            .fail_where(&dropped, |cursor| cursor.namespace == collection.namespace && cursor.reached.is_none());
        Ok(())
    }

    /// Deletes all keys with a prefix, in bounded steps.
    pub(crate) fn delete_prefix(&self, prefix: &[u8]) -> Result<()> {
        loop {
            let deleted = self.write(&Context::default(), |statement| {
                let mut end = None;
                let (from, to) = keyspace::bounds(prefix, &mut end);
                let keys: Vec<_> = statement
                    .view()
                    .range(from, to, Direction::Forward)?
                    .take(DROP_STEP_KEYS)
                    .map(|entry| entry.map(|entry| entry.0))
                    .collect::<Result<_>>()?;
                for key in &keys {
                    statement.remove(key.clone());
                }
                Ok(keys.len())
            })?;
            if deleted.reply < DROP_STEP_KEYS {
                return Ok(());
            }
        }
    }

    /// The prefixes of what collections and indexes that are no longer in the catalogue left behind, after a crash in the
    /// middle of a drop.
    pub(crate) fn orphans(&self, state: &State) -> Result<Vec<[u8; 5]>> {
        let mut orphans = Vec::new();
        let indexes = state.catalog.all().flat_map(|collection| &collection.indexes);
        let indexes: HashSet<u32> = indexes.map(|index| index.id).collect();
        for kind in [keyspace::RECORDS, keyspace::BUCKETS, keyspace::IDS, keyspace::INDEXES] {
            let known = |id: u32| match kind {
                keyspace::INDEXES => indexes.contains(&id),
                _ => state.catalog.by_id(id).is_some(),
            };
            let mut from = vec![kind];
            while let Some(prefix) = next_prefix(&state.snapshot, &from, kind)? {
                let id = u32::from_be_bytes(prefix[1..5].try_into().expect("a prefix is five bytes long"));
                if !known(id) {
                    orphans.push(prefix);
                }
                match keyspace::after_prefix(&prefix) {
                    Some(after) => from = after,
                    None => break,
                }
            }
        }
        Ok(orphans)
    }
}

/// The prefix of the first key of a kind at or after `from`.
fn next_prefix(view: &dyn View, from: &[u8], kind: u8) -> Result<Option<[u8; 5]>> {
    let to = [kind + 1];
    let range = view.range(std::ops::Bound::Included(from), std::ops::Bound::Excluded(&to), Direction::Forward)?;
    let first = range.take(1).next().transpose()?;
    Ok(first.and_then(|entry| entry.0.get(..5)?.try_into().ok()))
}

#[cfg(test)]
mod tests {
    use super::next_prefix;
    use crate::context::Context;
    use crate::database::{Engine, Options};
    use crate::keyspace;
    use crate::namespace::Namespace;
    use crate::operation::Insert;
    use bson::rawdoc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn no_reader_sees_records_without_their_collection() {
        let engine = Engine::in_memory(Options::system()).expect("opens");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut from = vec![keyspace::RECORDS];
                    while !done.load(Ordering::Relaxed) {
                        let state = engine.state();
                        while let Some(prefix) = next_prefix(&state.snapshot, &from, keyspace::RECORDS).expect("reads")
                        {
                            let id = u32::from_be_bytes(prefix[1..5].try_into().expect("five bytes"));
                            assert!(state.catalog.by_id(id).is_some(), "records of an unknown collection");
                            from = keyspace::after_prefix(&prefix).expect("not the last kind");
                        }
                    }
                });
            }
            for n in 0..3_000 {
                let namespace = Namespace::new("shop", &format!("c{n}")).expect("a name");
                let insert = Insert {
                    namespace,
                    documents: vec![rawdoc! { "_id": n }],
                    ordered: true,
                    bypass_document_validation: false,
                    statement_ids: Vec::new(),
                };
                engine.insert(&Context::default(), insert).expect("inserts").wait().expect("flushes");
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
