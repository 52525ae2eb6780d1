//! Counts, sums, extremes and the newest few, compared with the children.

use super::snapshot::{at, key, same};
use super::{Auditor, Compared, Drift};
use crate::error::Result;
use crate::keep::PENDING;
use crate::keep::declaration::{Declaration, Number};
use crate::keep::effect::{Extreme, Newest};
use bson::{Bson, Document, RawDocument, doc};
use std::collections::HashMap;
use store::{Aggregate, Session};

/// The parents that some documents speak of: of notes in the second pass, of children in the third.
pub(super) fn missing_candidates(number: &Number, phase: usize, images: &[Document], parents: &str) -> Vec<Bson> {
    let mut ids: Vec<Bson> = Vec::new();
    for image in images {
        let id = if phase == 1 {
            let own = at(image, "_id.field").and_then(Bson::as_str) == Some(&format!("{parents}.{}", number.field));
            at(image, "_id.parent").filter(|_| own)
        } else {
            at(image, &number.by).filter(|id| !matches!(id, Bson::Null | Bson::Undefined | Bson::Array(_)))
        };
        ids.extend(id.cloned().filter(|id| !ids.contains(id)));
    }
    ids
}

fn id_of(image: &Document) -> Bson {
    image.get("_id").cloned().unwrap_or(Bson::Null)
}

fn children(by: &str, ids: &[Bson], filter: &RawDocument) -> Result<Document> {
    let filter = crate::keep::value::document(filter)?;
    let ids = doc! { by: { "$in": ids.to_vec() } };
    Ok(if filter.is_empty() {
        ids
    } else {
        doc! { "$and": [ids, filter] }
    })
}

impl Auditor {
    /// The results of a pipeline over a collection, by their `_id`.
    pub(super) async fn grouped(
        &self,
        collection: &str,
        pipeline: Vec<Document>,
        session: Option<&mut Session>,
    ) -> Result<HashMap<Vec<u8>, Document>> {
        let collection = self.store.collection(&self.database, collection);
        let mut session = session;
        let cursor = collection.aggregate(pipeline, Aggregate::default(), session.as_deref_mut()).await?;
        let mut groups = HashMap::new();
        for group in cursor.collect(session).await? {
            groups.insert(key(&id_of(&group))?, group);
        }
        Ok(groups)
    }

    /// The counts or sums of some parents as their children say.
    async fn sums(
        &self,
        declaration: &Declaration,
        number: &Number,
        ids: &[Bson],
        session: Option<&mut Session>,
    ) -> Result<HashMap<Vec<u8>, Document>> {
        let by = format!("${}", number.by);
        let amount = match &number.amount {
            Some(path) => Bson::String(format!("${path}")),
            None => Bson::Int64(1),
        };
        let pipeline = vec![
            doc! { "$match": children(&number.by, ids, &number.filter)? },
            doc! { "$group": { "_id": by, "value": { "$sum": amount } } },
        ];
        self.grouped(&declaration.source, pipeline, session).await
    }

    pub(super) async fn compare_numbers(
        &self,
        declaration: &Declaration,
        number: &Number,
        images: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        if images.is_empty() {
            return Ok(compared);
        }
        let ids: Vec<Bson> = images.iter().map(id_of).collect();
        let sums = self.sums(declaration, number, &ids, session).await?;
        for image in images {
            let id = id_of(image);
            let expected = sums.get(&key(&id)?).and_then(|group| group.get("value")).cloned().unwrap_or(Bson::Int64(0));
            let stored = image.get(&number.field).cloned();
            let difference = subtract(&expected, stored.as_ref(), &number.field)?;
            let odd = stored.as_ref().is_some_and(|stored| !is_number(stored));
            if let Some(add) = difference.or(odd.then_some(Bson::Int64(0))) {
                let filter = doc! { "_id": id.clone(), number.field.clone(): stored.clone().unwrap_or(Bson::Null) };
                compared.drifts.push(Drift {
                    target: id,
                    stored: stored.unwrap_or(Bson::Null),
                    expected: expected.clone(),
                    add: Some(doc! { number.field.clone(): add }),
                    documents: 0,
                    update: Some((filter, doc! { "$set": { number.field.clone(): expected } })),
                });
            }
        }
        Ok(compared)
    }

    /// What waits for parents that don't exist.
    pub(super) async fn compare_missing(
        &self,
        declaration: &Declaration,
        number: &Number,
        mut ids: Vec<Bson>,
        mut session: Option<&mut Session>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        if ids.is_empty() || !self.keeps_itself() {
            return Ok(compared);
        }
        let only_id = Some(doc! { "_id": 1 });
        let there = self.by_ids(&declaration.collection, ids.clone(), only_id, session.as_deref_mut()).await?;
        let there: Vec<Vec<u8>> = there.iter().map(|parent| key(&id_of(parent))).collect::<Result<_>>()?;
        let mut missing = Vec::new();
        for id in ids.drain(..) {
            if !there.contains(&key(&id)?) {
                missing.push(id);
            }
        }
        if missing.is_empty() {
            return Ok(compared);
        }
        let field = format!("{}.{}", declaration.collection, number.field);
        let notes: Vec<Bson> = missing.iter().map(|id| doc! { "field": &field, "parent": id.clone() }.into()).collect();
        let notes = self.by_ids(PENDING, notes, None, session.as_deref_mut()).await?;
        let sums = self.sums(declaration, number, &missing, session).await?;
        for id in missing {
            let wanted = key(&id)?;
            let expected = sums.get(&wanted).and_then(|group| group.get("value")).cloned().unwrap_or(Bson::Int64(0));
            let mut stored = None;
            for note in &notes {
                if same(at(note, "_id.parent"), Some(&id))? {
                    stored = note.get("value").cloned();
                }
            }
            if let Some(add) = subtract(&expected, stored.as_ref(), &number.field)? {
                compared.drifts.push(Drift {
                    target: id,
                    stored: stored.unwrap_or(Bson::Null),
                    expected,
                    add: Some(doc! { number.field.clone(): add }),
                    documents: 0,
                    update: None,
                });
            }
        }
        Ok(compared)
    }

    pub(super) async fn compare_extremes(
        &self,
        declaration: &Declaration,
        rule: &Extreme,
        images: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        let ids: Vec<Bson> = images.iter().map(id_of).collect();
        let accumulator = if rule.largest { "$max" } else { "$min" };
        let pipeline = vec![
            doc! { "$match": children(&rule.by, &ids, &rule.filter)? },
            doc! { "$match": { rule.path.clone(): { "$ne": Bson::Null } } },
            doc! { "$group": { "_id": format!("${}", rule.by), "value": { accumulator: format!("${}", rule.path) } } },
        ];
        let groups = self.grouped(&declaration.source, pipeline, session).await?;
        self.compare_values(&rule.field, images, |id| groups.get(&id).and_then(|group| group.get("value")).cloned())
    }

    pub(super) async fn compare_newest(
        &self,
        declaration: &Declaration,
        rule: &Newest,
        images: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        let ids: Vec<Bson> = images.iter().map(id_of).collect();
        let mut output = doc! { "_id": "$_id" };
        for (name, path) in &rule.fields {
            output.insert(name.clone(), format!("${path}"));
        }
        let direction = if rule.descending { 1 } else { -1 };
        let mut sort = doc! { rule.order.clone(): direction };
        sort.insert("_id", -1);
        let n = rule.keep.unwrap_or(1) as i64;
        let pipeline = vec![
            doc! { "$match": children(&rule.by, &ids, &rule.filter)? },
            doc! { "$group": {
                "_id": format!("${}", rule.by),
                "value": { "$topN": { "n": n, "sortBy": sort, "output": output } },
            } },
        ];
        let groups = self.grouped(&declaration.source, pipeline, session).await?;
        self.compare_values(&rule.field, images, |id| {
            let list = groups.get(&id).and_then(|group| group.get("value")).cloned();
            match (rule.keep, list) {
                (Some(_), list) => Some(list.unwrap_or_else(|| Bson::Array(Vec::new()))),
                (None, Some(Bson::Array(mut list))) if !list.is_empty() => Some(list.swap_remove(0)),
                (None, _) => None,
            }
        })
    }

    /// Compares a field of some parents with what it should be; an empty list may be missing.
    fn compare_values(
        &self,
        field: &str,
        images: &[Document],
        expected: impl Fn(Vec<u8>) -> Option<Bson>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        for image in images {
            let id = id_of(image);
            let expected = expected(key(&id)?);
            let stored = image.get(field);
            let nothing = stored.is_none() && matches!(&expected, Some(Bson::Array(list)) if list.is_empty());
            if nothing || same(stored, expected.as_ref())? {
                continue;
            }
            let filter = doc! { "_id": id.clone(), field: stored.cloned().unwrap_or(Bson::Null) };
            let update = match &expected {
                Some(value) => doc! { "$set": { field: value.clone() } },
                None => doc! { "$unset": { field: 1 } },
            };
            compared.drifts.push(Drift {
                target: id,
                stored: stored.cloned().unwrap_or(Bson::Null),
                expected: expected.unwrap_or(Bson::Null),
                add: None,
                documents: 0,
                update: Some((filter, update)),
            });
        }
        Ok(compared)
    }
}

fn is_number(value: &Bson) -> bool {
    matches!(value, Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal128(_))
}

/// What is missing in a stored number; `None` if nothing is.
pub(super) fn subtract(expected: &Bson, stored: Option<&Bson>, field: &str) -> Result<Option<Bson>> {
    let expected = crate::keep::number(Some(expected))?;
    let stored = crate::keep::number(stored)?;
    let difference = crate::keep::subtract(expected, stored, field)?;
    Ok(if difference.is_zero() { None } else { Some(crate::keep::value::tree(difference.into())?) })
}
