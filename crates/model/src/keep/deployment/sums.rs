//! Counts, sums and rollups of one transaction, added up before they are written: many documents change a parent once.

use super::super::rollup::Group;
use super::super::{Roll, newest, others};
use super::carry::Carrier;
use super::records::{RECORDS, number, record_id};
use super::rolls;
use bson::{Bson, doc};
use engine::document::Number;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Result, Session, Update};

/// A collection or declaration, and an id's bytes.
type Place = (String, Vec<u8>);

/// What is to be added, by where.
#[derive(Default)]
pub(super) struct Sums {
    parents: BTreeMap<Place, (Bson, BTreeMap<String, Number>)>,
    groups: BTreeMap<Place, (Arc<Roll>, Group)>,
}

impl Sums {
    /// Something is added to a parent's field.
    pub(super) fn add(&mut self, collection: String, id: Bson, field: String, amount: Number) -> Result<()> {
        let key = (collection, doc! { "": &id }.to_vec()?);
        let (_, fields) = self.parents.entry(key).or_insert_with(|| (id, BTreeMap::new()));
        let sum = others::add(fields.get(&field).copied().unwrap_or(Number::Int64(0)), amount, &field)?;
        fields.insert(field, sum);
        Ok(())
    }

    /// A group of a rollup changes.
    pub(super) fn roll(&mut self, roll: Arc<Roll>, group: Group) -> Result<()> {
        let key = (roll.declaration.clone(), group.key.as_bytes().to_vec());
        match self.groups.get_mut(&key) {
            Some((roll, known)) => known.join(roll, group)?,
            None => {
                self.groups.insert(key, (roll, group));
            }
        }
        Ok(())
    }
}

impl Carrier<'_> {
    /// Writes what was added up, which begins anew; gives how many documents changed.
    pub(super) async fn write_sums(&self, sums: &mut Sums, session: &mut Session) -> Result<u64> {
        let mut changed = 0;
        for ((collection, _), (id, fields)) in std::mem::take(&mut sums.parents) {
            let parents = self.store.collection(self.database, &collection);
            let mut is_new = false;
            for (field, amount) in fields.into_iter().filter(|(_, amount)| !amount.is_zero()) {
                let by_id = doc! { "_id": id.clone(), &field: { "$exists": true } };
                let inc = doc! { "$inc": { &field: number(amount) } };
                let done = parents.update_one(by_id, inc, Update::default(), Some(&mut *session)).await?;
                is_new |= done.matched == 0;
                changed += done.modified;
                if done.matched > 0 {
                    self.note_few(&collection, &id, &field, amount, session).await?;
                }
            }
            if is_new {
                // A parent without the field, if it is there at all, gets what the records say, these documents' among them.
                changed += self.adopt(&collection, &id, session).await?;
            }
        }
        for (roll, group) in std::mem::take(&mut sums.groups).into_values() {
            changed += rolls::roll(self.store, self.database, &roll, group, session).await?;
        }
        Ok(changed)
    }

    /// An author of a timeline who has just got few enough followers: the record says that there were more, so that the
    /// event of this very write puts the items into the inboxes again, whatever the record has seen of the count.
    async fn note_few(
        &self,
        collection: &str,
        id: &Bson,
        field: &str,
        amount: Number,
        session: &mut Session,
    ) -> Result<()> {
        let fans = self.keeper.watches.get(collection).map_or(&[][..], |watch| &watch.authors);
        let most = fans.iter().filter_map(|fan| fan.threshold.as_ref()).filter(|(name, _)| name == field);
        let Some(least) = most.clone().map(|(_, most)| *most).min() else { return Ok(()) };
        let by_id = doc! { "_id": id.clone() };
        let parent = self.store.collection(self.database, collection).find_one(by_id, Some(&mut *session)).await?;
        let count = newest::number(parent.as_ref().and_then(|parent| parent.get(field)))?;
        let (Some(now), Some(by)) = (count.to_i64_exact(), amount.to_i64_exact()) else { return Ok(()) };
        if by < 0 && now - by > least && most.into_iter().any(|(_, most)| now <= *most && now - by > *most) {
            let by_record = doc! { "_id": record_id(collection, id) };
            let before = doc! { "$set": { format!("image.{field}"): now - by } };
            let records = self.store.collection(self.database, RECORDS);
            records.update_one(by_record, before, Update::default(), Some(session)).await?;
        }
        Ok(())
    }
}
