//! Rollups, compared with all their source documents.
//!
//! A group's documents lie anywhere in the source, so one pass over the source adds up every group in memory, and a second one
//! goes through the groups that are stored. What differs is counted again for its own group in one snapshot.

use super::snapshot::{key, raw};
use super::{Auditor, BATCH, Compared, Drift};
use crate::error::Result;
use crate::keep::declaration::Declaration;
use crate::keep::{Moved, Roll, groups_of, roll_filter};
use bson::{Bson, Document, doc};
use engine::document::Number;
use std::collections::BTreeMap;
use store::{Find, Session};

/// The most groups that are added up at once.
const MAX_GROUPS: usize = 1_000_000;

/// What was added up so far, by the groups' encoded keys.
#[derive(Default)]
pub(super) struct Groups {
    sums: BTreeMap<Vec<u8>, Group>,
    full: bool,
}

#[derive(Clone)]
struct Group {
    key: Document,
    documents: i64,
    amounts: Vec<(String, Number)>,
    extremes: Vec<Moved>,
}

/// What a stored group is short of.
struct Difference {
    documents: i64,
    /// What is missing in counts and sums.
    add: Document,
    /// Extremes that are others.
    set: Document,
    /// Extremes that there are none of.
    unset: Document,
}

impl Groups {
    fn add(&mut self, roll: &Roll, image: &Document) -> Result<()> {
        for crate::keep::Group { key: group, documents, amounts, extremes } in groups_of(roll, &raw(image)?)? {
            let group = crate::keep::value::document(&group)?;
            let encoded = key(&Bson::Document(group.clone()))?;
            if self.sums.len() >= MAX_GROUPS && !self.sums.contains_key(&encoded) {
                self.full = true;
                continue;
            }
            match self.sums.entry(encoded) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(Group { key: group, documents, amounts, extremes });
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    let known = entry.get_mut();
                    known.documents += documents;
                    for ((name, sum), (_, amount)) in known.amounts.iter_mut().zip(amounts) {
                        *sum = crate::keep::add(*sum, amount, name)?;
                    }
                    for ((rule, held), moved) in roll.extremes.iter().zip(&mut known.extremes).zip(extremes) {
                        if let Some(came) = moved.came {
                            rule.keep(&mut held.came, came)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl Auditor {
    pub(super) async fn roll_batch(&mut self, declaration: &Declaration, roll: &Roll) -> Result<(usize, bool)> {
        if self.state.phase == 1 && self.groups.sums.is_empty() && self.state.cursor.is_some() {
            // Another run had added up; what it held is gone.
            (self.state.phase, self.state.cursor) = (0, None);
        }
        if self.state.phase == 0 {
            if self.groups.sums.is_empty() {
                self.state.cursor = None;
            }
            let images = self.next(&declaration.source, self.state.cursor.as_ref()).await?;
            for image in &images {
                self.groups.add(roll, image)?;
            }
            self.state.cursor = images.last().and_then(|last| last.get("_id").cloned()).or(self.state.cursor.take());
            return Ok((images.len(), images.len() < BATCH));
        }
        if self.groups.full {
            self.finding().skipped = Some(format!("it has more than {MAX_GROUPS} groups"));
            return Ok((0, true));
        }
        let stored = self.next(&roll.collection, self.state.cursor.as_ref()).await?;
        self.finding().checked += stored.len() as u64;
        for image in &stored {
            let id = image.get("_id").cloned().unwrap_or(Bson::Null);
            let expected = self.groups.sums.remove(&key(&id)?);
            if difference(roll, Some(image), expected.as_ref())?.is_some() {
                self.confirm(declaration, &id).await?;
            }
        }
        self.state.cursor = stored.last().and_then(|last| last.get("_id").cloned()).or(self.state.cursor.take());
        let over = stored.len() < BATCH;
        if over {
            // What is left has no stored group.
            for group in std::mem::take(&mut self.groups.sums).into_values() {
                self.confirm(declaration, &Bson::Document(group.key)).await?;
            }
        }
        Ok((stored.len(), over))
    }

    /// One group again, from the documents that belong to it.
    pub(super) async fn compare_group(
        &self,
        roll: &Roll,
        target: &Bson,
        mut session: Option<&mut Session>,
    ) -> Result<Compared> {
        let Some(group) = target.as_document() else { return Ok(Compared::default()) };
        let groups = self.store.collection(&self.database, &roll.collection);
        let stored = groups.find_one(doc! { "_id": target.clone() }, session.as_deref_mut()).await?;
        let Some(declaration) = self.keeper.declaration(&roll.declaration) else { return Ok(Compared::default()) };
        let source = self.store.collection(&self.database, &declaration.source);
        let mut cursor = source.stream(roll_filter(roll, group)?, Find::default(), session.as_deref_mut()).await?;
        let mut found = Groups::default();
        while let Some(image) = cursor.next(session.as_deref_mut()).await? {
            found.add(roll, &image)?;
        }
        let expected = found.sums.get(&key(target)?);
        let Some(Difference { documents, add, set, unset }) = difference(roll, stored.as_ref(), expected)? else {
            return Ok(Compared::default());
        };
        let expected = match expected {
            Some(expected) => expected.shown(roll)?.into(),
            None => Bson::Null,
        };
        let mut increase = add.clone();
        increase.insert("_documents", documents);
        let mut update = doc! { "$inc": increase };
        if stored.is_none() {
            update.insert("$setOnInsert", group.clone());
        }
        for (operator, fields) in [("$set", set), ("$unset", unset)] {
            if !fields.is_empty() {
                update.insert(operator, fields);
            }
        }
        let drift = Drift {
            target: target.clone(),
            stored: stored.map_or(Bson::Null, Bson::Document),
            expected,
            add: Some(add),
            documents,
            update: Some((doc! { "_id": target.clone() }, update)),
        };
        Ok(Compared { drifts: vec![drift], orphans: Vec::new() })
    }
}

impl Group {
    /// Its values, for people.
    fn shown(&self, roll: &Roll) -> Result<Document> {
        let mut shown = Document::new();
        for (name, amount) in &self.amounts {
            shown.insert(name.clone(), crate::keep::value::tree((*amount).into())?);
        }
        for (rule, held) in roll.extremes.iter().zip(&self.extremes) {
            if let Some(value) = &held.came {
                shown.insert(rule.name.clone(), crate::keep::value::tree(value.clone())?);
            }
        }
        Ok(shown)
    }
}

/// What a stored group is short of; `None` if nothing.
fn difference(roll: &Roll, stored: Option<&Document>, expected: Option<&Group>) -> Result<Option<Difference>> {
    let number = |name: &str| crate::keep::number(stored.and_then(|stored| stored.get(name)));
    let documents = expected.map_or(0, |expected| expected.documents);
    let documents = documents - number("_documents")?.to_i64_exact().unwrap_or(0);
    let mut add = Document::new();
    let mut differs = documents != 0;
    for name in roll.counts.iter().chain(roll.sums.iter().map(|sum| &sum.0)) {
        let wanted = expected.and_then(|expected| expected.amounts.iter().find(|amount| amount.0 == *name));
        let wanted = wanted.map_or(Number::Int64(0), |amount| amount.1);
        let missing = crate::keep::subtract(wanted, number(name)?, name)?;
        differs |= !missing.is_zero();
        add.insert(name.clone(), crate::keep::value::tree(missing.into())?);
    }
    let (mut set, mut unset) = (Document::new(), Document::new());
    for (place, rule) in roll.extremes.iter().enumerate() {
        let wanted = expected.and_then(|expected| expected.extremes.get(place)?.came.clone());
        let held = stored.and_then(|stored| stored.get(&rule.name));
        match (wanted, held) {
            (Some(wanted), held) => {
                let wanted = crate::keep::value::tree(wanted)?;
                let same = match held {
                    Some(held) => key(held)? == key(&wanted)?,
                    None => false,
                };
                if !same {
                    set.insert(rule.name.clone(), wanted);
                }
            }
            (None, Some(_)) => {
                unset.insert(rule.name.clone(), 1);
            }
            (None, None) => {}
        }
    }
    differs |= !set.is_empty() || !unset.is_empty();
    Ok(differs.then_some(Difference { documents, add, set, unset }))
}
