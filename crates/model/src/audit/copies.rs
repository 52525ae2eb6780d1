//! Copies and references, compared with what they refer to; the two rows of mutual edges with each other.

use super::snapshot::{at, at_place, dotted, key, raw, same};
use super::{Auditor, Compared, Drift};
use crate::error::Result;
use crate::keep::declaration::{Declaration, Rule};
use crate::keep::{CopyIn, LAGGING, REVERSE, fills};
use bson::{Bson, Document, RawBson, doc};
use std::collections::HashMap;
use std::sync::Arc;
use store::{Find, Session};

impl Auditor {
    pub(super) async fn compare_copies(
        &self,
        copy: &Arc<CopyIn>,
        images: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        let mut wanted = Vec::new();
        let mut ids: HashMap<Vec<u8>, Bson> = HashMap::new();
        for image in images {
            let fills = fills(copy, &raw(image)?)?;
            for fill in &fills {
                let id = Bson::try_from(fill.id.clone())?;
                ids.insert(key(&id)?, id);
            }
            wanted.push(fills);
        }
        if ids.is_empty() {
            return Ok(compared);
        }
        let sources = self.by_ids(&copy.source, ids.into_values().collect(), None, session).await?;
        let mut by_id = HashMap::new();
        for source in &sources {
            by_id.insert(key(source.get("_id").unwrap_or(&Bson::Null))?, source);
        }
        for (image, fills) in images.iter().zip(wanted) {
            let (mut set, mut unset) = (Document::new(), Document::new());
            let (mut stored, mut expected) = (Document::new(), Document::new());
            let own = image.get("_id").cloned().unwrap_or(Bson::Null);
            let mut guard = doc! { "_id": own.clone() };
            for fill in fills {
                let id = Bson::try_from(fill.id.clone())?;
                let Some(source) = by_id.get(&key(&id)?) else { continue };
                let source = raw(source)?;
                for (name, path) in &fill.copy.fields {
                    let place = fill.place.path(name);
                    let there = at_place(image, &place);
                    let should = crate::keep::value::owned(&source, path)?.map(Bson::try_from).transpose()?;
                    // A snapshot stays as it was taken; only a missing one is wrong.
                    if (!fill.replace && there.is_some()) || same(there, should.as_ref())? {
                        continue;
                    }
                    let path = dotted(&place);
                    guard.insert(path.clone(), there.cloned().unwrap_or(Bson::Null));
                    stored.insert(path.clone(), there.cloned().unwrap_or(Bson::Null));
                    expected.insert(path.clone(), should.clone().unwrap_or(Bson::Null));
                    match should {
                        Some(should) => set.insert(path, should),
                        None => unset.insert(path, 1),
                    };
                }
            }
            if stored.is_empty() {
                continue;
            }
            if copy.fill.is_some() && self.keeps_itself() {
                // It was taken in the write itself; what is missing was not there then.
                compared.orphans.push(own);
                continue;
            }
            let mut update = Document::new();
            for (operator, fields) in [("$set", set), ("$unset", unset)] {
                if !fields.is_empty() {
                    update.insert(operator, fields);
                }
            }
            compared.drifts.push(Drift {
                target: own,
                stored: stored.into(),
                expected: expected.into(),
                add: None,
                documents: 0,
                update: Some((guard, update)),
            });
        }
        Ok(compared)
    }

    /// Whether a copy is noted to follow later, or is being filled.
    pub(super) async fn is_lagging(&self, declaration: &Declaration, drift: &Drift) -> Result<bool> {
        if let (Rule::Timeline(_), true) = (&declaration.rule, self.keeps_itself()) {
            let open = doc! { "_id.declaration": &declaration.name, "done": { "$ne": true } };
            return Ok(self.store.collection(&self.database, LAGGING).find_one(open, None).await?.is_some());
        }
        let Rule::Copy(copy) = &declaration.rule else { return Ok(false) };
        if copy.fill.is_some() || !self.keeps_itself() {
            return Ok(false);
        }
        let holders = self.store.collection(&self.database, &declaration.collection);
        let Some(image) = holders.find_one(doc! { "_id": drift.target.clone() }, None).await? else { return Ok(false) };
        let notes = self.store.collection(&self.database, LAGGING);
        for fill in fills(copy, &raw(&image)?)? {
            let id = doc! { "declaration": &declaration.name, "source": Bson::try_from(fill.id)? };
            let open = doc! { "_id": id, "done": { "$ne": true } };
            if notes.find_one(open, None).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) async fn compare_references(
        &self,
        declaration: &Declaration,
        path: &str,
        images: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        let mut refers: Vec<(Bson, Vec<u8>)> = Vec::new();
        let mut ids: HashMap<Vec<u8>, Bson> = HashMap::new();
        for image in images {
            let own = image.get("_id").cloned().unwrap_or(Bson::Null);
            let mut values = Vec::new();
            if let Some(value) = crate::keep::value::owned(&raw(image)?, path)? {
                flatten(Bson::try_from(value)?, &mut values);
            }
            for value in values {
                let encoded = key(&value)?;
                refers.push((own.clone(), encoded.clone()));
                ids.insert(encoded, value);
            }
        }
        if ids.is_empty() {
            return Ok(Compared::default());
        }
        let only_id = Some(doc! { "_id": 1 });
        for source in self.by_ids(&declaration.source, ids.values().cloned().collect(), only_id, session).await? {
            ids.remove(&key(source.get("_id").unwrap_or(&Bson::Null))?);
        }
        let orphans = refers.into_iter().filter(|(_, id)| ids.contains_key(id)).map(|(own, _)| own).collect();
        Ok(Compared { drifts: Vec::new(), orphans })
    }

    pub(super) async fn compare_mirrors(
        &self,
        declaration: &Declaration,
        (from, to): (&String, &String),
        images: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        let end = |image: &Document, path: &str| at(image, path).filter(|id| !matches!(id, Bson::Null)).cloned();
        let pairs: Vec<Document> =
            images.iter().filter_map(|image| Some(doc! { from: end(image, to)?, to: end(image, from)? })).collect();
        if pairs.is_empty() {
            return Ok(compared);
        }
        let rows = self.store.collection(&self.database, &declaration.collection);
        let found = rows.find(doc! { "$or": pairs }, Find::default(), session).await?;
        let mut reverse = HashMap::new();
        for row in &found {
            if let (Some(a), Some(b)) = (end(row, from), end(row, to)) {
                reverse.insert((key(&a)?, key(&b)?), row);
            }
        }
        for image in images {
            let (Some(a), Some(b)) = (end(image, from), end(image, to)) else { continue };
            let bare = |row: &Document| {
                let mut row = row.clone();
                for name in ["_id", from, to, REVERSE] {
                    row.remove(name);
                }
                row
            };
            let wanted = bare(image);
            let there = reverse.get(&(key(&b)?, key(&a)?)).map(|row| bare(row));
            let equal = match &there {
                Some(there) => sorted(there) == sorted(&wanted),
                None => false,
            };
            if equal {
                continue;
            }
            let filter = doc! { from: b, to: a };
            let mut set = wanted.clone();
            if there.is_none() {
                set.insert(REVERSE, true);
            }
            compared.drifts.push(Drift {
                target: image.get("_id").cloned().unwrap_or(Bson::Null),
                stored: there.map_or(Bson::Null, Bson::Document),
                expected: wanted.into(),
                add: None,
                documents: 0,
                update: Some((
                    filter,
                    if set.is_empty() {
                        doc! {}
                    } else {
                        doc! { "$set": set }
                    },
                )),
            });
        }
        Ok(compared)
    }
}

/// The fields in the order of their names.
fn sorted(document: &Document) -> Vec<(String, Option<RawBson>)> {
    let mut fields: Vec<_> =
        document.iter().map(|(name, value)| (name.clone(), RawBson::try_from(value.clone()).ok())).collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

fn flatten(value: Bson, values: &mut Vec<Bson>) {
    match value {
        Bson::Null | Bson::Undefined => {}
        Bson::Array(list) => list.into_iter().for_each(|value| flatten(value, values)),
        value => values.push(value),
    }
}
