//! Children packed into chunk documents: `{ _id: { by, n }, <by>, n, count, bytes, first, last, items: […] }`.
//!
//! A chunk's items stand in their order, then by `_id`. A child that comes at the end of a full last chunk begins a new one,
//! so that chunks that only grow are full; one that comes in between splits a full chunk in the middle. A chunk without items
//! goes. `first` and `last` are the order's values of its first and last item: a range is read from few chunks.

use super::declaration::Declaration;
use super::effect::Effect;
use super::embedded::ModelHook;
use super::value::{document, id_at, owned, tree};
use super::{compile, newest};
use bson::{Bson, Document, RawBson, RawDocument, doc};
use engine::Result;
use engine::document::compare_values;
use engine::hook::HookScope;
use std::cmp::Ordering;
use std::sync::Arc;

/// A `bucket` declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Pack {
    /// The declaration, e.g. `conversation.chunks`.
    pub declaration: String,
    /// The chunks' collection.
    pub collection: String,
    /// The children's field with the parent's id, which is also the chunks'.
    pub by: String,
    /// The children's path that orders them.
    pub order: String,
    /// Its name in the items.
    pub order_name: String,
    /// The most items in a chunk.
    pub items: usize,
    /// The most bytes of a chunk's items.
    pub bytes: usize,
    /// The copied fields: their names in an item and their paths in the child; everything without any.
    pub fields: Vec<(String, String)>,
}

/// What a child's change does to the chunks.
#[derive(Clone, Debug, PartialEq)]
pub struct Packing {
    /// The declaration.
    pub rule: Arc<Pack>,
    /// The chunk that the child was in: its parent and order.
    pub gone: Option<(RawBson, Bson)>,
    /// The parent that it belongs to now, with its item.
    pub came: Option<(RawBson, Document)>,
    /// The child.
    pub child: RawBson,
}

impl Pack {
    /// A child's parent and item; `None` without a parent.
    pub(crate) fn item(&self, child: &RawDocument) -> Result<Option<(RawBson, Document)>> {
        let (Some(parent), Some(id)) = (id_at(child, &self.by)?, owned(child, "_id")?) else { return Ok(None) };
        if self.fields.is_empty() {
            let mut item = document(child)?;
            item.remove(&self.by);
            return Ok(Some((parent, item)));
        }
        let mut item = Document::new();
        item.insert("_id", tree(id)?);
        for (name, path) in &self.fields {
            if let Some(value) = owned(child, path)? {
                item.insert(name.clone(), tree(value)?);
            }
        }
        Ok(Some((parent, item)))
    }

    pub(super) fn order_of(&self, item: &Document) -> Bson {
        super::value::get(item, &super::effect::Place::default().path(&self.order_name)).cloned().unwrap_or(Bson::Null)
    }

    /// The order of two items.
    fn compare(&self, a: &Document, b: &Document) -> Result<Ordering> {
        let id = |item: &Document| item.get("_id").cloned().unwrap_or(Bson::Null);
        Ok(order(&self.order_of(a), &self.order_of(b))?.then(order(&id(a), &id(b))?))
    }

    /// Puts an item where it belongs among a chunk's items; gives its position.
    pub(super) fn put_in(&self, items: &mut Vec<Document>, item: &Document) -> Result<usize> {
        let mut position = items.len();
        for (index, other) in items.iter().enumerate() {
            if self.compare(item, other)? == Ordering::Less {
                position = index;
                break;
            }
        }
        items.insert(position, item.clone());
        Ok(position)
    }

    /// Whether a chunk has more than it may.
    pub(super) fn is_full(&self, items: &[Document]) -> Result<bool> {
        Ok(items.len() > 1 && (items.len() > self.items || bytes_of(items)? > self.bytes))
    }

    /// Where a full chunk is cut: before an item at the end of all, else in the middle.
    pub(super) fn split(&self, position: usize, at_end: bool, len: usize) -> usize {
        if at_end { position.max(1) } else { (len / 2).max(1) }
    }

    /// A chunk with these items.
    pub(crate) fn chunk(&self, id: &Document, items: Vec<Document>) -> Result<Document> {
        let bytes = bytes_of(&items)?;
        let value = |item: Option<&Document>| item.map_or(Bson::Null, |item| self.order_of(item));
        let (first, last) = (value(items.first()), value(items.last()));
        let mut chunk = doc! { "_id": id.clone() };
        chunk.insert(self.by.clone(), id.get("by").cloned().unwrap_or(Bson::Null));
        chunk.insert("n", id.get("n").cloned().unwrap_or(Bson::Int64(0)));
        chunk.insert("count", items.len() as i64);
        chunk.insert("bytes", bytes as i64);
        chunk.insert("first", first);
        chunk.insert("last", last);
        chunk.insert("items", items);
        Ok(chunk)
    }
}

fn order(a: &Bson, b: &Bson) -> Result<Ordering> {
    compare_values(newest::raw(a)?.as_raw_bson_ref(), newest::raw(b)?.as_raw_bson_ref(), None)
}

fn bytes_of(items: &[Document]) -> Result<usize> {
    items.iter().map(|item| Ok(compile::raw(item)?.as_bytes().len())).sum()
}

/// The items of a stored chunk.
pub(crate) fn items_of(chunk: &Document) -> Vec<Document> {
    let items = chunk.get_array("items").into_iter().flatten();
    items.filter_map(|item| item.as_document().cloned()).collect()
}

/// The items of a stored chunk but for one child's.
pub(super) fn without(chunk: &Document, child: &Bson) -> Result<Vec<Document>> {
    let mut left = Vec::new();
    for item in items_of(chunk) {
        if order(item.get("_id").unwrap_or(&Bson::Null), child)? != Ordering::Equal {
            left.push(item);
        }
    }
    Ok(left)
}

/// What a change of a child does to its chunks; `None` if nothing.
pub(super) fn packing(
    rule: &Arc<Pack>,
    before: Option<&RawDocument>,
    after: Option<&RawDocument>,
    child: &RawBson,
) -> Result<Option<Effect>> {
    let (old, new) = (
        before.map(|image| rule.item(image)).transpose()?.flatten(),
        after.map(|image| rule.item(image)).transpose()?.flatten(),
    );
    if old == new {
        return Ok(None);
    }
    let gone = old.map(|(parent, item)| (parent, rule.order_of(&item)));
    Ok(Some(Effect::Pack(Packing { rule: rule.clone(), gone, came: new, child: child.clone() })))
}

impl ModelHook {
    /// Takes a child out of its chunk and puts it where it belongs now.
    pub(super) fn pack(&self, packing: &Packing, scope: &mut dyn HookScope) -> Result<()> {
        let rule = &packing.rule;
        if let Some((parent, order)) = &packing.gone {
            self.unpack(rule, parent, Some(order), &packing.child, scope)?;
        }
        match &packing.came {
            Some((parent, item)) => self.pack_into(rule, parent, item, scope),
            None => Ok(()),
        }
    }

    fn chunks(
        &self,
        rule: &Pack,
        filter: &Document,
        sort: &Document,
        limit: usize,
        scope: &dyn HookScope,
    ) -> Result<Vec<Document>> {
        let namespace = self.namespace(&rule.collection)?;
        let found = scope.find_sorted(&namespace, &compile::raw(filter)?, &compile::raw(sort)?, limit)?;
        found.iter().map(|chunk| document(chunk)).collect()
    }

    /// Takes a child out of the chunks of a parent.
    pub(super) fn unpack(
        &self,
        rule: &Pack,
        parent: &RawBson,
        order: Option<&Bson>,
        child: &RawBson,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let (by, child) = (tree(parent.clone())?, tree(child.clone())?);
        let mut filter = doc! { rule.by.clone(): by, "items._id": child.clone() };
        let mut found = Vec::new();
        if let Some(order) = order {
            let mut near = filter.clone();
            near.insert("first", doc! { "$lte": order.clone() });
            near.insert("last", doc! { "$gte": order.clone() });
            found = self.chunks(rule, &near, &doc! { "first": 1 }, 1, scope)?;
        }
        if found.is_empty() {
            filter.remove("first");
            found = self.chunks(rule, &filter, &doc! { "first": 1 }, usize::from(u8::MAX), scope)?;
        }
        for chunk in found {
            let left = without(&chunk, &child)?;
            self.store(rule, &chunk, left, scope)?;
        }
        Ok(())
    }

    /// Puts a child's item into the chunks of a parent.
    fn pack_into(&self, rule: &Pack, parent: &RawBson, item: &Document, scope: &mut dyn HookScope) -> Result<()> {
        let by = tree(parent.clone())?;
        let mut filter = doc! { rule.by.clone(): by.clone() };
        filter.insert("first", doc! { "$lte": rule.order_of(item) });
        let mut found = self.chunks(rule, &filter, &doc! { "first": -1, "n": -1 }, 1, scope)?;
        if found.is_empty() {
            found = self.chunks(rule, &doc! { rule.by.clone(): by.clone() }, &doc! { "first": 1, "n": 1 }, 1, scope)?;
        }
        let Some(chunk) = found.pop() else {
            return self.new_chunk(rule, by, vec![item.clone()], scope);
        };
        let mut items = items_of(&chunk);
        let position = rule.put_in(&mut items, item)?;
        if rule.is_full(&items)? {
            let at_end = position + 1 == items.len();
            let at_end = at_end && self.is_last(rule, &by, &chunk, scope)?;
            let rest = items.split_off(rule.split(position, at_end, items.len()));
            self.store(rule, &chunk, items, scope)?;
            return self.new_chunk(rule, by, rest, scope);
        }
        self.store(rule, &chunk, items, scope)
    }

    fn is_last(&self, rule: &Pack, by: &Bson, chunk: &Document, scope: &dyn HookScope) -> Result<bool> {
        let last =
            self.chunks(rule, &doc! { rule.by.clone(): by.clone() }, &doc! { "first": -1, "n": -1 }, 1, scope)?;
        Ok(last.first().is_none_or(|last| last.get("_id") == chunk.get("_id")))
    }

    fn new_chunk(&self, rule: &Pack, by: Bson, items: Vec<Document>, scope: &mut dyn HookScope) -> Result<()> {
        let all = doc! { "_id": {
            "$gte": { "by": by.clone(), "n": Bson::MinKey }, "$lte": { "by": by.clone(), "n": Bson::MaxKey },
        } };
        let last = self.chunks(rule, &all, &doc! { "_id": -1 }, 1, scope)?;
        let n = last.first().and_then(|last| last.get_i64("n").ok()).map_or(0, |n| n + 1);
        let id = doc! { "by": by, "n": n };
        scope.insert(&*self.namespace(&rule.collection)?, compile::raw(&rule.chunk(&id, items)?)?)
    }

    /// Stores a chunk with other items; an empty one goes.
    fn store(&self, rule: &Pack, chunk: &Document, items: Vec<Document>, scope: &mut dyn HookScope) -> Result<()> {
        let namespace = self.namespace(&rule.collection)?;
        let Some(Bson::Document(id)) = chunk.get("_id") else { return Ok(()) };
        if items.is_empty() {
            let id = newest::raw(&Bson::Document(id.clone()))?;
            return scope.delete(&namespace, id.as_raw_bson_ref()).map(|_| ());
        }
        scope.replace(&namespace, compile::raw(&rule.chunk(id, items)?)?).map(|_| ())
    }

    /// Puts right what concerns one child: it is taken out wherever it stands, and put in where it belongs.
    pub(super) fn repack(
        &self,
        rule: &Arc<Pack>,
        declaration: &Declaration,
        child: &RawBson,
        elsewhere: Option<&RawBson>,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let stored = scope.get(&*self.namespace(&declaration.source)?, child.as_raw_bson_ref())?;
        let came = stored.as_deref().map(|image| rule.item(image)).transpose()?.flatten();
        for parent in elsewhere.into_iter().chain(came.as_ref().map(|(parent, _)| parent)) {
            self.unpack(rule, parent, None, child, scope)?;
        }
        match &came {
            Some((parent, item)) => self.pack_into(rule, parent, item, scope),
            None => Ok(()),
        }
    }
}
