//! What two users have in common, and whom one might know.

use crate::error::{Error, Result};
use crate::follow::MAX_ASKED;
use crate::id::Id;
use crate::network::{FOLLOWS, FRIENDS, Network};
use crate::read;
use crate::user::Card;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use store::Find;

/// How many entries of a list can be read for what it costs to look one up.
const LOOKUP_COST: i64 = 4;

/// The ids that are compared at once.
const BATCH: usize = 500;

/// The friends of a user from whom suggestions come.
const SUGGESTING_FRIENDS: i64 = 200;

/// The friends of all of them together that are looked at.
const SUGGESTED: i64 = 20_000;

/// Which relation two users' lists are compared in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Circle {
    /// Friends of both.
    Friends,
    /// Followed by both.
    Following,
}

impl Circle {
    /// The collection, the own end, the other end.
    fn ends(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Circle::Friends => (FRIENDS, "fromUserId", "toUserId"),
            Circle::Following => (FOLLOWS, "followerId", "followeeId"),
        }
    }
}

/// Somebody whom one might know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Suggestion {
    /// Who.
    pub user: Card,
    /// How many friends are common.
    pub common: u64,
}

impl Network {
    /// Who is in a circle of both users: the shorter list is walked. The longer one is only looked up in, if it is so much
    /// longer that this is cheaper than to read it, too.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn mutual(&self, circle: Circle, one: Id, other: Id) -> Result<Vec<Id>> {
        let sizes = (self.circle_size(circle, one).await?, self.circle_size(circle, other).await?);
        let (short, long) = if sizes.0 <= sizes.1 { (one, other) } else { (other, one) };
        if sizes.0.max(sizes.1) <= sizes.0.min(sizes.1).saturating_mul(LOOKUP_COST) {
            let both: HashSet<Id> = self.circle(circle, long).await?.into_iter().collect();
            return Ok(self.circle(circle, short).await?.into_iter().filter(|id| both.contains(id)).collect());
        }
        let (collection, own, end) = circle.ends();
        let mut found = Vec::new();
        for ids in self.circle(circle, short).await?.chunks(BATCH) {
            let both = self.others(own, long, end, ids, collection).await?;
            found.extend(ids.iter().filter(|id| both.contains(id)));
        }
        Ok(found)
    }

    /// How many are in a circle of a user and of each of some others; none with whoever does not exist.
    ///
    /// # Errors
    /// [`Error::Invalid`] for too many users.
    pub async fn mutual_counts(&self, circle: Circle, user: Id, others: &[Id]) -> Result<HashMap<Id, u64>> {
        if others.len() > MAX_ASKED {
            return Err(Error::Invalid(format!("at most {MAX_ASKED} users can be asked about at once")));
        }
        let own: HashSet<Id> = self.circle(circle, user).await?.into_iter().collect();
        let mut counts = HashMap::new();
        for other in others {
            let count = if self.circle_size(circle, *other).await? > own.len() as i64 * LOOKUP_COST {
                self.mutual(circle, user, *other).await?.len()
            } else {
                self.circle(circle, *other).await?.iter().filter(|id| own.contains(id)).count()
            };
            counts.insert(*other, count as u64);
        }
        Ok(counts)
    }

    async fn circle_size(&self, circle: Circle, user: Id) -> Result<i64> {
        let profile = match self.profile(user).await {
            Err(Error::UnknownUser(_)) => return Ok(0),
            profile => profile?,
        };
        Ok(match circle {
            Circle::Friends => profile.friend_count,
            Circle::Following => profile.following_count,
        })
    }

    /// Everybody in a user's circle.
    async fn circle(&self, circle: Circle, user: Id) -> Result<Vec<Id>> {
        let (collection, own, end) = circle.ends();
        let mut filter = doc! { own: user };
        if circle == Circle::Following {
            filter.insert("status", "active");
        }
        self.ids(collection, filter, end).await
    }

    /// Friends of friends who are no friends yet, those with the most common friends first. Only the newest friends are
    /// asked, so that the work is bounded.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn friends_of_friends(&self, user: Id, limit: usize) -> Result<Vec<Suggestion>> {
        let ends = |limit: i64| Find {
            projection: Some(doc! { "_id": 0, "toUserId": 1 }),
            sort: Some(doc! { "_id": -1 }),
            limit,
            ..Find::default()
        };
        let friends = self.collection(FRIENDS);
        let to = |edges: &[Document]| edges.iter().map(|edge| read::id(edge, "toUserId")).collect::<Vec<_>>();
        let own = to(&friends.find(doc! { "fromUserId": user }, ends(SUGGESTING_FRIENDS), None).await?);
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let theirs = friends.find(doc! { "fromUserId": { "$in": own } }, ends(SUGGESTED), None).await?;
        let mut common: HashMap<Id, u64> = HashMap::new();
        for id in to(&theirs) {
            *common.entry(id).or_default() += 1;
        }
        common.remove(&user);
        let ids: Vec<_> = common.keys().copied().collect();
        for ids in ids.chunks(BATCH) {
            let known = self.friends_of(user, ids).await?;
            let blocked = self.blocked_of(user, ids).await?;
            common.retain(|id, _| !known.contains(id) && !blocked.contains(id));
        }
        let mut best: Vec<_> = common.into_iter().collect();
        best.sort_unstable_by_key(|(id, common)| (std::cmp::Reverse(*common), *id));
        best.truncate(limit.min(MAX_ASKED));
        let ids: Vec<_> = best.iter().map(|(id, _)| *id).collect();
        let mut cards = self.cards(&ids).await?;
        let suggestion = |(id, common): &(Id, u64)| Some(Suggestion { user: cards.remove(id)?, common: *common });
        Ok(best.iter().filter_map(suggestion).collect())
    }
}
