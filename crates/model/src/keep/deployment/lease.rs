//! The lease: one keeper at a time, and a fence against one that was asleep when it lost it.

use super::records::KEEPERS;
use bson::{Document, doc};
use std::time::Duration;
use store::{Error, FindOneAndUpdate, Result, Session, Store, Update};

/// How long a keeper that says nothing keeps the lease.
pub const LEASE: Duration = Duration::from_secs(30);

/// A keeper whose lease is gone must not write.
const LOST: i32 = 64;

pub(super) struct Lease {
    database: String,
    fence: i64,
    renewed_ms: i64,
    pub(super) token: Option<Document>,
}

impl Lease {
    /// Takes the lease if nobody holds it.
    pub(super) async fn take(store: &Store, database: &str, owner: &str, now_ms: i64) -> Result<Option<Lease>> {
        let keepers = store.collection(database, KEEPERS);
        let until = bson::DateTime::from_millis(now_ms + LEASE.as_millis() as i64);
        let free = doc! { "_id": "keeper", "until": { "$lt": bson::DateTime::from_millis(now_ms) } };
        let update = doc! { "$inc": { "fence": 1_i64 }, "$set": { "owner": owner, "until": until } };
        let options = FindOneAndUpdate { upsert: true, after: true, ..FindOneAndUpdate::default() };
        let taken = match keepers.find_one_and_update(free, update, options, None).await {
            Ok(Some(taken)) => taken,
            Ok(None) => return Ok(None),
            // It is there and not free: the upsert met its `_id`.
            Err(error) if error.is_duplicate_key() => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Lease {
            database: database.to_owned(),
            fence: taken.get_i64("fence").unwrap_or(0),
            renewed_ms: now_ms,
            token: taken.get_document("token").ok().cloned(),
        }))
    }

    fn mine(&self) -> Document {
        doc! { "_id": "keeper", "fence": self.fence }
    }

    /// Holds on to the lease, once a third of it is over; whether it was.
    pub(super) async fn renew(&mut self, store: &Store, now_ms: i64) -> Result<bool> {
        if now_ms - self.renewed_ms < LEASE.as_millis() as i64 / 3 {
            return Ok(false);
        }
        let until = bson::DateTime::from_millis(now_ms + LEASE.as_millis() as i64);
        self.change(store, doc! { "$set": { "until": until } }, None).await?;
        self.renewed_ms = now_ms;
        Ok(true)
    }

    /// Checks within a transaction that the lease is still held; whoever takes it conflicts with the transaction.
    pub(super) async fn check(&self, store: &Store, token: Option<Document>, session: &mut Session) -> Result<()> {
        let mut set = doc! { "checked": bson::oid::ObjectId::new() };
        if let Some(token) = token {
            set.insert("token", token);
        }
        self.change(store, doc! { "$set": set }, Some(session)).await
    }

    /// Remembers a token.
    pub(super) async fn save(&mut self, store: &Store, token: Option<Document>) -> Result<()> {
        if let Some(token) = token {
            self.change(store, doc! { "$set": { "token": token.clone() } }, None).await?;
            self.token = Some(token);
        }
        Ok(())
    }

    /// Gives the lease back.
    pub(super) async fn release(&mut self, store: &Store) -> Result<()> {
        self.change(store, doc! { "$set": { "until": bson::DateTime::from_millis(0) } }, None).await
    }

    async fn change(&self, store: &Store, update: Document, session: Option<&mut Session>) -> Result<()> {
        let keepers = store.collection(&self.database, KEEPERS);
        let done = keepers.update_one(self.mine(), update, Update::default(), session).await?;
        if done.matched == 0 {
            return Err(Error::new(LOST, "another keeper has taken the lease: this one stops"));
        }
        Ok(())
    }
}
