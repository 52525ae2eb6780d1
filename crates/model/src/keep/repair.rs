//! Repairs: an audit's findings put right inside the engine, where nobody else writes meanwhile.
//!
//! An insert into [`super::REPAIRS`] names a declaration and a target and does the repair in its own statement; the
//! document stays as the record of what was done. A sum is repaired by what the audit found missing, not by a value: the
//! hook keeps following other writes, so the difference that one snapshot shows is right at any later time. Everything else
//! is computed again from the state as it is now. The same `_id` twice is refused as a duplicate: nothing is repaired twice.

use super::bucket::Pack;
use super::declaration::{Declaration, Rule};
use super::effect::Change;
use super::embedded::ModelHook;
use super::newest;
use super::rollup::Group;
use super::value::{document, owned};
use super::{compile, others};
use bson::{Bson, Document, RawBson, RawDocument, RawDocumentBuf, doc};
use engine::document::Number;
use engine::hook::{DocumentWrite, HookScope};
use engine::{Code, Error, Result};
use std::sync::Arc;

/// The record of a repair, ready to be inserted.
pub(crate) fn record(id: Bson, declaration: &str, target: &Bson, amounts: Option<Document>) -> Document {
    let mut record = doc! { "_id": id, "declaration": declaration, "target": target.clone() };
    if let Some(amounts) = amounts {
        record.insert("add", amounts);
    }
    record
}

impl ModelHook {
    /// Does the repair that a document inserted into [`super::REPAIRS`] describes.
    pub(super) fn repair(&self, write: DocumentWrite<'_>, scope: &mut dyn HookScope) -> Result<Option<RawDocumentBuf>> {
        let (None, Some(after)) = (write.before, write.after) else { return Ok(None) };
        let record = document(after)?;
        let (Ok(name), Some(target)) = (record.get_str("declaration"), record.get("target")) else {
            return Err(bad("a repair needs `declaration` and `target`"));
        };
        let Some(declaration) = self.keeper.declaration(name) else {
            return Err(bad(&format!("the model has no declaration `{name}`")));
        };
        let id = newest::raw(target)?;
        let empty = Document::new();
        let amounts = record.get_document("add").unwrap_or(&empty);
        let namespace = self.namespace(&declaration.collection)?;
        let stored = scope.get(&namespace, id.as_raw_bson_ref())?;
        match (&declaration.rule, stored) {
            (Rule::Number(number), stored) => {
                let amount = newest::number(amounts.get(&number.field))?;
                self.repair_number(&declaration.collection, &number.field, &id, amount, stored.as_deref(), scope)?;
            }
            (Rule::Timeline(fan), _) => {
                let target = target.as_document().ok_or_else(|| bad("a timeline's `target` names an inbox's owner"))?;
                self.repair_inbox(fan, target, scope)?;
            }
            (Rule::Bucket(pack), _) => self.repair_bucket(pack, declaration, target, scope)?,
            (Rule::Roll(roll), _) => {
                let RawBson::Document(key) = &id else { return Err(bad("a rollup's `target` is its key")) };
                let documents = newest::number(record.get("documents"))?.to_i64_exact().unwrap_or(0);
                let mut sums = Vec::new();
                for name in roll.counts.iter().chain(roll.sums.iter().map(|sum| &sum.0)) {
                    sums.push((name.clone(), newest::number(amounts.get(name))?));
                }
                let group = Group { key: key.clone(), documents, amounts: sums, extremes: Vec::new() };
                self.roll(roll, &group, None, scope)?;
            }
            (Rule::Extreme(rule), Some(parent)) => {
                self.look_up(&declaration.collection, &parent, &rule.field, scope)?;
            }
            (Rule::Newest(rule), Some(parent)) => self.look_up(&declaration.collection, &parent, &rule.field, scope)?,
            (Rule::Stock(rule), Some(item)) => self.repair_stock(rule, &item, amounts, scope)?,
            (Rule::Copy(_) | Rule::Mirror { .. } | Rule::Split(_) | Rule::Compressed(_), Some(image)) => {
                self.refresh(declaration, &image, scope)?
            }
            _ => {}
        }
        let mut done = record.clone();
        done.insert("at", bson::DateTime::from_millis(scope.now()));
        Ok(Some(compile::raw(&done)?))
    }

    /// A child is packed again, or a chunk made to say what it holds.
    fn repair_bucket(
        &self,
        pack: &Arc<Pack>,
        declaration: &Declaration,
        target: &Bson,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let target = target.as_document().ok_or_else(|| bad("a bucket's `target` names a child or a chunk"))?;
        let raw = |name: &str| target.get(name).map(newest::raw).transpose();
        if let Some(child) = raw("child")? {
            return self.repack(pack, declaration, &child, raw("parent")?.as_ref(), scope);
        }
        let Some(id) = raw("chunk")? else { return Ok(()) };
        let namespace = self.namespace(&pack.collection)?;
        if let (Some(stored), Some(Bson::Document(id))) =
            (scope.get(&namespace, id.as_raw_bson_ref())?, target.get("chunk"))
        {
            let items = super::bucket::items_of(&document(&stored)?);
            scope.replace(&namespace, compile::raw(&pack.chunk(id, items)?)?)?;
        }
        Ok(())
    }

    fn repair_number(
        &self,
        parents: &str,
        field: &str,
        id: &RawBson,
        amount: Number,
        parent: Option<&RawDocument>,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let Some(parent) = parent else { return self.add_pending(parents, field, id, Some(amount), scope) };
        let stored = owned(parent, field)?;
        let mut changed = document(parent)?;
        // What is no number counts as nothing, for the audit too.
        let known = stored.as_ref().is_some_and(|value| Number::of(value.as_raw_bson_ref()).is_some());
        if !known {
            changed.remove(field);
        }
        let sum = others::add(newest::number(changed.get(field))?, amount, field)?;
        changed.insert(field, super::value::tree(sum.into())?);
        scope.replace(&*self.namespace(parents)?, compile::raw(&changed)?)?;
        Ok(())
    }
}

fn bad(message: &str) -> Error {
    Error::new(Code::BAD_VALUE, message.to_owned())
}

impl Change {
    /// The parent's field that changes.
    pub fn field(&self) -> &str {
        match self {
            Change::Add { field, .. } => field,
            Change::Extreme { rule, .. } => &rule.field,
            Change::Newest { rule, .. } => &rule.field,
        }
    }
}
