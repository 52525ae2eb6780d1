//! Buckets, compared with the children that they pack.

use super::snapshot::{at, key, raw, same};
use super::{Auditor, Compared, Drift};
use crate::error::Result;
use crate::keep::bucket::{Pack, items_of};
use crate::keep::declaration::Declaration;
use crate::keep::deployment::chunks::Chunks;
use bson::{Bson, Document, doc};
use std::collections::{HashMap, HashSet};
use store::{Find, Session};

impl Auditor {
    /// Every item of some chunks is a child as it is now, and the chunk says the truth about its items.
    pub(super) async fn compare_chunks(
        &self,
        declaration: &Declaration,
        rule: &Pack,
        chunks: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        let mut ids = HashMap::new();
        for item in chunks.iter().flat_map(items_of) {
            let id = item.get("_id").cloned().unwrap_or(Bson::Null);
            ids.insert(key(&id)?, id);
        }
        let children = self.by_ids(&declaration.source, ids.into_values().collect(), None, session).await?;
        let mut by_id = HashMap::new();
        for child in &children {
            by_id.insert(key(child.get("_id").unwrap_or(&Bson::Null))?, child);
        }
        for chunk in chunks {
            let parent = at(chunk, "_id.by").cloned().unwrap_or(Bson::Null);
            let items = items_of(chunk);
            for item in &items {
                let id = item.get("_id").cloned().unwrap_or(Bson::Null);
                let wanted = match by_id.get(&key(&id)?) {
                    Some(child) => rule.item(&raw(child)?)?,
                    None => None,
                };
                let right = match &wanted {
                    Some((owner, wanted)) => {
                        same(Some(&Bson::try_from(owner.clone())?), Some(&parent))?
                            && same(Some(&item.clone().into()), Some(&wanted.clone().into()))?
                    }
                    None => false,
                };
                if !right {
                    let expected = wanted.map_or(Bson::Null, |(_, wanted)| wanted.into());
                    compared.drifts.push(drift(id, parent.clone(), item.clone().into(), expected));
                }
            }
            if let Some(Bson::Document(id)) = chunk.get("_id")
                && !same(Some(&chunk.clone().into()), Some(&rule.chunk(id, items.clone())?.into()))?
            {
                let target = doc! { "chunk": id.clone() }.into();
                let expected = rule.chunk(id, items)?.into();
                let stored = chunk.clone().into();
                compared.drifts.push(Drift { target, stored, expected, add: None, documents: 0, update: None });
            }
        }
        Ok(compared)
    }

    /// Every child stands in one chunk.
    pub(super) async fn compare_packed(
        &self,
        declaration: &Declaration,
        rule: &Pack,
        children: &[Document],
        session: Option<&mut Session>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        let (mut parents, mut ids, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        for child in children {
            if let Some((parent, item)) = rule.item(&raw(child)?)? {
                let parent = Bson::try_from(parent)?;
                let id = child.get("_id").cloned().unwrap_or(Bson::Null);
                (parents, ids) = ([parents, vec![parent.clone()]].concat(), [ids, vec![id.clone()]].concat());
                wanted.push((parent, id, item));
            }
        }
        if wanted.is_empty() {
            return Ok(compared);
        }
        let chunks = self.store.collection(&self.database, &declaration.collection);
        let filter = doc! { rule.by.clone(): { "$in": parents }, "items._id": { "$in": ids } };
        let projection = Some(doc! { "items._id": 1 });
        let found = chunks.find(filter, Find { projection, ..Find::default() }, session).await?;
        let mut times: HashMap<(Vec<u8>, Vec<u8>), usize> = HashMap::new();
        for chunk in &found {
            let parent = key(at(chunk, "_id.by").unwrap_or(&Bson::Null))?;
            for item in items_of(chunk) {
                *times.entry((parent.clone(), key(item.get("_id").unwrap_or(&Bson::Null))?)).or_default() += 1;
            }
        }
        for (parent, id, item) in wanted {
            let count = times.get(&(key(&parent)?, key(&id)?)).copied().unwrap_or(0);
            if count != 1 {
                let stored = Bson::String(format!("stands in {count} chunks"));
                compared.drifts.push(drift(id, parent, stored, item.into()));
            }
        }
        Ok(compared)
    }

    /// One child, or one chunk, again.
    pub(super) async fn packed_again(
        &self,
        declaration: &Declaration,
        rule: &Pack,
        target: &Bson,
        mut session: Option<&mut Session>,
    ) -> Result<Compared> {
        let Some(target_fields) = target.as_document() else { return Ok(Compared::default()) };
        let chunks = self.store.collection(&self.database, &declaration.collection);
        if let Some(id) = target_fields.get("chunk") {
            let found = chunks.find(doc! { "_id": id.clone() }, Find::default(), session.as_deref_mut()).await?;
            let mut compared = self.compare_chunks(declaration, rule, &found, session).await?;
            compared.drifts.retain(|drift| drift.target == *target);
            return Ok(compared);
        }
        let (Some(child), Some(parent)) = (target_fields.get("child"), target_fields.get("parent")) else {
            return Ok(Compared::default());
        };
        let holding = doc! { rule.by.clone(): parent.clone(), "items._id": child.clone() };
        let found = chunks.find(holding, Find::default(), session.as_deref_mut()).await?;
        let mut compared = self.compare_chunks(declaration, rule, &found, session.as_deref_mut()).await?;
        compared.drifts.retain(|drift| drift.target == *target);
        if compared.drifts.is_empty() {
            let children = self.by_ids(&declaration.source, vec![child.clone()], None, session.as_deref_mut()).await?;
            compared = self.compare_packed(declaration, rule, &children, session).await?;
            let mut seen = HashSet::new();
            compared.drifts.retain(|drift| seen.insert(drift.target.to_string()));
        }
        Ok(compared)
    }

    /// On a server that keeps no models: a child is packed again, or a chunk made to say what it holds.
    pub(super) async fn chunks_right(
        &self,
        declaration: &Declaration,
        rule: &Pack,
        drift: &Drift,
        mut session: Option<&mut Session>,
    ) -> Result<()> {
        let chunks = Chunks::new(&self.store, &self.database, rule);
        let Some(target) = drift.target.as_document() else { return Ok(()) };
        if let Some(id) = target.get("chunk") {
            let stored = self.store.collection(&self.database, &rule.collection);
            if let Some(chunk) = stored.find_one(doc! { "_id": id.clone() }, session.as_deref_mut()).await? {
                chunks.store(&chunk, items_of(&chunk), session).await?;
            }
            return Ok(());
        }
        let (Some(child), Some(parent)) = (target.get("child"), target.get("parent")) else { return Ok(()) };
        let image = self.by_ids(&declaration.source, vec![child.clone()], None, session.as_deref_mut()).await?.pop();
        let came = match image {
            Some(image) => rule.item(&raw(&image)?)?,
            None => None,
        };
        let came =
            came.map(|(parent, item)| Ok::<_, bson::error::Error>((Bson::try_from(parent)?, item))).transpose()?;
        chunks.repack(child, std::slice::from_ref(parent), came, session).await?;
        Ok(())
    }
}

fn drift(child: Bson, parent: Bson, stored: Bson, expected: Bson) -> Drift {
    let target = doc! { "child": child, "parent": parent }.into();
    Drift { target, stored, expected, add: None, documents: 0, update: None }
}
