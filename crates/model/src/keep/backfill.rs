//! Filling what a new or changed declaration keeps, in bounded steps, while others write.
//!
//! ```text
//!   activation ──> a note per declaration in sheaf.backfill { phase: clear -> fill -> done, cursor }
//!                        └─ each update of a note by a client does one step in that update's own statement
//! ```
//!
//! Counts, sums and rollups are cleared first; then the source's documents are added in the order of `_id`, and a write of a
//! document beyond the cursor changes nothing yet: its turn comes. It is the way in which an index is built. Everything
//! else is a function of the state and follows every write meanwhile.

use super::active::LAYER;
use super::declaration::{Declaration, Rule};
use super::effect::{Effect, Place};
use super::embedded::ModelHook;
use super::lagging::{BATCH, RESERVE};
use super::timeline::{self, Fan};
use super::value::{document, id_at, owned, set, tree};
use super::{BACKFILL, PENDING, compile, compress, newest, others, own, range};
use bson::{Bson, Document, RawBson, RawDocument, RawDocumentBuf, doc};
use engine::document::compare_values;
use engine::hook::{DocumentWrite, HookScope};
use engine::{Code, Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The most notes that are read.
const MANY: usize = 100_000;

/// How far the backfills of a model are, as the last committed state says.
#[derive(Default)]
pub(super) struct Progress {
    open: Mutex<Option<Arc<Open>>>,
    changed: AtomicBool,
}

/// The backfills that are not done.
#[derive(Debug, Default)]
pub(super) struct Open {
    cursors: BTreeMap<String, Option<RawBson>>,
}

impl Open {
    /// Whether a declaration counts the document with that id.
    pub(super) fn counts(&self, declaration: &str, id: &RawBson) -> Result<bool> {
        match self.cursors.get(declaration) {
            None => Ok(true),
            Some(None) => Ok(false),
            Some(Some(cursor)) => Ok(compare_values(id.as_raw_bson_ref(), cursor.as_raw_bson_ref(), None)?.is_le()),
        }
    }
}

impl Progress {
    /// Reads the notes again if they may have changed.
    pub(super) fn get(&self, hook: &ModelHook, scope: &dyn HookScope) -> Result<Arc<Open>> {
        let mut open = self.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match &*open {
            Some(open) if !self.changed.swap(false, Ordering::AcqRel) => Ok(open.clone()),
            _ => {
                let read = Arc::new(hook.open_backfills(scope)?);
                *open = Some(read.clone());
                Ok(read)
            }
        }
    }

    fn may_change(&self) {
        self.changed.store(true, Ordering::Release);
    }
}

/// The note of a declaration that is to be filled.
pub(super) fn note(declaration: &Declaration, version: i64, now_ms: i64) -> Document {
    doc! {
        "_id": declaration.name.clone(), "version": version, "phase": "clear", "checked": 0_i64, "done": false,
        "since": bson::DateTime::from_millis(now_ms),
    }
}

/// What one step has done.
enum Step {
    /// Up to this id, and there may be more.
    Upto(Option<Bson>, usize),
    /// The phase is over.
    Over(usize),
}

impl ModelHook {
    fn open_backfills(&self, scope: &dyn HookScope) -> Result<Open> {
        let filter = compile::raw(&doc! { "done": false })?;
        let mut open = Open::default();
        for note in scope.find(&*self.namespace(BACKFILL)?, &filter, MANY)? {
            let note = document(&note)?;
            let Ok(name) = note.get_str("_id") else { continue };
            let summed = self.keeper.declaration(name).map(|declaration| &declaration.rule);
            if !matches!(summed, Some(Rule::Number(_) | Rule::Roll(_) | Rule::Bucket(_))) {
                continue;
            }
            let filling = note.get_str("phase").is_ok_and(|phase| phase == "fill");
            let cursor = note.get("cursor").filter(|_| filling).map(newest::raw).transpose()?;
            open.cursors.insert(name.to_owned(), cursor);
        }
        Ok(open)
    }

    /// One step of a backfill: done by a client's update of its note, which then says how far it got.
    pub(super) fn backfill_step(
        &self,
        write: DocumentWrite<'_>,
        scope: &mut dyn HookScope,
    ) -> Result<Option<RawDocumentBuf>> {
        if write.by_hook {
            self.progress.may_change();
            return Ok(None);
        }
        let (Some(before), Some(_)) = (write.before, write.after) else {
            return Err(Error::new(
                Code::ILLEGAL_OPERATION,
                format!("{BACKFILL} is written by the layer `{LAYER}`: update a note to do its next step"),
            ));
        };
        let mut note = document(before)?;
        if note.get_bool("done").unwrap_or(false) {
            return Ok(Some(before.to_owned()));
        }
        let name = note.get_str("_id").unwrap_or_default();
        let Some(declaration) = self.keeper.declaration(name) else {
            note.insert("done", true);
            self.progress.may_change();
            return Ok(Some(compile::raw(&note)?));
        };
        let clearing = note.get_str("phase").is_ok_and(|phase| phase == "clear");
        let cursor = note.get("cursor").cloned();
        let step = if clearing {
            self.clear(declaration, cursor.as_ref(), scope)?
        } else {
            self.fill_up(declaration, cursor.as_ref(), scope)?
        };
        let checked = note.get_i64("checked").unwrap_or(0);
        match step {
            Step::Upto(cursor, count) => {
                if let Some(cursor) = cursor {
                    note.insert("cursor", cursor);
                }
                note.insert("checked", checked + count as i64);
            }
            Step::Over(count) => {
                note.insert("checked", checked + count as i64);
                if clearing {
                    note.insert("phase", "fill");
                    note.remove("cursor");
                } else {
                    note.insert("done", true);
                    note.remove("cursor");
                }
            }
        }
        // After the step's own writes, before which the notes were read as they were.
        self.progress.may_change();
        Ok(Some(compile::raw(&note)?))
    }

    /// The next documents of a collection in the order of `_id`.
    fn next(&self, collection: &str, cursor: Option<&Bson>, scope: &dyn HookScope) -> Result<Vec<RawDocumentBuf>> {
        let namespace = self.namespace(collection)?;
        let sort = compile::raw(&doc! { "_id": 1 })?;
        let mut found = Vec::new();
        for filter in range::after(cursor) {
            found.extend(scope.find_sorted(&namespace, &compile::raw(&filter)?, &sort, BATCH - found.len())?);
            if found.len() >= BATCH {
                break;
            }
        }
        Ok(found)
    }

    /// Goes on with the next documents of a collection, as far as the statement has room.
    fn each(
        &self,
        collection: &str,
        cursor: Option<&Bson>,
        scope: &mut dyn HookScope,
        mut visit: impl FnMut(&RawDocument, &mut dyn HookScope) -> Result<()>,
    ) -> Result<Step> {
        let found = self.next(collection, cursor, scope)?;
        let mut last = None;
        for (count, image) in found.iter().enumerate() {
            if scope.writes_left() < RESERVE {
                return Ok(Step::Upto(last, count));
            }
            visit(image, scope)?;
            last = owned(image, "_id")?.map(tree).transpose()?;
        }
        Ok(if found.len() < BATCH { Step::Over(found.len()) } else { Step::Upto(last, found.len()) })
    }

    /// Takes away what was there before: sums begin with nothing.
    fn clear(&self, declaration: &Declaration, cursor: Option<&Bson>, scope: &mut dyn HookScope) -> Result<Step> {
        let collection = &declaration.collection;
        let namespace = self.namespace(collection)?;
        match &declaration.rule {
            Rule::Number(number) => {
                let step = self.each(collection, cursor, scope, |parent, scope| {
                    let mut changed = document(parent)?;
                    if changed.get(&number.field) != Some(&Bson::Int64(0)) {
                        changed.insert(number.field.clone(), 0_i64);
                        scope.replace(&namespace, compile::raw(&changed)?)?;
                    }
                    Ok(())
                })?;
                match step {
                    Step::Over(count) if self.clear_pending(collection, &number.field, scope)? => {
                        Ok(Step::Upto(None, count))
                    }
                    step => Ok(step),
                }
            }
            Rule::Roll(_) | Rule::Bucket(_) => {
                let found = self.next(collection, None, scope)?;
                for group in &found {
                    if let Some(id) = owned(group, "_id")? {
                        scope.delete(&namespace, id.as_raw_bson_ref())?;
                    }
                }
                Ok(if found.is_empty() { Step::Over(0) } else { Step::Upto(None, 0) })
            }
            Rule::Extreme(rule) => self
                .each(collection, cursor, scope, |parent, scope| self.look_up(collection, parent, &rule.field, scope)),
            Rule::Newest(rule) => self
                .each(collection, cursor, scope, |parent, scope| self.look_up(collection, parent, &rule.field, scope)),
            Rule::Timeline(fan) => {
                Ok(if self.clear_inboxes(fan, scope)? { Step::Upto(None, 0) } else { Step::Over(0) })
            }
            _ => Ok(Step::Over(0)),
        }
    }

    /// Forgets what waits for missing parents; true if there may be more.
    fn clear_pending(&self, collection: &str, field: &str, scope: &mut dyn HookScope) -> Result<bool> {
        let namespace = self.namespace(PENDING)?;
        let filter = compile::raw(&doc! { "_id.field": format!("{collection}.{field}") })?;
        let found = scope.find(&namespace, &filter, BATCH)?;
        for note in &found {
            if scope.writes_left() < RESERVE {
                return Ok(true);
            }
            if let Some(id) = owned(note, "_id")? {
                scope.delete(&namespace, id.as_raw_bson_ref())?;
            }
        }
        Ok(found.len() == BATCH)
    }

    /// Fills what the next documents of the source mean to the declaration.
    fn fill_up(&self, declaration: &Declaration, cursor: Option<&Bson>, scope: &mut dyn HookScope) -> Result<Step> {
        match &declaration.rule {
            Rule::Number(_) | Rule::Roll(_) => self.add_up(declaration, cursor, scope),
            Rule::Bucket(_) => self.each(&declaration.source, cursor, scope, |child, scope| {
                let effects = self.effects_of(declaration, child)?;
                self.carry_out(effects, scope)
            }),
            Rule::Extreme(_) | Rule::Newest(_) => self.each(&declaration.source, cursor, scope, |child, scope| {
                let effects = self.effects_of(declaration, child)?;
                self.note_missing(&declaration.collection, effects, scope)
            }),
            Rule::Timeline(fan) => self.fill_inboxes(fan, declaration, cursor, scope),
            Rule::Stock(rule) => self
                .each(&declaration.collection, cursor, scope, |item, scope| self.open_ledger(rule, item, None, scope)),
            Rule::Copy(_) | Rule::Mirror { .. } | Rule::Split(_) | Rule::Compressed(_) => {
                self.each(&declaration.collection, cursor, scope, |image, scope| {
                    self.refresh(declaration, image, scope)
                })
            }
            Rule::Reference { .. } => Ok(Step::Over(0)),
        }
    }

    /// What the next edges bring into their readers' inboxes; an edge that has too much for one step is noted.
    fn fill_inboxes(
        &self,
        fan: &Arc<Fan>,
        declaration: &Declaration,
        cursor: Option<&Bson>,
        scope: &mut dyn HookScope,
    ) -> Result<Step> {
        let follows = self.keeper.watches.get(&fan.edges).map_or(&[][..], |watch| &watch.follows);
        let Some(follows) = follows.iter().find(|follows| follows.fan == *fan) else { return Ok(Step::Over(0)) };
        self.each(&declaration.source, cursor, scope, |edge, scope| {
            let mut effects = Vec::new();
            timeline::edge(follows, None, Some(edge), &mut effects)?;
            self.carry_out(effects, scope)
        })
    }

    fn effects_of(&self, declaration: &Declaration, image: &RawDocument) -> Result<Vec<Effect>> {
        let Some(watch) = self.keeper.watches.get(&declaration.source) else { return Ok(Vec::new()) };
        others::of_declaration(watch, &declaration.source, &declaration.name, image)
    }

    /// Adds a batch of children to their parents' sums, all at once.
    fn add_up(&self, declaration: &Declaration, cursor: Option<&Bson>, scope: &mut dyn HookScope) -> Result<Step> {
        let found = self.next(&declaration.source, cursor, scope)?;
        let mut effects = Vec::new();
        for child in &found {
            effects.extend(self.effects_of(declaration, child)?);
        }
        self.carry_out(effects, scope)?;
        let last = found.last().map(|last| owned(last, "_id")).transpose()?.flatten().map(tree).transpose()?;
        Ok(if found.len() < BATCH { Step::Over(found.len()) } else { Step::Upto(last, found.len()) })
    }

    /// Notes for the parents that don't exist that they have children.
    fn note_missing(&self, parents: &str, effects: Vec<Effect>, scope: &mut dyn HookScope) -> Result<()> {
        for effect in effects {
            let Effect::Parent { id, change, .. } = effect else { continue };
            if scope.get(&*self.namespace(parents)?, id.as_raw_bson_ref())?.is_none() {
                self.add_pending(parents, change.field(), &id, None, scope)?;
            }
        }
        Ok(())
    }

    /// Looks a parent's `min`, `max`, `latest` or `recent` up among its children.
    pub(super) fn look_up(
        &self,
        parents: &str,
        parent: &RawDocument,
        field: &str,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let Some(id) = owned(parent, "_id")? else { return Ok(()) };
        let mut changed = document(parent)?;
        for kept in self.keeper.kept(parents).iter().filter(|kept| kept.field == field) {
            match &kept.rule {
                super::KeptRule::Extreme(rule) => self.look_up_extreme(&mut changed, &id, rule, None, scope)?,
                super::KeptRule::Newest(rule) => self.look_up_newest(&mut changed, &id, rule, None, scope)?,
                super::KeptRule::Number => {}
            }
        }
        let changed = compile::raw(&changed)?;
        if changed.as_bytes() != parent.as_bytes() {
            scope.replace(&*self.namespace(parents)?, changed)?;
        }
        Ok(())
    }

    /// Takes a document's copies again, or makes the reverse row that it lacks.
    pub(super) fn refresh(
        &self,
        declaration: &Declaration,
        image: &RawDocument,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        match &declaration.rule {
            Rule::Copy(copy) => {
                let mut changed = document(image)?;
                for fill in own::fills(copy, image)? {
                    self.fill(&mut changed, &fill, scope)?;
                }
                let changed = compile::raw(&changed)?;
                if changed.as_bytes() != image.as_bytes() {
                    scope.replace(&*self.namespace(&declaration.collection)?, changed)?;
                }
                Ok(())
            }
            Rule::Split(rule) => {
                let mut changed = document(image)?;
                let mut fields = Vec::new();
                for name in &rule.fields {
                    let value = changed.remove(name).as_ref().map(newest::raw).transpose()?;
                    fields.extend(value.map(|value| (name.clone(), value)));
                }
                if let (false, Some(id)) = (fields.is_empty(), owned(image, "_id")?) {
                    self.put_apart(rule, &id, Some(&fields), scope)?;
                    scope.replace(&*self.namespace(&declaration.collection)?, compile::raw(&changed)?)?;
                }
                Ok(())
            }
            Rule::Compressed(rule) => {
                let Some(packed) = compress::packed(rule, image)? else { return Ok(()) };
                let mut changed = document(image)?;
                set(&mut changed, &Place::default().path(&rule.path), Some(Bson::Binary(packed)));
                scope.replace(&*self.namespace(&declaration.collection)?, compile::raw(&changed)?)?;
                Ok(())
            }
            Rule::Mirror { from, to } => {
                if id_at(image, from)?.is_none() || id_at(image, to)?.is_none() {
                    return Ok(());
                }
                for effect in self.effects_of(declaration, image)? {
                    if let Effect::Mirror(mirror) = effect {
                        self.mirror(&mirror, scope)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
