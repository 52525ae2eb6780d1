//! Counts, sums and rollups of one transaction, added up before they are written: many documents change a parent once.

use super::super::rollup::Group;
use super::super::{Roll, others};
use super::records::number;
use super::rolls;
use bson::{Bson, doc};
use engine::document::Number;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Result, Session, Store, Update};

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

    /// Writes it all, and begins anew; gives how many documents changed.
    pub(super) async fn write(&mut self, store: &Store, database: &str, session: &mut Session) -> Result<u64> {
        let mut changed = 0;
        for ((collection, _), (id, fields)) in std::mem::take(&mut self.parents) {
            let parents = store.collection(database, &collection);
            for (field, amount) in fields.into_iter().filter(|(_, amount)| !amount.is_zero()) {
                // A parent without the field isn't accounted for yet: it will be, from the records.
                let by_id = doc! { "_id": id.clone(), &field: { "$exists": true } };
                let inc = doc! { "$inc": { field: number(amount) } };
                changed += parents.update_one(by_id, inc, Update::default(), Some(&mut *session)).await?.modified;
            }
        }
        for (roll, group) in std::mem::take(&mut self.groups).into_values() {
            changed += rolls::roll(store, database, &roll, group, session).await?;
        }
        Ok(changed)
    }
}
