//! What a change causes in the changed document itself.

use super::effect::{Effect, Fill, Place, Step};
use super::value::{at, id_at, owned};
use super::{Bounded, CopyIn, Watch, compress, split, stock};
use crate::language::snapshot;
use crate::language::states::States;
use bson::{DateTime, RawArrayBuf, RawBson, RawBsonRef, RawDocument, rawdoc};
use engine::Result;
use engine::document::{Number, values_equal};
use std::sync::Arc;

/// See [`super::Keeper::own`].
pub(super) fn own(
    watch: &Watch,
    before: Option<&RawDocument>,
    after: &RawDocument,
    by_hook: bool,
    now_ms: i64,
) -> Result<Vec<Effect>> {
    let mut effects = Vec::new();
    for bounded in &watch.bounded {
        bound(watch, bounded, after, &mut effects)?;
    }
    for stock in &watch.stocks {
        for field in std::iter::once(&stock.name).chain(&stock.held) {
            quantity(watch, field, after, &mut effects)?;
        }
    }
    for rule in &watch.packed {
        effects.extend(compress::packing(rule, after)?);
    }
    for rule in &watch.aparts {
        split::apart(rule, after, &mut effects)?;
    }
    if before.is_none() {
        for rule in &watch.lines {
            effects.extend(stock::line(rule, after)?);
        }
    }
    for rule in &watch.holds {
        stock::hold(rule, before, after, now_ms, &mut effects)?;
    }
    if by_hook {
        return Ok(effects);
    }
    kept(watch, before, after, &mut effects)?;
    for states in &watch.states {
        state(watch, states, before, after, now_ms, &mut effects)?;
    }
    if let Some(field) = &watch.lock {
        lock(watch, field, before, after, &mut effects)?;
    }
    for copy in &watch.copies {
        copied(copy, before, after, &mut effects)?;
    }
    Ok(effects)
}

fn refuse(watch: &Watch, field: &str, message: String) -> Effect {
    Effect::Refuse { declaration: format!("{}.{field}", watch.entity), message }
}

fn same(a: Option<RawBsonRef<'_>>, b: Option<RawBsonRef<'_>>) -> Result<bool> {
    match (a, b) {
        (Some(a), Some(b)) => values_equal(a, b, None),
        (a, b) => Ok(a.is_none() && b.is_none()),
    }
}

/// Fields that the model keeps: a change by anybody else is refused; their values come from whoever carries it out.
fn kept(watch: &Watch, before: Option<&RawDocument>, after: &RawDocument, effects: &mut Vec<Effect>) -> Result<()> {
    for kept in &watch.kept {
        let new = at(after, &kept.field)?;
        let Some(value) = new.get() else { continue };
        let old = before.map(|before| at(before, &kept.field)).transpose()?;
        let unchanged = match old.as_ref().and_then(|old| old.get()) {
            Some(old) => values_equal(old, value, None)?,
            None => Number::of(value).is_some_and(Number::is_zero),
        };
        if !unchanged {
            effects.push(refuse(
                watch,
                &kept.field,
                format!("`{}` is kept by the model and cannot be written; leave it out", kept.declaration),
            ));
        }
    }
    Ok(())
}

fn bound(watch: &Watch, bounded: &Bounded, after: &RawDocument, effects: &mut Vec<Effect>) -> Result<()> {
    let value = at(after, &bounded.name)?;
    let Some(RawBsonRef::Array(array)) = value.get() else { return Ok(()) };
    let elements: Vec<RawBsonRef<'_>> = array.into_iter().collect::<Result<_, _>>()?;
    if elements.len() > bounded.max {
        if !bounded.drop_oldest {
            let message = format!(
                "`{}.{}` holds at most {} elements, not {}",
                watch.entity,
                bounded.name,
                bounded.max,
                elements.len()
            );
            effects.push(refuse(watch, &bounded.name, message));
            return Ok(());
        }
        let mut kept = RawArrayBuf::new();
        for element in &elements[elements.len() - bounded.max..] {
            kept.push(*element);
        }
        effects.push(Effect::Set { place: Place::top(&bounded.name), value: Some(RawBson::Array(kept)) });
    }
    let Some(key) = &bounded.key else { return Ok(()) };
    let mut keys: Vec<RawBson> = Vec::new();
    for element in elements.iter().filter_map(|element| element.as_document()) {
        let Some(value) = owned(element, key)? else { continue };
        for other in &keys {
            if values_equal(other.as_raw_bson_ref(), value.as_raw_bson_ref(), None)? {
                let message = format!("`{}.{}` has two elements with the same `{key}`", watch.entity, bounded.name);
                effects.push(refuse(watch, &bounded.name, message));
                return Ok(());
            }
        }
        keys.push(value);
    }
    Ok(())
}

/// A quantity is a whole number that is not below zero.
fn quantity(watch: &Watch, field: &str, after: &RawDocument, effects: &mut Vec<Effect>) -> Result<()> {
    let value = at(after, field)?;
    let Some(value) = value.get() else { return Ok(()) };
    let whole = Number::of(value).and_then(Number::to_i64_exact);
    match whole {
        Some(quantity) if quantity >= 0 => {}
        Some(quantity) => {
            let message = format!("`{}.{field}` would be {quantity}; a stock never goes below zero", watch.entity);
            effects.push(refuse(watch, field, message));
        }
        None => {
            let message = format!("`{}.{field}` is a stock and takes whole numbers only", watch.entity);
            effects.push(refuse(watch, field, message));
        }
    }
    Ok(())
}

fn state(
    watch: &Watch,
    states: &States,
    before: Option<&RawDocument>,
    after: &RawDocument,
    now_ms: i64,
    effects: &mut Vec<Effect>,
) -> Result<()> {
    let text = |document: &RawDocument| -> Result<Option<String>> {
        Ok(at(document, &states.name)?.get().and_then(|value| value.as_str().map(str::to_owned)))
    };
    let new = text(after)?;
    let old = before.map(text).transpose()?.flatten();
    let now = match (&old, &new) {
        (None, Some(new)) if before.is_none() && *new != states.start => {
            let message = format!("a new `{}` starts as `{}`, not as `{new}`", watch.entity, states.start);
            effects.push(refuse(watch, &states.name, message));
            return Ok(());
        }
        (None, None) if before.is_none() => {
            let value = Some(RawBson::String(states.start.clone()));
            effects.push(Effect::Set { place: Place::top(&states.name), value });
            Some(states.start.clone())
        }
        (None, new) => new.clone(),
        (Some(old), None) => {
            let message = format!("`{}.{}` is `{old}` and cannot be removed", watch.entity, states.name);
            effects.push(refuse(watch, &states.name, message));
            return Ok(());
        }
        (Some(old), Some(new)) if old == new => None,
        (Some(old), Some(new)) if states.allows(old, new) => Some(new.clone()),
        (Some(old), Some(new)) => {
            let message = format!("`{}.{}` cannot go from `{old}` to `{new}`", watch.entity, states.name);
            effects.push(refuse(watch, &states.name, message));
            return Ok(());
        }
    };
    let Some(history) = &states.history else { return Ok(()) };
    let mut steps: Vec<RawBson> = Vec::new();
    if let Some(before) = before
        && let Some(RawBson::Array(array)) = owned(before, history)?
    {
        steps = array.into_iter().map(|step| step.map(RawBson::from)).collect::<Result<_, _>>()?;
    }
    if let Some(state) = now {
        let entry = match said(history, &state, steps.last(), after)? {
            Some(entry) => entry,
            None => RawBson::Document(rawdoc! { "state": state, "at": DateTime::from_millis(now_ms) }),
        };
        steps.push(entry);
    }
    let max = states.max.unwrap_or(u64::MAX) as usize;
    let from = steps.len().saturating_sub(max);
    let mut array = RawArrayBuf::new();
    steps.into_iter().skip(from).for_each(|step| array.push(step));
    effects.push(Effect::Set { place: Place::top(history), value: Some(RawBson::Array(array)) });
    Ok(())
}

/// The writer's own entry for a step, which may say more of it (who, why), if it is one: `{state, at, …}`.
fn said(history: &str, state: &str, last: Option<&RawBson>, after: &RawDocument) -> Result<Option<RawBson>> {
    let Some(RawBson::Array(array)) = owned(after, history)? else { return Ok(None) };
    let Some(entry) = array.into_iter().last() else { return Ok(None) };
    let entry = RawBson::from(entry?);
    let fits = entry.as_document().is_some_and(|entry| {
        entry.get_str("state").is_ok_and(|said| said == state) && entry.get_datetime("at").is_ok()
    });
    Ok((fits && last != Some(&entry)).then_some(entry))
}

/// The optimistic lock: one more with every write; who names another version than the stored one is refused.
fn lock(
    watch: &Watch,
    field: &str,
    before: Option<&RawDocument>,
    after: &RawDocument,
    effects: &mut Vec<Effect>,
) -> Result<()> {
    let read = |document: &RawDocument| -> Result<Option<i64>> {
        Ok(at(document, field)?.get().and_then(Number::of).and_then(Number::to_i64_exact))
    };
    let new = read(after)?;
    let old = before.map(read).transpose()?.flatten().unwrap_or(0);
    let next = old + 1;
    if let (Some(_), Some(new)) = (before, new)
        && new != old
        && new != next
    {
        let message = format!("`{}` has version {old}, not {}: read it again", watch.entity, new - 1);
        effects.push(refuse(watch, field, message));
        return Ok(());
    }
    if new != Some(next) {
        effects.push(Effect::Set { place: Place::top(field), value: Some(RawBson::Int64(next)) });
    }
    Ok(())
}

/// A sub-document that holds a reference and its copy: where it is, now and before.
struct Holder<'d> {
    place: Place,
    now: &'d RawDocument,
    before: Option<&'d RawDocument>,
}

/// The sub-documents at the end of some steps; elements of an array are matched by their key.
fn holders<'d>(
    now: &'d RawDocument,
    before: Option<&'d RawDocument>,
    steps: &[(String, Option<Option<String>>)],
) -> Result<Vec<Holder<'d>>> {
    let mut list = vec![Holder { place: Place::default(), now, before }];
    for (name, many) in steps {
        let mut next = Vec::new();
        for holder in list {
            let place = holder.place.then(Step::Name(name.clone()));
            let old = holder.before.map(|before| engine::document::get(before, name)).transpose()?.flatten();
            match (engine::document::get(holder.now, name)?, many) {
                (Some(RawBsonRef::Document(now)), None) => {
                    next.push(Holder { place, now, before: old.and_then(|old| old.as_document()) });
                }
                (Some(RawBsonRef::Array(array)), Some(key)) => {
                    let old: Vec<&RawDocument> = match old {
                        Some(RawBsonRef::Array(old)) => {
                            old.into_iter().filter_map(|element| element.ok()?.as_document()).collect()
                        }
                        _ => Vec::new(),
                    };
                    for (index, element) in array.into_iter().enumerate() {
                        let Some(now) = element?.as_document() else { continue };
                        let before = match key {
                            Some(key) => with_key(&old, key, now)?,
                            None => None,
                        };
                        next.push(Holder { place: place.then(Step::Index(index)), now, before });
                    }
                }
                _ => {}
            }
        }
        list = next;
    }
    Ok(list)
}

fn with_key<'d>(old: &[&'d RawDocument], key: &str, now: &RawDocument) -> Result<Option<&'d RawDocument>> {
    let wanted = at(now, key)?;
    for element in old {
        if wanted.get().is_some() && same(at(element, key)?.get(), wanted.get())? {
            return Ok(Some(element));
        }
    }
    Ok(None)
}

/// The copies that a stored document has to hold, to be taken from their sources as they are now: live ones always,
/// snapshots where they are missing.
pub(crate) fn fills(copy: &Arc<CopyIn>, image: &RawDocument) -> Result<Vec<Fill>> {
    let mut fills = Vec::new();
    if copy.fill == Some(snapshot::Fill::Never) {
        return Ok(fills);
    }
    for holder in holders(image, None, &copy.steps)? {
        let Some(id) = id_at(holder.now, &copy.reference)? else { continue };
        let place = match &copy.name {
            Some(name) => holder.place.then(Step::Name(name.clone())),
            None => holder.place,
        };
        fills.push(Fill { copy: copy.clone(), id, place, replace: copy.fill.is_none() });
    }
    Ok(fills)
}

/// Takes a copy when its document is written, and keeps it as it is afterwards.
fn copied(
    copy: &Arc<CopyIn>,
    before: Option<&RawDocument>,
    after: &RawDocument,
    effects: &mut Vec<Effect>,
) -> Result<()> {
    for holder in holders(after, before, &copy.steps)? {
        let inner = match &copy.name {
            Some(name) => holder.place.then(Step::Name(name.clone())),
            None => holder.place.clone(),
        };
        let path = |field: &str| match &copy.name {
            Some(name) => format!("{name}.{field}"),
            None => field.to_owned(),
        };
        let id = id_at(holder.now, &copy.reference)?;
        let held = match holder.before {
            Some(before) => {
                same(at(before, &copy.reference)?.get(), id.as_ref().map(RawBson::as_raw_bson_ref))?.then_some(before)
            }
            None => None,
        };
        if let Some(before) = held {
            keep_copied(copy, before, &holder, &inner, &path, effects)?;
            continue;
        }
        let Some(id) = id else { continue };
        let missing = {
            let mut missing = false;
            for (name, _) in &copy.fields {
                missing |= at(holder.now, &path(name))?.is_missing();
            }
            missing
        };
        let replace = match copy.fill {
            None | Some(snapshot::Fill::Always) => true,
            Some(snapshot::Fill::Missing) => false,
            Some(snapshot::Fill::Never) => continue,
        };
        // Elements without a key can't be matched with their old selves: a copy that is there stays.
        let anonymous = before.is_some() && copy.steps.iter().any(|(_, many)| *many == Some(None));
        let replace = replace && (missing || !anonymous);
        if replace || missing {
            effects.push(Effect::Fill(Fill { copy: copy.clone(), id, place: inner, replace }));
        }
    }
    Ok(())
}

/// The reference is the same: the copy stays, and whoever changes it is refused.
fn keep_copied(
    copy: &CopyIn,
    before: &RawDocument,
    holder: &Holder<'_>,
    inner: &Place,
    path: &dyn Fn(&str) -> String,
    effects: &mut Vec<Effect>,
) -> Result<()> {
    for (name, _) in &copy.fields {
        let old = owned(before, &path(name))?;
        let new = at(holder.now, &path(name))?;
        match (&old, new.get()) {
            (Some(old), None) => {
                effects.push(Effect::Set { place: inner.path(name), value: Some(old.clone()) });
            }
            (old, Some(new)) if !same(old.as_ref().map(RawBson::as_raw_bson_ref), Some(new))? => {
                let what =
                    if copy.fill.is_some() { "a snapshot, which never changes" } else { "a live copy of its source" };
                let message = format!("`{}` is {what}: leave `{}` as it is", copy.declaration, path(name));
                effects.push(Effect::Refuse { declaration: copy.declaration.clone(), message });
            }
            _ => {}
        }
    }
    Ok(())
}
