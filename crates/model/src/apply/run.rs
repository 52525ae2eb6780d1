//! Doing what a plan says.

use super::Action;
use crate::audit;
use crate::error::Result;
use crate::keep::declaration::Declaration;
use crate::keep::{BACKFILL, Keeper, active};
use crate::model::Model;
use bson::{Bson, DateTime, Document, doc};
use store::{Find, FindOneAndUpdate, Store, Update};

/// What happens meanwhile.
#[derive(Clone, Debug)]
pub enum Event<'e> {
    /// Something was begun.
    Begun(&'e Action),
    /// A declaration is being filled.
    Filling {
        /// Which.
        declaration: &'e str,
        /// `clear` or `fill`.
        phase: &'e str,
        /// The documents gone through.
        checked: u64,
        /// About how many there are.
        total: u64,
    },
    /// Something was done.
    Done(&'e Action),
}

/// Does what a plan says; what the activation has to fill is filled, too.
///
/// # Errors
/// A store that refuses or fails. What was done stays done: the next plan goes on from there.
pub async fn run(
    store: &Store,
    database: &str,
    model: &Model,
    actions: &[Action],
    report: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<()> {
    if define(store, database, model, actions, report).await? {
        fill(store, database, model, report).await?;
    }
    Ok(())
}

/// Does what a plan says but for what is to be filled; whether there is something to fill then. A server that keeps
/// models fills it by itself.
///
/// # Errors
/// As [`run`].
pub async fn define(
    store: &Store,
    database: &str,
    model: &Model,
    actions: &[Action],
    report: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<bool> {
    let mut open = false;
    for action in actions {
        if !matches!(action, Action::Fill { .. }) {
            report(Event::Begun(action));
        }
        match action {
            Action::Create { collection, options } => {
                store.collection(database, collection).create(options.clone()).await?
            }
            Action::Validate { collection, validator } => {
                let changes = doc! { "validator": validator.clone(), "validationLevel": "moderate" };
                store.collection(database, collection).modify(changes).await?;
            }
            Action::DropIndex { collection, name } => store.collection(database, collection).drop_index(name).await?,
            Action::Index { collection, index } => {
                store.collection(database, collection).create_indexes(vec![index.clone()]).await?;
            }
            Action::Shard { collection, key } => {
                let command = doc! { "shardCollection": format!("{database}.{collection}"), "key": key.clone() };
                store.run_command("admin", command).await?;
            }
            Action::Activate { version } => {
                activate(store, database, *version, model).await?;
                open = true;
            }
            Action::Fill { .. } => open = true,
        }
        if !matches!(action, Action::Fill { .. }) {
            report(Event::Done(action));
        }
    }
    Ok(open)
}

/// Whether the server keeps the model itself once it is activated.
fn keeps_itself(store: &Store) -> bool {
    store.capabilities().hooks || store.capabilities().sheaf
}

async fn activate(store: &Store, database: &str, version: i64, model: &Model) -> Result<()> {
    if !keeps_itself(store) {
        // The notes first: an activation without its notes would never be filled.
        let (_, before) = super::active_model(store, database).await?;
        let before = before.as_ref().map(Keeper::new).transpose()?;
        for declaration in Keeper::new(model)?.declarations().iter().filter(|declaration| declaration.is_filled()) {
            let known = before.as_ref().and_then(|before| before.declaration(&declaration.name));
            if !known.is_some_and(|known| known.means_the_same(declaration)) {
                let note = doc! {
                    "version": version, "phase": "fill", "checked": 0_i64, "done": false, "since": DateTime::now(),
                };
                let upsert = Update { upsert: true, ..Update::default() };
                let filter = doc! { "_id": declaration.name.clone() };
                store.collection(database, BACKFILL).replace_one(filter, note, upsert, None).await?;
            }
        }
    }
    let mut activation = active::activation(database, version, Some(model));
    if !keeps_itself(store) {
        activation.insert("activatedAt", DateTime::now());
    }
    store.collection(active::DATABASE, active::MODELS).insert_one(activation, None).await?;
    Ok(())
}

/// The declarations that are being filled.
pub(super) async fn open_notes(store: &Store, database: &str) -> Result<Vec<String>> {
    let open = doc! { "done": false };
    let notes = store.collection(database, BACKFILL).find(open, Find::default(), None).await?;
    Ok(notes.iter().filter_map(|note| note.get_str("_id").ok().map(str::to_owned)).collect())
}

/// Fills everything that is open, one declaration after the other.
async fn fill(store: &Store, database: &str, model: &Model, report: &mut (dyn FnMut(Event<'_>) + Send)) -> Result<()> {
    let keeper = Keeper::new(model)?;
    for name in open_notes(store, database).await? {
        let action = Action::Fill { declaration: name.clone() };
        let Some(declaration) = keeper.declaration(&name) else { continue };
        report(Event::Begun(&action));
        if keeps_itself(store) {
            step_by_step(store, database, declaration, report).await?;
        } else {
            by_repair(store, database, model, declaration, report).await?;
        }
        report(Event::Done(&action));
    }
    Ok(())
}

/// Has the server fill a declaration, a step at a time.
async fn step_by_step(
    store: &Store,
    database: &str,
    declaration: &Declaration,
    report: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<()> {
    let notes = store.collection(database, BACKFILL);
    let total = store.collection(database, &declaration.source).estimated_count().await?
        + store.collection(database, &declaration.collection).estimated_count().await?;
    loop {
        let filter = doc! { "_id": declaration.name.clone(), "done": false };
        let options = FindOneAndUpdate { after: true, ..FindOneAndUpdate::default() };
        let note = notes.find_one_and_update(filter, doc! { "$inc": { "tick": 1_i64 } }, options, None).await?;
        let Some(note) = note else { return Ok(()) };
        let checked = note.get_i64("checked").unwrap_or_default().max(0) as u64;
        let phase = note.get_str("phase").unwrap_or_default();
        report(Event::Filling { declaration: &declaration.name, phase, checked, total });
    }
}

/// Fills a declaration on a server that keeps no models, as an audit repairs it.
async fn by_repair(
    store: &Store,
    database: &str,
    model: &Model,
    declaration: &Declaration,
    report: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<()> {
    let notes = store.collection(database, BACKFILL);
    let id = doc! { "_id": declaration.name.clone() };
    let note = notes.find_one(id.clone(), None).await?.unwrap_or_default();
    let cursor: Option<Bson> = note.get("cursor").cloned();
    let mut auditor = audit::Auditor::new(store, database, model)?;
    auditor.options.repair = true;
    auditor.options.only = Some(vec![declaration.name.clone()]);
    auditor.resume(cursor.and_then(|cursor| audit::State::from_bson(&cursor)));
    let total = store.collection(database, &declaration.collection).estimated_count().await?;
    while auditor.step().await? {
        let finding = auditor.current();
        report(Event::Filling { declaration: &declaration.name, phase: "fill", checked: finding.checked, total });
        let progress = doc! { "$set": { "cursor": auditor.state().to_bson(), "checked": finding.checked as i64 } };
        notes.update_one(id.clone(), progress, Update::default(), None).await?;
    }
    let done: Document = doc! { "$set": { "done": true }, "$unset": { "cursor": 1 } };
    notes.update_one(id, done, Update::default(), None).await?;
    Ok(())
}
