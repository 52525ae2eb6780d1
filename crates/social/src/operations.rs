//! The log of what users did: any length, and the latest ten are one range of one index.

use crate::error::{Error, Result};
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{Network, OPERATIONS};
use crate::once::OnceKey;
use crate::read;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use store::Session;

/// The longest action, in bytes.
pub const MAX_ACTION: usize = 50;

/// The longest description, in characters.
pub const MAX_DETAIL: usize = 500;

/// Something a user did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its id.
    pub id: Id,
    /// What kind of thing, e.g. `login`.
    pub action: String,
    /// More about it.
    pub detail: String,
    /// When.
    pub at: Time,
}

fn check(action: &str, detail: &str) -> Result<()> {
    if action.is_empty() || action.len() > MAX_ACTION || detail.chars().count() > MAX_DETAIL {
        let why = format!("an action has 1 to {MAX_ACTION} bytes, its detail at most {MAX_DETAIL} characters");
        return Err(Error::Invalid(why));
    }
    Ok(())
}

impl Network {
    /// Notes what a user did.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub async fn log_operation(&self, user: Id, action: &str, detail: &str) -> Result<Id> {
        check(action, detail)?;
        self.note_operation(user, action, detail, None).await
    }

    /// Notes what a user did once: the same call with the same key gives the entry that is there.
    ///
    /// # Errors
    /// As [`Network::log_operation`]; [`Error::UnknownUser`].
    pub async fn log_operation_once(&self, user: Id, action: &str, detail: &str, key: &str) -> Result<Id> {
        check(action, detail)?;
        let once = OnceKey::new(user, key)?;
        let (network, action, detail, key) = (self.clone(), action.to_owned(), detail.to_owned(), once.clone());
        let done = self.transact(move |session| {
            let (network, action, detail, key) = (network.clone(), action.clone(), detail.clone(), key.clone());
            Box::pin(async move {
                network.user(user, Some(&mut *session)).await?;
                let id = network.note_operation(user, &action, &detail, Some(&mut *session)).await?;
                network.note_key(Some(&key), id, session).await?;
                Ok((id, ()))
            })
        });
        Ok(self.made(Some(once), done.await).await?.0)
    }

    /// Notes what a user did, or what was done to what is the user's; a detail that is too long is cut.
    pub(crate) async fn note_operation(
        &self,
        user: Id,
        action: &str,
        detail: &str,
        session: Option<&mut Session>,
    ) -> Result<Id> {
        let (id, detail) = (Id::new(), detail.chars().take(MAX_DETAIL).collect::<String>());
        let entry = doc! { "_id": id, "userId": user, "action": action, "detail": detail, "at": Time::now() };
        self.collection(OPERATIONS).insert_one(entry, session).await?;
        Ok(id)
    }

    /// What a user did, the latest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn operations(&self, user: Id, page: &PageRequest) -> Result<Page<Operation>> {
        let filter = doc! { "userId": user };
        let found = self.newest_first(OPERATIONS, filter, page.after_id()?, page.size() + 1).await?;
        let operation = |entry: &Document| Operation {
            id: read::id(entry, "_id"),
            action: read::text(entry, "action"),
            detail: read::text(entry, "detail"),
            at: read::time(entry, "at"),
        };
        let found = found.iter().map(operation).collect();
        Ok(Page::cut(found, page.size(), |operation: &Operation| operation.id.to_string()))
    }
}
