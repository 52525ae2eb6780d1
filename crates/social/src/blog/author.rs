//! Who writes: a name that stands on all articles, an address that nobody else has.

use super::{AUTHORS, Blog};
use crate::error::{Error, Result};
use crate::id::{Id, Time};
use crate::read;
use crate::user::check_name;
use bson::doc;
use serde::{Deserialize, Serialize};
use store::Update;

/// The longest address, in bytes.
pub const MAX_EMAIL: usize = 254;

/// Who writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Author {
    /// The author's id.
    pub id: Id,
    /// The name, as it stands on the articles.
    pub name: String,
    /// The address.
    pub email: String,
    /// How many articles are published.
    pub article_count: i64,
    /// When the last one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_published: Option<Time>,
}

impl Blog {
    /// Adds an author.
    ///
    /// # Errors
    /// [`Error::NameTaken`] for an address that another author has, [`Error::Invalid`].
    pub async fn add_author(&self, name: &str, email: &str) -> Result<Id> {
        check_name(name)?;
        let parts = email.split_once('@');
        if email.len() > MAX_EMAIL || !parts.is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()) {
            return Err(Error::Invalid(format!("an address has an @ and at most {MAX_EMAIL} bytes")));
        }
        let id = Id::new();
        let author = doc! { "_id": id, "name": name, "email": email, "bio": "" };
        let added = self.network.collection(AUTHORS).insert_one(author, None).await.map_err(Error::from);
        match added {
            Err(error) if error.is_duplicate_key() => Err(Error::NameTaken(email.to_owned())),
            added => added.map(|()| id),
        }
    }

    /// An author.
    ///
    /// # Errors
    /// [`Error::UnknownUser`].
    pub async fn author(&self, id: Id) -> Result<Author> {
        let found = self.network.collection(AUTHORS).find_one(doc! { "_id": id }, None).await?;
        let found = found.ok_or(Error::UnknownUser(id))?;
        Ok(Author {
            id,
            name: read::text(&found, "name"),
            email: read::text(&found, "email"),
            article_count: read::number(&found, "articleCount"),
            last_published: read::optional_time(&found, "lastPublished"),
        })
    }

    /// Gives an author another name, on all articles at once.
    ///
    /// # Errors
    /// [`Error::UnknownUser`], [`Error::Invalid`].
    pub async fn rename_author(&self, id: Id, name: &str) -> Result<()> {
        check_name(name)?;
        let (network, name) = (self.network.clone(), name.to_owned());
        self.network
            .transact(move |session| {
                let (network, name) = (network.clone(), name.clone());
                Box::pin(async move {
                    let authors = network.collection(AUTHORS);
                    let set = doc! { "$set": { "name": &name } };
                    let update = Update::default();
                    if authors.update_one(doc! { "_id": id }, set, update, Some(&mut *session)).await?.matched == 0 {
                        return Err(Error::UnknownUser(id));
                    }
                    network.account(AUTHORS, &[id], Some(session)).await
                })
            })
            .await
    }
}
