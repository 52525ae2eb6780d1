//! Users: signing up, profiles, new names.

use crate::error::{Error, Result};
use crate::id::{Id, Time};
use crate::network::{Network, POSTS, RENAMES, USERS};
use crate::read;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use store::{Find, Session, Update};

/// The longest name, in characters.
pub const MAX_NAME: usize = 40;

/// How many copies of a name are changed at once.
const RENAME_BATCH: i64 = 500;

/// A user, as others see one beside what is the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Who.
    pub id: Id,
    /// The name.
    pub username: String,
    /// Where the picture is.
    pub avatar: String,
}

/// A user's page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// Who.
    pub id: Id,
    /// The name.
    pub username: String,
    /// Where the picture is.
    pub avatar: String,
    /// What the user says about himself or herself.
    pub bio: String,
    /// How many follow the user.
    pub follower_count: i64,
    /// How many the user follows.
    pub following_count: i64,
    /// How many friends the user has.
    pub friend_count: i64,
    /// How many posts are published.
    pub post_count: i64,
    /// Since when.
    pub created_at: Time,
}

/// What changes of a profile; what is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileChange {
    /// The name.
    pub username: Option<String>,
    /// Where the picture is.
    pub avatar: Option<String>,
    /// What the user says about himself or herself.
    pub bio: Option<String>,
}

pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.trim().is_empty() || name.chars().count() > MAX_NAME {
        return Err(Error::Invalid(format!("a name has 1 to {MAX_NAME} characters")));
    }
    Ok(())
}

fn taken(error: Error, name: &str) -> Error {
    if error.is_duplicate_key() { Error::NameTaken(name.to_owned()) } else { error }
}

pub(crate) fn card(user: &Document) -> Card {
    Card { id: read::id(user, "_id"), username: read::text(user, "username"), avatar: read::text(user, "avatar") }
}

impl Network {
    /// Adds a user.
    ///
    /// # Errors
    /// [`Error::NameTaken`], [`Error::Invalid`].
    pub async fn add_user(&self, name: &str) -> Result<Id> {
        check_name(name)?;
        let id = Id::new();
        let user = doc! { "_id": id, "username": name, "avatar": "", "bio": "", "createdAt": Time::now() };
        let added = self.collection(USERS).insert_one(user, None).await;
        added.map_err(|error| taken(error.into(), name))?;
        Ok(id)
    }

    /// A user's page.
    ///
    /// # Errors
    /// [`Error::UnknownUser`].
    pub async fn profile(&self, id: Id) -> Result<Profile> {
        let user = self.user(id, None).await?;
        Ok(Profile {
            id,
            username: read::text(&user, "username"),
            avatar: read::text(&user, "avatar"),
            bio: read::text(&user, "bio"),
            follower_count: read::number(&user, "followerCount"),
            following_count: read::number(&user, "followingCount"),
            friend_count: read::number(&user, "friendCount"),
            post_count: read::number(&user, "postCount"),
            created_at: read::time(&user, "createdAt"),
        })
    }

    /// The user of a name.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn user_by_name(&self, name: &str) -> Result<Option<Card>> {
        let user = doc! { "username": name, "leftAt": { "$exists": false } };
        let user = self.collection(USERS).find_one(user, None).await?;
        Ok(user.as_ref().map(card))
    }

    /// Changes a profile; the user's posts show the new name and picture, those beyond the first few after
    /// [`Network::work`].
    ///
    /// # Errors
    /// [`Error::UnknownUser`], [`Error::NameTaken`], [`Error::Invalid`].
    pub async fn change_profile(&self, id: Id, change: &ProfileChange) -> Result<()> {
        if let Some(name) = &change.username {
            check_name(name)?;
        }
        let mut set = Document::new();
        let fields = [("username", &change.username), ("avatar", &change.avatar), ("bio", &change.bio)];
        for (field, value) in fields {
            if let Some(value) = value {
                set.insert(field, value);
            }
        }
        if set.is_empty() {
            return self.user(id, None).await.map(|_| ());
        }
        let network = self.clone();
        let changed = self.atomically(move |mut session| {
            let (network, set) = (network.clone(), set.clone());
            Box::pin(async move {
                let users = network.collection(USERS);
                let update = doc! { "$set": set };
                let user = doc! { "_id": id, "leftAt": { "$exists": false } };
                let done = users.update_one(user, update, Update::default(), session.as_deref_mut()).await?;
                if done.matched == 0 {
                    return Err(Error::UnknownUser(id));
                }
                network.note_rename(id, session).await
            })
        });
        changed.await.map_err(|error| taken(error, change.username.as_deref().unwrap_or_default()))
    }

    /// A user's document, unless the user has left.
    pub(crate) async fn user(&self, id: Id, session: Option<&mut Session>) -> Result<Document> {
        let user = self.collection(USERS).find_one(doc! { "_id": id, "leftAt": { "$exists": false } }, session).await?;
        user.ok_or(Error::UnknownUser(id))
    }

    /// Refuses unless both are there and different.
    pub(crate) async fn two_users(&self, one: Id, other: Id) -> Result<()> {
        if one == other {
            return Err(Error::SelfRelation);
        }
        self.all_present(&[one, other]).await
    }

    /// Refuses unless all of some users are there and have not left.
    pub(crate) async fn all_present(&self, ids: &[Id]) -> Result<()> {
        let page = Find { projection: Some(doc! { "_id": 1 }), ..Find::default() };
        let present = doc! { "_id": { "$in": ids.to_vec() }, "leftAt": { "$exists": false } };
        let users = self.collection(USERS).find(present, page, None).await?;
        let found: HashSet<_> = users.iter().map(|user| read::id(user, "_id")).collect();
        match ids.iter().find(|id| !found.contains(id)) {
            Some(missing) => Err(Error::UnknownUser(*missing)),
            None => Ok(()),
        }
    }

    /// Has the copies of a user's name brought up to date, unless the model layer does that.
    pub(crate) async fn note_rename(&self, id: Id, session: Option<&mut Session>) -> Result<()> {
        if self.kept() {
            return Ok(());
        }
        // A turn never comes again: a count would start anew with the next note, and a worker that still has the turn of an
        // earlier note would take this one away.
        let note = doc! { "$set": { "turn": Id::new() } };
        let upsert = Update { upsert: true, ..Update::default() };
        self.collection(RENAMES).update_one(doc! { "_id": id }, note, upsert, session).await?;
        Ok(())
    }

    /// Users by their ids, those who have left too.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn cards(&self, ids: &[Id]) -> Result<HashMap<Id, Card>> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let page = Find { projection: Some(doc! { "username": 1, "avatar": 1 }), ..Find::default() };
        let users = self.collection(USERS).find(doc! { "_id": { "$in": ids.to_vec() } }, page, None).await?;
        Ok(users.iter().map(card).map(|card| (card.id, card)).collect())
    }

    /// Brings one batch of the copies of a changed name up to date; whether there was anything to do.
    pub(crate) async fn rename_step(&self) -> Result<bool> {
        if self.kept() {
            return self.lagging_step().await;
        }
        let renames = self.collection(RENAMES);
        let Some(note) = renames.find_one(doc! {}, None).await? else { return Ok(false) };
        let (id, turn) = (read::id(&note, "_id"), note.get("turn").cloned());
        let named = |user: Option<Document>| user.ok_or(Error::UnknownUser(id));
        let user = named(self.collection(USERS).find_one(doc! { "_id": id }, None).await?)?;
        let author = doc! { "username": read::text(&user, "username"), "avatar": read::text(&user, "avatar") };
        let stale = doc! { "authorId": id, "author": { "$ne": author.clone() } };
        let page = Find { projection: Some(doc! { "_id": 1 }), limit: RENAME_BATCH, ..Find::default() };
        let posts = self.collection(POSTS);
        let found = posts.find(stale, page, None).await?;
        if found.is_empty() {
            // Only if no newer name came meanwhile.
            renames.delete_one(doc! { "_id": id, "turn": turn }, None).await?;
            return Ok(true);
        }
        let ids: Vec<_> = found.iter().map(|post| read::id(post, "_id")).collect();
        let network = self.clone();
        self.transact(move |session| {
            let (network, ids) = (network.clone(), ids.clone());
            Box::pin(async move {
                // Noting the turn keeps a newer name out until this batch is through.
                let user = network.collection(USERS).find_one(doc! { "_id": id }, Some(&mut *session)).await?;
                let user = user.ok_or(Error::UnknownUser(id))?;
                let touch = doc! { "$inc": { "copied": 1 } };
                let renames = network.collection(RENAMES);
                renames.update_one(doc! { "_id": id }, touch, Update::default(), Some(&mut *session)).await?;
                let author = doc! { "username": read::text(&user, "username"), "avatar": read::text(&user, "avatar") };
                let posts = network.collection(POSTS);
                let change = doc! { "$set": { "author": author } };
                posts.update_many(doc! { "_id": { "$in": ids } }, change, Update::default(), Some(session)).await?;
                Ok(true)
            })
        })
        .await
    }

    /// One batch of what the model layer has left for later.
    async fn lagging_step(&self) -> Result<bool> {
        let notes = self.collection(model::keep::LAGGING);
        let Some(note) = notes.find_one(doc! {}, None).await? else { return Ok(false) };
        let filter = doc! { "_id": note.get("_id").cloned() };
        if note.get_bool("done").unwrap_or_default() {
            let mut gone = filter;
            gone.insert("done", true);
            notes.delete_one(gone, None).await?;
        } else {
            notes.update_one(filter, doc! { "$inc": { "turn": 1 } }, Update::default(), None).await?;
        }
        Ok(true)
    }
}
