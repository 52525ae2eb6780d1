//! Notifications: a capped inbox of what happened to a user.
//!
//! A notification has a key made of what happened, who did it and to what, unique for its owner: doing something again (a
//! retry, a second like after an unlike) notifies once. It is written in the transaction of what it is about, so that no
//! kill comes between the two; its owner hears of it by the change stream (see `updates`).

use crate::error::Result;
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{MUTES, NOTIFICATIONS, Network};
use crate::read;
use crate::user::Card;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use store::{Find, Session, Update};

/// Who got a notification, whose bound is to be looked at once the transaction is through.
pub(crate) type Told = Option<Id>;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// Somebody follows the user; the subject is who.
    Follow,
    /// Somebody asks for friendship; the subject is who.
    FriendRequest,
    /// Somebody accepted the user's request; the subject is who.
    FriendAccepted,
    /// Somebody likes a post of the user; the subject is the post.
    Like,
    /// Somebody comments on a post of the user; the subject is the comment.
    Comment,
    /// Somebody replies to a comment of the user; the subject is the reply.
    Reply,
}

impl Event {
    fn name(self) -> &'static str {
        match self {
            Event::Follow => "follow",
            Event::FriendRequest => "friendRequest",
            Event::FriendAccepted => "friendAccepted",
            Event::Like => "like",
            Event::Comment => "comment",
            Event::Reply => "reply",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Event> {
        let all =
            [Event::Follow, Event::FriendRequest, Event::FriendAccepted, Event::Like, Event::Comment, Event::Reply];
        all.into_iter().find(|event| event.name() == name)
    }
}

/// Something that happened to a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// Its id.
    pub id: Id,
    /// What happened.
    pub event: Event,
    /// Who did it.
    pub from: Card,
    /// To or by what.
    pub subject: Id,
    /// When.
    pub at: Time,
    /// Whether the user has seen it.
    pub read: bool,
}

impl Network {
    /// Notes an event for a user, unless it is the user's own or of somebody muted; gives whose notifications to
    /// [`bound`](Self::bound).
    pub(crate) async fn note(
        &self,
        owner: Id,
        event: Event,
        from: Id,
        subject: Id,
        session: &mut Session,
    ) -> Result<Told> {
        let mute = doc! { "userId": owner, "mutedId": from };
        if owner == from || self.collection(MUTES).find_one(mute, Some(&mut *session)).await?.is_some() {
            return Ok(None);
        }
        let id = Id::new();
        let key = doc! { "ownerId": owner, "key": format!("{}:{subject}:{from}", event.name()) };
        let note = doc! { "$setOnInsert": {
            "_id": id, "event": event.name(), "fromUserId": from, "subject": subject, "at": Time::now(), "read": false,
        } };
        let upsert = Update { upsert: true, ..Update::default() };
        let done = self.collection(NOTIFICATIONS).update_one(key, note, upsert, Some(session)).await?;
        Ok(done.upserted.map(|_| owner))
    }

    /// Deletes what goes beyond the bound.
    pub(crate) async fn bound(&self, told: Told) -> Result<()> {
        let Some(owner) = told else { return Ok(()) };
        let page = Find {
            sort: Some(doc! { "_id": -1 }),
            skip: self.settings.notifications as u64,
            limit: 1,
            ..Find::default()
        };
        let notifications = self.collection(NOTIFICATIONS);
        if let Some(first) = notifications.find(doc! { "ownerId": owner }, page, None).await?.first() {
            let old = doc! { "ownerId": owner, "_id": { "$lte": read::id(first, "_id") } };
            notifications.delete_many(old, None).await?;
        }
        Ok(())
    }

    /// A user's notifications, newest first, at most as many as the bound.
    ///
    /// # Errors
    /// [`crate::Error::InvalidCursor`].
    pub async fn notifications(&self, owner: Id, page: &PageRequest) -> Result<Page<Notification>> {
        let filter = doc! { "ownerId": owner };
        let found = self.newest_first(NOTIFICATIONS, filter, page.after_id()?, page.size() + 1).await?;
        let found = Page::cut(found, page.size(), |note| read::id(note, "_id").to_string());
        let ids: Vec<_> = found.items.iter().map(|note| read::id(note, "fromUserId")).collect();
        let cards = self.cards(&ids).await?;
        let notification = |note: &Document| {
            Some(Notification {
                id: read::id(note, "_id"),
                event: Event::of(note.get_str("event").ok()?)?,
                from: cards.get(&read::id(note, "fromUserId"))?.clone(),
                subject: read::id(note, "subject"),
                at: read::time(note, "at"),
                read: note.get_bool("read").unwrap_or_default(),
            })
        };
        Ok(Page { items: found.items.iter().filter_map(notification).collect(), next: found.next })
    }

    /// How many notifications a user has not seen.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn unread_notifications(&self, owner: Id) -> Result<u64> {
        let count = self.collection(NOTIFICATIONS).count(doc! { "ownerId": owner, "read": false }, None).await?;
        Ok(count.min(self.settings.notifications as u64))
    }

    /// Marks a user's notifications as seen, up to one of them.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn read_notifications(&self, owner: Id, up_to: Id) -> Result<u64> {
        let unread = doc! { "ownerId": owner, "_id": { "$lte": up_to }, "read": false };
        let seen = doc! { "$set": { "read": true } };
        Ok(self.collection(NOTIFICATIONS).update_many(unread, seen, Update::default(), None).await?.modified)
    }
}
