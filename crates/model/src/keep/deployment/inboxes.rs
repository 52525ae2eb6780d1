//! Timelines on a deployment: the inboxes of one declaration, a bounded number of items and readers at a time.
//!
//! What an inbox holds is a function of the state, as [`super::super::timeline`] says; here one item in one inbox is settled
//! from what a transaction sees, so that it may be done again at any time. Whoever settles writes the inbox's own document
//! (`sheaf.inboxes`) wherever a row comes or goes: two who settle the same inbox conflict, and one of them tries again.

use super::super::timeline::{Fan, Fanned, INBOXES, is_above};
use super::super::value::tree;
use super::records::{RECORDS, raw, record_id};
use bson::{Bson, Document, doc};
use store::{Collection, Find, Result, Session, Store, Update};

/// The readers or rows of one page.
const PAGE: i64 = 50;

/// The inboxes of a declaration.
pub(crate) struct Inboxes<'r> {
    store: &'r Store,
    database: &'r str,
    fan: &'r Fan,
}

/// What was found of one item in one inbox.
#[derive(PartialEq, Eq)]
enum Settled {
    Above,
    /// It lies below the floor, and so does whatever is older.
    Below,
}

/// How many rows an inbox has, and what fell off its end.
struct State {
    count: i64,
    floor: Option<Document>,
}

fn value(document: &Document, path: &str) -> Option<Bson> {
    let mut names = path.split('.');
    let mut value = document.get(names.next()?)?;
    for name in names {
        value = value.as_document()?.get(name)?;
    }
    Some(value.clone()).filter(|value| *value != Bson::Null)
}

impl<'r> Inboxes<'r> {
    pub(crate) fn new(store: &'r Store, database: &'r str, fan: &'r Fan) -> Inboxes<'r> {
        Inboxes { store, database, fan }
    }

    fn collection(&self, name: &str) -> Collection {
        self.store.collection(self.database, name)
    }

    /// Whether nobody has to do with it: an author whom nobody follows, or such an author's item that is in no inbox.
    /// Whoever follows later gets the author's items by that.
    pub(super) async fn concerns_nobody(&self, what: &Fanned) -> Result<bool> {
        let author = match what {
            Fanned::Pair { .. } => return Ok(false),
            Fanned::Author(author) => Some(tree(author.clone())?),
            Fanned::Item { item, was_there, image } => {
                if *was_there {
                    let rows = self.collection(&self.fan.rows);
                    if rows.find_one(doc! { "itemId": tree(item.clone())? }, None).await?.is_some() {
                        return Ok(false);
                    }
                }
                let image = image.as_deref().map(Document::try_from).transpose()?;
                image.and_then(|image| value(&image, &self.fan.by))
            }
        };
        let Some(author) = author else { return Ok(true) };
        let edge = doc! { "$and": [{ &self.fan.to: author }, Document::try_from(&*self.fan.filter)?] };
        Ok(self.collection(&self.fan.edges).find_one(edge, None).await?.is_none())
    }

    /// One page of what a change means; where to go on, if there is more, and how many inboxes were looked at.
    pub(super) async fn page(
        &self,
        what: &Fanned,
        after: Option<Bson>,
        mut session: Option<&mut Session>,
    ) -> Result<(Option<Bson>, u64)> {
        match what {
            Fanned::Item { item, was_there, .. } => {
                self.item_page(&tree(item.clone())?, *was_there, after, session.as_deref_mut()).await
            }
            Fanned::Pair { owner, author, .. } => {
                let (owner, author) = (tree(owner.clone())?, tree(author.clone())?);
                self.pair(&owner, &author, session).await?;
                Ok((None, 1))
            }
            Fanned::Author(author) => {
                let author = tree(author.clone())?;
                let edges = self.edges_to(&author, after, session.as_deref_mut()).await?;
                for edge in &edges {
                    if let Some(owner) = value(edge, &self.fan.from) {
                        self.pair(&owner, &author, session.as_deref_mut()).await?;
                    }
                }
                Ok((next(&edges), edges.len() as u64))
            }
        }
    }

    /// First the followers get the item, then the rows that are there follow it. The cursor is `{edge}` or `{row}`.
    async fn item_page(
        &self,
        item: &Bson,
        was_there: bool,
        after: Option<Bson>,
        mut session: Option<&mut Session>,
    ) -> Result<(Option<Bson>, u64)> {
        let by_id = doc! { "_id": item.clone() };
        let image = self.collection(&self.fan.items).find_one(by_id, session.as_deref_mut()).await?;
        let after = after.as_ref().and_then(Bson::as_document);
        if let Some(rows_after) = after.and_then(|after| after.get("row")) {
            let mut filter = doc! { "itemId": item.clone() };
            if *rows_after != Bson::Null {
                filter.insert("_id", doc! { "$gt": rows_after.clone() });
            }
            let rows = self.collection(&self.fan.rows).find(filter, in_order(), session.as_deref_mut()).await?;
            for row in &rows {
                let Some(owner) = value(row, "ownerId") else { continue };
                let author = image.as_ref().and_then(|image| value(image, &self.fan.by));
                let follows = match author {
                    Some(author) => self.follows(&owner, &author, session.as_deref_mut()).await?,
                    None => false,
                };
                self.settle(&owner, item, image.as_ref().filter(|_| follows), false, session.as_deref_mut()).await?;
            }
            return Ok((next(&rows).map(|row| doc! { "row": row }.into()), rows.len() as u64));
        }
        let edge = after.and_then(|after| after.get("edge")).cloned();
        let edges = match image.as_ref().and_then(|image| value(image, &self.fan.by)) {
            Some(author) if self.is_pushed(&author, session.as_deref_mut()).await? => {
                self.edges_to(&author, edge, session.as_deref_mut()).await?
            }
            _ => Vec::new(),
        };
        for edge in &edges {
            if let Some(owner) = value(edge, &self.fan.from) {
                self.settle(&owner, item, image.as_ref(), true, session.as_deref_mut()).await?;
            }
        }
        let rest = match next(&edges) {
            Some(edge) => Some(doc! { "edge": edge }.into()),
            None => was_there.then(|| doc! { "row": Bson::Null }.into()),
        };
        Ok((rest, edges.len() as u64))
    }

    async fn edges_to(
        &self,
        author: &Bson,
        after: Option<Bson>,
        session: Option<&mut Session>,
    ) -> Result<Vec<Document>> {
        let mut all = vec![doc! { &self.fan.to: author.clone() }, Document::try_from(&*self.fan.filter)?];
        if let Some(after) = after {
            all.push(doc! { "_id": { "$gt": after } });
        }
        self.collection(&self.fan.edges).find(doc! { "$and": all }, in_order(), session).await
    }

    async fn is_pushed(&self, author: &Bson, session: Option<&mut Session>) -> Result<bool> {
        let Some((field, most)) = &self.fan.threshold else { return Ok(true) };
        let found = self.collection(&self.fan.authors).find_one(doc! { "_id": author.clone() }, session).await?;
        let count = super::super::newest::number(found.as_ref().and_then(|found| found.get(field)))?;
        Ok(count.to_i64_exact().unwrap_or(0) <= *most)
    }

    async fn follows(&self, owner: &Bson, author: &Bson, session: Option<&mut Session>) -> Result<bool> {
        let ends = doc! { &self.fan.from: owner.clone(), &self.fan.to: author.clone() };
        let filter = doc! { "$and": [ends, Document::try_from(&*self.fan.filter)?] };
        Ok(self.collection(&self.fan.edges).find_one(filter, session).await?.is_some())
    }

    /// A reader and an author: the author's items come into the inbox, or leave it, as the edges are now.
    async fn pair(&self, owner: &Bson, author: &Bson, mut session: Option<&mut Session>) -> Result<()> {
        if !self.follows(owner, author, session.as_deref_mut()).await? {
            let rows = self.collection(&self.fan.rows);
            let filter = doc! { "ownerId": owner.clone(), "authorId": author.clone() };
            let gone = rows.delete_many(filter, session.as_deref_mut()).await?;
            if gone > 0 {
                let mut inbox = self.state(owner, session.as_deref_mut()).await?;
                inbox.count -= gone as i64;
                self.store_state(owner, &inbox, session).await?;
            }
            return Ok(());
        }
        if !self.is_pushed(author, session.as_deref_mut()).await? {
            return Ok(());
        }
        let newest_first = Find {
            sort: Some(doc! { &self.fan.order: -1, "_id": -1 }),
            limit: self.fan.cap as i64 + 1,
            ..Find::default()
        };
        let of_author = doc! { &self.fan.by: author.clone() };
        let mut items = self.collection(&self.fan.items).find(of_author, newest_first, session.as_deref_mut()).await?;
        let beyond = (items.len() > self.fan.cap).then(|| items.pop()).flatten();
        self.note_tried(owner, &items, session.as_deref_mut()).await?;
        for item in &items {
            let Some(id) = item.get("_id") else { continue };
            if self.settle(owner, id, Some(item), true, session.as_deref_mut()).await? == Settled::Below {
                return Ok(());
            }
        }
        // There is no room for it in an inbox that its author's newer ones have filled.
        let Some(beyond) = beyond else { return Ok(()) };
        let Some(row) = self.fan.row(owner, &raw(&beyond)?)? else { return Ok(()) };
        let mut inbox = self.state(owner, session.as_deref_mut()).await?;
        let key = self.fan.key(&row);
        if is_above(&key, inbox.floor.as_ref())? {
            inbox.floor = Some(key);
            self.store_state(owner, &inbox, session).await?;
        }
        Ok(())
    }

    /// Remembers items that come into an inbox as they are now, and are not accounted for so: one that is something else by then
    /// is taken back from this.
    async fn note_tried(&self, owner: &Bson, items: &[Document], mut session: Option<&mut Session>) -> Result<()> {
        let id = |item: &Document| item.get("_id").map(|id| record_id(&self.fan.items, id));
        let ids: Vec<Bson> = items.iter().filter_map(id).map(Bson::Document).collect();
        let images = Find { projection: Some(doc! { "image": 1 }), ..Find::default() };
        let records = self.collection(RECORDS);
        let known = records.find(doc! { "_id": { "$in": ids } }, images, session.as_deref_mut()).await?;
        let row = |image: &Document| -> Result<Option<Document>> { Ok(self.fan.row(owner, &raw(image)?)?) };
        for item in items {
            let Some(id) = id(item) else { continue };
            let record = known.iter().find(|record| record.get_document("_id").is_ok_and(|known| *known == id));
            let image = record.and_then(|record| record.get_document("image").ok());
            if let Some(image) = image
                && row(image)? == row(item)?
            {
                continue;
            }
            let note = doc! { "$addToSet": { "tried": item.clone() } };
            let upsert = Update { upsert: true, ..Update::default() };
            records.update_one(doc! { "_id": id }, note, upsert, session.as_deref_mut()).await?;
        }
        Ok(())
    }

    /// One item in one inbox: it comes (if it is pushed), follows its source, or goes.
    async fn settle(
        &self,
        owner: &Bson,
        item: &Bson,
        image: Option<&Document>,
        pushed: bool,
        mut session: Option<&mut Session>,
    ) -> Result<Settled> {
        let rows = self.collection(&self.fan.rows);
        let by_id = doc! { "_id": { "owner": owner.clone(), "item": item.clone() } };
        let stored = rows.find_one(by_id.clone(), session.as_deref_mut()).await?;
        let wanted = match image {
            Some(image) if pushed || stored.is_some() => self.fan.row(owner, &raw(image)?)?,
            _ => None,
        };
        if stored.is_none() && wanted.is_none() {
            return Ok(Settled::Above);
        }
        let mut inbox = self.state(owner, session.as_deref_mut()).await?;
        let wanted = match wanted {
            Some(row) if is_above(&self.fan.key(&row), inbox.floor.as_ref())? => Some(row),
            _ => None,
        };
        let settled = if wanted.is_some() { Settled::Above } else { Settled::Below };
        match (stored, wanted) {
            (Some(_), None) => {
                rows.delete_one(by_id, session.as_deref_mut()).await?;
                inbox.count -= 1;
                self.store_state(owner, &inbox, session).await?;
            }
            (Some(stored), Some(row)) => {
                if stored != row {
                    rows.replace_one(by_id, row, Update::default(), session).await?;
                }
            }
            (None, Some(row)) => {
                rows.insert_one(row, session.as_deref_mut()).await?;
                inbox.count += 1;
                self.trim(owner, &mut inbox, session.as_deref_mut()).await?;
                self.store_state(owner, &inbox, session).await?;
            }
            (None, None) => {}
        }
        Ok(settled)
    }

    /// Lets go what an inbox has too much of.
    async fn trim(&self, owner: &Bson, inbox: &mut State, mut session: Option<&mut Session>) -> Result<()> {
        let excess = inbox.count - self.fan.cap as i64;
        if excess <= 0 {
            return Ok(());
        }
        let rows = self.collection(&self.fan.rows);
        let sort = Some(doc! { &self.fan.order_name: 1, "_id": 1 });
        let oldest = Find { sort, limit: excess, ..Find::default() };
        for row in rows.find(doc! { "ownerId": owner.clone() }, oldest, session.as_deref_mut()).await? {
            let by_id = doc! { "_id": row.get("_id").cloned().unwrap_or(Bson::Null) };
            rows.delete_one(by_id, session.as_deref_mut()).await?;
            inbox.count -= 1;
            inbox.floor = Some(self.fan.key(&row));
        }
        Ok(())
    }

    async fn state(&self, owner: &Bson, session: Option<&mut Session>) -> Result<State> {
        let by_id = doc! { "_id": self.fan.inbox_id(owner) };
        let stored = self.collection(INBOXES).find_one(by_id, session).await?;
        let count = stored.as_ref().and_then(|stored| stored.get_i64("count").ok()).unwrap_or(0);
        let floor = stored.as_ref().and_then(|stored| stored.get_document("floor").ok()).cloned();
        Ok(State { count, floor })
    }

    async fn store_state(&self, owner: &Bson, inbox: &State, session: Option<&mut Session>) -> Result<()> {
        let by_id = doc! { "_id": self.fan.inbox_id(owner) };
        let mut state = doc! { "count": inbox.count.max(0) };
        if let Some(floor) = &inbox.floor {
            state.insert("floor", floor.clone());
        }
        let upsert = Update { upsert: true, ..Update::default() };
        self.collection(INBOXES).replace_one(by_id, state, upsert, session).await.map(|_| ())
    }

    /// Puts right what an audit found: one item in one inbox, or an inbox's count.
    pub(crate) async fn put_right(&self, target: &Document, mut session: Option<&mut Session>) -> Result<()> {
        let Some(owner) = target.get("owner") else { return Ok(()) };
        let Some(item) = target.get("item") else {
            let mut inbox = self.state(owner, session.as_deref_mut()).await?;
            let rows = self.collection(&self.fan.rows);
            inbox.count = rows.count(doc! { "ownerId": owner.clone() }, session.as_deref_mut()).await? as i64;
            self.trim(owner, &mut inbox, session.as_deref_mut()).await?;
            return self.store_state(owner, &inbox, session).await;
        };
        let by_id = doc! { "_id": item.clone() };
        let image = self.collection(&self.fan.items).find_one(by_id, session.as_deref_mut()).await?;
        let (follows, pushed) = match image.as_ref().and_then(|image| value(image, &self.fan.by)) {
            Some(author) => (
                self.follows(owner, &author, session.as_deref_mut()).await?,
                self.is_pushed(&author, session.as_deref_mut()).await?,
            ),
            None => (false, false),
        };
        self.settle(owner, item, image.as_ref().filter(|_| follows), pushed, session).await.map(|_| ())
    }
}

/// A page in the order of `_id`.
fn in_order() -> Find {
    Find { sort: Some(doc! { "_id": 1 }), limit: PAGE, ..Find::default() }
}

/// Where the page after one begins, if there may be one.
fn next(page: &[Document]) -> Option<Bson> {
    page.last().filter(|_| page.len() as i64 == PAGE).and_then(|last| last.get("_id")).cloned()
}
