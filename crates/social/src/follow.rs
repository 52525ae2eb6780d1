//! Following: one document for each pair, which is also where the feed learns how the followee's posts arrive.
//!
//! | edge | counted | feed |
//! |---|---|---|
//! | `active`, delivery `pull` | yes | reads the followee's posts |
//! | `active`, delivery `joining` | yes | reads the followee's posts; new ones are pushed too |
//! | `active`, delivery `push` | yes | finds the followee's posts in the inbox |
//! | `blocked` | no | none; stands while one of the two blocks the other, so that nobody can follow |
//!
//! A follow is one insert, in one transaction with its notification: the unique key decides every race, and a blocked edge
//! is in its way.

use crate::error::{Error, Result};
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{FOLLOWS, Network, RACES};
use crate::notification::{Event, Told};
use crate::read;
use crate::user::Card;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use store::FindOneAndUpdate;

/// The most users that one question about a page may name.
pub const MAX_ASKED: usize = 500;

/// Somebody in a list of relations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Related {
    /// The other side.
    pub user: Card,
    /// Since when.
    pub since: Time,
}

/// What one user is to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// The asking user follows the other.
    pub follows: bool,
    /// The other follows the asking user.
    pub followed_by: bool,
    /// The two are friends.
    pub friends: bool,
    /// One of the two has blocked the other.
    pub blocked: bool,
    /// The asking user has muted the other.
    pub muted: bool,
}

impl Network {
    /// One user follows another; following twice is once. Whether it is new.
    ///
    /// # Errors
    /// [`Error::SelfRelation`], [`Error::UnknownUser`], [`Error::Blocked`].
    pub async fn follow(&self, follower: Id, followee: Id) -> Result<bool> {
        self.two_users(follower, followee).await?;
        for _ in 0..RACES {
            match self.insert_follow(follower, followee).await {
                Ok(told) => {
                    self.bound(told).await?;
                    return Ok(true);
                }
                Err(error) if error.is_duplicate_key() => {}
                Err(error) => return Err(error),
            }
            let edge = doc! { "followerId": follower, "followeeId": followee };
            match self.collection(FOLLOWS).find_one(edge, None).await? {
                Some(edge) if edge.get_str("status").is_ok_and(|status| status == "active") => return Ok(false),
                Some(_) => return Err(Error::Blocked),
                None => {} // unfollowed since
            }
        }
        Err(Error::Changed)
    }

    async fn insert_follow(&self, follower: Id, followee: Id) -> Result<Told> {
        let network = self.clone();
        self.transact(move |session| {
            let network = network.clone();
            Box::pin(async move {
                let id = Id::new();
                let edge = doc! {
                    "_id": id, "followerId": follower, "followeeId": followee, "status": "active",
                    "delivery": "pull", "followedAt": Time::now(),
                };
                network.collection(FOLLOWS).insert_one(edge, Some(&mut *session)).await?;
                network.account(FOLLOWS, &[id], Some(&mut *session)).await?;
                network.note(followee, Event::Follow, follower, follower, session).await
            })
        })
        .await
    }

    /// Ends a follow; whether there was one.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn unfollow(&self, follower: Id, followee: Id) -> Result<bool> {
        let network = self.clone();
        self.atomically(move |mut session| {
            let network = network.clone();
            Box::pin(async move {
                let edge = doc! { "followerId": follower, "followeeId": followee, "status": "active" };
                let follows = network.collection(FOLLOWS);
                let any = FindOneAndUpdate::default();
                let gone = follows.find_one_and_delete(edge, any, session.as_deref_mut()).await?;
                let Some(gone) = gone else { return Ok(false) };
                network.account(FOLLOWS, &[read::id(&gone, "_id")], session).await?;
                Ok(true)
            })
        })
        .await
    }

    /// Who follows a user, newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn followers(&self, user: Id, page: &PageRequest) -> Result<Page<Related>> {
        let filter = doc! { "followeeId": user, "status": "active" };
        self.related(FOLLOWS, filter, "followerId", "followedAt", page).await
    }

    /// Whom a user follows, newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn following(&self, user: Id, page: &PageRequest) -> Result<Page<Related>> {
        let filter = doc! { "followerId": user, "status": "active" };
        self.related(FOLLOWS, filter, "followeeId", "followedAt", page).await
    }

    /// A page of relations with the other side as it is today.
    pub(crate) async fn related(
        &self,
        collection: &str,
        filter: Document,
        other: &str,
        since: &str,
        page: &PageRequest,
    ) -> Result<Page<Related>> {
        let edges = self.newest_first(collection, filter, page.after_id()?, page.size() + 1).await?;
        let edges = Page::cut(edges, page.size(), |edge| read::id(edge, "_id").to_string());
        let ids: Vec<_> = edges.items.iter().map(|edge| read::id(edge, other)).collect();
        let mut cards = self.cards(&ids).await?;
        let related = |edge: &Document| {
            let user = cards.remove(&read::id(edge, other))?;
            Some(Related { user, since: read::time(edge, since) })
        };
        Ok(Page { items: edges.items.iter().filter_map(related).collect(), next: edges.next })
    }

    /// Whom of some users a user follows: one query for a page.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more than [`MAX_ASKED`] users.
    pub async fn follows_of(&self, follower: Id, users: &[Id]) -> Result<HashSet<Id>> {
        self.others("followerId", follower, "followeeId", users, FOLLOWS).await
    }

    /// The ids of an edge's other end among some users.
    pub(crate) async fn others(
        &self,
        own: &str,
        user: Id,
        other: &str,
        users: &[Id],
        collection: &str,
    ) -> Result<HashSet<Id>> {
        if users.len() > MAX_ASKED {
            return Err(Error::Invalid(format!("at most {MAX_ASKED} users can be asked about at once")));
        }
        if users.is_empty() {
            return Ok(HashSet::new());
        }
        let mut filter = doc! { own: user, other: { "$in": users.to_vec() } };
        if collection == FOLLOWS {
            filter.insert("status", "active");
        }
        Ok(self.ids(collection, filter, other).await?.into_iter().collect())
    }

    /// What some users are to a user, for a page of them.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more than [`MAX_ASKED`] users.
    pub async fn standings(&self, user: Id, others: &[Id]) -> Result<HashMap<Id, Standing>> {
        let follows = self.follows_of(user, others).await?;
        let followed_by = self.others("followeeId", user, "followerId", others, FOLLOWS).await?;
        let friends = self.friends_of(user, others).await?;
        let muted = self.muted_of(user, others).await?;
        let blocked = self.blocked_of(user, others).await?;
        let standing = |other: &Id| Standing {
            follows: follows.contains(other),
            followed_by: followed_by.contains(other),
            friends: friends.contains(other),
            blocked: blocked.contains(other),
            muted: muted.contains(other),
        };
        Ok(others.iter().map(|other| (*other, standing(other))).collect())
    }
}
