//! How far a copy is: a document in the target, so that it survives whatever stops the tool.

use crate::transfer::{Result, Selection, Trouble};
use bson::{Bson, Document, doc};
use std::collections::BTreeSet;
use store::{Collection, Store, Update};

const DATABASE: &str = "sheaf";
const COLLECTION: &str = "copies";

/// What is being done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Collections are being copied.
    Documents,
    /// Only events are left.
    Events,
}

/// How far a copy is.
pub(super) struct Journal {
    collection: Collection,
    id: String,
    token: Option<Document>,
    phase: Phase,
    done: BTreeSet<String>,
    last_ids: Document,
    /// Whether the target's collections are dropped first.
    pub(super) drop: bool,
    /// Whether an earlier run came this far.
    pub(super) resumed: bool,
}

/// Whether a collection is the one that copies keep their state in.
pub(super) fn is_own(database: &str, collection: &str) -> bool {
    database == DATABASE && collection == COLLECTION
}

impl Journal {
    /// Finds how far an earlier run came, unless all begins anew.
    pub(super) async fn open(to: &Store, from: &str, selection: &Selection, anew: bool) -> Result<Journal> {
        let collection = to.collection(DATABASE, COLLECTION);
        let id = format!(
            "{} {}.{}",
            without_password(from),
            selection.db.as_deref().unwrap_or("*"),
            selection.collection.as_deref().unwrap_or("*")
        );
        let mut journal = Journal {
            collection,
            id,
            token: None,
            phase: Phase::Documents,
            done: BTreeSet::new(),
            last_ids: Document::new(),
            drop: anew,
            resumed: false,
        };
        if anew {
            return Ok(journal);
        }
        let Some(kept) = journal.collection.find_one(doc! { "_id": &journal.id }, None).await? else {
            return Ok(journal);
        };
        journal.resumed = true;
        journal.token = kept.get_document("token").ok().cloned();
        journal.phase = if kept.get_bool("documentsDone").unwrap_or(false) { Phase::Events } else { Phase::Documents };
        let done = kept.get_array("done").into_iter().flatten();
        journal.done = done.filter_map(|name| name.as_str().map(str::to_owned)).collect();
        let last = kept.get_array("last").into_iter().flatten().filter_map(Bson::as_document);
        for entry in last {
            if let (Ok(name), Some(id)) = (entry.get_str("collection"), entry.get("id")) {
                journal.last_ids.insert(name, id.clone());
            }
        }
        Ok(journal)
    }

    /// Where events go on from.
    pub(super) fn token(&self) -> Option<Document> {
        self.token.clone()
    }

    /// What is being done.
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Notes where the events begin that belong to this copy.
    pub(super) async fn begin(&mut self, token: Document) -> Result<()> {
        self.token = Some(token);
        self.save().await
    }

    /// Whether a collection is copied.
    pub(super) fn is_done(&self, namespace: &str) -> bool {
        self.done.contains(namespace)
    }

    /// The last `_id` of a collection that is copied up to it.
    pub(super) fn last_id(&self, namespace: &str) -> Option<&Bson> {
        self.last_ids.get(namespace)
    }

    /// A collection is copied up to an `_id`.
    pub(super) async fn reached(&mut self, namespace: &str, id: Bson) -> Result<()> {
        self.last_ids.insert(namespace, id);
        self.save().await
    }

    /// A collection is copied.
    pub(super) async fn collection_done(&mut self, namespace: &str) -> Result<()> {
        self.last_ids.remove(namespace);
        self.done.insert(namespace.to_owned());
        self.save().await
    }

    /// All collections are copied.
    pub(super) async fn documents_done(&mut self) -> Result<()> {
        self.phase = Phase::Events;
        self.save().await
    }

    /// All events up to a token are done.
    pub(super) async fn applied(&mut self, token: Document) -> Result<()> {
        self.token = Some(token);
        self.save().await
    }

    async fn save(&self) -> Result<()> {
        let done: Vec<Bson> = self.done.iter().map(|name| Bson::String(name.clone())).collect();
        // Names of collections hold dots, so they are values here.
        let last: Vec<Bson> = self
            .last_ids
            .iter()
            .map(|(name, id)| Bson::Document(doc! { "collection": name, "id": id.clone() }))
            .collect();
        let mut state = doc! { "documentsDone": self.phase == Phase::Events, "done": done, "last": last };
        if let Some(token) = &self.token {
            state.insert("token", token.clone());
        }
        let options = Update { upsert: true, ..Update::default() };
        let done = self.collection.update_one(doc! { "_id": &self.id }, doc! { "$set": state }, options, None).await;
        done.map(drop).map_err(Trouble::from)
    }
}

/// A URL without what must not be written down.
fn without_password(place: &str) -> String {
    let Some((scheme, rest)) = place.split_once("://") else {
        return std::path::absolute(place).map_or_else(|_| place.to_owned(), |path| path.display().to_string());
    };
    match rest.split_once('@') {
        Some((_, host)) => format!("{scheme}://{host}"),
        None => place.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_kept() {
        assert_eq!(without_password("mongodb://u:p@h:1/d"), "mongodb://h:1/d");
        assert_eq!(without_password("mongodb://h:1/d"), "mongodb://h:1/d");
    }

    #[tokio::test]
    async fn a_copy_goes_on_where_it_was() {
        let to = Store::in_memory().unwrap();
        let selection = Selection::default();
        let mut journal = Journal::open(&to, "mongodb://h", &selection, false).await.unwrap();
        journal.begin(doc! { "_data": "1" }).await.unwrap();
        journal.collection_done("a.b.c").await.unwrap();
        journal.reached("a.d", Bson::Int32(7)).await.unwrap();
        let again = Journal::open(&to, "mongodb://h", &selection, false).await.unwrap();
        assert!(again.resumed && again.is_done("a.b.c") && !again.is_done("a.d"));
        assert_eq!(again.last_id("a.d"), Some(&Bson::Int32(7)));
        assert_eq!(again.token(), Some(doc! { "_data": "1" }));
        assert_eq!(again.phase(), Phase::Documents);
        assert!(Journal::open(&to, "mongodb://h", &selection, true).await.unwrap().token().is_none());
    }
}
