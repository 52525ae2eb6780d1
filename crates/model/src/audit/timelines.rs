//! Timelines: the rows of inboxes, compared with edges and items.
//!
//! Every row is an item of somebody whom the owner follows, as it is now, above the inbox's floor. Every such item of an author
//! whose items are pushed has its row. An inbox knows how many rows it has.

use super::snapshot::{at, key, raw, same};
use super::{Auditor, Compared, Drift};
use crate::error::Result;
use crate::keep::number;
use crate::keep::timeline::{Fan, INBOXES, is_above};
use bson::{Bson, Document, doc};
use std::collections::{HashMap, HashSet};
use store::{Find, Session};

fn id_of(image: &Document) -> Bson {
    image.get("_id").cloned().unwrap_or(Bson::Null)
}

fn drift(owner: &Bson, item: Option<&Bson>, stored: Bson, expected: Bson) -> Drift {
    let mut target = doc! { "owner": owner.clone() };
    if let Some(item) = item {
        target.insert("item", item.clone());
    }
    Drift { target: target.into(), stored, expected, add: None, documents: 0, update: None }
}

impl Auditor {
    pub(super) async fn compare_inboxes(
        &self,
        fan: &Fan,
        phase: usize,
        images: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        match phase {
            _ if images.is_empty() => Ok(Compared::default()),
            0 => {
                let own =
                    |image: &&Document| at(image, "_id.timeline").and_then(Bson::as_str) == Some(&fan.declaration);
                let owners = images.iter().filter(own).filter_map(|image| at(image, "_id.owner").cloned()).collect();
                self.compare_counts(fan, owners, session).await
            }
            1 => self.compare_rows(fan, images, session).await,
            _ => self.compare_follows(fan, images, session).await,
        }
    }

    /// The floors of some inboxes, by owner.
    async fn floors(
        &self,
        fan: &Fan,
        owners: &[Bson],
        session: Option<&mut Session>,
    ) -> Result<HashMap<Vec<u8>, Document>> {
        let ids: Vec<Bson> = owners.iter().map(|owner| fan.inbox_id(owner).into()).collect();
        let mut floors = HashMap::new();
        for inbox in self.by_ids(INBOXES, ids, None, session).await? {
            if let (Some(owner), Ok(floor)) = (at(&inbox, "_id.owner"), inbox.get_document("floor")) {
                floors.insert(key(owner)?, floor.clone());
            }
        }
        Ok(floors)
    }

    /// Rows that should not be there, or not like this.
    async fn compare_rows(&self, fan: &Fan, rows: &[Document], mut session: Option<&mut Session>) -> Result<Compared> {
        let mut compared = Compared::default();
        let value = |row: &Document, name: &str| row.get(name).cloned().unwrap_or(Bson::Null);
        let owners: Vec<Bson> = rows.iter().map(|row| value(row, "ownerId")).collect();
        let floors = self.floors(fan, &owners, session.as_deref_mut()).await?;
        let ids: Vec<Bson> = rows.iter().map(|row| value(row, "itemId")).collect();
        let mut items = HashMap::new();
        for item in self.by_ids(&fan.items, ids, None, session.as_deref_mut()).await? {
            items.insert(key(&id_of(&item))?, item);
        }
        let edges = self.follows(fan, rows, session).await?;
        for row in rows {
            let (owner, item) = (value(row, "ownerId"), value(row, "itemId"));
            let wanted = match items.get(&key(&item)?) {
                Some(item) => fan.row(&owner, &raw(item)?)?,
                None => None,
            };
            let wanted = match wanted {
                Some(wanted)
                    if edges.contains(&(key(&owner)?, key(&value(&wanted, "authorId"))?))
                        && is_above(&fan.key(&wanted), floors.get(&key(&owner)?))? =>
                {
                    Some(wanted)
                }
                _ => None,
            };
            let right = match &wanted {
                Some(wanted) => same(Some(&row.clone().into()), Some(&wanted.clone().into()))?,
                None => false,
            };
            if !right {
                let expected = wanted.map_or(Bson::Null, Bson::Document);
                compared.drifts.push(drift(&owner, Some(&item), row.clone().into(), expected));
            }
        }
        Ok(compared)
    }

    /// Which owners of some rows follow which of their authors, and of the items' authors as they are now.
    async fn follows(
        &self,
        fan: &Fan,
        rows: &[Document],
        session: Option<&mut Session>,
    ) -> Result<HashSet<(Vec<u8>, Vec<u8>)>> {
        let owners: Vec<Bson> = rows.iter().filter_map(|row| row.get("ownerId").cloned()).collect();
        let authors: Vec<Bson> = rows.iter().filter_map(|row| row.get("authorId").cloned()).collect();
        let mut all = vec![doc! { fan.from.clone(): { "$in": owners }, fan.to.clone(): { "$in": authors } }];
        let filter = crate::keep::value::document(&fan.filter)?;
        if !filter.is_empty() {
            all.push(filter);
        }
        let edges = self.store.collection(&self.database, &fan.edges);
        let mut pairs = HashSet::new();
        for edge in edges.find(doc! { "$and": all }, Find::default(), session).await? {
            if let (Some(from), Some(to)) = (at(&edge, &fan.from), at(&edge, &fan.to)) {
                pairs.insert((key(from)?, key(to)?));
            }
        }
        Ok(pairs)
    }

    /// Items that should be in the inboxes of those who follow their authors.
    async fn compare_follows(
        &self,
        fan: &Fan,
        edges: &[Document],
        mut session: Option<&mut Session>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        let filter = crate::keep::value::document(&fan.filter)?;
        let matching = match filter.is_empty() {
            true => edges.to_vec(),
            false => {
                let ids: Vec<Bson> = edges.iter().map(id_of).collect();
                let chosen = doc! { "$and": [{ "_id": { "$in": ids } }, filter] };
                let edges = self.store.collection(&self.database, &fan.edges);
                edges.find(chosen, Find::default(), session.as_deref_mut()).await?
            }
        };
        let owners: Vec<Bson> = matching.iter().filter_map(|edge| at(edge, &fan.from).cloned()).collect();
        let floors = self.floors(fan, &owners, session.as_deref_mut()).await?;
        for edge in &matching {
            let (Some(owner), Some(author)) = (at(edge, &fan.from), at(edge, &fan.to)) else { continue };
            let floor = floors.get(&key(owner)?);
            self.compare_pair(fan, owner, author, floor, &mut compared, session.as_deref_mut()).await?;
        }
        Ok(compared)
    }

    async fn compare_pair(
        &self,
        fan: &Fan,
        owner: &Bson,
        author: &Bson,
        floor: Option<&Document>,
        compared: &mut Compared,
        mut session: Option<&mut Session>,
    ) -> Result<()> {
        if let Some((field, most)) = &fan.threshold {
            let found = self.by_ids(&fan.authors, vec![author.clone()], None, session.as_deref_mut()).await?;
            let followers = number(found.first().and_then(|found| found.get(field)))?;
            if followers.to_i64_exact().unwrap_or(0) > *most {
                return Ok(());
            }
        }
        let newest =
            Find { sort: Some(doc! { fan.order.clone(): -1, "_id": -1 }), limit: fan.cap as i64, ..Find::default() };
        let items = self.store.collection(&self.database, &fan.items);
        let mut wanted = Vec::new();
        for item in items.find(doc! { fan.by.clone(): author.clone() }, newest, session.as_deref_mut()).await? {
            let Some(row) = fan.row(owner, &raw(&item)?)? else { continue };
            if is_above(&fan.key(&row), floor)? {
                wanted.push(row);
            }
        }
        let ids: Vec<Bson> = wanted.iter().map(id_of).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let rows = self.by_ids(&fan.rows, ids, Some(doc! { "_id": 1 }), session).await?;
        let there: HashSet<Vec<u8>> = rows.iter().map(|row| key(&id_of(row))).collect::<Result<_>>()?;
        for row in wanted {
            if !there.contains(&key(&id_of(&row))?) {
                let item = row.get("itemId").cloned().unwrap_or(Bson::Null);
                compared.drifts.push(drift(owner, Some(&item), Bson::Null, row.into()));
            }
        }
        Ok(())
    }

    /// Inboxes that don't know how many rows they have, or have too many.
    async fn compare_counts(
        &self,
        fan: &Fan,
        owners: Vec<Bson>,
        mut session: Option<&mut Session>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        if owners.is_empty() {
            return Ok(compared);
        }
        let ids: Vec<Bson> = owners.iter().map(|owner| fan.inbox_id(owner).into()).collect();
        let mut counts = HashMap::new();
        for inbox in self.by_ids(INBOXES, ids, None, session.as_deref_mut()).await? {
            if let Some(owner) = at(&inbox, "_id.owner") {
                counts.insert(key(owner)?, inbox.get_i64("count").unwrap_or(0));
            }
        }
        let pipeline = vec![
            doc! { "$match": { "ownerId": { "$in": owners.clone() } } },
            doc! { "$group": { "_id": "$ownerId", "value": { "$sum": 1_i64 } } },
        ];
        let rows = self.grouped(&fan.rows, pipeline, session).await?;
        for owner in owners {
            let wanted = rows.get(&key(&owner)?).and_then(|group| group.get("value"));
            let wanted = number(wanted)?.to_i64_exact().unwrap_or(0);
            let stored = counts.get(&key(&owner)?).copied().unwrap_or(0);
            if stored != wanted || wanted > fan.cap as i64 {
                compared.drifts.push(drift(&owner, None, stored.into(), wanted.into()));
            }
        }
        Ok(compared)
    }

    /// One item in one inbox, or one inbox, again.
    pub(super) async fn inbox_again(
        &self,
        fan: &Fan,
        target: &Bson,
        mut session: Option<&mut Session>,
    ) -> Result<Compared> {
        let Some(fields) = target.as_document() else { return Ok(Compared::default()) };
        let owner = fields.get("owner").cloned().unwrap_or(Bson::Null);
        let Some(item) = fields.get("item") else { return self.compare_counts(fan, vec![owner], session).await };
        let id = doc! { "owner": owner.clone(), "item": item.clone() };
        let rows = self.by_ids(&fan.rows, vec![id.into()], None, session.as_deref_mut()).await?;
        let mut compared = Compared::default();
        if rows.is_empty() {
            let found = self.by_ids(&fan.items, vec![item.clone()], None, session.as_deref_mut()).await?;
            if let Some(author) = found.first().and_then(|item| at(item, &fan.by)) {
                let mut all = vec![doc! { fan.from.clone(): owner.clone(), fan.to.clone(): author.clone() }];
                all.push(crate::keep::value::document(&fan.filter)?);
                let edges = self.store.collection(&self.database, &fan.edges);
                let edges = edges
                    .find(doc! { "$and": all }, Find { limit: 1, ..Find::default() }, session.as_deref_mut())
                    .await?;
                compared = self.compare_follows(fan, &edges, session).await?;
            }
        } else {
            compared = self.compare_rows(fan, &rows, session).await?;
        }
        compared.drifts.retain(|drift| drift.target == *target);
        Ok(compared)
    }
}
