//! The fan-out: posts on their way to their readers' inboxes, in bounded steps from a durable queue.
//!
//! The queue has a document for each post under way, written in the post's own transaction. A step takes the one whose turn
//! is the oldest, serves a batch of followers, notes how far it got and gives the turn away: a post for a million readers
//! and one for three take turns. A step that is interrupted is done again after its lease, and does nothing twice, because
//! an inbox holds a post once.
//!
//! For an author whose posts are pulled, the steps turn the edges that still wait for a push into pulled ones instead.

use crate::error::Result;
use crate::id::{Id, Time};
use crate::inbox::key;
use crate::network::{FAN_OUTS, FOLLOWS, Network, USERS};
use crate::read;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use store::{Find, FindOneAndUpdate, Update};

/// How often the background work tidies up.
const TIDY_EVERY: Duration = Duration::from_secs(60);

/// The idle readers whose inboxes go at once.
const IDLE_AT_ONCE: u32 = 100;

/// How long an upload waits to be gone on with, and what was replaced or deleted for its last readers.
const KEEP_UPLOADS: Duration = Duration::from_secs(24 * 3600);

/// A post under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FanOut {
    /// The post.
    pub post: Id,
    /// Its author.
    pub author: Id,
    /// How many inboxes it has reached.
    pub pushed: i64,
}

/// What the background work did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worked {
    /// How many steps.
    pub steps: u64,
    /// How many inbox entries were written.
    pub pushed: u64,
}

impl Network {
    /// Does what waits in the background, at most so many steps: posts to their readers, new names to their copies, what is
    /// left of users who left.
    ///
    /// # Errors
    /// A store that fails; nothing is lost, call it again.
    pub async fn work(&self, steps: u64) -> Result<Worked> {
        let mut worked = Worked::default();
        while worked.steps < steps {
            let pushed = self.fan_out_step().await?;
            let renamed = self.rename_step().await?;
            let departed = self.departure_step().await?;
            if pushed.is_none() && !renamed && !departed {
                break;
            }
            worked.pushed += pushed.unwrap_or_default();
            worked.steps += 1;
        }
        Ok(worked)
    }

    /// Works until `stop` is there, with pauses while there is nothing to do; tidies up once a minute.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) -> Result<()> {
        const PAUSE: Duration = Duration::from_millis(50);
        const STEPS: u64 = 100;
        tokio::pin!(stop);
        let mut tidied = Instant::now();
        loop {
            if tidied.elapsed() >= TIDY_EVERY {
                self.tidy().await?;
                tidied = Instant::now();
            }
            if self.work(STEPS).await?.steps == STEPS {
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                () = &mut stop => return Ok(()),
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// Tidies up, within bounds: inboxes of idle readers, requests without an answer, uploads that nobody goes on with.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn tidy(&self) -> Result<()> {
        self.sweep_idle(IDLE_AT_ONCE).await?;
        self.expire_requests().await?;
        self.collect_files(KEEP_UPLOADS).await?;
        Ok(())
    }

    /// The posts under way, the next one first.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn fan_outs(&self, limit: u32) -> Result<Vec<FanOut>> {
        let page = Find { sort: Some(doc! { "turn": 1 }), limit: i64::from(limit.max(1)), ..Find::default() };
        let jobs = self.collection(FAN_OUTS).find(doc! {}, page, None).await?;
        let fan_out = |job: &Document| FanOut {
            post: read::id(job, "_id"),
            author: read::id(job, "authorId"),
            pushed: read::number(job, "pushed"),
        };
        Ok(jobs.iter().map(fan_out).collect())
    }

    /// One step for the post whose turn it is; how many inboxes it reached, `None` if nothing waits.
    async fn fan_out_step(&self) -> Result<Option<u64>> {
        let now = Time::now();
        let lease = Time::from_timestamp_ms(now.timestamp_ms() + self.settings.fan_out_lease.as_millis() as i64);
        let next = FindOneAndUpdate { sort: Some(doc! { "turn": 1 }), ..FindOneAndUpdate::default() };
        let jobs = self.collection(FAN_OUTS);
        let taken = doc! { "$set": { "turn": lease } };
        let job = jobs.find_one_and_update(doc! { "turn": { "$lte": now } }, taken, next, None).await?;
        let Some(job) = job else { return Ok(None) };
        let (post, author) = (read::id(&job, "_id"), read::id(&job, "authorId"));
        let user = self.collection(USERS).find_one(doc! { "_id": author }, None).await?;
        let followers = user.map_or(0, |user| read::number(&user, "followerCount"));
        let (last, pushed) = if self.settings.pulls(followers) {
            (self.retire(author).await?, 0)
        } else {
            self.push(post, author, read::optional_id(&job, "edge")).await?
        };
        match last {
            None => {
                jobs.delete_one(doc! { "_id": post }, None).await?;
            }
            Some(last) => {
                let step = doc! { "$set": { "edge": last, "turn": Time::now() }, "$inc": { "pushed": pushed as i64 } };
                jobs.update_one(doc! { "_id": post }, step, Update::default(), None).await?;
            }
        }
        Ok(Some(pushed))
    }

    /// A batch of edges of an author that wait for pushes.
    async fn waiting_edges(&self, author: Id, after: Option<Id>) -> Result<Vec<Document>> {
        let mut filter = doc! { "followeeId": author, "delivery": { "$in": ["joining", "push"] } };
        if let Some(after) = after {
            filter.insert("_id", doc! { "$gt": after });
        }
        let page = Find {
            projection: Some(doc! { "followerId": 1 }),
            sort: Some(doc! { "_id": 1 }),
            limit: self.settings.fan_out_batch as i64,
            ..Find::default()
        };
        Ok(self.collection(FOLLOWS).find(filter, page, None).await?)
    }

    /// Pushes a post to a batch of followers; gives the last edge, unless it was the last batch, and how many they were.
    async fn push(&self, post: Id, author: Id, after: Option<Id>) -> Result<(Option<Id>, u64)> {
        let edges = self.waiting_edges(author, after).await?;
        let readers: Vec<_> = edges.iter().map(|edge| read::id(edge, "followerId")).collect();
        let entries = readers.iter().map(|reader| doc! { "_id": key(*reader, post), "authorId": author });
        self.insert_entries(entries.collect()).await?;
        for reader in readers.iter().filter(|reader| self.looks_at_size(**reader, post)) {
            self.trim(*reader).await?;
        }
        let full = edges.len() >= self.settings.fan_out_batch;
        let last = edges.last().filter(|_| full).map(|edge| read::id(edge, "_id"));
        Ok((last, readers.len() as u64))
    }

    /// Turns a batch of an author's edges into pulled ones; gives the last, unless there were none.
    async fn retire(&self, author: Id) -> Result<Option<Id>> {
        let edges = self.waiting_edges(author, None).await?;
        let ids: Vec<_> = edges.iter().map(|edge| read::id(edge, "_id")).collect();
        let Some(last) = ids.last().copied() else { return Ok(None) };
        let waiting = doc! { "_id": { "$in": ids }, "delivery": { "$in": ["joining", "push"] } };
        let pull = doc! { "$set": { "delivery": "pull" } };
        self.collection(FOLLOWS).update_many(waiting, pull, Update::default(), None).await?;
        Ok(Some(last))
    }
}
