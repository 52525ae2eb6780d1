//! What a change causes in other documents.

use super::effect::{Change, Effect, Mirror};
use super::rollup::rolled;
use super::value::{at, document, id_at, owned, tree};
use super::{Adds, Contribution, Counts, REVERSE, Watch};
use super::{bucket, stock, timeline};
use bson::{Document, RawBson, RawDocument};
use engine::document::{Number, values_equal};
use engine::{Error, Result};

/// See [`super::Keeper::others`].
pub(super) fn others(
    watch: &Watch,
    collection: &str,
    before: Option<&RawDocument>,
    after: Option<&RawDocument>,
    by_hook: bool,
    counts: &Counts<'_>,
) -> Result<Vec<Effect>> {
    let mut effects = Vec::new();
    let Some(one) = after.or(before) else { return Ok(effects) };
    if let (Some(declaration), Some(_), false) = (&watch.ledger, before, by_hook) {
        let message = format!("the ledger of `{declaration}` is only appended to: write a line that takes it back");
        effects.push(Effect::Refuse { declaration: declaration.clone(), message });
        return Ok(effects);
    }
    let Some(id) = owned(one, "_id")? else { return Ok(effects) };
    for contribution in &watch.contributions {
        if contribution.is_added_up() && !counts(&contribution.declaration, &id)? {
            continue;
        }
        contribute(contribution, before, after, &id, &mut effects)?;
    }
    if let Some(after) = after {
        // A new source may have copies already: of an earlier one, or of documents that were there first.
        for spread in &watch.spreads {
            let mut values = Vec::new();
            let mut changed = before.is_none();
            for (name, path) in &spread.fields {
                let old = before.map(|before| owned(before, path)).transpose()?.flatten();
                let new = owned(after, path)?;
                changed |= old != new;
                values.push((name.clone(), new));
            }
            if changed {
                effects.push(Effect::Spread { spread: spread.clone(), id: id.clone(), values });
            }
        }
    }
    if before.is_some() && after.is_none() {
        for rule in &watch.referrers {
            effects.push(Effect::Referrers { rule: rule.clone(), id: id.clone() });
        }
        for rule in &watch.aparts {
            effects.push(Effect::Apart { rule: rule.clone(), id: id.clone(), fields: None });
        }
    }
    if let Some(after) = after {
        for rule in &watch.holds {
            effects.extend(stock::sold(rule, before, after, &id)?);
        }
    }
    for fan in &watch.fans {
        effects.extend(timeline::item(fan, before, after, &id)?);
    }
    for follows in &watch.follows {
        timeline::edge(follows, before, after, &mut effects)?;
    }
    for fan in &watch.authors {
        effects.extend(timeline::author(fan, before, after, &id)?);
    }
    if let (Some(ends), false) = (&watch.mirror, by_hook) {
        mirror(collection, ends, before, after, &mut effects)?;
    }
    for pack in &watch.packs {
        if counts(&pack.declaration, &id)? {
            effects.extend(bucket::packing(pack, before, after, &id)?);
        }
    }
    for roll in &watch.rolls {
        let counted = counts(&roll.declaration, &id)?;
        if counted || !roll.extremes.is_empty() {
            rolled(roll, before, after, counted, &id, &mut effects)?;
        }
    }
    Ok(effects)
}

/// What a document adds to one declaration, as if it had just been inserted.
pub(super) fn of_declaration(watch: &Watch, collection: &str, name: &str, image: &RawDocument) -> Result<Vec<Effect>> {
    let mut effects = Vec::new();
    let Some(id) = owned(image, "_id")? else { return Ok(effects) };
    for contribution in watch.contributions.iter().filter(|contribution| contribution.declaration == name) {
        contribute(contribution, None, Some(image), &id, &mut effects)?;
    }
    for pack in watch.packs.iter().filter(|pack| pack.declaration == name) {
        effects.extend(bucket::packing(pack, None, Some(image), &id)?);
    }
    for roll in watch.rolls.iter().filter(|roll| roll.declaration == name) {
        rolled(roll, None, Some(image), true, &id, &mut effects)?;
    }
    if let (Some(ends), true) = (&watch.mirror, watch.entity == name) {
        mirror(collection, ends, None, Some(image), &mut effects)?;
    }
    Ok(effects)
}

impl Contribution {
    /// Whether the parent's value is a sum of what its children add.
    fn is_added_up(&self) -> bool {
        matches!(self.kind, Adds::One(_) | Adds::Amount { .. })
    }
}

/// What a document means to a declaration: its parent and its share.
fn share(contribution: &Contribution, image: Option<&RawDocument>) -> Result<Option<RawBson>> {
    let Some(image) = image else { return Ok(None) };
    match id_at(image, &contribution.by)? {
        Some(parent) if contribution.filter.holds(image)? => Ok(Some(parent)),
        _ => Ok(None),
    }
}

fn contribute(
    contribution: &Contribution,
    before: Option<&RawDocument>,
    after: Option<&RawDocument>,
    id: &RawBson,
    effects: &mut Vec<Effect>,
) -> Result<()> {
    let (old, new) = (share(contribution, before)?, share(contribution, after)?);
    let stays = match (&old, &new) {
        (Some(old), Some(new)) => values_equal(old.as_raw_bson_ref(), new.as_raw_bson_ref(), None)?,
        _ => false,
    };
    let mut change = |parent: &RawBson, change: Option<Change>| {
        if let Some(change) = change {
            effects.push(Effect::Parent { collection: contribution.parents.clone(), id: parent.clone(), change });
        }
    };
    let (before, after) = (before.filter(|_| old.is_some()), after.filter(|_| new.is_some()));
    if stays {
        if let Some(parent) = &new {
            change(parent, difference(&contribution.kind, before, after, id)?);
        }
        return Ok(());
    }
    if let Some(parent) = &old {
        change(parent, difference(&contribution.kind, before, None, id)?);
    }
    if let Some(parent) = &new {
        change(parent, difference(&contribution.kind, None, after, id)?);
    }
    Ok(())
}

pub(super) fn number(image: Option<&RawDocument>, path: &str) -> Result<Number> {
    let Some(image) = image else { return Ok(Number::Int64(0)) };
    let value = at(image, path)?;
    Ok(match value.get().and_then(Number::of) {
        Some(Number::Int32(number)) => Number::Int64(i64::from(number)),
        Some(number) => number,
        None => Number::Int64(0),
    })
}

/// How a parent's value changes when its child's image does; `None` if it doesn't.
fn difference(
    kind: &Adds,
    before: Option<&RawDocument>,
    after: Option<&RawDocument>,
    id: &RawBson,
) -> Result<Option<Change>> {
    let present = |value: Option<RawBson>| value.filter(|value| !matches!(value, RawBson::Null | RawBson::Undefined));
    Ok(match kind {
        Adds::One(field) => {
            let amount = i64::from(after.is_some()) - i64::from(before.is_some());
            (amount != 0).then(|| Change::Add { field: field.clone(), amount: Number::Int64(amount) })
        }
        Adds::Amount { field, path, taken } => {
            let (before, after) = if *taken { (after, before) } else { (before, after) };
            let amount = subtract(number(after, path)?, number(before, path)?, field)?;
            (!amount.is_zero()).then(|| Change::Add { field: field.clone(), amount })
        }
        Adds::Extreme(rule) => {
            let gone = present(before.map(|image| owned(image, &rule.path)).transpose()?.flatten());
            let came = present(after.map(|image| owned(image, &rule.path)).transpose()?.flatten());
            (gone != came).then(|| Change::Extreme { rule: rule.clone(), gone, came, child: id.clone() })
        }
        Adds::Newest(rule) => {
            let copy = |image: &RawDocument| -> Result<Document> {
                let mut copy = Document::new();
                copy.insert("_id", tree(id.clone())?);
                for (name, path) in &rule.fields {
                    if let Some(value) = owned(image, path)? {
                        copy.insert(name.clone(), tree(value)?);
                    }
                }
                Ok(copy)
            };
            let (gone, came) = (before.map(copy).transpose()?, after.map(copy).transpose()?);
            (gone != came).then(|| Change::Newest { rule: rule.clone(), child: id.clone(), came })
        }
    })
}

/// `a - b`, exactly.
pub(crate) fn subtract(a: Number, b: Number, field: &str) -> Result<Number> {
    match (a, b) {
        (Number::Int64(a), Number::Int64(b)) => a.checked_sub(b).map(Number::Int64).ok_or_else(|| overflow(field)),
        (a, b) => Ok(a.subtract(b)),
    }
}

/// `a + b`, exactly.
pub(crate) fn add(a: Number, b: Number, field: &str) -> Result<Number> {
    match (a, b) {
        (Number::Int64(a), Number::Int64(b)) => a.checked_add(b).map(Number::Int64).ok_or_else(|| overflow(field)),
        (a, b) => Ok(a.add(b)),
    }
}

fn overflow(field: &str) -> Error {
    Error::bad_value(format!("the sum `{field}` does not fit a 64-bit integer; declare its field as decimal"))
}

/// The reverse row of a mutual edge follows every change but its own.
fn mirror(
    collection: &str,
    ends: &(String, String),
    before: Option<&RawDocument>,
    after: Option<&RawDocument>,
    effects: &mut Vec<Effect>,
) -> Result<()> {
    let pair = |image: &RawDocument| -> Result<Option<(RawBson, RawBson)>> {
        Ok(id_at(image, &ends.0)?.zip(id_at(image, &ends.1)?))
    };
    let old = before.map(pair).transpose()?.flatten();
    let new = after.map(pair).transpose()?.flatten();
    let row = |(from, to): (RawBson, RawBson), fields: Option<Document>| {
        let mirror = Mirror { collection: collection.to_owned(), ends: ends.clone(), from: to, to: from, fields };
        Effect::Mirror(mirror)
    };
    if let Some(old) = old.filter(|old| Some(old) != new.as_ref()) {
        effects.push(row(old, None));
    }
    if let (Some(new), Some(after)) = (new, after) {
        let mut fields = document(after)?;
        for name in ["_id", ends.0.as_str(), ends.1.as_str(), REVERSE] {
            fields.remove(name);
        }
        effects.push(row(new, Some(fields)));
    }
    Ok(())
}
