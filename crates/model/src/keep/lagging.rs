//! What follows in batches: copies with many holders, and references to a document that many refer to.
//!
//! A note in [`LAGGING`] names the declaration and the source. Each update of a note by a client (nothing in it matters)
//! does one batch in that update's own statement and writes into the note how far it got; `done` says that nothing is
//! left. A source that changes again sets its note back to the beginning.

use super::effect::{Place, Referrers, Spread};
use super::embedded::ModelHook;
use super::timeline::Fan;
use super::value::{document, get, owned, tree};
use super::{LAGGING, compile, newest};
use crate::language::reference::OnDelete;
use bson::{Bson, Document, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use engine::document::values_equal;
use engine::hook::{DocumentWrite, HookScope};
use engine::{Namespace, Result};

/// The documents of one batch.
pub(super) const BATCH: usize = 200;

/// The copies, or references, of one batch: a batch is one statement, which others wait for. So many take a fifth of a millisecond.
const COPIES: usize = 6;

/// The writes that a batch leaves for the effects of its last document; it ends before it has fewer left.
pub(super) const RESERVE: usize = 200;

/// What a note of [`LAGGING`] is about.
pub(super) enum Lagging<'k> {
    /// Live copies, and the source's collection.
    Copies(&'k Spread, &'k str),
    /// References to a deleted document.
    References(&'k Referrers),
    /// What comes into inboxes.
    Inboxes(&'k Fan),
}

impl ModelHook {
    /// Notes that copies or references of a document are to follow in batches.
    pub(super) fn note(&self, declaration: &str, id: &RawBson, scope: &mut dyn HookScope) -> Result<()> {
        let namespace = self.namespace(LAGGING)?;
        let key = newest::raw(&Bson::Document(doc! { "declaration": declaration, "source": tree(id.clone())? }))?;
        let since = bson::DateTime::from_millis(scope.now());
        self.wake.ask();
        match scope.get(&namespace, key.as_raw_bson_ref())? {
            // From the beginning again: the source has changed since. What is late is late since the first change.
            Some(known) => {
                let since = match owned(&known, "since")? {
                    Some(RawBson::DateTime(first)) if owned(&known, "done")?.is_none() => first,
                    _ => since,
                };
                let note = doc! { "_id": tree(key)?, "since": since };
                scope.replace(&namespace, compile::raw(&note)?).map(|_| ())
            }
            None => scope.insert(&namespace, compile::raw(&doc! { "_id": tree(key)?, "since": since })?),
        }
    }

    /// One batch of what is lagging: done by a client's update of its note, which then says how far it got.
    pub(super) fn batch(&self, write: DocumentWrite<'_>, scope: &mut dyn HookScope) -> Result<Option<RawDocumentBuf>> {
        let (Some(before), Some(_), false) = (write.before, write.after, write.by_hook) else { return Ok(None) };
        let mut note = document(before)?;
        let (Some(declaration), Some(source)) = (
            get(&note, &Place::default().path("_id.declaration")).and_then(Bson::as_str).map(str::to_owned),
            get(&note, &Place::default().path("_id.source")).cloned(),
        ) else {
            return Ok(None);
        };
        let id = newest::raw(&source)?;
        let cursor = note.get("cursor").cloned();
        let last = match self.keeper.lagging(&declaration) {
            Some(Lagging::Copies(spread, from)) => self.copies_batch(spread, from, &id, cursor, scope)?,
            Some(Lagging::References(rule)) => self.references_batch(rule, &id, scope)?,
            Some(Lagging::Inboxes(fan)) => self.fan_batch(fan, &id, cursor, scope)?,
            None => None,
        };
        match last {
            Some(last) => {
                note.insert("cursor", last);
            }
            None => {
                note.insert("done", true);
            }
        }
        Ok(Some(compile::raw(&note)?))
    }

    fn copies_batch(
        &self,
        spread: &Spread,
        source: &str,
        id: &RawBson,
        cursor: Option<Bson>,
        scope: &mut dyn HookScope,
    ) -> Result<Option<Bson>> {
        let Some(source) = scope.get(&*self.namespace(source)?, id.as_raw_bson_ref())? else { return Ok(None) };
        let mut values = Vec::new();
        for (name, path) in &spread.fields {
            values.push((name.clone(), owned(&source, path)?));
        }
        let namespace = self.namespace(&spread.holders)?;
        let mut filter = doc! { spread.via.clone(): tree(id.clone())? };
        if let Some(cursor) = cursor {
            filter.insert("_id", doc! { "$gt": cursor });
        }
        let sort = compile::raw(&doc! { "_id": 1 })?;
        let holders = scope.find_sorted(&namespace, &compile::raw(&filter)?, &sort, COPIES)?;
        let mut last = None;
        for holder in &holders {
            if scope.writes_left() < RESERVE {
                return Ok(last);
            }
            self.copy_into(&namespace, spread, id, &values, holder, scope)?;
            last = owned(holder, "_id")?.map(tree).transpose()?;
        }
        Ok(last.filter(|_| holders.len() == COPIES))
    }

    fn references_batch(&self, rule: &Referrers, id: &RawBson, scope: &mut dyn HookScope) -> Result<Option<Bson>> {
        let namespace = self.namespace(&rule.collection)?;
        let filter = compile::raw(&doc! { rule.path.clone(): tree(id.clone())? })?;
        let found = scope.find(&namespace, &filter, COPIES)?;
        for referrer in &found {
            if scope.writes_left() < RESERVE {
                return Ok(Some(Bson::Null));
            }
            release(&namespace, rule, id, referrer, scope)?;
        }
        Ok((found.len() == COPIES).then_some(Bson::Null))
    }
}

/// Deletes a referring document, or takes the reference out of it.
pub(super) fn release(
    namespace: &Namespace,
    rule: &Referrers,
    id: &RawBson,
    referrer: &RawDocument,
    scope: &mut dyn HookScope,
) -> Result<()> {
    if rule.on_delete == OnDelete::Cascade && !rule.many {
        if let Some(own) = owned(referrer, "_id")? {
            scope.delete(namespace, own.as_raw_bson_ref())?;
        }
        return Ok(());
    }
    let mut changed = document(referrer)?;
    release_from(&mut changed, rule, id)?;
    scope.replace(namespace, compile::raw(&changed)?)?;
    Ok(())
}

/// A referring document without the reference; `None` if it goes itself.
pub(super) fn released(rule: &Referrers, mut referrer: Document, id: &Bson) -> Result<Option<Document>> {
    if rule.on_delete == OnDelete::Cascade && !rule.many {
        return Ok(None);
    }
    release_from(&mut referrer, rule, &newest::raw(id)?)?;
    Ok(Some(referrer))
}

fn release_from(referrer: &mut Document, rule: &Referrers, id: &RawBson) -> Result<()> {
    let parts: Vec<&str> = rule.path.split('.').collect();
    release_in(referrer, &parts, id.as_raw_bson_ref(), rule.on_delete == OnDelete::Cascade)
}

fn release_in(document: &mut Document, path: &[&str], id: RawBsonRef<'_>, cascade: bool) -> Result<()> {
    let Some((name, rest)) = path.split_first() else { return Ok(()) };
    let is = |value: &Bson| -> Result<bool> { values_equal(newest::raw(value)?.as_raw_bson_ref(), id, None) };
    let Some(value) = document.get_mut(*name) else { return Ok(()) };
    match value {
        Bson::Array(array) if rest.is_empty() => {
            let mut left = Vec::new();
            for element in array.drain(..) {
                if !is(&element)? {
                    left.push(element);
                }
            }
            *array = left;
        }
        Bson::Array(array) => {
            let mut left = Vec::new();
            for mut element in array.drain(..) {
                let Bson::Document(inner) = &mut element else {
                    left.push(element);
                    continue;
                };
                let refers = rest.len() == 1 && inner.get(rest[0]).map(is).transpose()?.unwrap_or(false);
                if refers && cascade {
                    continue;
                }
                release_in(inner, rest, id, cascade)?;
                left.push(element);
            }
            *array = left;
        }
        Bson::Document(inner) => release_in(inner, rest, id, cascade)?,
        value if rest.is_empty() && is(value)? => *value = Bson::Null,
        _ => {}
    }
    Ok(())
}
