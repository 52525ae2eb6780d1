//! Keeping a model in the engine's own process: a write hook that carries out the planner's effects in the write itself.
//!
//! Whatever driver made the write, its effects belong to the same statement: all of it is committed, or nothing.
//!
//! - A count or sum for a parent that doesn't exist is remembered in [`PENDING`](super::PENDING) and handed to the parent when it is
//!   created; a parent that is deleted leaves its values there. No write ever counts the children again.
//! - A copy with more than [`MAX_INLINE`] holders, and a delete with more referring documents, are noted in [`LAGGING`]
//!   and carried out in batches: each update of such a note does one.
//! - A document that is being written cannot be written again by its own effects: what they want of it waits in a frame
//!   and is applied to the image that is about to be stored; what that changes has its own effects in turn.
//! - At a transaction's commit the hook sees a state that holds all its writes; a kept number is then what it was before
//!   the transaction plus what the effects of its other writes have made of it already.

use super::active::LAYER;
use super::effect::{Change, Effect, Fill, Mirror, Referrers, Spread};
use super::image::{Image, fill_tree};
use super::lagging::release;
use super::service::Wake;
use super::value::{at, copy_values, document, id_at, owned, tree};
use super::{BACKFILL, Keeper, KeptRule, LAGGING, REPAIRS, REVERSE, compile, fills, newest, others};
use crate::language::reference::OnDelete;
use bson::{Bson, Document, RawBson, RawDocument, RawDocumentBuf, doc};
use engine::document::Number;
use engine::hook::{DocumentWrite, HookScope, WriteHook};
use engine::{Code, Error, Namespace, Result};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most documents that one write takes along for one copy or reference; more follow in batches.
pub const MAX_INLINE: usize = 200;

/// How many writes one document that is taken along may cause, by and large: what doesn't fit follows in batches.
const WRITES_EACH: usize = 8;

thread_local! {
    /// The documents being written on this thread, the innermost last.
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// A document being written, and what its own effects want of it.
struct Frame {
    namespace: Namespace,
    id: RawBson,
    wanted: Wanted,
}

/// What the effects of a write want of the document that is being written.
#[derive(Default)]
struct Wanted {
    changes: Vec<Change>,
    copies: Vec<Copied>,
}

/// A source's values, for copies in a document that is being written.
struct Copied {
    spread: Arc<Spread>,
    source: RawBson,
    values: Values,
}

/// The values of a copy, by their names in it; `None` for a field that is gone.
type Values = Vec<(String, Option<RawBson>)>;

/// How many times the effects of a write may change the document that is being written.
const MAX_ROUNDS: usize = 8;

/// The hook that keeps a model in one database.
pub struct ModelHook {
    pub(super) keeper: Keeper,
    database: String,
    /// The namespaces of the collections that are written often.
    namespaces: BTreeMap<String, Namespace>,
    /// How far the backfills are.
    pub(super) progress: super::backfill::Progress,
    pub(super) wake: Arc<Wake>,
}

impl ModelHook {
    /// A hook for a model over a database's collections.
    pub fn new(keeper: Keeper, database: impl Into<String>) -> ModelHook {
        let (database, progress) = (database.into(), super::backfill::Progress::default());
        let mut namespaces = BTreeMap::new();
        for collection in keeper.watches.keys() {
            // A name that is none is refused where it is used.
            if let Ok(namespace) = Namespace::new(&database, collection) {
                namespaces.insert(collection.clone(), namespace);
            }
        }
        ModelHook { keeper, database, namespaces, progress, wake: Arc::default() }
    }

    /// The same hook, which wakes a service when there is something to do for it.
    pub(super) fn waking(self, wake: Arc<Wake>) -> ModelHook {
        ModelHook { wake, ..self }
    }
}

impl WriteHook for ModelHook {
    fn watches(&self, namespace: &Namespace) -> bool {
        namespace.database == self.database
            && (self.keeper.watches(&namespace.collection)
                || matches!(namespace.collection.as_str(), LAGGING | BACKFILL | REPAIRS))
    }

    fn layer(&self) -> Option<&'static str> {
        Some(LAYER)
    }

    fn clears_before_drop(&self, namespace: &Namespace) -> Result<bool> {
        Ok(namespace.database == self.database && self.keeper.watches(&namespace.collection))
    }

    fn before_write(&self, write: DocumentWrite<'_>, scope: &mut dyn HookScope) -> Result<Option<RawDocumentBuf>> {
        match write.namespace.collection.as_str() {
            LAGGING => return self.batch(write, scope),
            BACKFILL => return self.backfill_step(write, scope),
            REPAIRS => return self.repair(write, scope),
            _ => {}
        }
        let Some(image) = write.after.or(write.before) else { return Ok(None) };
        let Some(id) = owned(image, "_id")? else { return Ok(None) };
        self.take_over_reverse(write, scope)?;
        let mut run = Run { hook: self, write, id, stored: None };
        run.run(scope)
    }
}

/// One write being kept.
struct Run<'h, 'w> {
    hook: &'h ModelHook,
    write: DocumentWrite<'w>,
    id: RawBson,
    /// At a commit: what the state holds already.
    stored: Option<RawDocumentBuf>,
}

impl Run<'_, '_> {
    fn run(&mut self, scope: &mut dyn HookScope) -> Result<Option<RawDocumentBuf>> {
        let namespace = self.write.namespace;
        let at_commit = self.look(scope)?;
        let mut after = match self.write.after {
            Some(after) => self.own(after, at_commit, scope)?,
            None => None,
        };
        let image = after.as_deref().or(self.write.after);
        let mut effects = self.others(self.write.before, image, self.write.by_hook, scope)?;
        for round in 0.. {
            let wanted = self.carry_out(effects, scope)?;
            if self.write.after.is_none() {
                self.leave(&wanted.changes, scope)?;
                return Ok(None);
            }
            if wanted.changes.is_empty() && wanted.copies.is_empty() {
                break;
            }
            let before = match after.take() {
                Some(after) => after,
                None => self.write.after.expect("checked above").to_owned(),
            };
            let changed = self.changed(&before, &wanted, scope)?;
            // At a commit, the write of the difference has the effects.
            let same = changed.as_bytes() == before.as_bytes() || at_commit;
            let changed = after.insert(changed);
            if same {
                break;
            }
            if round == MAX_ROUNDS {
                let message = format!("the effects of a write in {namespace} change its own document without end");
                return Err(Error::new(Code::ILLEGAL_OPERATION, message));
            }
            effects = self.others(Some(&before), Some(changed), true, scope)?;
        }
        let Some(after) = after else { return Ok(None) };
        let after = self.follow(after, scope)?;
        match &self.stored {
            // The state holds another image than this write's: the difference must be made to that one.
            Some(stored) if at_commit => {
                if stored.as_bytes() != after.as_bytes() {
                    scope.replace(namespace, after)?;
                }
                Ok(None)
            }
            _ => Ok(Some(after)),
        }
    }

    /// The image with what its own effects want of it.
    fn changed(&self, before: &RawDocument, wanted: &Wanted, scope: &mut dyn HookScope) -> Result<RawDocumentBuf> {
        let mut changed = document(before)?;
        for change in &wanted.changes {
            self.hook.change(&mut changed, &self.id, change, scope)?;
        }
        for copied in &wanted.copies {
            copy_values(&mut changed, &copied.spread, &copied.source, &copied.values)?;
        }
        compile::raw(&changed)
    }

    /// At a commit, other writes' effects may have changed the stored copies already: this image must not undo them.
    fn follow(&self, image: RawDocumentBuf, scope: &dyn HookScope) -> Result<RawDocumentBuf> {
        let (Some(before), false) = (self.write.before, self.write.by_hook) else { return Ok(image) };
        let namespace = self.write.namespace;
        let mut live = self.hook.keeper.live_copies(&namespace.collection).peekable();
        if live.peek().is_none() {
            return Ok(image);
        }
        let stored = scope.get(namespace, self.id.as_raw_bson_ref())?;
        if stored.is_none_or(|stored| stored.as_bytes() == before.as_bytes()) {
            return Ok(image);
        }
        let mut after = document(&image)?;
        for copy in live {
            for fill in fills(copy, &image)? {
                self.hook.fill(&mut after, &fill, scope)?;
            }
        }
        compile::raw(&after)
    }

    /// What a change of the document causes in others.
    fn others(
        &self,
        before: Option<&RawDocument>,
        after: Option<&RawDocument>,
        by_hook: bool,
        scope: &mut dyn HookScope,
    ) -> Result<Vec<Effect>> {
        let progress = self.hook.progress.get(self.hook, scope)?;
        let counts = |declaration: &str, id: &RawBson| progress.counts(declaration, id);
        self.hook.keeper.others_where(&self.write.namespace.collection, before, after, by_hook, &counts)
    }

    /// Carries out effects; gives what they want of the document itself.
    fn carry_out(&self, effects: Vec<Effect>, scope: &mut dyn HookScope) -> Result<Wanted> {
        if effects.is_empty() {
            return Ok(Wanted::default());
        }
        let namespace = self.write.namespace.clone();
        let frame = Frame { namespace, id: self.id.clone(), wanted: Wanted::default() };
        FRAMES.with_borrow_mut(|frames| frames.push(frame));
        let done = self.hook.carry_out(effects, scope);
        let frame = FRAMES.with_borrow_mut(Vec::pop).expect("the frame that was pushed");
        done.map(|()| frame.wanted)
    }

    /// Whether the state holds this write already, as it does at a transaction's commit.
    fn look(&mut self, scope: &dyn HookScope) -> Result<bool> {
        if self.write.by_hook || !self.hook.keeper.keeps(&self.write.namespace.collection) {
            return Ok(false);
        }
        let stored = scope.get(self.write.namespace, self.id.as_raw_bson_ref())?;
        let at_commit = match (&stored, self.write.before) {
            (Some(_), None) => true,
            (Some(stored), Some(before)) => stored.as_bytes() != before.as_bytes(),
            (None, _) => false,
        };
        self.stored = stored.filter(|_| at_commit);
        Ok(at_commit)
    }

    /// The document as it will be stored, if it differs from what the writer sent.
    fn own(&self, after: &RawDocument, at_commit: bool, scope: &mut dyn HookScope) -> Result<Option<RawDocumentBuf>> {
        let write = &self.write;
        let keeper = &self.hook.keeper;
        let effects = keeper.own(&write.namespace.collection, write.before, Some(after), write.by_hook, scope.now())?;
        let keeps = !write.by_hook && keeper.keeps(&write.namespace.collection);
        if effects.is_empty() && !keeps {
            return Ok(None);
        }
        let mut changed = Image::of(after);
        // Several copies of one source read it once.
        let mut source: Option<(Fill, Option<RawDocumentBuf>)> = None;
        for effect in effects {
            match effect {
                Effect::Refuse { declaration, message } => return Err(refusal(&declaration, message)),
                Effect::Set { place, value } => changed.set(&place, value)?,
                Effect::Fill(fill) => {
                    let known = |(other, _): &(Fill, _)| other.copy.source == fill.copy.source && other.id == fill.id;
                    let (_, found) = match source.take().filter(known) {
                        Some(known) => source.insert(known),
                        None => {
                            let namespace = self.hook.namespace(&fill.copy.source)?;
                            let found = scope.get(&namespace, fill.id.as_raw_bson_ref())?;
                            source.insert((fill.clone(), found))
                        }
                    };
                    if let Some(found) = found {
                        changed.fill(&fill, found)?;
                    }
                }
                Effect::Apart { rule, id, fields } => self.hook.put_apart(&rule, &id, fields.as_deref(), scope)?,
                Effect::Line { rule, item, quantity } => {
                    self.hook.fill_line(changed.tree()?, &rule, &item, quantity, scope)?
                }
                other => return Err(Error::internal(format!("not an effect on the document itself: {other:?}"))),
            }
        }
        if keeps {
            self.keep(&mut changed, after, at_commit, scope)?;
        }
        Ok(Some(changed.into_bytes()?))
    }

    /// Gives the kept fields their values, whatever the writer sent.
    fn keep(
        &self,
        changed: &mut Image<'_>,
        after: &RawDocument,
        at_commit: bool,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let before = self.write.before;
        for kept in self.hook.keeper.kept(&self.write.namespace.collection) {
            let field = &kept.field;
            let in_image = |image: Option<&RawDocument>| -> Result<Option<RawBson>> {
                Ok(image.map(|image| owned(image, field)).transpose()?.flatten())
            };
            let (stored, sent, old) = (in_image(self.stored.as_deref())?, in_image(Some(after))?, in_image(before)?);
            let pending = match before {
                None => self.hook.take_pending(&self.write.namespace.collection, field, &self.id, scope)?,
                Some(_) => None,
            };
            match &kept.rule {
                KeptRule::Number => {
                    let base = match before {
                        Some(_) => newest::number_in(old.as_ref()),
                        None => pending.flatten().unwrap_or(Number::Int64(0)),
                    };
                    let mut value = base;
                    if at_commit {
                        let (stored, sent) = (newest::number_in(stored.as_ref()), newest::number_in(sent.as_ref()));
                        value = others::add(base, others::subtract(stored, sent, field)?, field)?;
                    }
                    changed.set_field(field, Some(value.into()))?;
                }
                rule => {
                    // A replacement inside a transaction has lost it; what it was then is no help, what is there now is.
                    let lost = at_commit && before.is_some() && sent.is_none();
                    changed.set_field(field, if at_commit { stored } else { old })?;
                    if pending.is_some() || lost {
                        let changed = changed.tree()?;
                        match rule {
                            KeptRule::Extreme(rule) => {
                                self.hook.look_up_extreme(changed, &self.id, rule, None, scope)?
                            }
                            KeptRule::Newest(rule) => self.hook.look_up_newest(changed, &self.id, rule, None, scope)?,
                            KeptRule::Number => {}
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// A parent goes: what it kept waits for its return.
    fn leave(&self, changes: &[Change], scope: &mut dyn HookScope) -> Result<()> {
        let collection = &self.write.namespace.collection;
        let Some(before) = self.write.before else { return Ok(()) };
        for kept in self.hook.keeper.kept(collection) {
            let amount = match &kept.rule {
                KeptRule::Number => {
                    let mut amount = newest::number_in(owned(before, &kept.field)?.as_ref());
                    for change in changes {
                        if let Change::Add { field, amount: more } = change
                            && *field == kept.field
                        {
                            amount = others::add(amount, *more, field)?;
                        }
                    }
                    if amount.is_zero() {
                        continue;
                    }
                    Some(amount)
                }
                _ if at(before, &kept.field)?.is_missing() => continue,
                _ => None,
            };
            self.hook.add_pending(collection, &kept.field, &self.id, amount, scope)?;
        }
        Ok(())
    }
}

/// The error of a refused write: `DocumentValidationFailure`, naming the declaration.
pub(super) fn refusal(declaration: &str, message: String) -> Error {
    let info = doc! { "failingDocumentId": Bson::Null, "details": { "declaration": declaration, "reason": &message } };
    let error = Error::new(Code::DOCUMENT_VALIDATION_FAILURE, format!("Document failed validation: {message}"));
    match compile::raw(&info) {
        Ok(info) => error.with_info(info),
        Err(_) => error,
    }
}

impl ModelHook {
    pub(super) fn namespace(&self, collection: &str) -> Result<Cow<'_, Namespace>> {
        match self.namespaces.get(collection) {
            Some(namespace) => Ok(Cow::Borrowed(namespace)),
            None => Namespace::new(&self.database, collection).map(Cow::Owned),
        }
    }

    /// Carries out effects on other documents.
    pub(super) fn carry_out(&self, effects: Vec<Effect>, scope: &mut dyn HookScope) -> Result<()> {
        let mut parents: Vec<(String, RawBson, Vec<Change>)> = Vec::new();
        let mut lines = Vec::new();
        for effect in effects {
            match effect {
                Effect::Parent { collection, id, change } => {
                    match parents.iter_mut().find(|(other, parent, _)| *other == collection && *parent == id) {
                        Some((.., changes)) => changes.push(change),
                        None => parents.push((collection, id, vec![change])),
                    }
                }
                Effect::Spread { spread, id, values } => self.spread(&spread, &id, &values, scope)?,
                Effect::Referrers { rule, id } => self.referrers(&rule, &id, scope)?,
                Effect::Mirror(mirror) => self.mirror(&mirror, scope)?,
                Effect::Pack(packing) => self.pack(&packing, scope)?,
                Effect::Apart { rule, id, fields } => self.put_apart(&rule, &id, fields.as_deref(), scope)?,
                Effect::Fan { fan, what } => self.fan_out(&fan, &what, scope)?,
                Effect::Append { ledger, line } => lines.push((ledger, line)),
                Effect::Roll { roll, child, group } => self.roll(&roll, &group, Some(&child), scope)?,
                Effect::Refuse { declaration, message } => return Err(refusal(&declaration, message)),
                other => return Err(Error::internal(format!("not an effect on other documents: {other:?}"))),
            }
        }
        for (collection, id, changes) in parents {
            self.parent(&collection, &id, changes, scope)?;
        }
        // A line takes from the stock what the end of its hold has just given back.
        for (ledger, line) in lines {
            scope.insert(&*self.namespace(&ledger)?, compile::raw(&line)?)?;
        }
        Ok(())
    }

    /// Changes a parent's kept values.
    fn parent(&self, collection: &str, id: &RawBson, changes: Vec<Change>, scope: &mut dyn HookScope) -> Result<()> {
        let namespace = self.namespace(collection)?;
        let mut changes = Some(changes);
        FRAMES.with_borrow_mut(|frames| {
            let frame = frames.iter_mut().find(|frame| frame.namespace == *namespace && frame.id == *id);
            if let Some(frame) = frame {
                frame.wanted.changes.extend(changes.take().into_iter().flatten());
            }
        });
        match changes {
            Some(changes) => self.change_parent(&namespace, id, &changes, scope),
            None => Ok(()),
        }
    }

    /// Takes a copy from its source.
    pub(super) fn fill(&self, changed: &mut Document, fill: &Fill, scope: &dyn HookScope) -> Result<()> {
        match scope.get(&*self.namespace(&fill.copy.source)?, fill.id.as_raw_bson_ref())? {
            Some(source) => fill_tree(changed, fill, &source),
            None => Ok(()),
        }
    }

    /// Copies follow their source, here or in batches; those in documents that are being written when that is done.
    fn spread(
        &self,
        spread: &Arc<Spread>,
        id: &RawBson,
        values: &[(String, Option<RawBson>)],
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let namespace = self.namespace(&spread.holders)?;
        let writing: Vec<RawBson> = FRAMES.with_borrow_mut(|frames| {
            let holders = frames.iter_mut().filter(|frame| frame.namespace == *namespace);
            let writing = holders.map(|frame| {
                frame.wanted.copies.push(Copied {
                    spread: spread.clone(),
                    source: id.clone(),
                    values: values.to_vec(),
                });
                frame.id.clone()
            });
            writing.collect()
        });
        let filter = compile::raw(&doc! { spread.via.clone(): tree(id.clone())? })?;
        let limit = spread.refuse_above.map_or_else(|| room(scope), |max| max as usize) + 1;
        let holders = scope.find(&namespace, &filter, limit)?;
        if holders.len() == limit {
            if let Some(max) = spread.refuse_above {
                let message = format!(
                    "`{}` has more than {max} copies of this document, which its transaction may not change",
                    spread.declaration
                );
                return Err(refusal(&spread.declaration, message));
            }
            return self.note(&spread.declaration, id, scope);
        }
        for holder in &holders {
            if !writing.is_empty() && owned(holder, "_id")?.is_some_and(|holder| writing.contains(&holder)) {
                continue;
            }
            self.copy_into(&namespace, spread, id, values, holder, scope)?;
        }
        Ok(())
    }

    pub(super) fn copy_into(
        &self,
        namespace: &Namespace,
        spread: &Spread,
        id: &RawBson,
        values: &[(String, Option<RawBson>)],
        holder: &RawDocument,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let mut changed = document(holder)?;
        copy_values(&mut changed, spread, id, values)?;
        let changed = compile::raw(&changed)?;
        if changed.as_bytes() != holder.as_bytes() {
            scope.replace(namespace, changed)?;
        }
        Ok(())
    }

    /// A document goes to which others refer.
    fn referrers(&self, rule: &Referrers, id: &RawBson, scope: &mut dyn HookScope) -> Result<()> {
        let namespace = self.namespace(&rule.collection)?;
        let filter = compile::raw(&doc! { rule.path.clone(): tree(id.clone())? })?;
        if rule.on_delete == OnDelete::Restrict {
            if scope.find(&namespace, &filter, 1)?.is_empty() {
                return Ok(());
            }
            let message = format!("`{}` still refers to this document; delete those first", rule.declaration);
            return Err(refusal(&rule.declaration, message));
        }
        let room = room(scope);
        let found = scope.find(&namespace, &filter, room + 1)?;
        if found.len() > room {
            return self.note(&rule.declaration, id, scope);
        }
        for referrer in &found {
            release(&namespace, rule, id, referrer, scope)?;
        }
        Ok(())
    }

    /// The reverse row of a mutual edge.
    pub(super) fn mirror(&self, mirror: &Mirror, scope: &mut dyn HookScope) -> Result<()> {
        let namespace = self.namespace(&mirror.collection)?;
        let mut row = Document::new();
        row.insert(mirror.ends.0.clone(), tree(mirror.from.clone())?);
        row.insert(mirror.ends.1.clone(), tree(mirror.to.clone())?);
        let found = scope.find(&namespace, &compile::raw(&row)?, 1)?;
        match (found.first(), &mirror.fields) {
            (Some(found), None) => {
                if let Some(id) = owned(found, "_id")? {
                    scope.delete(&namespace, id.as_raw_bson_ref())?;
                }
            }
            (None, None) => {}
            (Some(found), Some(fields)) => {
                let found_fields = document(found)?;
                let mut changed = Document::new();
                changed.insert("_id", found_fields.get("_id").cloned().unwrap_or(Bson::Null));
                changed.extend(row);
                changed.extend(fields.clone());
                if let Some(marker) = found_fields.get(REVERSE) {
                    changed.insert(REVERSE, marker.clone());
                }
                let changed = compile::raw(&changed)?;
                if changed.as_bytes() != found.as_bytes() {
                    scope.replace(&namespace, changed)?;
                }
            }
            (None, Some(fields)) => {
                row.extend(fields.clone());
                row.insert(REVERSE, true);
                scope.insert(&namespace, compile::raw(&row)?)?;
            }
        }
        Ok(())
    }

    /// A row of a mutual edge is inserted whose other half was written before: it takes the place of the row that the
    /// model made then, so that writing both halves is no conflict.
    fn take_over_reverse(&self, write: DocumentWrite<'_>, scope: &mut dyn HookScope) -> Result<()> {
        let (None, Some(after), false) = (write.before, write.after, write.by_hook) else { return Ok(()) };
        let Some(ends) = self.keeper.mirror(&write.namespace.collection) else { return Ok(()) };
        let (Some(from), Some(to)) = (id_at(after, &ends.0)?, id_at(after, &ends.1)?) else { return Ok(()) };
        let own = owned(after, "_id")?;
        let row = doc! { ends.0.clone(): tree(from)?, ends.1.clone(): tree(to)?, REVERSE: true };
        for made in scope.find(write.namespace, &compile::raw(&row)?, 1)? {
            let id = owned(&made, "_id")?;
            if let Some(id) = id.filter(|id| Some(id) != own.as_ref()) {
                scope.delete(write.namespace, id.as_raw_bson_ref())?;
            }
        }
        Ok(())
    }
}

/// How many documents a write may still take along.
pub(super) fn room(scope: &dyn HookScope) -> usize {
    (scope.writes_left() / WRITES_EACH).min(MAX_INLINE)
}
