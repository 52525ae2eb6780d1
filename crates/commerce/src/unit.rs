//! A unit of work: the documents that some jobs read and change, written together in one transaction.
//!
//! ```text
//!   job ── get ──> held in memory ── edit, insert, remove ──> held in memory ┐
//!   job ── get ──>    (as the jobs before it left it)          …             ├─ finish: one write a document
//!   job ── refused ─> back to how it was before this job                     ┘
//! ```
//!
//! A document that a hundred jobs change is read once and written once. A job that is refused leaves no trace, whatever
//! it had done before it found out.

use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::note::NoteWrite;
use crate::shop::Shop;
use crate::time::Time;
use bson::{Bson, Document, doc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Aggregate, Find, Session, Update};

/// The collections whose documents count their changes.
const VERSIONED: [&str; 6] = ["orders", "products", "skus", "carts", "payments", "afterSales"];

/// A document's place: its collection and id.
pub(crate) type Place = (&'static str, String);

struct Held {
    stored: Option<Document>,
    now: Option<Document>,
}

/// See the module.
pub(crate) struct Unit<'s> {
    pub(crate) shop: Shop,
    pub(crate) now: Time,
    session: &'s mut Session,
    held: BTreeMap<Place, Held>,
    undo: Vec<(Place, Option<Document>)>,
    appended: Vec<(&'static str, Document)>,
    /// By database and collection.
    notes: BTreeMap<(Arc<str>, Arc<str>), Vec<NoteWrite>>,
}

/// A point to return to.
pub(crate) struct Mark {
    undo: usize,
    appended: usize,
}

impl<'s> Unit<'s> {
    pub(crate) fn new(shop: Shop, session: &'s mut Session) -> Unit<'s> {
        let now = shop.now();
        Unit {
            shop,
            now,
            session,
            held: BTreeMap::new(),
            undo: Vec::new(),
            appended: Vec::new(),
            notes: BTreeMap::new(),
        }
    }

    /// A point to which [`Unit::back_to`] returns.
    pub(crate) fn mark(&self) -> Mark {
        Mark { undo: self.undo.len(), appended: self.appended.len() }
    }

    /// Forgets what was done since a mark.
    pub(crate) fn back_to(&mut self, mark: Mark) {
        while self.undo.len() > mark.undo {
            let (place, before) = self.undo.pop().expect("the loop's condition");
            self.held.get_mut(&place).expect("what is undone is held").now = before;
        }
        self.appended.truncate(mark.appended);
    }

    /// Reads documents that the jobs of this unit will ask for: one query a collection, not one a document.
    pub(crate) async fn prefetch(&mut self, places: Vec<Place>) -> Result<()> {
        let mut wanted: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        for (collection, id) in places {
            wanted.entry(collection).or_default().insert(id);
        }
        for (collection, ids) in wanted {
            let handle = self.shop.collection(collection);
            let listed: Vec<Bson> = ids.iter().map(|id| Bson::from(id.as_str())).collect();
            let filter = doc! { "_id": { "$in": listed } };
            let found = handle.find(filter, Find::default(), Some(&mut *self.session)).await?;
            for id in ids {
                self.held.insert((collection, id), Held { now: None, stored: None });
            }
            for document in found {
                let place = (collection, document.text("_id").to_owned());
                self.held.insert(place, Held { now: Some(document.clone()), stored: Some(document) });
            }
        }
        Ok(())
    }

    async fn load(&mut self, place: &Place) -> Result<()> {
        if !self.held.contains_key(place) {
            let collection = self.shop.collection(place.0);
            let stored = collection.find_one(doc! { "_id": &place.1 }, Some(&mut *self.session)).await?;
            self.held.insert(place.clone(), Held { now: stored.clone(), stored });
        }
        Ok(())
    }

    /// A document as the jobs so far have left it.
    pub(crate) async fn get(&mut self, collection: &'static str, id: &str) -> Result<Option<&Document>> {
        let place = (collection, id.to_owned());
        self.load(&place).await?;
        Ok(self.held[&place].now.as_ref())
    }

    /// What a pipeline makes of the stored documents; for jobs that run alone, before they change anything.
    pub(crate) async fn aggregate(
        &mut self,
        collection: &'static str,
        pipeline: Vec<Document>,
    ) -> Result<Vec<Document>> {
        let handle = self.shop.collection(collection);
        let found = handle.aggregate(pipeline, Aggregate::default(), Some(&mut *self.session)).await?;
        Ok(found.collect(Some(&mut *self.session)).await?)
    }

    /// A document that has to be there; a copy, so that others can be read beside it.
    pub(crate) async fn need(&mut self, collection: &'static str, what: &'static str, id: &str) -> Result<Document> {
        self.get(collection, id).await?.cloned().ok_or_else(|| Error::missing(what, id))
    }

    /// A document that has to be there, to be changed.
    pub(crate) async fn edit(
        &mut self,
        collection: &'static str,
        what: &'static str,
        id: &str,
    ) -> Result<&mut Document> {
        let place = (collection, id.to_owned());
        self.load(&place).await?;
        let held = self.held.get_mut(&place).expect("just loaded");
        let Some(now) = &mut held.now else { return Err(Error::missing(what, id)) };
        self.undo.push((place, Some(now.clone())));
        if VERSIONED.contains(&collection) {
            // One more than stored, however many jobs of the unit change it: it is written once.
            let version = held.stored.as_ref().map_or(0, |stored| stored.long("version")) + 1;
            now.insert("version", version);
        }
        Ok(now)
    }

    /// Puts a new document.
    pub(crate) async fn insert(&mut self, collection: &'static str, what: &'static str, new: Document) -> Result<()> {
        let place = (collection, new.text("_id").to_owned());
        self.load(&place).await?;
        let held = self.held.get_mut(&place).expect("just loaded");
        if held.now.is_some() {
            return Err(Error::AlreadyExists { what, id: place.1 });
        }
        let mut new = new;
        if VERSIONED.contains(&collection) {
            new.insert("version", 1_i64);
        }
        held.now = Some(new);
        self.undo.push((place, None));
        Ok(())
    }

    /// Notes something that the shop goes on from later.
    pub(crate) async fn note_state(&mut self, id: &str, field: &str, value: impl Into<Bson>) -> Result<()> {
        if self.get("shopState", id).await?.is_none() {
            self.insert("shopState", "state", doc! { "_id": id }).await?;
        }
        self.edit("shopState", "state", id).await?.insert(field, value);
        Ok(())
    }

    /// Puts a new document whose id nobody else can have; it is not looked for.
    pub(crate) fn append(&mut self, collection: &'static str, new: Document) {
        self.appended.push((collection, new));
    }

    /// Notes what a caller wants written in this transaction, whatever becomes of the job.
    pub(crate) fn note(&mut self, database: &Arc<str>, collection: &Arc<str>, write: NoteWrite) {
        self.notes.entry((database.clone(), collection.clone())).or_default().push(write);
    }

    /// Removes a document, if it is there.
    pub(crate) async fn remove(&mut self, collection: &'static str, id: &str) -> Result<Option<Document>> {
        let place = (collection, id.to_owned());
        self.load(&place).await?;
        let gone = self.held.get_mut(&place).expect("just loaded").now.take();
        if gone.is_some() {
            self.undo.push((place, gone.clone()));
        }
        Ok(gone)
    }

    /// That a document still has the version that somebody read.
    pub(crate) async fn expect_version(
        &mut self,
        collection: &'static str,
        what: &'static str,
        id: &str,
        expected: Option<i64>,
    ) -> Result<()> {
        let Some(expected) = expected else { return Ok(()) };
        let place = (collection, id.to_owned());
        self.load(&place).await?;
        let held = &self.held[&place];
        if held.now.is_none() {
            return Err(Error::missing(what, id));
        }
        let found =
            held.stored.as_ref().map_or(0, |stored| stored.long("version")) + i64::from(held.stored != held.now);
        match found == expected {
            true => Ok(()),
            false => Err(Error::VersionConflict { what, id: id.to_owned(), expected, found }),
        }
    }

    /// Writes what has changed; gives the places, and the buyers whose orders are among them.
    pub(crate) async fn finish(&mut self) -> Result<(Vec<Place>, Vec<String>)> {
        let mut inserts: BTreeMap<&'static str, Vec<Document>> = BTreeMap::new();
        let (mut changed, mut buyers) = (Vec::new(), Vec::new());
        // Whoever keeps the model's values needs both images of all that changed.
        let keeps = self.shop.keeper().is_some();
        let mut images: Vec<(&'static str, Option<Document>, Option<Document>)> = Vec::new();
        for ((collection, id), held) in std::mem::take(&mut self.held) {
            if held.stored == held.now {
                continue;
            }
            let handle = self.shop.collection(collection);
            let Held { stored, now } = held;
            touched(collection, now.as_ref().or(stored.as_ref()), &mut changed, &mut buyers);
            changed.push((collection, id.clone()));
            if keeps {
                images.push((collection, stored.clone(), now.clone()));
            }
            match (&stored, now) {
                (None, Some(now)) => inserts.entry(collection).or_default().push(now),
                (Some(_), None) => {
                    handle.delete_one(doc! { "_id": &id }, Some(&mut *self.session)).await?;
                }
                (Some(stored), Some(now)) => {
                    let update = difference(stored, &now);
                    let filter = doc! { "_id": &id };
                    let done = handle.update_one(filter, update, Update::default(), Some(&mut *self.session)).await?;
                    assert_eq!(done.matched, 1, "a document read in a transaction is there in it");
                }
                (None, None) => {}
            }
        }
        for (collection, new) in std::mem::take(&mut self.appended) {
            touched(collection, Some(&new), &mut changed, &mut buyers);
            if keeps {
                images.push((collection, None, Some(new.clone())));
            }
            inserts.entry(collection).or_default().push(new);
        }
        for (collection, documents) in inserts {
            self.shop.collection(collection).insert_many(documents, Some(&mut *self.session)).await?;
        }
        self.write_notes().await?;
        crate::kept::keep(&self.shop, &images, self.session, &mut changed).await?;
        Ok((changed, buyers))
    }

    async fn write_notes(&mut self) -> Result<()> {
        for ((database, collection), writes) in std::mem::take(&mut self.notes) {
            let handle = self.shop.store().collection(&database, &collection);
            let mut new = Vec::new();
            for write in writes {
                match write {
                    NoteWrite::Insert(document) => new.push(document),
                    NoteWrite::Update { filter, change } => {
                        handle.update_one(filter, change, Update::default(), Some(&mut *self.session)).await?;
                    }
                }
            }
            handle.insert_many(new, Some(&mut *self.session)).await?;
        }
        Ok(())
    }
}

/// Whose orders, and which others, a changed document concerns.
fn touched(collection: &str, document: Option<&Document>, changed: &mut Vec<Place>, buyers: &mut Vec<String>) {
    match (collection, document) {
        ("orders", Some(order)) => buyers.push(order.text("userId").to_owned()),
        // The order's last event is kept by the model, in this transaction.
        ("logistics", Some(bucket)) => changed.push(("orders", bucket.text("orderId").to_owned())),
        _ => {}
    }
}

/// The update that makes one image of another: only top-level fields that differ, so that what the model keeps in the
/// same document is left alone.
fn difference(stored: &Document, now: &Document) -> Document {
    let (mut set, mut unset) = (Document::new(), Document::new());
    for (name, value) in now {
        if stored.get(name) != Some(value) {
            set.insert(name.clone(), value.clone());
        }
    }
    for name in stored.keys().filter(|name| !now.contains_key(*name)) {
        unset.insert(name.clone(), Bson::String(String::new()));
    }
    let mut update = Document::new();
    if !set.is_empty() {
        update.insert("$set", set);
    }
    if !unset.is_empty() {
        update.insert("$unset", unset);
    }
    update
}
