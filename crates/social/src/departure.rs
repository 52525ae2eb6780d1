//! Users who leave for good.
//!
//! A user who leaves is gone at once: the name is free, nobody finds the page, nothing can be done in the user's name. What
//! is left of the user goes in the background, in bounded steps from a durable queue, and an interrupted step is done again:
//! follows, blocks, mutes, friendships, likes, posts (a tombstone stays), comments (one with replies stays without its text),
//! notifications, operations, the inbox, memberships of groups, files. What the user said to others in conversations stays
//! with them.
//!
//! The user's document stays without a name, so that what others keep (a conversation, a thread) refers to somebody, and
//! counts stay what they are by the same rules as when a user unfollows or unlikes. A call of the user's that was on its way
//! may write after its kind was cleared; so when all is gone and [`crate::Settings::departure_settles`] is over, everything
//! is looked for once more.

use crate::error::{Error, Result};
use crate::id::{Id, Time};
use crate::inbox::{highest, key, lowest};
use crate::network::{
    BLOCKS, COMMENTS, CONVERSATIONS, DEPARTURES, FILES, FOLLOWS, FRIENDS, INBOX_STATES, INBOXES, LIKES, MUTES,
    NOTIFICATIONS, Network, OPERATIONS, PAIRS, POSTS, UPLOADS, USERS,
};
use crate::read;
use bson::{Bson, Document, doc};
use std::time::Duration;
use store::{Find, FindOneAndUpdate, Update};

/// How many documents one step takes.
const BATCH: i64 = 200;

/// How long nobody else takes up a step that was begun.
const LEASE: Duration = Duration::from_secs(30);

fn after_now(time: Duration) -> Time {
    Time::from_timestamp_ms(Time::now().timestamp_ms() + time.as_millis() as i64)
}

impl Network {
    /// Takes a user out of the network for good; what is left of the user goes by [`Network::work`].
    ///
    /// # Errors
    /// [`Error::UnknownUser`].
    pub async fn leave_network(&self, user: Id) -> Result<()> {
        let network = self.clone();
        self.transact(move |session| {
            let network = network.clone();
            Box::pin(async move {
                let there = doc! { "_id": user, "leftAt": { "$exists": false } };
                let left = doc! { "$set": {
                    "username": format!("left {user}"), "avatar": "", "bio": "", "leftAt": Time::now(),
                } };
                let users = network.collection(USERS);
                let done = users.update_one(there, left, Update::default(), Some(&mut *session)).await?;
                if done.matched == 0 {
                    return Err(Error::UnknownUser(user));
                }
                network.note_rename(user, Some(&mut *session)).await?;
                let job = doc! { "_id": user, "at": Time::now(), "turn": Time::now() };
                Ok(network.collection(DEPARTURES).insert_one(job, Some(session)).await?)
            })
        })
        .await
    }

    /// One step for the user who waits the longest; whether somebody's turn was there.
    pub(crate) async fn departure_step(&self) -> Result<bool> {
        let departures = self.collection(DEPARTURES);
        let (due, next) = (doc! { "turn": { "$lte": Time::now() } }, doc! { "turn": 1 });
        let options = FindOneAndUpdate { sort: Some(next), ..FindOneAndUpdate::default() };
        let taken = doc! { "$set": { "turn": after_now(LEASE) } };
        let Some(job) = departures.find_one_and_update(due, taken, options, None).await? else { return Ok(false) };
        let (user, this) = (read::id(&job, "_id"), doc! { "_id": job.get("_id").cloned() });
        if let Some(progress) = self.clear(user, &job).await? {
            let mut set = progress;
            set.insert("turn", Time::now());
            departures.update_one(this, doc! { "$set": set }, Update::default(), None).await?;
            return Ok(true);
        }
        let settled = read::time(&job, "at").timestamp_ms() + self.settings.departure_settles.as_millis() as i64;
        if Time::now().timestamp_ms() >= settled && job.get_bool("again").unwrap_or_default() {
            departures.delete_one(this, None).await?;
        } else {
            let turn = Time::from_timestamp_ms(settled.max(Time::now().timestamp_ms()));
            let again = doc! {
                "$set": { "turn": turn, "again": true }, "$unset": { "postsAfter": "", "commentsBefore": "" },
            };
            departures.update_one(this, again, Update::default(), None).await?;
        }
        Ok(true)
    }

    /// Clears a batch of what is left of a user; what to note about it, nothing if nothing is left.
    async fn clear(&self, user: Id, job: &Document) -> Result<Option<Document>> {
        if self.clear_relations(user).await? || self.clear_records(user).await? {
            return Ok(Some(Document::new()));
        }
        let mut filter = doc! { "authorId": user };
        if let Some(after) = read::optional_id(job, "postsAfter") {
            filter.insert("_id", doc! { "$gt": after });
        }
        let posts = self.some(POSTS, filter, doc! { "_id": 1 }).await?;
        for post in &posts {
            for status in ["published", "hidden"] {
                self.bury_post(user, read::id(post, "_id"), status).await?;
            }
        }
        if let Some(last) = posts.last() {
            return Ok(Some(doc! { "postsAfter": read::id(last, "_id") }));
        }
        let mut filter = doc! { "authorId": user };
        if let Some(before) = read::optional_id(job, "commentsBefore") {
            filter.insert("_id", doc! { "$lt": before });
        }
        // The newest first: replies go before what they reply to.
        let comments = self.some(COMMENTS, filter, doc! { "_id": -1 }).await?;
        for comment in &comments {
            self.clear_comment(comment).await?;
        }
        Ok(comments.last().map(|last| doc! { "commentsBefore": read::id(last, "_id") }))
    }

    async fn some(&self, collection: &str, filter: Document, sort: Document) -> Result<Vec<Document>> {
        let page = Find { sort: Some(sort), limit: BATCH, ..Find::default() };
        Ok(self.collection(collection).find(filter, page, None).await?)
    }

    /// Ends a batch of a user's relations, by the rules of ending them; whether there were any.
    async fn clear_relations(&self, user: Id) -> Result<bool> {
        let newest = || doc! { "_id": -1 };
        let mut any = false;
        for own in ["followerId", "followeeId"] {
            for edge in self.some(FOLLOWS, doc! { own: user, "status": "active" }, newest()).await? {
                any |= self.unfollow(read::id(&edge, "followerId"), read::id(&edge, "followeeId")).await?;
            }
        }
        for own in ["blockerId", "blockedId"] {
            for block in self.some(BLOCKS, doc! { own: user }, newest()).await? {
                any |= self.unblock(read::id(&block, "blockerId"), read::id(&block, "blockedId")).await?;
            }
        }
        for own in ["userId", "mutedId"] {
            for mute in self.some(MUTES, doc! { own: user }, newest()).await? {
                any |= self.unmute(read::id(&mute, "userId"), read::id(&mute, "mutedId")).await?;
            }
        }
        for friend in self.some(FRIENDS, doc! { "fromUserId": user }, newest()).await? {
            any |= self.unfriend(user, read::id(&friend, "toUserId")).await?;
        }
        for like in self.some(LIKES, doc! { "userId": user }, newest()).await? {
            any |= self.unlike(user, read::id(&like, "postId")).await?;
        }
        Ok(any)
    }

    /// Deletes a batch of what is a user's alone; whether there was anything.
    async fn clear_records(&self, user: Id) -> Result<bool> {
        let inbox = doc! { "_id": { "$gte": key(user, lowest()), "$lte": key(user, highest()) } };
        let open = doc! { "$nin": ["accepted", "blocked"] };
        let records = [
            (PAIRS, doc! { "fromUserId": user, "status": open.clone() }),
            (PAIRS, doc! { "toUserId": user, "status": open }),
            (NOTIFICATIONS, doc! { "ownerId": user }),
            (OPERATIONS, doc! { "userId": user }),
            (INBOXES, inbox),
            (INBOX_STATES, doc! { "_id": user }),
        ];
        let mut any = false;
        for (collection, filter) in records {
            let found = self.some(collection, filter, doc! { "_id": 1 }).await?;
            let ids: Vec<Bson> = found.iter().filter_map(|one| one.get("_id").cloned()).collect();
            if !ids.is_empty() {
                any = true;
                self.collection(collection).delete_many(doc! { "_id": { "$in": ids } }, None).await?;
            }
        }
        let groups = doc! { "members.userId": user, "pair": { "$exists": false } };
        for group in self.some(CONVERSATIONS, groups, doc! { "_id": 1 }).await? {
            any = true;
            self.leave_group(user, read::id(&group, "_id")).await?;
        }
        for file in self.some(FILES, doc! { "metadata.ownerId": user }, doc! { "filename": 1 }).await? {
            any = true;
            let (network, id) = (self.clone(), read::id(&file, "_id"));
            self.transact(move |session| {
                let network = network.clone();
                Box::pin(async move { network.retire_file(id, session).await })
            })
            .await?;
        }
        let open = doc! { "ownerId": user, "collected": { "$ne": true } };
        let over = doc! { "$set": { "collected": true } };
        any |= self.collection(UPLOADS).update_many(open, over, Update::default(), None).await?.modified > 0;
        Ok(any)
    }

    /// Deletes a comment, or only what it says if somebody replied to it.
    async fn clear_comment(&self, comment: &Document) -> Result<()> {
        if read::number(comment, "replyCount") == 0 {
            return match self.delete_thread(comment, None).await {
                Err(Error::UnknownComment(_)) => Ok(()),
                done => done.map(|_| ()),
            };
        }
        let (network, id) = (self.clone(), read::id(comment, "_id"));
        self.transact(move |session| {
            let network = network.clone();
            Box::pin(async move {
                let blank = doc! { "$set": { "text": "" } };
                let comments = network.collection(COMMENTS);
                comments.update_one(doc! { "_id": id }, blank, Update::default(), Some(&mut *session)).await?;
                network.account(COMMENTS, &[id], Some(session)).await
            })
        })
        .await
    }
}
