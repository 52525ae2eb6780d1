//! Inboxes: what was pushed to a reader, and how a reader's authors get into and out of it.
//!
//! An entry's `_id` is (reader, post): a reader's entries lie together in the order of the posts' time, and pushing twice
//! changes nothing. An entry is a reference: what the post says, whether it is still there and who may see it is looked up
//! when it is read, so that no edit, deletion or new name ever touches an inbox.
//!
//! What must hold for each active follow edge, by its `delivery`:
//!
//! ```text
//!   pull     the feed reads the author's posts
//!   joining  the feed reads the author's posts; whatever the author posts from now on is pushed too
//!   push     every post of the author above the reader's floor is in the inbox, or in the queue of the fan-out
//! ```
//!
//! An author joins in this order: `joining` is committed; then the posts are read and put into the inbox; then `push` is
//! committed, if the edge is still `joining`. A post that the reading missed was committed after `joining`, so its fan-out,
//! which looks at the edges later still, finds the edge. Every other change of `delivery` is to `pull`, which is right at any
//! time. An entry too many is no harm either: the feed shows a post once, and only of authors who are followed.
//!
//! The **floor** is the newest post that was dropped from a full inbox. At and below it the inbox says nothing, and the feed
//! reads the authors. It is raised before anything is dropped.

use crate::error::Result;
use crate::id::{Id, Time};
use crate::network::{FOLLOWS, INBOX_STATES, INBOXES, Network, POSTS, USERS};
use crate::read;
use bson::oid::ObjectId;
use bson::{Document, doc};
use store::{Find, InsertMany, Update};

/// The authors that join at once.
const JOIN_BATCH: i64 = 500;

/// The authors that one query names.
pub(crate) const AUTHORS_PER_QUERY: usize = 200;

/// A reader's key in the inboxes, before the first post and after the last.
pub(crate) fn key(owner: Id, post: Id) -> Document {
    doc! { "u": owner, "p": post }
}

pub(crate) fn lowest() -> Id {
    Id(ObjectId::from_bytes([0; 12]))
}

pub(crate) fn highest() -> Id {
    Id(ObjectId::from_bytes([0xff; 12]))
}

impl Network {
    /// Takes the authors whom a reader's feed still reads one by one into the inbox; gives how many.
    ///
    /// The feed does that itself when there are more than [`crate::Settings::join_above`].
    ///
    /// # Errors
    /// A store that fails.
    pub async fn join(&self, reader: Id) -> Result<u64> {
        let apart = doc! { "followerId": reader, "delivery": { "$in": ["joining", "pull"] }, "status": "active" };
        let page = Find {
            projection: Some(doc! { "followeeId": 1 }),
            sort: Some(doc! { "_id": -1 }),
            limit: JOIN_BATCH,
            ..Find::default()
        };
        let edges = self.collection(FOLLOWS).find(apart, page, None).await?;
        let authors: Vec<_> = edges.iter().map(|edge| read::id(edge, "followeeId")).collect();
        let pushed = self.pushed_authors(&authors).await?;
        let (mut ids, mut joining) = (Vec::new(), Vec::new());
        for (edge, author) in edges.iter().zip(authors) {
            if pushed.contains(&author) {
                ids.push(read::id(edge, "_id"));
                joining.push(author);
            }
        }
        if !ids.is_empty() {
            let follows = self.collection(FOLLOWS);
            let step = |from: &str| doc! { "_id": { "$in": ids.clone() }, "delivery": from };
            let to = |delivery: &str| doc! { "$set": { "delivery": delivery } };
            follows.update_many(step("pull"), to("joining"), Update::default(), None).await?;
            self.fill(reader, &joining).await?;
            follows.update_many(step("joining"), to("push"), Update::default(), None).await?;
        }
        let held = doc! { "followerId": reader, "delivery": { "$in": ["joining", "pull"] } };
        let held = self.collection(FOLLOWS).count(held, None).await? as i64;
        let state = doc! { "$set": { "held": held, "joinedAt": Time::now() } };
        let upsert = Update { upsert: true, ..Update::default() };
        self.collection(INBOX_STATES).update_one(doc! { "_id": reader }, state, upsert, None).await?;
        Ok(ids.len() as u64)
    }

    /// Which of some authors' posts are pushed. One near the threshold stays as he or she is.
    async fn pushed_authors(&self, authors: &[Id]) -> Result<Vec<Id>> {
        let page = Find { projection: Some(doc! { "followerCount": 1 }), ..Find::default() };
        let users = self.collection(USERS).find(doc! { "_id": { "$in": authors.to_vec() } }, page, None).await?;
        let pushed = |user: &&Document| {
            let followers = read::number(user, "followerCount");
            [followers - followers / 10, followers, followers + followers / 10]
                .into_iter()
                .all(|followers| !self.settings.pulls(followers))
        };
        Ok(users.iter().filter(pushed).map(|user| read::id(user, "_id")).collect())
    }

    /// Puts the newest posts of some authors into a reader's inbox.
    async fn fill(&self, reader: Id, authors: &[Id]) -> Result<()> {
        let cap = self.settings.inbox_cap;
        let floor = self.inbox_state(reader).await?.and_then(|state| read::optional_id(&state, "floor"));
        let (mut posts, mut cut) = (Vec::new(), false);
        for authors in authors.chunks(AUTHORS_PER_QUERY) {
            let mut filter = doc! { "authorId": { "$in": authors.to_vec() } };
            if let Some(floor) = floor {
                filter.insert("_id", doc! { "$gt": floor });
            }
            let page = Find {
                projection: Some(doc! { "authorId": 1 }),
                sort: Some(doc! { "_id": -1 }),
                limit: cap as i64,
                ..Find::default()
            };
            let found = self.collection(POSTS).find(filter, page, None).await?;
            cut |= found.len() >= cap;
            posts.extend(found.iter().map(|post| (read::id(post, "_id"), read::id(post, "authorId"))));
        }
        posts.sort_unstable_by(|one, other| other.cmp(one));
        if posts.len() > cap || cut {
            posts.truncate(cap);
            if let Some((last, _)) = posts.last() {
                self.raise_floor(reader, *last).await?;
            }
        }
        let entries = posts.iter().map(|(post, author)| doc! { "_id": key(reader, *post), "authorId": *author });
        self.insert_entries(entries.collect()).await?;
        self.trim(reader).await
    }

    /// Inserts entries; those that are there stay.
    pub(crate) async fn insert_entries(&self, entries: Vec<Document>) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let unordered = InsertMany { ordered: false, ..InsertMany::default() };
        let done = self.collection(INBOXES).insert_many_with(entries, unordered, None).await?;
        // A duplicate was there already: an interrupted step is done again.
        match done.errors.into_iter().find(|failed| !failed.error.is_duplicate_key()) {
            Some(failed) => Err(failed.error.into()),
            None => Ok(()),
        }
    }

    pub(crate) async fn inbox_state(&self, reader: Id) -> Result<Option<Document>> {
        Ok(self.collection(INBOX_STATES).find_one(doc! { "_id": reader }, None).await?)
    }

    async fn raise_floor(&self, reader: Id, floor: Id) -> Result<()> {
        let raise = doc! { "$max": { "floor": floor } };
        let upsert = Update { upsert: true, ..Update::default() };
        self.collection(INBOX_STATES).update_one(doc! { "_id": reader }, raise, upsert, None).await?;
        Ok(())
    }

    /// Whether a push of a post to a reader is one of those that look at the inbox's size.
    pub(crate) fn looks_at_size(&self, reader: Id, post: Id) -> bool {
        let every = (self.settings.inbox_cap as u64 / 8).clamp(1, 256);
        // FNV-1a: ids come in steps, which a plain remainder would never meet for some readers.
        let bytes = reader.0.bytes().into_iter().chain(post.0.bytes());
        let hash =
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        (hash >> 16).is_multiple_of(every)
    }

    /// Drops what goes beyond the bound of a reader's inbox.
    pub(crate) async fn trim(&self, reader: Id) -> Result<()> {
        let all = doc! { "_id": { "$gte": key(reader, lowest()), "$lte": key(reader, highest()) } };
        let page = Find {
            projection: Some(doc! { "_id": 1 }),
            sort: Some(doc! { "_id": -1 }),
            skip: self.settings.inbox_cap as u64,
            limit: 1,
            ..Find::default()
        };
        let inboxes = self.collection(INBOXES);
        let found = inboxes.find(all, page, None).await?;
        let Some(id) = found.first().and_then(|entry| entry.get_document("_id").ok()) else { return Ok(()) };
        let first = read::id(id, "p");
        self.raise_floor(reader, first).await?;
        let dropped = doc! { "_id": { "$gte": key(reader, lowest()), "$lte": key(reader, first) } };
        inboxes.delete_many(dropped, None).await?;
        Ok(())
    }

    /// Notes that a reader looked at the feed, every now and then.
    pub(crate) async fn seen(&self, reader: Id, state: Option<&Document>) -> Result<()> {
        let now = Time::now();
        let often = (self.settings.idle_after.as_millis() / 24) as i64;
        let before = state.and_then(|state| read::optional_time(state, "seenAt"));
        if before.is_some_and(|before| now.timestamp_ms() - before.timestamp_ms() < often) {
            return Ok(());
        }
        let seen = doc! { "$set": { "seenAt": now } };
        let upsert = Update { upsert: true, ..Update::default() };
        self.collection(INBOX_STATES).update_one(doc! { "_id": reader }, seen, upsert, None).await?;
        Ok(())
    }

    /// Gives up the inboxes of readers who have not looked at their feed for long, at most so many; gives how many. Nothing
    /// is pushed to them any more; their next look finds the feed complete and builds the inbox again.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn sweep_idle(&self, limit: u32) -> Result<u64> {
        let idle = Time::from_timestamp_ms(Time::now().timestamp_ms() - self.settings.idle_after.as_millis() as i64);
        let filter = doc! { "seenAt": { "$lte": idle } };
        let page = Find { limit: i64::from(limit.max(1)), sort: Some(doc! { "seenAt": 1 }), ..Find::default() };
        let states = self.collection(INBOX_STATES).find(filter, page, None).await?;
        let mut swept = 0;
        for state in &states {
            let (network, reader) = (self.clone(), read::id(state, "_id"));
            let done = self.transact(move |session| {
                let network = network.clone();
                Box::pin(async move {
                    let idle = doc! { "_id": reader, "seenAt": { "$lte": idle } };
                    let gone = network.collection(INBOX_STATES).delete_one(idle, Some(&mut *session)).await?;
                    if gone == 0 {
                        return Ok(0);
                    }
                    let pushed = doc! { "followerId": reader, "delivery": { "$in": ["joining", "push"] } };
                    let pull = doc! { "$set": { "delivery": "pull" } };
                    let follows = network.collection(FOLLOWS);
                    follows.update_many(pushed, pull, Update::default(), Some(&mut *session)).await?;
                    let all = doc! { "_id": { "$gte": key(reader, lowest()), "$lte": key(reader, highest()) } };
                    network.collection(INBOXES).delete_many(all, Some(session)).await?;
                    Ok(1)
                })
            });
            swept += done.await?;
        }
        Ok(swept)
    }
}
