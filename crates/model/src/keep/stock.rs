//! Stock that the model keeps: what is available is what the ledger's lines add up to, less what holds set aside.
//!
//! ```text
//!   ledger { item, quantity: ±n, before, after, why, who, at }  ──(+)──> item.available
//!   holds  { item, quantity: n, expiresAt, sold }  ──(-) available, (+) held, while it is open
//! ```
//!
//! Both are sums like any other, so they are exact under every kind of write. A write that would take the quantity below
//! zero is refused. A hold ends when it is deleted (also by its expiry) or marked `sold: true`; then a line takes its
//! quantity out of the ledger in the same write. An audit's repair never changes a sum: it appends a line that explains the
//! difference, marked `correction`, which adds nothing.

use super::effect::{Effect, Place, Stocked};
use super::embedded::ModelHook;
use super::value::{at, document, id_at, owned, tree};
use super::{compile, newest};
use bson::{Bson, DateTime, Document, RawBson, RawBsonRef, RawDocument, doc};
use engine::Result;
use engine::document::Number;
use engine::hook::HookScope;
use std::sync::Arc;

/// The field of lines and holds with the item's id.
pub(crate) const ITEM: &str = "item";

/// The field of lines and holds with the quantity.
pub(crate) const QUANTITY: &str = "quantity";

/// The field of a hold with the end of its life.
pub(crate) const EXPIRES_AT: &str = "expiresAt";

/// Which lines of a ledger change the quantity.
pub(super) fn counted_lines() -> Document {
    doc! { "correction": { "$exists": false } }
}

/// Which holds set something aside.
pub(crate) fn open_holds() -> Document {
    doc! { "sold": { "$ne": true } }
}

fn whole(image: &RawDocument) -> Result<Option<i64>> {
    Ok(at(image, QUANTITY)?.get().and_then(Number::of).and_then(Number::to_i64_exact))
}

fn refuse(rule: &Stocked, message: String) -> Effect {
    Effect::Refuse { declaration: rule.declaration.clone(), message }
}

/// A line that is being appended.
pub(super) fn line(rule: &Arc<Stocked>, image: &RawDocument) -> Result<Option<Effect>> {
    if !at(image, "correction")?.is_missing() {
        return Ok(None);
    }
    let (Some(item), Some(quantity)) = (id_at(image, ITEM)?, whole(image)?) else {
        let message = format!("a line of `{}` names its `{ITEM}` and a whole `{QUANTITY}`", rule.ledger);
        return Ok(Some(refuse(rule, message)));
    };
    Ok(Some(Effect::Line { rule: rule.clone(), item, quantity }))
}

/// A hold that is being written: its quantity is positive, and it ends.
pub(super) fn hold(
    rule: &Arc<Stocked>,
    before: Option<&RawDocument>,
    image: &RawDocument,
    now_ms: i64,
    effects: &mut Vec<Effect>,
) -> Result<()> {
    if id_at(image, ITEM)?.is_none() || whole(image)?.is_none_or(|quantity| quantity <= 0) {
        let holds = rule.holds.as_deref().unwrap_or_default();
        let message = format!("a hold in `{holds}` names its `{ITEM}` and a whole `{QUANTITY}` above zero");
        effects.push(refuse(rule, message));
    }
    if before.is_none() && !matches!(at(image, EXPIRES_AT)?.get(), Some(RawBsonRef::DateTime(_))) {
        let until = DateTime::from_millis(now_ms.saturating_add(rule.hold_for_ms));
        effects.push(Effect::Set { place: Place::top(EXPIRES_AT), value: Some(RawBson::DateTime(until)) });
    }
    Ok(())
}

/// The line of a hold that has just been sold, or was written as sold.
pub(super) fn sold(
    rule: &Arc<Stocked>,
    before: Option<&RawDocument>,
    after: &RawDocument,
    id: &RawBson,
) -> Result<Option<Effect>> {
    let is_sold = |image: &RawDocument| -> Result<bool> {
        Ok(matches!(at(image, "sold")?.get(), Some(RawBsonRef::Boolean(true))))
    };
    if before.map(is_sold).transpose()?.unwrap_or(false) || !is_sold(after)? {
        return Ok(None);
    }
    // What was set aside is what goes.
    let held = before.unwrap_or(after);
    let (Some(item), Some(quantity)) = (id_at(held, ITEM)?, whole(held)?) else { return Ok(None) };
    let hold = tree(id.clone())?;
    let mut line = doc! {
        "_id": { "hold": hold.clone() }, ITEM: tree(item)?, QUANTITY: -quantity, "why": "sold", "hold": hold,
    };
    if let Some(who) = owned(after, "who")? {
        line.insert("who", tree(who)?);
    }
    Ok(Some(Effect::Append { ledger: rule.ledger.clone(), line }))
}

impl ModelHook {
    /// Nothing is taken from an item that isn't there.
    pub(super) fn refuse_unknown_item(&self, collection: &str, field: &str, amount: Option<Number>) -> Result<()> {
        let taken = amount.and_then(Number::to_i64_exact).is_some_and(|amount| amount < 0);
        if !taken || !self.keeper.is_stock(collection, field) {
            return Ok(());
        }
        let message = format!("there is no such document in `{collection}` whose `{field}` could be taken");
        Err(super::embedded::refusal(&format!("{collection}.{field}"), message))
    }

    /// A line says what was there before and is there after it, and when.
    pub(super) fn fill_line(
        &self,
        line: &mut Document,
        rule: &Stocked,
        item: &RawBson,
        quantity: i64,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let stored = scope.get(&*self.namespace(&rule.items)?, item.as_raw_bson_ref())?;
        if let Some(stored) = &stored {
            self.open_ledger(rule, stored, line.get("_id"), scope)?;
        }
        let stored = stored.as_deref().map(document).transpose()?.unwrap_or_default();
        let before = total(rule, &stored)?;
        line.insert("before", before);
        line.insert("after", before.saturating_add(quantity));
        if !matches!(line.get("at"), Some(Bson::DateTime(_))) {
            line.insert("at", DateTime::from_millis(scope.now()));
        }
        Ok(())
    }

    /// The line that explains what was there before the first line.
    pub(super) fn open_ledger(
        &self,
        rule: &Stocked,
        item: &RawDocument,
        writing: Option<&Bson>,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let Some(id) = owned(item, "_id")? else { return Ok(()) };
        let ledger = self.namespace(&rule.ledger)?;
        let mut known = doc! { ITEM: tree(id.clone())? };
        if let Some(writing) = writing {
            known.insert("_id", doc! { "$ne": writing.clone() });
        }
        let known = compile::raw(&known)?;
        let there = total(rule, &document(item)?)?;
        if there == 0 || !scope.find(&ledger, &known, 1)?.is_empty() {
            return Ok(());
        }
        let line = correction(tree(id)?, there, there, "opening", DateTime::from_millis(scope.now()));
        scope.insert(&ledger, compile::raw(&line)?)
    }

    /// Puts right what an audit found: the held quantity to its holds, and the ledger to what is there.
    pub(super) fn repair_stock(
        &self,
        rule: &Stocked,
        item: &RawDocument,
        amounts: &Document,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let Some(id) = owned(item, "_id")? else { return Ok(()) };
        let amount = |name: &str| -> Result<i64> { Ok(newest::number(amounts.get(name))?.to_i64_exact().unwrap_or(0)) };
        let mut changed = document(item)?;
        if let Some(held) = &rule.held
            && let more @ (1.. | ..=-1) = amount(held)?
        {
            newest::add(&mut changed, held, Number::Int64(more))?;
            newest::add(&mut changed, &rule.field, Number::Int64(-more))?;
            scope.replace(&*self.namespace(&rule.items)?, compile::raw(&changed)?)?;
        }
        let short = amount(&rule.field)?;
        if short != 0 {
            // The ledger says so much more than there is: less of it is left than its lines say.
            let now = DateTime::from_millis(scope.now());
            let line = correction(tree(id)?, -short, total(rule, &changed)?, "correction", now);
            scope.insert(&*self.namespace(&rule.ledger)?, compile::raw(&line)?)?;
        }
        Ok(())
    }
}

/// A line that explains a difference and adds nothing.
pub(crate) fn correction(item: Bson, quantity: i64, after: i64, why: &str, at: DateTime) -> Document {
    doc! {
        ITEM: item, QUANTITY: quantity, "before": after.saturating_sub(quantity), "after": after, "why": why,
        "who": "sheaf audit", "at": at, "correction": true,
    }
}

/// What is there of an item: available and set aside.
pub(crate) fn total(rule: &Stocked, item: &Document) -> Result<i64> {
    let mut sum = 0_i64;
    for field in std::iter::once(&rule.field).chain(&rule.held) {
        sum = sum.saturating_add(newest::number(item.get(field))?.to_i64_exact().unwrap_or(0));
    }
    Ok(sum)
}
