//! Buckets on a deployment: the chunks of one declaration, changed in a session's transaction.

use super::super::bucket::{Pack, items_of, without};
use bson::{Bson, Document, doc};
use store::{Collection, Find, Result, Session, Store, Update};

/// The most chunks that one child is taken out of.
const MANY: i64 = 255;

/// The chunks of a declaration.
pub(crate) struct Chunks<'r> {
    rule: &'r Pack,
    collection: Collection,
}

impl<'r> Chunks<'r> {
    pub(crate) fn new(store: &Store, database: &str, rule: &'r Pack) -> Chunks<'r> {
        Chunks { rule, collection: store.collection(database, &rule.collection) }
    }

    /// Takes a child out of the chunks of its parents, and puts its item where it belongs now.
    pub(crate) async fn repack(
        &self,
        child: &Bson,
        parents: &[Bson],
        came: Option<(Bson, Document)>,
        mut session: Option<&mut Session>,
    ) -> Result<()> {
        let came_parent = came.as_ref().map(|(parent, _)| parent);
        for parent in parents.iter().filter(|parent| Some(*parent) != came_parent).chain(came_parent) {
            self.unpack(parent, child, session.as_deref_mut()).await?;
        }
        match came {
            Some((parent, item)) => self.pack_into(&parent, &item, session).await,
            None => Ok(()),
        }
    }

    async fn unpack(&self, parent: &Bson, child: &Bson, mut session: Option<&mut Session>) -> Result<()> {
        let filter = doc! { self.rule.by.clone(): parent.clone(), "items._id": child.clone() };
        let limit = Find { limit: MANY, ..Find::default() };
        for chunk in self.collection.find(filter, limit, session.as_deref_mut()).await? {
            let left = without(&chunk, child)?;
            self.store(&chunk, left, session.as_deref_mut()).await?;
        }
        Ok(())
    }

    async fn first(&self, filter: Document, sort: Document, session: Option<&mut Session>) -> Result<Option<Document>> {
        let options = Find { sort: Some(sort), limit: 1, ..Find::default() };
        Ok(self.collection.find(filter, options, session).await?.pop())
    }

    async fn pack_into(&self, parent: &Bson, item: &Document, mut session: Option<&mut Session>) -> Result<()> {
        let rule = self.rule;
        let all = doc! { rule.by.clone(): parent.clone() };
        let mut before = all.clone();
        before.insert("first", doc! { "$lte": rule.order_of(item) });
        let newest_first = doc! { "first": -1, "n": -1 };
        let mut found = self.first(before, newest_first.clone(), session.as_deref_mut()).await?;
        if found.is_none() {
            found = self.first(all.clone(), doc! { "first": 1, "n": 1 }, session.as_deref_mut()).await?;
        }
        let Some(chunk) = found else { return self.new_chunk(parent, vec![item.clone()], session).await };
        let mut items = items_of(&chunk);
        let position = rule.put_in(&mut items, item)?;
        if !rule.is_full(&items)? {
            return self.store(&chunk, items, session).await;
        }
        let mut at_end = position + 1 == items.len();
        if at_end {
            let last = self.first(all, newest_first, session.as_deref_mut()).await?;
            at_end = last.is_none_or(|last| last.get("_id") == chunk.get("_id"));
        }
        let rest = items.split_off(rule.split(position, at_end, items.len()));
        self.store(&chunk, items, session.as_deref_mut()).await?;
        self.new_chunk(parent, rest, session).await
    }

    async fn new_chunk(&self, parent: &Bson, items: Vec<Document>, mut session: Option<&mut Session>) -> Result<()> {
        let all = doc! { "_id": {
            "$gte": { "by": parent.clone(), "n": Bson::MinKey }, "$lte": { "by": parent.clone(), "n": Bson::MaxKey },
        } };
        let last = self.first(all, doc! { "_id": -1 }, session.as_deref_mut()).await?;
        let n = last.and_then(|last| last.get_i64("n").ok()).map_or(0, |n| n + 1);
        let id = doc! { "by": parent.clone(), "n": n };
        self.collection.insert_one(self.rule.chunk(&id, items)?, session).await
    }

    /// Stores a chunk with other items; an empty one goes.
    pub(crate) async fn store(
        &self,
        chunk: &Document,
        items: Vec<Document>,
        session: Option<&mut Session>,
    ) -> Result<()> {
        let Some(Bson::Document(id)) = chunk.get("_id") else { return Ok(()) };
        let by_id = doc! { "_id": id.clone() };
        if items.is_empty() {
            return self.collection.delete_one(by_id, session).await.map(|_| ());
        }
        let chunk = self.rule.chunk(id, items)?;
        self.collection.replace_one(by_id, chunk, Update::default(), session).await.map(|_| ())
    }
}
