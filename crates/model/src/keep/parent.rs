//! The kept values of a parent: changed with its children, or remembered while it isn't there.

use super::effect::{Change, Extreme, Newest};
use super::embedded::ModelHook;
use super::image::Image;
use super::value::{document, owned, tree};
use super::{PENDING, compile, newest, others};
use bson::{Bson, Document, RawBson, RawDocument, RawDocumentBuf, doc};
use engine::document::Number;
use engine::hook::HookScope;
use engine::{Namespace, Result};

impl ModelHook {
    /// Changes a stored parent, or remembers it for one that isn't there.
    pub(super) fn change_parent(
        &self,
        namespace: &Namespace,
        id: &RawBson,
        changes: &[Change],
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let there = scope.change(namespace, id.as_raw_bson_ref(), &mut |stored, scope| {
            let changed = self.changed_parent(stored, id, changes, scope)?;
            Ok(Some(changed).filter(|changed| changed.as_bytes() != stored.as_bytes()))
        })?;
        if there {
            return Ok(());
        }
        for change in changes {
            let (field, amount) = match change {
                Change::Add { field, amount } => (field, Some(*amount)),
                Change::Extreme { rule, .. } => (&rule.field, None),
                Change::Newest { rule, .. } => (&rule.field, None),
            };
            self.refuse_unknown_item(&namespace.collection, field, amount)?;
            self.add_pending(&namespace.collection, field, id, amount, scope)?;
        }
        Ok(())
    }

    /// A parent with some changes.
    fn changed_parent(
        &self,
        stored: &RawDocument,
        id: &RawBson,
        changes: &[Change],
        scope: &dyn HookScope,
    ) -> Result<RawDocumentBuf> {
        let mut image = Image::of(stored);
        for change in changes {
            match (change, &image) {
                (Change::Add { field, amount }, Image::Bytes(bytes)) => {
                    let old = newest::number_of(engine::document::get(bytes, field)?);
                    image.set_field(field, Some(others::add(old, *amount, field)?.into()))?;
                }
                _ => self.change(image.tree()?, id, change, scope)?,
            }
        }
        image.into_bytes()
    }

    /// Applies one change to a parent's image.
    pub(super) fn change(
        &self,
        parent: &mut Document,
        id: &RawBson,
        change: &Change,
        scope: &dyn HookScope,
    ) -> Result<()> {
        match change {
            Change::Add { field, amount } => newest::add(parent, field, *amount),
            Change::Extreme { rule, gone, came, child } => {
                if newest::extreme(parent, &rule.field, rule.largest, gone.as_ref(), came.as_ref())? {
                    self.look_up_extreme(parent, id, rule, Some((child, came.as_ref())), scope)?;
                }
                Ok(())
            }
            Change::Newest { rule, child, came } => {
                if newest::newest(parent, rule, child, came.as_ref())? {
                    self.look_up_newest(parent, id, rule, Some((child, came.as_ref())), scope)?;
                }
                Ok(())
            }
        }
    }

    /// The extreme among the children as stored, but for one that is being written.
    pub(super) fn look_up_extreme(
        &self,
        parent: &mut Document,
        id: &RawBson,
        rule: &Extreme,
        writing: Option<(&RawBson, Option<&RawBson>)>,
        scope: &dyn HookScope,
    ) -> Result<()> {
        let mut filter = children_filter(&rule.by, id, &rule.filter)?;
        filter.push(Bson::Document(doc! { rule.path.clone(): { "$ne": Bson::Null } }));
        let filter = compile::raw(&doc! { "$and": filter })?;
        let sort = compile::raw(&doc! { rule.path.clone(): if rule.largest { -1 } else { 1 } })?;
        parent.remove(&rule.field);
        for child in scope.find_sorted(&*self.namespace(&rule.children)?, &filter, &sort, 2)? {
            let same = match (writing, owned(&child, "_id")?) {
                (Some((writing, _)), Some(other)) => writing == &other,
                _ => false,
            };
            if !same && let Some(value) = owned(&child, &rule.path)? {
                newest::extreme(parent, &rule.field, rule.largest, None, Some(&value))?;
            }
        }
        if let Some((_, Some(came))) = writing {
            newest::extreme(parent, &rule.field, rule.largest, None, Some(came))?;
        }
        Ok(())
    }

    /// The newest among the children as stored, but for one that is being written.
    pub(super) fn look_up_newest(
        &self,
        parent: &mut Document,
        id: &RawBson,
        rule: &Newest,
        writing: Option<(&RawBson, Option<&Document>)>,
        scope: &dyn HookScope,
    ) -> Result<()> {
        let filter = compile::raw(&doc! { "$and": children_filter(&rule.by, id, &rule.filter)? })?;
        let direction = if rule.descending { 1 } else { -1 };
        let mut sort = doc! { rule.order.clone(): direction };
        sort.insert("_id", -1);
        newest::put(parent, rule, Vec::new());
        let limit = rule.keep.unwrap_or(1) + 1;
        for child in scope.find_sorted(&*self.namespace(&rule.children)?, &filter, &compile::raw(&sort)?, limit)? {
            let Some(child_id) = owned(&child, "_id")? else { continue };
            if writing.is_some_and(|(writing, _)| *writing == child_id) {
                continue;
            }
            let mut copy = Document::new();
            copy.insert("_id", tree(child_id.clone())?);
            for (name, path) in &rule.fields {
                if let Some(value) = owned(&child, path)? {
                    copy.insert(name.clone(), tree(value)?);
                }
            }
            newest::newest(parent, rule, &child_id, Some(&copy))?;
        }
        if let Some((child, Some(came))) = writing {
            newest::newest(parent, rule, child, Some(came))?;
        }
        Ok(())
    }

    fn pending_id(collection: &str, field: &str, id: &RawBson) -> Result<RawBson> {
        newest::raw(&Bson::Document(doc! { "field": format!("{collection}.{field}"), "parent": tree(id.clone())? }))
    }

    /// Remembers a value for a parent that isn't there; without an amount, that there are children.
    pub(super) fn add_pending(
        &self,
        collection: &str,
        field: &str,
        id: &RawBson,
        amount: Option<Number>,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let namespace = self.namespace(PENDING)?;
        let pending = Self::pending_id(collection, field, id)?;
        let stored = scope.get(&namespace, pending.as_raw_bson_ref())?;
        let mut note = match &stored {
            Some(stored) => document(stored)?,
            None => doc! { "_id": tree(pending.clone())? },
        };
        if let Some(amount) = amount {
            newest::add(&mut note, "value", amount)?;
            if newest::number(note.get("value"))?.is_zero() {
                if stored.is_some() {
                    scope.delete(&namespace, pending.as_raw_bson_ref())?;
                }
                return Ok(());
            }
        }
        let note = compile::raw(&note)?;
        match stored {
            Some(stored) if stored.as_bytes() == note.as_bytes() => Ok(()),
            Some(_) => scope.replace(&namespace, note).map(|_| ()),
            None => scope.insert(&namespace, note),
        }
    }

    /// Takes what was remembered for a parent that is being created.
    pub(super) fn take_pending(
        &self,
        collection: &str,
        field: &str,
        id: &RawBson,
        scope: &mut dyn HookScope,
    ) -> Result<Option<Option<Number>>> {
        let namespace = self.namespace(PENDING)?;
        let pending = Self::pending_id(collection, field, id)?;
        let Some(stored) = scope.get(&namespace, pending.as_raw_bson_ref())? else { return Ok(None) };
        scope.delete(&namespace, pending.as_raw_bson_ref())?;
        let note = document(&stored)?;
        Ok(Some(note.get("value").map(|value| newest::number(Some(value))).transpose()?))
    }
}

/// The conditions that choose a parent's children.
pub(super) fn children_filter(by: &str, id: &RawBson, filter: &RawDocument) -> Result<Vec<Bson>> {
    let mut all = vec![Bson::Document(doc! { by: tree(id.clone())? })];
    let filter = document(filter)?;
    if !filter.is_empty() {
        all.push(Bson::Document(filter));
    }
    Ok(all)
}
