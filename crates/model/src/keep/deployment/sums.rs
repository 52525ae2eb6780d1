//! Counts, sums and rollups of one transaction, added up before they are written: many documents change a parent once.

use super::super::rollup::Group;
use super::super::{Roll, others};
use super::carry::Carrier;
use super::records::number;
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
                let inc = doc! { "$inc": { field: number(amount) } };
                let done = parents.update_one(by_id, inc, Update::default(), Some(&mut *session)).await?;
                is_new |= done.matched == 0;
                changed += done.modified;
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
}
