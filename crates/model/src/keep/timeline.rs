//! Timelines: items fanned out along edges into capped inboxes.
//!
//! ```text
//!   item written ────> its author's followers ─┐                     rows     { _id: {owner, item}, ownerId, itemId, authorId, … }
//!   edge written ────> its author's items ─────┼──> settle (owner, item) ──>
//!   author gets few ─> both ───────────────────┘                     sheaf.inboxes { _id: {timeline, owner}, count, floor }
//! ```
//!
//! What an inbox holds is a function of the state: every item that lies above the inbox's floor, of the authors whom the owner
//! follows and whose items are pushed. The floor is the newest item that fell off at the end when the inbox was full: what lies
//! below is read from the authors, and doesn't come back when something above it goes. With a threshold, the items of an
//! author with more followers are not put into inboxes any more; those that are there stay and stay true.
//!
//! An item with many followers is noted in [`super::LAGGING`] and fanned out in batches.

use super::Condition;
use super::effect::{Effect, Place};
use super::embedded::{ModelHook, room};
use super::lagging::{BATCH, RESERVE};
use super::parent::children_filter;
use super::value::{document, get, id_at, owned, tree};
use super::{compile, newest};
use bson::{Bson, Document, RawBson, RawDocument, RawDocumentBuf, doc};
use engine::Result;
use engine::document::{Number, compare_values};
use engine::hook::HookScope;
use std::cmp::Ordering;
use std::sync::Arc;

/// The collection, in each database, with how many rows each inbox has and what fell off its end.
pub const INBOXES: &str = "sheaf.inboxes";

/// A `timeline` declaration whose items are pushed.
#[derive(Clone, Debug, PartialEq)]
pub struct Fan {
    /// The declaration, e.g. `home`.
    pub declaration: String,
    /// The rows' collection.
    pub rows: String,
    /// The edges' collection.
    pub edges: String,
    /// The edges' field with the reader.
    pub from: String,
    /// The edges' field with the author.
    pub to: String,
    /// Which edges count.
    pub filter: RawDocumentBuf,
    /// The items' collection.
    pub items: String,
    /// The items' field with the author.
    pub by: String,
    /// The items' path that orders them; the greatest is the newest.
    pub order: String,
    /// Its name in the rows.
    pub order_name: String,
    /// The most rows of one inbox.
    pub cap: usize,
    /// The copied fields: their names in a row and their paths in the item.
    pub fields: Vec<(String, String)>,
    /// The authors' collection.
    pub authors: String,
    /// Where an author's items stop being pushed: the field with the number of followers, and the most of them.
    pub threshold: Option<(String, i64)>,
}

/// Whom a reader follows, as an edge's image says.
#[derive(Debug)]
pub(super) struct Follows {
    pub(super) fan: Arc<Fan>,
    pub(super) filter: Condition,
}

/// What is to be settled.
#[derive(Clone, Debug, PartialEq)]
pub enum Fanned {
    /// An item, with the image that it will have; `None` if it goes.
    Item {
        /// Its id.
        item: RawBson,
        /// Whether it was there before.
        was_there: bool,
        /// What will be stored.
        image: Option<RawDocumentBuf>,
    },
    /// A reader and an author.
    Pair {
        /// The reader.
        owner: RawBson,
        /// The author.
        author: RawBson,
        /// Whether the one follows the other.
        follows: bool,
    },
    /// An author whose items are pushed again.
    Author(RawBson),
}

/// What came of one item in one inbox.
#[derive(PartialEq, Eq)]
enum Settled {
    Above,
    /// It lies below the floor, and so does whatever is older.
    Below,
}

impl Fan {
    /// The row of an item in an inbox; `None` without an author.
    pub(crate) fn row(&self, owner: &Bson, item: &RawDocument) -> Result<Option<Document>> {
        let (Some(author), Some(id)) = (id_at(item, &self.by)?, owned(item, "_id")?) else { return Ok(None) };
        let id = tree(id)?;
        let mut row = doc! {
            "_id": { "owner": owner.clone(), "item": id.clone() }, "ownerId": owner.clone(), "itemId": id,
            "authorId": tree(author)?,
        };
        for (name, path) in &self.fields {
            if let Some(value) = owned(item, path)? {
                row.insert(name.clone(), tree(value)?);
            }
        }
        Ok(Some(row))
    }

    /// What orders a row, as a floor remembers it.
    pub(crate) fn key(&self, row: &Document) -> Document {
        let order = get(row, &Place::default().path(&self.order_name)).cloned().unwrap_or(Bson::Null);
        doc! { "order": order, "item": row.get("itemId").cloned().unwrap_or(Bson::Null) }
    }

    /// The id of an inbox's state.
    pub(crate) fn inbox_id(&self, owner: &Bson) -> Document {
        doc! { "timeline": self.declaration.clone(), "owner": owner.clone() }
    }
}

/// Whether a key lies above an inbox's floor.
pub(crate) fn is_above(key: &Document, floor: Option<&Document>) -> Result<bool> {
    let Some(floor) = floor else { return Ok(true) };
    for name in ["order", "item"] {
        let value = |document: &Document| newest::raw(document.get(name).unwrap_or(&Bson::Null));
        match compare_values(value(key)?.as_raw_bson_ref(), value(floor)?.as_raw_bson_ref(), None)? {
            Ordering::Equal => {}
            other => return Ok(other == Ordering::Greater),
        }
    }
    Ok(false)
}

/// What an item's change means.
pub(super) fn item(
    fan: &Arc<Fan>,
    before: Option<&RawDocument>,
    after: Option<&RawDocument>,
    id: &RawBson,
) -> Result<Option<Effect>> {
    let row = |image: &RawDocument| fan.row(&Bson::Null, image);
    let (old, new) = (before.map(row).transpose()?.flatten(), after.map(row).transpose()?.flatten());
    if old == new {
        return Ok(None);
    }
    let image = after.filter(|_| new.is_some()).map(RawDocument::to_owned);
    let what = Fanned::Item { item: id.clone(), was_there: old.is_some(), image };
    Ok(Some(Effect::Fan { fan: fan.clone(), what }))
}

/// What an edge's change means.
pub(super) fn edge(
    follows: &Follows,
    before: Option<&RawDocument>,
    after: Option<&RawDocument>,
    effects: &mut Vec<Effect>,
) -> Result<()> {
    let fan = &follows.fan;
    let pair = |image: Option<&RawDocument>| -> Result<Option<(RawBson, RawBson)>> {
        let Some(image) = image else { return Ok(None) };
        if !follows.filter.holds(image)? {
            return Ok(None);
        }
        Ok(id_at(image, &fan.from)?.zip(id_at(image, &fan.to)?))
    };
    let (old, new) = (pair(before)?, pair(after)?);
    if old == new {
        return Ok(());
    }
    for (pair, follows) in [(old, false), (new, true)] {
        if let Some((owner, author)) = pair {
            effects.push(Effect::Fan { fan: fan.clone(), what: Fanned::Pair { owner, author, follows } });
        }
    }
    Ok(())
}

/// An author who has got few enough followers.
pub(super) fn author(
    fan: &Arc<Fan>,
    before: Option<&RawDocument>,
    after: Option<&RawDocument>,
    id: &RawBson,
) -> Result<Option<Effect>> {
    let (Some((field, most)), Some(before), Some(after)) = (&fan.threshold, before, after) else { return Ok(None) };
    let crossed = followers(before, field)? > *most && followers(after, field)? <= *most;
    Ok(crossed.then(|| Effect::Fan { fan: fan.clone(), what: Fanned::Author(id.clone()) }))
}

fn followers(author: &RawDocument, field: &str) -> Result<i64> {
    let count = owned(author, field)?;
    Ok(count.as_ref().and_then(|count| Number::of(count.as_raw_bson_ref())?.to_i64_exact()).unwrap_or(0))
}

impl ModelHook {
    /// Carries out what a change means, or notes it for later.
    pub(super) fn fan_out(&self, fan: &Fan, what: &Fanned, scope: &mut dyn HookScope) -> Result<()> {
        match what {
            Fanned::Item { item, was_there, image } => {
                let most = room(scope);
                let image = image.as_deref();
                let edges = self.followers_of(fan, image, None, most + 1, scope)?;
                let rows = match was_there {
                    true => self.rows_of(fan, item, None, most + 1, scope)?,
                    false => Vec::new(),
                };
                if edges.len() > most || rows.len() > most {
                    return self.note(
                        &fan.declaration,
                        &newest::raw(&doc! { "item": tree(item.clone())? }.into())?,
                        scope,
                    );
                }
                for edge in &edges {
                    if let Some(owner) = id_at(edge, &fan.from)? {
                        self.settle(fan, &owner, item, image, true, scope)?;
                    }
                }
                for row in &rows {
                    self.settle_row(fan, row, image, scope)?;
                }
                Ok(())
            }
            Fanned::Pair { owner, author, follows } => {
                if self.pair(fan, owner, author, *follows, scope)? {
                    let pair = doc! { "owner": tree(owner.clone())?, "author": tree(author.clone())? };
                    self.note(&fan.declaration, &newest::raw(&pair.into())?, scope)?;
                }
                Ok(())
            }
            Fanned::Author(author) => {
                let source = doc! { "author": tree(author.clone())? };
                self.note(&fan.declaration, &newest::raw(&source.into())?, scope)
            }
        }
    }

    /// The edges along which an item is pushed, by `_id`.
    fn followers_of(
        &self,
        fan: &Fan,
        image: Option<&RawDocument>,
        after: Option<&Bson>,
        limit: usize,
        scope: &dyn HookScope,
    ) -> Result<Vec<RawDocumentBuf>> {
        let author = image.map(|image| id_at(image, &fan.by)).transpose()?.flatten();
        let Some(author) = author else { return Ok(Vec::new()) };
        if !self.is_pushed(fan, &author, scope)? {
            return Ok(Vec::new());
        }
        self.edges_to(fan, &author, after, limit, scope)
    }

    fn edges_to(
        &self,
        fan: &Fan,
        author: &RawBson,
        after: Option<&Bson>,
        limit: usize,
        scope: &dyn HookScope,
    ) -> Result<Vec<RawDocumentBuf>> {
        let mut all = children_filter(&fan.to, author, &fan.filter)?;
        if let Some(after) = after {
            all.push(doc! { "_id": { "$gt": after.clone() } }.into());
        }
        let (filter, sort) = (compile::raw(&doc! { "$and": all })?, compile::raw(&doc! { "_id": 1 })?);
        scope.find_sorted(&*self.namespace(&fan.edges)?, &filter, &sort, limit)
    }

    /// The rows of an item, by `_id`.
    fn rows_of(
        &self,
        fan: &Fan,
        item: &RawBson,
        after: Option<&Bson>,
        limit: usize,
        scope: &dyn HookScope,
    ) -> Result<Vec<RawDocumentBuf>> {
        let mut filter = doc! { "itemId": tree(item.clone())? };
        if let Some(after) = after {
            filter.insert("_id", doc! { "$gt": after.clone() });
        }
        let sort = compile::raw(&doc! { "_id": 1 })?;
        scope.find_sorted(&*self.namespace(&fan.rows)?, &compile::raw(&filter)?, &sort, limit)
    }

    fn is_pushed(&self, fan: &Fan, author: &RawBson, scope: &dyn HookScope) -> Result<bool> {
        let Some((field, most)) = &fan.threshold else { return Ok(true) };
        match scope.get(&*self.namespace(&fan.authors)?, author.as_raw_bson_ref())? {
            Some(author) => Ok(followers(&author, field)? <= *most),
            None => Ok(true),
        }
    }

    fn follows(&self, fan: &Fan, owner: &RawBson, author: &RawBson, scope: &dyn HookScope) -> Result<bool> {
        let mut all = children_filter(&fan.to, author, &fan.filter)?;
        all.push(doc! { fan.from.clone(): tree(owner.clone())? }.into());
        let filter = compile::raw(&doc! { "$and": all })?;
        Ok(!scope.find(&*self.namespace(&fan.edges)?, &filter, 1)?.is_empty())
    }

    /// A row that is there already, whoever its owner follows by now.
    fn settle_row(
        &self,
        fan: &Fan,
        row: &RawDocument,
        image: Option<&RawDocument>,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let (Some(owner), Some(item)) = (owned(row, "ownerId")?, owned(row, "itemId")?) else { return Ok(()) };
        let author = image.map(|image| id_at(image, &fan.by)).transpose()?.flatten();
        let follows = match author {
            Some(author) => self.follows(fan, &owner, &author, scope)?,
            None => false,
        };
        self.settle(fan, &owner, &item, image.filter(|_| follows), false, scope).map(|_| ())
    }

    /// One item in one inbox: it comes (if it is pushed), follows its source, or goes.
    fn settle(
        &self,
        fan: &Fan,
        owner: &RawBson,
        item: &RawBson,
        image: Option<&RawDocument>,
        pushed: bool,
        scope: &mut dyn HookScope,
    ) -> Result<Settled> {
        let rows = self.namespace(&fan.rows)?;
        let owner = tree(owner.clone())?;
        let id = newest::raw(&doc! { "owner": owner.clone(), "item": tree(item.clone())? }.into())?;
        let stored = scope.get(&rows, id.as_raw_bson_ref())?;
        let wanted = match image {
            Some(image) if pushed || stored.is_some() => fan.row(&owner, image)?,
            _ => None,
        };
        if stored.is_none() && wanted.is_none() {
            return Ok(Settled::Above);
        }
        let mut inbox = Inbox::read(self, fan, &owner, scope)?;
        let wanted = match wanted {
            Some(row) if is_above(&fan.key(&row), inbox.floor.as_ref())? => Some(compile::raw(&row)?),
            _ => None,
        };
        let settled = if wanted.is_some() { Settled::Above } else { Settled::Below };
        match (stored, wanted) {
            (Some(_), None) => {
                scope.delete(&rows, id.as_raw_bson_ref())?;
                inbox.count -= 1;
                inbox.write(self, scope)?;
            }
            (Some(stored), Some(row)) => {
                if stored.as_bytes() != row.as_bytes() {
                    scope.replace(&rows, row)?;
                }
            }
            (None, Some(row)) => {
                scope.insert(&rows, row)?;
                inbox.count += 1;
                self.trim(fan, &owner, &mut inbox, scope)?;
                inbox.write(self, scope)?;
            }
            (None, None) => {}
        }
        Ok(settled)
    }

    /// Lets go what an inbox has too much of.
    fn trim(&self, fan: &Fan, owner: &Bson, inbox: &mut Inbox, scope: &mut dyn HookScope) -> Result<()> {
        let excess = usize::try_from(inbox.count).unwrap_or(0).saturating_sub(fan.cap).min(BATCH);
        if excess == 0 {
            return Ok(());
        }
        let rows = self.namespace(&fan.rows)?;
        let filter = compile::raw(&doc! { "ownerId": owner.clone() })?;
        let sort = compile::raw(&doc! { fan.order_name.clone(): 1, "_id": 1 })?;
        for oldest in scope.find_sorted(&rows, &filter, &sort, excess)? {
            if let Some(id) = owned(&oldest, "_id")? {
                scope.delete(&rows, id.as_raw_bson_ref())?;
                inbox.count -= 1;
                inbox.floor = Some(fan.key(&document(&oldest)?));
            }
        }
        Ok(())
    }

    /// A reader and an author: the author's items come into the inbox, or leave it; true if there may be more to do.
    pub(super) fn pair(
        &self,
        fan: &Fan,
        owner: &RawBson,
        author: &RawBson,
        follows: bool,
        scope: &mut dyn HookScope,
    ) -> Result<bool> {
        if !follows {
            let filter = doc! { "ownerId": tree(owner.clone())?, "authorId": tree(author.clone())? };
            let rows = scope.find(&*self.namespace(&fan.rows)?, &compile::raw(&filter)?, BATCH)?;
            for row in &rows {
                if scope.writes_left() < RESERVE {
                    return Ok(true);
                }
                if let Some(item) = owned(row, "itemId")? {
                    self.settle(fan, owner, &item, None, false, scope)?;
                }
            }
            return Ok(rows.len() == BATCH);
        }
        if !self.is_pushed(fan, author, scope)? {
            return Ok(false);
        }
        let filter = compile::raw(&doc! { fan.by.clone(): tree(author.clone())? })?;
        let sort = compile::raw(&doc! { fan.order.clone(): -1, "_id": -1 })?;
        let mut items = scope.find_sorted(&*self.namespace(&fan.items)?, &filter, &sort, fan.cap + 1)?;
        let beyond = (items.len() > fan.cap).then(|| items.pop()).flatten();
        for item in items {
            if scope.writes_left() < RESERVE {
                return Ok(true);
            }
            let Some(id) = owned(&item, "_id")? else { continue };
            if self.settle(fan, owner, &id, Some(&item), true, scope)? == Settled::Below {
                return Ok(false);
            }
        }
        match beyond {
            Some(beyond) => self.fall_off(fan, owner, &beyond, scope).map(|()| false),
            None => Ok(false),
        }
    }

    /// An item for which there is no room in an inbox that its author's newer ones have filled.
    fn fall_off(&self, fan: &Fan, owner: &RawBson, item: &RawDocument, scope: &mut dyn HookScope) -> Result<()> {
        let owner = tree(owner.clone())?;
        let mut inbox = Inbox::read(self, fan, &owner, scope)?;
        let Some(row) = fan.row(&owner, item)? else { return Ok(()) };
        let key = fan.key(&row);
        if is_above(&key, inbox.floor.as_ref())? {
            inbox.floor = Some(key);
            inbox.write(self, scope)?;
        }
        Ok(())
    }

    /// One batch of what was noted; where to go on, if there is more.
    pub(super) fn fan_batch(
        &self,
        fan: &Fan,
        source: &RawBson,
        cursor: Option<Bson>,
        scope: &mut dyn HookScope,
    ) -> Result<Option<Bson>> {
        let RawBson::Document(source) = source else { return Ok(None) };
        if let Some(item) = owned(source, "item")? {
            return self.item_batch(fan, &item, cursor, scope);
        }
        let Some(author) = owned(source, "author")? else { return Ok(None) };
        if let Some(owner) = owned(source, "owner")? {
            let follows = self.follows(fan, &owner, &author, scope)?;
            return Ok(self.pair(fan, &owner, &author, follows, scope)?.then_some(Bson::Null));
        }
        let mut last = cursor.filter(|cursor| *cursor != Bson::Null);
        let edges = self.edges_to(fan, &author, last.as_ref(), BATCH, scope)?;
        for edge in &edges {
            let Some(owner) = id_at(edge, &fan.from)? else { continue };
            if scope.writes_left() < RESERVE || self.pair(fan, &owner, &author, true, scope)? {
                return Ok(Some(last.unwrap_or(Bson::Null)));
            }
            last = owned(edge, "_id")?.map(tree).transpose()?;
        }
        Ok(last.filter(|_| edges.len() == BATCH))
    }

    /// First the followers get the item, then the rows that are there follow it. The cursor is `{edge}` or `{row}`.
    fn item_batch(
        &self,
        fan: &Fan,
        item: &RawBson,
        cursor: Option<Bson>,
        scope: &mut dyn HookScope,
    ) -> Result<Option<Bson>> {
        let stored = scope.get(&*self.namespace(&fan.items)?, item.as_raw_bson_ref())?;
        let image = stored.as_deref();
        let cursor = cursor.as_ref().and_then(Bson::as_document);
        if let Some(rows_after) = cursor.and_then(|cursor| cursor.get("row")) {
            let after = (*rows_after != Bson::Null).then_some(rows_after);
            let rows = self.rows_of(fan, item, after, BATCH, scope)?;
            let mut last = rows_after.clone();
            for row in &rows {
                if scope.writes_left() < RESERVE {
                    return Ok(Some(doc! { "row": last }.into()));
                }
                self.settle_row(fan, row, image, scope)?;
                last = owned(row, "_id")?.map_or(Ok(Bson::Null), tree)?;
            }
            return Ok((rows.len() == BATCH).then(|| doc! { "row": last }.into()));
        }
        let mut last = cursor.and_then(|cursor| cursor.get("edge")).cloned();
        let edges = self.followers_of(fan, image, last.as_ref(), BATCH, scope)?;
        let mut done = 0;
        for edge in &edges {
            if scope.writes_left() < RESERVE {
                break;
            }
            done += 1;
            if let Some(owner) = id_at(edge, &fan.from)? {
                self.settle(fan, &owner, item, image, true, scope)?;
            }
            last = owned(edge, "_id")?.map(tree).transpose()?;
        }
        let is_over = done == edges.len() && edges.len() < BATCH;
        Ok(Some(match last {
            Some(last) if !is_over => doc! { "edge": last }.into(),
            _ => doc! { "row": Bson::Null }.into(),
        }))
    }

    /// Puts right what an audit found: one item in one inbox, or an inbox's count.
    pub(super) fn repair_inbox(&self, fan: &Fan, target: &Document, scope: &mut dyn HookScope) -> Result<()> {
        let Some(owner) = target.get("owner").map(newest::raw).transpose()? else { return Ok(()) };
        if let Some(item) = target.get("item").map(newest::raw).transpose()? {
            let stored = scope.get(&*self.namespace(&fan.items)?, item.as_raw_bson_ref())?;
            let author = stored.as_deref().map(|image| id_at(image, &fan.by)).transpose()?.flatten();
            let (follows, pushed) = match &author {
                Some(author) => (self.follows(fan, &owner, author, scope)?, self.is_pushed(fan, author, scope)?),
                None => (false, false),
            };
            let image = stored.as_deref().filter(|_| follows);
            return self.settle(fan, &owner, &item, image, pushed, scope).map(|_| ());
        }
        let owner = tree(owner)?;
        let mut inbox = Inbox::read(self, fan, &owner, scope)?;
        let filter = compile::raw(&doc! { "ownerId": owner.clone() })?;
        inbox.count = scope.find(&*self.namespace(&fan.rows)?, &filter, fan.cap + BATCH)?.len() as i64;
        self.trim(fan, &owner, &mut inbox, scope)?;
        inbox.write(self, scope)
    }

    /// Empties a timeline's inboxes before they are filled; true if there may be more.
    pub(super) fn clear_inboxes(&self, fan: &Fan, scope: &mut dyn HookScope) -> Result<bool> {
        let states = compile::raw(&doc! { "_id.timeline": fan.declaration.clone() })?;
        for (collection, filter) in [(fan.rows.as_str(), RawDocumentBuf::new()), (INBOXES, states)] {
            let namespace = self.namespace(collection)?;
            let found = scope.find(&namespace, &filter, BATCH)?;
            for row in &found {
                if let Some(id) = owned(row, "_id")? {
                    scope.delete(&namespace, id.as_raw_bson_ref())?;
                }
            }
            if !found.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// How many rows an inbox has, and what fell off its end.
struct Inbox {
    id: Document,
    stored: bool,
    count: i64,
    floor: Option<Document>,
}

impl Inbox {
    fn read(hook: &ModelHook, fan: &Fan, owner: &Bson, scope: &dyn HookScope) -> Result<Inbox> {
        let id = fan.inbox_id(owner);
        let key = newest::raw(&id.clone().into())?;
        let stored = scope.get(&*hook.namespace(INBOXES)?, key.as_raw_bson_ref())?;
        let state = stored.as_deref().map(document).transpose()?;
        let count = state.as_ref().and_then(|state| state.get_i64("count").ok()).unwrap_or(0);
        let floor = state.as_ref().and_then(|state| state.get_document("floor").ok()).cloned();
        Ok(Inbox { id, stored: state.is_some(), count, floor })
    }

    fn write(&self, hook: &ModelHook, scope: &mut dyn HookScope) -> Result<()> {
        let mut state = doc! { "_id": self.id.clone(), "count": self.count.max(0) };
        if let Some(floor) = &self.floor {
            state.insert("floor", floor.clone());
        }
        let (namespace, state) = (hook.namespace(INBOXES)?, compile::raw(&state)?);
        match self.stored {
            true => scope.replace(&namespace, state).map(|_| ()),
            false => scope.insert(&namespace, state),
        }
    }
}
