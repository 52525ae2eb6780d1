//! Blocking and muting.
//!
//! A block ends everything between the two, in one transaction, and leaves both follow edges and the pair's friendship as
//! `blocked` documents: whoever follows or asks for friendship meanwhile runs into one of them. The last unblock takes them
//! away. All of it writes the pair's document first, so that of two such transactions one goes after the other.

use crate::error::{Error, Result};
use crate::follow::Related;
use crate::friend::pair;
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{BLOCKS, FOLLOWS, FRIENDS, MUTES, Network, PAIRS, RACES};
use crate::read;
use bson::doc;
use std::collections::HashSet;
use store::{FindOneAndUpdate, Session, Update};

fn upsert() -> Update {
    Update { upsert: true, ..Update::default() }
}

impl Network {
    /// One user blocks another: follows, friendship and requests between them end. Whether it is new.
    ///
    /// # Errors
    /// [`Error::SelfRelation`], [`Error::UnknownUser`].
    pub async fn block(&self, blocker: Id, blocked: Id) -> Result<bool> {
        self.two_users(blocker, blocked).await?;
        for _ in 0..RACES {
            let network = self.clone();
            let done = self.transact(move |session| {
                let network = network.clone();
                Box::pin(async move { network.block_in(blocker, blocked, session).await })
            });
            match done.await {
                Err(error) if error.is_duplicate_key() => {} // a follow came between
                done => return done,
            }
        }
        Err(Error::Changed)
    }

    async fn block_in(&self, blocker: Id, blocked: Id, session: &mut Session) -> Result<bool> {
        let ends = pair(blocker, blocked);
        let state = doc! { "$set": { "status": "blocked" }, "$inc": { "turn": 1 } };
        self.collection(PAIRS).update_one(doc! { "_id": &ends }, state, upsert(), Some(&mut *session)).await?;
        let row = doc! { "blockerId": blocker, "blockedId": blocked };
        let new = doc! { "$setOnInsert": { "_id": Id::new(), "at": Time::now() } };
        let done = self.collection(BLOCKS).update_one(row, new, upsert(), Some(&mut *session)).await?;
        if done.upserted.is_none() {
            return Ok(false);
        }
        for (follower, followee) in [(blocker, blocked), (blocked, blocker)] {
            let edge = doc! { "followerId": follower, "followeeId": followee };
            let state = doc! {
                "$set": { "status": "blocked", "delivery": "none" },
                "$setOnInsert": { "_id": Id::new(), "followedAt": Time::now() },
            };
            let options = FindOneAndUpdate { upsert: true, ..FindOneAndUpdate::default() };
            let before =
                self.collection(FOLLOWS).find_one_and_update(edge, state, options, Some(&mut *session)).await?;
            if let Some(edge) = before {
                self.account(FOLLOWS, &[read::id(&edge, "_id")], Some(&mut *session)).await?;
            }
        }
        self.end_friendship(blocker, blocked, session).await?;
        Ok(true)
    }

    /// Deletes the rows of a friendship, if there is one.
    pub(crate) async fn end_friendship(&self, one: Id, other: Id, session: &mut Session) -> Result<()> {
        let mut rows = Vec::new();
        for (from, to) in [(one, other), (other, one)] {
            let row = doc! { "fromUserId": from, "toUserId": to };
            let any = FindOneAndUpdate::default();
            let gone = self.collection(FRIENDS).find_one_and_delete(row, any, Some(&mut *session)).await?;
            rows.extend(gone.map(|row| read::id(&row, "_id")));
        }
        self.account(FRIENDS, &rows, Some(session)).await
    }

    /// Takes a block back; whether there was one. Follows and friendships don't come back by it.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn unblock(&self, blocker: Id, blocked: Id) -> Result<bool> {
        let network = self.clone();
        self.transact(move |session| {
            let network = network.clone();
            Box::pin(async move {
                let ends = doc! { "_id": pair(blocker, blocked) };
                let pairs = network.collection(PAIRS);
                let turn = doc! { "$inc": { "turn": 1 } };
                pairs.update_one(ends.clone(), turn, Update::default(), Some(&mut *session)).await?;
                let blocks = network.collection(BLOCKS);
                let row = doc! { "blockerId": blocker, "blockedId": blocked };
                if blocks.delete_one(row, Some(&mut *session)).await? == 0 {
                    return Ok(false);
                }
                let reverse = doc! { "blockerId": blocked, "blockedId": blocker };
                if blocks.find_one(reverse, Some(&mut *session)).await?.is_some() {
                    return Ok(true);
                }
                for (follower, followee) in [(blocker, blocked), (blocked, blocker)] {
                    let edge = doc! { "followerId": follower, "followeeId": followee, "status": "blocked" };
                    network.collection(FOLLOWS).delete_one(edge, Some(&mut *session)).await?;
                }
                pairs.delete_one(ends, Some(session)).await?;
                Ok(true)
            })
        })
        .await
    }

    /// Which of some users are blocked with a user, whoever did it.
    pub(crate) async fn blocked_of(&self, user: Id, users: &[Id]) -> Result<HashSet<Id>> {
        let mut found = self.others("blockerId", user, "blockedId", users, BLOCKS).await?;
        found.extend(self.others("blockedId", user, "blockerId", users, BLOCKS).await?);
        Ok(found)
    }

    /// Whom a user has blocked, newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn blocks(&self, user: Id, page: &PageRequest) -> Result<Page<Related>> {
        self.related(BLOCKS, doc! { "blockerId": user }, "blockedId", "at", page).await
    }

    /// Keeps a user's posts and notifications away from another, who stays a follower. Whether it is new.
    ///
    /// # Errors
    /// [`Error::SelfRelation`], [`Error::UnknownUser`].
    pub async fn mute(&self, user: Id, muted: Id) -> Result<bool> {
        self.two_users(user, muted).await?;
        let row = doc! { "_id": Id::new(), "userId": user, "mutedId": muted, "at": Time::now() };
        match self.collection(MUTES).insert_one(row, None).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_duplicate_key() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a mute back; whether there was one.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn unmute(&self, user: Id, muted: Id) -> Result<bool> {
        Ok(self.collection(MUTES).delete_one(doc! { "userId": user, "mutedId": muted }, None).await? == 1)
    }

    /// Whom a user has muted, newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn mutes(&self, user: Id, page: &PageRequest) -> Result<Page<Related>> {
        self.related(MUTES, doc! { "userId": user }, "mutedId", "at", page).await
    }

    /// Which of some users a user has muted.
    pub(crate) async fn muted_of(&self, user: Id, users: &[Id]) -> Result<HashSet<Id>> {
        self.others("userId", user, "mutedId", users, MUTES).await
    }
}
