//! Idempotency records: what was answered to a caller's key, kept in the store so that a restart does not forget it.
//!
//! ```text
//!   claim ──> New ──> the call runs ──> keep (answer) ──> Replay until it expires
//!     │                    └── failed: release ──> New again
//!     ├── the same key at work ──> InFlight
//!     └── the same key, another call ──> Mismatch
//! ```
//!
//! Who claims a key first is decided in memory where this process alone has the store, and by the record's `_id` where
//! several processes share a deployment; there a claim carries a lease, so that a process that died does not hold it for ever.
//! A call whose process died between its effect and its record runs again: the handlers pass the key on to the domain
//! (see [`OnceKey`](crate::shared::idempotency::OnceKey)), which does the same thing once. Where the domain can, it writes
//! the record in the effect's own transaction ([`Once`](crate::shared::idempotency::Once)): that is one commit less, and
//! nothing can come between the two.

use crate::shared::token::random_hex;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, doc};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use store::{Collection, FindOneAndUpdate, Result, Store, Update};

const COLLECTION: &str = "idempotencyRecords";

/// How long a claim of another process holds; longer than any call may take.
const LEASE: Duration = Duration::from_secs(120);

/// How often a claim that loses races is tried again.
const MAX_ROUNDS: usize = 8;

/// An answer that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// What became of a claim.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The call is to be made.
    New(Claimed),
    /// It was made: this was answered.
    Replay(Recorded),
    /// It is being made.
    InFlight,
    /// The key was used for another call.
    Mismatch,
}

/// A claim on a key. When it is dropped, others may claim the key again.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) mark: Mark,
    local: Option<Local>,
}

/// Whose claim on which key for which call.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    id: String,
    /// What tells this claim from another of the same key.
    nonce: String,
    fingerprint: String,
    /// Whether it is in memory only, so that its record is new.
    local: bool,
}

/// How a record is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    Insert(Document),
    Update { filter: Document, change: Document },
}

#[derive(Debug)]
struct Local {
    id: String,
    at_work: std::sync::Arc<Mutex<HashMap<String, String>>>,
}

impl Drop for Local {
    fn drop(&mut self) {
        self.at_work.lock().remove(&self.id);
    }
}

/// The records of a store.
pub(crate) struct Records {
    collection: Collection,
    /// The fingerprints of the keys at work, where this process alone has the store.
    at_work: Option<std::sync::Arc<Mutex<HashMap<String, String>>>>,
    kept: Duration,
}

impl Records {
    pub(crate) fn new(store: &Store, database: &str, kept: Duration) -> Records {
        let alone = store.engine().is_some();
        let at_work = alone.then(Default::default);
        Records { collection: store.collection(database, COLLECTION), at_work, kept }
    }

    pub(crate) async fn ensure_indexes(&self) -> Result<()> {
        self.collection.create_index(doc! { "expiresAt": 1 }, false).await
    }

    /// Claims a key for a call.
    pub(crate) async fn claim(&self, id: &str, fingerprint: &str) -> Result<Claim> {
        match &self.at_work {
            Some(at_work) => {
                let local = {
                    let mut keys = at_work.lock();
                    if let Some(other) = keys.get(id) {
                        return Ok(if other == fingerprint { Claim::InFlight } else { Claim::Mismatch });
                    }
                    keys.insert(id.to_owned(), fingerprint.to_owned());
                    Local { id: id.to_owned(), at_work: at_work.clone() }
                };
                self.claim_alone(id, fingerprint, local).await
            }
            None => self.claim_shared(id, fingerprint).await,
        }
    }

    async fn claim_alone(&self, id: &str, fingerprint: &str, local: Local) -> Result<Claim> {
        if let Some(found) = self.collection.find_one(doc! { "_id": id }, None).await? {
            if !is_over(&found) {
                return Ok(known(&found, fingerprint));
            }
            self.collection.delete_one(doc! { "_id": id, "nonce": text(&found, "nonce") }, None).await?;
        }
        Ok(Claim::New(claimed(id, fingerprint, Some(local))))
    }

    async fn claim_shared(&self, id: &str, fingerprint: &str) -> Result<Claim> {
        for _ in 0..MAX_ROUNDS {
            let claimed = claimed(id, fingerprint, None);
            let mut document = self.head(&claimed.mark, "running");
            match self.collection.insert_one(document.clone(), None).await {
                Err(error) if error.is_duplicate_key() => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(Claim::New(claimed)),
            }
            let Some(found) = self.collection.find_one(doc! { "_id": id }, None).await? else { continue };
            let running = text(&found, "state") == "running";
            let held = found.get_datetime("leaseUntil").is_ok_and(|until| *until > DateTime::now());
            let free = if running { !held && text(&found, "fingerprint") == fingerprint } else { is_over(&found) };
            if !free {
                return Ok(known(&found, fingerprint));
            }
            document.remove("_id");
            let same = doc! { "_id": id, "nonce": text(&found, "nonce") };
            let change = doc! { "$set": document, "$unset": { "status": "", "headers": "", "body": "" } };
            let taken = self.collection.find_one_and_update(same, change, FindOneAndUpdate::default(), None).await?;
            if taken.is_some() {
                return Ok(Claim::New(claimed));
            }
        }
        Ok(Claim::InFlight)
    }

    fn head(&self, mark: &Mark, state: &str) -> Document {
        let now = DateTime::now().timestamp_millis();
        let after = |span: Duration| {
            DateTime::from_millis(now.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
        };
        doc! {
            "_id": &mark.id, "nonce": &mark.nonce, "fingerprint": &mark.fingerprint, "state": state,
            "leaseUntil": after(LEASE), "createdAt": DateTime::from_millis(now), "expiresAt": after(self.kept),
        }
    }

    /// Where the records are: database and collection.
    pub(crate) fn place(&self) -> (&str, &str) {
        (self.collection.database(), self.collection.name())
    }

    /// How the answer to a claimed call is kept.
    pub(crate) fn kept(&self, mark: &Mark, answer: &Recorded) -> Write {
        let headers: Vec<Bson> =
            answer.headers.iter().map(|(name, value)| Bson::from(doc! { "name": name, "value": value })).collect();
        let body = Binary { subtype: BinarySubtype::Generic, bytes: answer.body.to_vec() };
        let kept = doc! { "status": i32::from(answer.status), "headers": headers, "body": body };
        if mark.local {
            let mut document = self.head(mark, "done");
            document.extend(kept);
            return Write::Insert(document);
        }
        let mut change = kept;
        change.insert("state", "done");
        Write::Update { filter: ours(mark), change: doc! { "$set": change } }
    }

    /// Keeps the answer to a claimed call.
    pub(crate) async fn keep(&self, claimed: Claimed, answer: &Recorded) -> Result<()> {
        match self.kept(&claimed.mark, answer) {
            Write::Insert(document) => self.collection.insert_one(document, None).await,
            Write::Update { filter, change } => {
                self.collection.update_one(filter, change, Update::default(), None).await.map(drop)
            }
        }
    }

    /// Gives a claimed key back: the call did nothing, or failed in a way that shall be tried again.
    pub(crate) async fn release(&self, claimed: Claimed) -> Result<()> {
        if claimed.local.is_none() {
            self.collection.delete_one(ours(&claimed.mark), None).await?;
        }
        Ok(())
    }

    /// Deletes the records that are over; gives how many.
    pub(crate) async fn purge(&self) -> Result<u64> {
        self.collection.delete_many(doc! { "expiresAt": { "$lte": DateTime::now() } }, None).await
    }
}

fn claimed(id: &str, fingerprint: &str, local: Option<Local>) -> Claimed {
    let (nonce, fingerprint) = (random_hex::<8>(), fingerprint.to_owned());
    Claimed { mark: Mark { id: id.to_owned(), nonce, fingerprint, local: local.is_some() }, local }
}

fn ours(mark: &Mark) -> Document {
    doc! { "_id": &mark.id, "nonce": &mark.nonce }
}

fn text<'a>(document: &'a Document, name: &str) -> &'a str {
    document.get_str(name).unwrap_or_default()
}

fn is_over(document: &Document) -> bool {
    document.get_datetime("expiresAt").is_ok_and(|end| *end <= DateTime::now())
}

/// What a record that holds says to a call.
fn known(document: &Document, fingerprint: &str) -> Claim {
    if text(document, "fingerprint") != fingerprint {
        return Claim::Mismatch;
    }
    if text(document, "state") != "done" {
        return Claim::InFlight;
    }
    let headers = document.get_array("headers").into_iter().flatten().filter_map(Bson::as_document);
    let bytes = document.get_binary_generic("body").cloned().unwrap_or_default();
    Claim::Replay(Recorded {
        status: document.get_i32("status").ok().and_then(|status| u16::try_from(status).ok()).unwrap_or(500),
        headers: headers.map(|pair| (text(pair, "name").to_owned(), text(pair, "value").to_owned())).collect(),
        body: Bytes::from(bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// The records of a process that has the store alone, and those of one of several.
    fn both(kept: Duration) -> [Records; 2] {
        [true, false].map(|alone| {
            let mut records = Records::new(&Store::in_memory().unwrap(), "test", kept);
            if !alone {
                records.at_work = None;
            }
            records
        })
    }

    fn answer() -> Recorded {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Recorded { status: 201, headers, body: Bytes::from_static(b"{}") }
    }

    async fn new(records: &Records, id: &str, fingerprint: &str) -> Claimed {
        match records.claim(id, fingerprint).await.unwrap() {
            Claim::New(claimed) => claimed,
            other => panic!("not new: {other:?}"),
        }
    }

    #[tokio::test]
    async fn a_key_runs_once_and_its_answer_is_given_again() {
        for records in both(DAY) {
            let claimed = new(&records, "k", "f").await;
            assert!(matches!(records.claim("k", "f").await.unwrap(), Claim::InFlight));
            assert!(matches!(records.claim("k", "other").await.unwrap(), Claim::Mismatch));
            records.keep(claimed, &answer()).await.unwrap();
            match records.claim("k", "f").await.unwrap() {
                Claim::Replay(kept) => assert_eq!(kept, answer()),
                other => panic!("{other:?}"),
            }
            assert!(matches!(records.claim("k", "other").await.unwrap(), Claim::Mismatch));
            let _other = new(&records, "k2", "f").await;
        }
    }

    #[tokio::test]
    async fn a_key_that_was_given_back_is_new() {
        for records in both(DAY) {
            let claimed = new(&records, "k", "f").await;
            records.release(claimed).await.unwrap();
            let _again = new(&records, "k", "g").await;
        }
    }

    #[tokio::test]
    async fn an_expired_answer_is_forgotten_and_purged() {
        for records in both(Duration::ZERO) {
            let claimed = new(&records, "k", "f").await;
            records.keep(claimed, &answer()).await.unwrap();
            let claimed = new(&records, "k", "g").await;
            records.keep(claimed, &answer()).await.unwrap();
            assert_eq!(records.purge().await.unwrap(), 1);
        }
    }

    #[tokio::test]
    async fn a_claim_of_a_dead_process_is_taken_over_after_its_lease() {
        let [_, records] = both(DAY);
        let dead = new(&records, "k", "f").await;
        let past = doc! { "$set": { "leaseUntil": DateTime::from_millis(0) } };
        records.collection.update_one(doc! { "_id": "k" }, past, Update::default(), None).await.unwrap();
        let alive = new(&records, "k", "f").await;
        records.keep(dead, &Recorded { status: 500, ..answer() }).await.unwrap();
        records.keep(alive, &answer()).await.unwrap();
        assert!(matches!(records.claim("k", "f").await.unwrap(), Claim::Replay(kept) if kept == answer()));
    }
}
