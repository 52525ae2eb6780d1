//! Doing a thing once: whoever repeats a call with its key, after a lost answer or a kill, gets what the first call made.
//!
//! A key is a document, written in the transaction of what was made with it, so that there are both or neither. It belongs to
//! its user and is kept for [`KEEP_KEYS`]. Messages carry their keys themselves (see `chat`).

use crate::error::{Error, Result};
use crate::id::{Id, Time};
use crate::network::{Network, ONCE_KEYS};
use crate::read;
use bson::doc;
use sha2::{Digest, Sha256};
use std::time::Duration;
use store::Session;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 255;

/// How long a key is kept.
pub(crate) const KEEP_KEYS: Duration = Duration::from_secs(7 * 24 * 3600);

/// What is kept of a key: so much of its digest that no two meet.
const DIGEST_BYTES: usize = 16;

/// A user's key.
#[derive(Clone, Debug)]
pub(crate) struct OnceKey(String);

impl OnceKey {
    pub(crate) fn new(user: Id, key: &str) -> Result<OnceKey> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(Error::Invalid(format!("a key has 1 to {MAX_KEY} bytes")));
        }
        let digest = Sha256::digest(format!("{user}:{key}"));
        Ok(OnceKey(hex::encode(&digest[..DIGEST_BYTES])))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Network {
    /// Notes what is made with a key; a duplicate key if something was.
    pub(crate) async fn note_key(&self, key: Option<&OnceKey>, made: Id, session: &mut Session) -> Result<()> {
        let Some(key) = key else { return Ok(()) };
        let note = doc! { "_id": key.as_str(), "made": made, "at": Time::now() };
        Ok(self.collection(ONCE_KEYS).insert_one(note, Some(session)).await?)
    }

    /// What was made: by this call, or by an earlier one with its key. The other value is only there for this call's own.
    pub(crate) async fn made<T>(&self, key: Option<OnceKey>, done: Result<(Id, T)>) -> Result<(Id, Option<T>)> {
        match (done, key) {
            (Err(error), Some(key)) if error.is_duplicate_key() => {
                let note = self.collection(ONCE_KEYS).find_one(doc! { "_id": key.as_str() }, None).await?;
                note.map(|note| (read::id(&note, "made"), None)).ok_or(error)
            }
            (done, _) => done.map(|(id, more)| (id, Some(more))),
        }
    }
}
