//! Friend requests and friendships.
//!
//! Each pair of users has at most one document in `friendPairs`, whatever the direction, and everything about their
//! friendship is a step of its state:
//!
//! ```text
//!            ask              accept            unfriend
//!   (none) ───────> pending ─────────> accepted ─────────> ended
//!                      │ decline, withdraw, expire            │ ask: pending again
//!                      └───────> declined, withdrawn, expired ┘
//!   any ── block ──> blocked ── last unblock ──> (none)
//! ```
//!
//! A step is one guarded update, so that of two steps at once one finds the other's result. An accepted pair has a row in
//! `friends` for each side.

use crate::error::{Error, Result};
use crate::follow::Related;
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{FRIENDS, Network, PAIRS, RACES};
use crate::notification::{Event, Told};
use crate::read;
use crate::user::Card;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use store::{Find, FindOneAndUpdate, Session, Update};

/// An open friend request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FriendRequest {
    /// The other side: who asked, or who was asked.
    pub user: Card,
    /// When it was made.
    pub created_at: Time,
    /// When it becomes void.
    pub expires_at: Time,
}

/// The key of a pair: both ids, the smaller one first.
pub(crate) fn pair(one: Id, other: Id) -> String {
    format!("{}-{}", one.min(other), one.max(other))
}

impl Network {
    /// Asks for friendship.
    ///
    /// # Errors
    /// [`Error::SelfRelation`], [`Error::UnknownUser`], [`Error::RequestPending`], [`Error::AlreadyFriends`],
    /// [`Error::Blocked`].
    pub async fn ask_friend(&self, from: Id, to: Id) -> Result<()> {
        self.two_users(from, to).await?;
        for _ in 0..RACES {
            match self.put_request(from, to).await {
                Ok(told) => return self.bound(told).await,
                Err(error) if error.is_duplicate_key() => {}
                Err(error) => return Err(error),
            }
            let found = self.collection(PAIRS).find_one(doc! { "_id": pair(from, to) }, None).await?;
            let Some(found) = found else { continue };
            match read::text(&found, "status").as_str() {
                "pending" if read::time(&found, "expiresAt") > Time::now() => {
                    return Err(Error::RequestPending { from: read::id(&found, "fromUserId") });
                }
                "accepted" => return Err(Error::AlreadyFriends),
                "blocked" => return Err(Error::Blocked),
                _ => {} // decided since
            }
        }
        Err(Error::Changed)
    }

    /// Makes the pair's state `pending`; a duplicate key if it may not become that.
    async fn put_request(&self, from: Id, to: Id) -> Result<Told> {
        let now = Time::now();
        let expires =
            Time::from_timestamp_ms(now.timestamp_ms() + self.settings.request_expires_after.as_millis() as i64);
        let free = doc! {
            "_id": pair(from, to),
            "$or": [
                { "status": { "$in": ["declined", "withdrawn", "expired", "ended"] } },
                { "status": "pending", "expiresAt": { "$lte": now } },
            ],
        };
        let state = doc! {
            "$set": {
                "status": "pending", "fromUserId": from, "toUserId": to, "requestId": Id::new(), "createdAt": now,
                "expiresAt": expires,
            },
            "$inc": { "turn": 1 },
        };
        let network = self.clone();
        self.transact(move |session| {
            let (network, free, state) = (network.clone(), free.clone(), state.clone());
            Box::pin(async move {
                let upsert = Update { upsert: true, ..Update::default() };
                network.collection(PAIRS).update_one(free, state, upsert, Some(&mut *session)).await?;
                network.note(to, Event::FriendRequest, from, from, session).await
            })
        })
        .await
    }

    /// Accepts an open request: the two are friends.
    ///
    /// # Errors
    /// [`Error::NoPendingRequest`].
    pub async fn accept_friend(&self, user: Id, from: Id) -> Result<()> {
        let network = self.clone();
        let told = self.transact(move |session| {
            let network = network.clone();
            Box::pin(async move {
                network.decide(user, from, "accepted", Some(&mut *session)).await?;
                network.make_friends(user, from, session).await?;
                network.note(from, Event::FriendAccepted, user, user, session).await
            })
        });
        self.bound(told.await?).await
    }

    async fn make_friends(&self, one: Id, other: Id, session: &mut Session) -> Result<()> {
        let since = Time::now();
        let rows = [Id::new(), Id::new()];
        let row = |id: Id, from: Id, to: Id| {
            doc! { "_id": id, "fromUserId": from, "toUserId": to, "status": "accepted", "since": since }
        };
        let friends = self.collection(FRIENDS);
        friends.insert_one(row(rows[0], one, other), Some(&mut *session)).await?;
        if !self.kept() {
            // Where the model layer keeps the edge mutual, the reverse row comes by itself.
            friends.insert_one(row(rows[1], other, one), Some(&mut *session)).await?;
        }
        self.account(FRIENDS, &rows, Some(session)).await
    }

    /// Turns an open request down.
    ///
    /// # Errors
    /// [`Error::NoPendingRequest`].
    pub async fn decline_friend(&self, user: Id, from: Id) -> Result<()> {
        self.decide(user, from, "declined", None).await
    }

    /// Takes an open request of one's own back.
    ///
    /// # Errors
    /// [`Error::NoPendingRequest`].
    pub async fn withdraw_friend(&self, user: Id, to: Id) -> Result<()> {
        self.decide(to, user, "withdrawn", None).await
    }

    async fn decide(&self, to: Id, from: Id, status: &str, session: Option<&mut Session>) -> Result<()> {
        let open = doc! {
            "_id": pair(to, from), "status": "pending", "fromUserId": from, "toUserId": to,
            "expiresAt": { "$gt": Time::now() },
        };
        let state = doc! { "$set": { "status": status, "decidedAt": Time::now() }, "$inc": { "turn": 1 } };
        let found =
            self.collection(PAIRS).find_one_and_update(open, state, FindOneAndUpdate::default(), session).await?;
        found.map(|_| ()).ok_or(Error::NoPendingRequest)
    }

    /// Voids the requests that nobody answered in time; gives how many. An unanswered request counts as void from its time
    /// on, whether this has run or not.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn expire_requests(&self) -> Result<u64> {
        let old = doc! { "status": "pending", "expiresAt": { "$lte": Time::now() } };
        let state = doc! { "$set": { "status": "expired" }, "$inc": { "turn": 1 } };
        Ok(self.collection(PAIRS).update_many(old, state, Update::default(), None).await?.modified)
    }

    /// Ends a friendship on both sides; whether there was one.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn unfriend(&self, user: Id, other: Id) -> Result<bool> {
        let network = self.clone();
        self.transact(move |session| {
            let network = network.clone();
            Box::pin(async move {
                let friends = doc! { "_id": pair(user, other), "status": "accepted" };
                let state = doc! { "$set": { "status": "ended" }, "$inc": { "turn": 1 } };
                let pairs = network.collection(PAIRS);
                let done = pairs.update_one(friends, state, Update::default(), Some(&mut *session)).await?;
                if done.matched == 1 {
                    network.end_friendship(user, other, session).await?;
                }
                Ok(done.matched == 1)
            })
        })
        .await
    }

    /// A user's friends, newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn friends(&self, user: Id, page: &PageRequest) -> Result<Page<Related>> {
        self.related(FRIENDS, doc! { "fromUserId": user }, "toUserId", "since", page).await
    }

    /// Which of some users are a user's friends.
    ///
    /// # Errors
    /// [`Error::Invalid`] for too many users.
    pub async fn friends_of(&self, user: Id, users: &[Id]) -> Result<HashSet<Id>> {
        self.others("fromUserId", user, "toUserId", users, FRIENDS).await
    }

    /// The open requests to a user, newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn incoming_requests(&self, user: Id, page: &PageRequest) -> Result<Page<FriendRequest>> {
        self.requests("toUserId", user, "fromUserId", page).await
    }

    /// The open requests of a user, newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn outgoing_requests(&self, user: Id, page: &PageRequest) -> Result<Page<FriendRequest>> {
        self.requests("fromUserId", user, "toUserId", page).await
    }

    async fn requests(&self, own: &str, user: Id, other: &str, page: &PageRequest) -> Result<Page<FriendRequest>> {
        let mut filter = doc! { own: user, "status": "pending", "expiresAt": { "$gt": Time::now() } };
        if let Some(after) = page.after_id()? {
            filter.insert("requestId", doc! { "$lt": after });
        }
        let find = Find { sort: Some(doc! { "requestId": -1 }), limit: page.size() as i64 + 1, ..Find::default() };
        let found = self.collection(PAIRS).find(filter, find, None).await?;
        let found = Page::cut(found, page.size(), |request| read::id(request, "requestId").to_string());
        let ids: Vec<_> = found.items.iter().map(|request| read::id(request, other)).collect();
        let mut cards = self.cards(&ids).await?;
        let request = |request: &Document| {
            let user = cards.remove(&read::id(request, other))?;
            let (created_at, expires_at) = (read::time(request, "createdAt"), read::time(request, "expiresAt"));
            Some(FriendRequest { user, created_at, expires_at })
        };
        Ok(Page { items: found.items.iter().filter_map(request).collect(), next: found.next })
    }
}
