//! Fields that are split off or compressed: whether they stand as they are declared.

use super::snapshot::{key, raw};
use super::{Auditor, Compared, Drift};
use crate::error::Result;
use crate::keep::compress;
use crate::keep::declaration::Declaration;
use crate::keep::effect::{Apart, Packed};
use bson::{Bson, Document, doc};
use std::collections::HashSet;
use store::{Session, Update};

fn id_of(image: &Document) -> Bson {
    image.get("_id").cloned().unwrap_or(Bson::Null)
}

impl Auditor {
    /// Documents that hold fields of their other part.
    pub(super) fn compare_split(&self, rule: &Apart, images: &[Document]) -> Result<Compared> {
        let mut compared = Compared::default();
        for image in images {
            let mut stored = Document::new();
            for name in &rule.fields {
                if let Some(value) = image.get(name) {
                    stored.insert(name.clone(), value.clone());
                }
            }
            if stored.is_empty() {
                continue;
            }
            let guard: Document = stored.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let mut filter = doc! { "_id": id_of(image) };
            filter.extend(guard);
            let unset: Document = stored.iter().map(|(name, _)| (name.clone(), Bson::Int32(1))).collect();
            compared.drifts.push(Drift {
                target: id_of(image),
                stored: stored.into(),
                expected: Bson::String(format!("in {}", rule.parts)),
                add: None,
                documents: 0,
                update: Some((filter, doc! { "$unset": unset })),
            });
        }
        Ok(compared)
    }

    /// Parts whose document is gone.
    pub(super) async fn compare_parts(
        &self,
        declaration: &Declaration,
        parts: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        let ids: Vec<Bson> = parts.iter().map(id_of).collect();
        let there = self.by_ids(&declaration.collection, ids.clone(), Some(doc! { "_id": 1 }), session).await?;
        let there: HashSet<Vec<u8>> = there.iter().map(|image| key(&id_of(image))).collect::<Result<_>>()?;
        let mut compared = Compared::default();
        for id in ids {
            if !there.contains(&key(&id)?) {
                compared.orphans.push(id);
            }
        }
        Ok(compared)
    }

    /// On a server that keeps no models: what a document holds of its other part goes there first.
    pub(super) async fn part_right(&self, rule: &Apart, drift: &Drift, session: Option<&mut Session>) -> Result<()> {
        let Bson::Document(fields) = &drift.stored else { return Ok(()) };
        let parts = self.store.collection(&self.database, &rule.parts);
        let upsert = Update { upsert: true, ..Update::default() };
        let filter = doc! { "_id": drift.target.clone() };
        parts.update_one(filter, doc! { "$set": fields.clone() }, upsert, session).await?;
        Ok(())
    }

    /// Fields that are large and stand as they came.
    pub(super) fn compare_compressed(&self, rule: &Packed, images: &[Document]) -> Result<Compared> {
        let mut compared = Compared::default();
        for image in images {
            let Some(packed) = compress::packed(rule, &raw(image)?)? else { continue };
            let value = super::snapshot::at(image, &rule.path).cloned().unwrap_or(Bson::Null);
            let bytes = packed.bytes.len() as i64;
            compared.drifts.push(Drift {
                target: id_of(image),
                stored: Bson::String("as it came".into()),
                expected: Bson::String(format!("{bytes} bytes, compressed")),
                add: None,
                documents: 0,
                update: Some((
                    doc! { "_id": id_of(image), &rule.path: value },
                    doc! { "$set": { &rule.path: Bson::Binary(packed) } },
                )),
            });
        }
        Ok(compared)
    }
}
