//! Which models are active: those in `sheaf.models`, the highest version of each database.
//!
//! ```text
//!   sheaf.models { _id: { database, version }, model: "<canonical JSON>" | null, activatedAt }
//!        │ insert: checked by this hook, with a note for each declaration that is to be filled
//!        └──> every later write, in the order of the log, is kept by the new model
//! ```
//!
//! An activation is a document like any other: it has a position in the log, and what was committed before it was kept by
//! the model before it. The hook reads the documents again, under the writer lock, whenever they may have changed, and once
//! after opening. While there is a model the folder opens only together with this layer.

use super::backfill;
use super::embedded::ModelHook;
use super::service::{self, Wake};
use super::value::document;
use super::{BACKFILL, Keeper, compile, newest};
use crate::model::Model;
use crate::problem::{Problems, Sources};
use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use engine::hook::{DocumentWrite, HookScope, WriteHook};
use engine::{Code, Engine, Error, Namespace, Options, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The database of the activations.
pub const DATABASE: &str = "sheaf";

/// The collection of the activations.
pub const MODELS: &str = "models";

/// The layer's name, as a folder that requires it says.
pub const LAYER: &str = "model";

/// The most activations that are read.
const MAX_ACTIVATIONS: usize = 100_000;

/// The hook that keeps every active model.
#[derive(Default)]
pub struct Models {
    hooks: RwLock<BTreeMap<String, Arc<ModelHook>>>,
    /// Whether the hooks are what the stored activations say.
    fresh: AtomicBool,
    wake: Arc<Wake>,
}

/// Opens a folder together with the models that are active in it.
///
/// # Errors
/// As [`Engine::open`].
pub fn open(folder: &Path, options: Options) -> Result<(Engine, Arc<Models>)> {
    let models = Models::new();
    let engine = Engine::open_with(folder, options, vec![models.clone()])?;
    models.load(&engine)?;
    Ok((engine, models))
}

/// Opens a folder so that nothing is kept: for loading what was dumped or copied elsewhere, which brings along what is kept in
/// it. An audit belongs after it. Whatever loads an activation makes the folder one that opens with its models only.
///
/// # Errors
/// As [`Engine::open`].
pub fn open_around(folder: &Path, options: Options) -> Result<Engine> {
    Engine::open_with(folder, options, vec![Arc::new(Around)])
}

/// Lets every write pass.
struct Around;

impl WriteHook for Around {
    fn layer(&self) -> Option<&'static str> {
        Some(LAYER)
    }

    fn watches(&self, namespace: &Namespace) -> bool {
        *namespace == self::namespace()
    }

    fn before_write(&self, write: DocumentWrite<'_>, scope: &mut dyn HookScope) -> Result<Option<RawDocumentBuf>> {
        if write.after.is_some() {
            scope.require_layer(LAYER, true);
        }
        Ok(None)
    }
}

/// Activates a model for a database, unless it is the active one already, and fills what it keeps of the documents that are
/// there; gives the version.
///
/// # Errors
/// A model that is refused, a failing storage.
pub fn activate(engine: &Engine, database: &str, model: &Model) -> Result<i64> {
    let (version, active) = active(engine, database)?;
    if active.as_ref().map(Model::to_json) == Some(model.to_json()) {
        return Ok(version);
    }
    let document = compile::raw(&activation(database, version + 1, Some(model)))?;
    let insert = engine::operation::Insert {
        namespace: namespace(),
        documents: vec![document],
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    let reply = engine.insert(&engine::Context::default(), insert)?.wait()?;
    if let Some(failed) = reply.errors.into_iter().next() {
        return Err(failed.error);
    }
    service::fill(engine, database)?;
    Ok(version + 1)
}

/// The version and the model that are active for a database; version 0 if there never was one.
///
/// # Errors
/// A failing storage.
pub fn active(engine: &Engine, database: &str) -> Result<(i64, Option<Model>)> {
    let filter = doc! { "_id.database": database };
    let mut last = (0, None);
    for activation in service::find(engine, namespace(), &filter, 0)? {
        let (_, version, model) = read_activation(&activation)?;
        if version > last.0 {
            last = (version, model);
        }
    }
    Ok(last)
}

/// The namespace of the activations.
///
/// # Panics
/// Never: the name is valid.
pub fn namespace() -> Namespace {
    Namespace::new(DATABASE, MODELS).expect("a valid name")
}

/// The document that activates a model as that version; `None` ends the model's activity.
pub fn activation(database: &str, version: i64, model: Option<&Model>) -> Document {
    let model = model.map_or(Bson::Null, |model| Bson::String(model.to_json()));
    doc! { "_id": { "database": database, "version": version }, "model": model }
}

/// The version and the model of an activation.
///
/// # Errors
/// A document that is none.
pub fn read_activation(activation: &Document) -> Result<(String, i64, Option<Model>)> {
    let id = activation.get_document("_id").map_err(|_| bad("an activation's _id is { database, version }"))?;
    let database = id.get_str("database").map_err(|_| bad("an activation names its database in _id.database"))?;
    let version = id.get("version").map(newest::raw).transpose()?;
    let version = version
        .and_then(|version| engine::document::Number::of(version.as_raw_bson_ref())?.to_i64_exact())
        .ok_or_else(|| bad("an activation has a whole number in _id.version"))?;
    let model = match activation.get("model") {
        Some(Bson::String(text)) => Some(Model::from_json(text).map_err(|error| bad(error.to_string()))?),
        Some(Bson::Null) => None,
        _ => return Err(bad("an activation has the model's canonical JSON as a text in `model`, or null to end it")),
    };
    Ok((database.to_owned(), version, model))
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(Code::DOCUMENT_VALIDATION_FAILURE, message.into())
}

impl Models {
    /// The layer's hook, to be given to [`Engine::open_with`].
    pub fn new() -> Arc<Models> {
        Arc::default()
    }

    /// The databases with an active model, as the last write found them.
    pub fn databases(&self) -> Vec<String> {
        self.hooks.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn hook(&self, database: &str) -> Option<Arc<ModelHook>> {
        self.hooks.read().unwrap_or_else(PoisonError::into_inner).get(database).cloned()
    }

    /// Reads the stored activations of an engine that nobody writes to yet.
    ///
    /// # Errors
    /// A failing storage; activations that can't be read.
    pub fn load(&self, engine: &Engine) -> Result<()> {
        self.take(service::find(engine, namespace(), &Document::new(), 0)?)
    }

    /// What wakes the service.
    pub(super) fn wake(&self) -> Arc<Wake> {
        self.wake.clone()
    }

    /// How far a declaration's copies may be behind.
    pub fn max_lag_ms(&self, database: &str, declaration: &str) -> Option<u64> {
        self.hook(database)?.keeper.max_lag_ms(declaration)
    }

    /// Reads the stored activations.
    fn read(&self, scope: &dyn HookScope) -> Result<()> {
        let stored = scope.find(&namespace(), &RawDocumentBuf::new(), MAX_ACTIVATIONS)?;
        self.take(stored.iter().map(|stored| document(stored)).collect::<Result<_>>()?)?;
        self.fresh.store(true, Ordering::Release);
        Ok(())
    }

    fn take(&self, stored: Vec<Document>) -> Result<()> {
        let mut newest: BTreeMap<String, (i64, Option<Model>)> = BTreeMap::new();
        for stored in stored {
            let (database, version, model) = read_activation(&stored)?;
            let known = newest.entry(database).or_insert((0, None));
            if version > known.0 {
                *known = (version, model);
            }
        }
        let mut hooks = BTreeMap::new();
        for (database, (_, model)) in newest {
            if let Some(model) = model {
                let hook = ModelHook::new(Keeper::new(&model)?, database.clone()).waking(self.wake.clone());
                hooks.insert(database, Arc::new(hook));
            }
        }
        *self.hooks.write().unwrap_or_else(PoisonError::into_inner) = hooks;
        self.wake.ask();
        Ok(())
    }

    /// Checks an activation and notes what is to be filled.
    fn activate(&self, write: DocumentWrite<'_>, scope: &mut dyn HookScope) -> Result<Option<RawDocumentBuf>> {
        let (None, Some(after)) = (write.before, write.after) else {
            return Err(Error::new(
                Code::ILLEGAL_OPERATION,
                "an activation is never changed or deleted: insert one with the next version (model: null ends it)",
            ));
        };
        self.fresh.store(false, Ordering::Release);
        let mut activation = document(after)?;
        let (database, version, model) = read_activation(&activation)?;
        let (last, before) = self.last(&database, after, scope)?;
        if version != last + 1 {
            return Err(bad(format!(
                "the active model of `{database}` has version {last}: activate version {}, not {version}",
                last + 1
            )));
        }
        let keeper = match &model {
            Some(model) => Some(checked(model)?),
            None => None,
        };
        let before = before.as_ref().map(Keeper::new).transpose()?;
        self.note_backfills(&database, version, before.as_ref(), keeper.as_ref(), scope)?;
        scope.require_layer(LAYER, model.is_some() || self.others_active(&database, scope)?);
        // The notes were writes, too, before which the activations were read: without this one.
        self.fresh.store(false, Ordering::Release);
        self.wake.ask();
        activation.insert("activatedAt", bson::DateTime::from_millis(scope.now()));
        Ok(Some(compile::raw(&activation)?))
    }

    /// The last activation of a database.
    fn last(&self, database: &str, writing: &RawDocument, scope: &dyn HookScope) -> Result<(i64, Option<Model>)> {
        let own = document(writing)?.get("_id").cloned();
        let filter = compile::raw(&doc! { "_id.database": database })?;
        let mut last = (0, None);
        for stored in scope.find(&namespace(), &filter, MAX_ACTIVATIONS)? {
            let stored = document(&stored)?;
            if stored.get("_id") == own.as_ref() {
                return Err(Error::new(
                    Code::ILLEGAL_OPERATION,
                    "this version was activated before, or the activation is part of a transaction: activate the next \
                     version, outside of transactions",
                ));
            }
            let (_, version, model) = read_activation(&stored)?;
            if version > last.0 {
                last = (version, model);
            }
        }
        Ok(last)
    }

    fn others_active(&self, database: &str, scope: &dyn HookScope) -> Result<bool> {
        let mut newest: BTreeMap<String, (i64, bool)> = BTreeMap::new();
        for stored in scope.find(&namespace(), &RawDocumentBuf::new(), MAX_ACTIVATIONS)? {
            let (other, version, model) = read_activation(&document(&stored)?)?;
            let known = newest.entry(other).or_default();
            if version > known.0 {
                *known = (version, model.is_some());
            }
        }
        newest.remove(database);
        Ok(newest.values().any(|(_, active)| *active))
    }

    fn note_backfills(
        &self,
        database: &str,
        version: i64,
        before: Option<&Keeper>,
        after: Option<&Keeper>,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let notes = Namespace::new(database, BACKFILL)?;
        let Some(after) = after else { return Ok(()) };
        for declaration in after.declarations().iter().filter(|declaration| declaration.is_filled()) {
            let known = before.and_then(|before| before.declaration(&declaration.name));
            if known.is_some_and(|known| known.means_the_same(declaration)) {
                continue;
            }
            let note = compile::raw(&backfill::note(declaration, version, scope.now()))?;
            if !scope.replace(&notes, note.clone())? {
                scope.insert(&notes, note)?;
            }
        }
        Ok(())
    }
}

/// Checks a model as its files would be, and prepares it.
fn checked(model: &Model) -> Result<Keeper> {
    let mut problems = Problems::new(Sources::default());
    crate::check::check(model, &mut problems);
    if problems.has_errors() {
        return Err(bad(format!("the model is refused: {}", problems.messages().join("; "))));
    }
    Keeper::new(model)
}

impl WriteHook for Models {
    fn layer(&self) -> Option<&'static str> {
        Some(LAYER)
    }

    fn watches(&self, namespace: &Namespace) -> bool {
        !self.fresh.load(Ordering::Acquire)
            || (namespace.database == DATABASE && namespace.collection == MODELS)
            || self.hook(&namespace.database).is_some_and(|hook| hook.watches(namespace))
    }

    fn clears_before_drop(&self, namespace: &Namespace) -> Result<bool> {
        if namespace.database == DATABASE && namespace.collection == MODELS {
            return Err(Error::new(
                Code::ILLEGAL_OPERATION,
                "sheaf.models says which models are kept and can't be dropped or renamed: activate `model: null` to end one",
            ));
        }
        match self.hook(&namespace.database) {
            Some(hook) => hook.clears_before_drop(namespace),
            None => Ok(false),
        }
    }

    fn before_write(&self, write: DocumentWrite<'_>, scope: &mut dyn HookScope) -> Result<Option<RawDocumentBuf>> {
        if write.namespace.database == DATABASE && write.namespace.collection == MODELS {
            return self.activate(write, scope);
        }
        if !self.fresh.load(Ordering::Acquire) {
            self.read(scope)?;
            // Data that were restored or copied here brought their model along.
            if !self.databases().is_empty() {
                scope.require_layer(LAYER, true);
            }
        }
        match self.hook(&write.namespace.database) {
            Some(hook) if hook.watches(write.namespace) => hook.before_write(write, scope),
            _ => Ok(None),
        }
    }
}
