//! Live updates for connected users: what to show without asking.
//!
//! An update is a hint, not a record: it comes at most once, only while its user listens, and only from writes through this
//! network and its clones. Whoever misses one finds everything in the lists.

use crate::id::Id;
use crate::network::Network;
use crate::notification::Event;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

/// The updates that wait for a slow listener; older ones are dropped, and the listener is told.
pub const WAITING_UPDATES: usize = 1_024;

/// What changed for a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Change {
    /// There is a notification.
    Notification {
        /// Its id.
        id: Id,
        /// What happened.
        event: Event,
        /// Who did it.
        from: Id,
        /// To or by what.
        subject: Id,
    },
    /// There is a post in the feed.
    Post {
        /// The post.
        id: Id,
        /// Its author.
        author: Id,
    },
    /// There is a message in a conversation.
    Message {
        /// The conversation.
        conversation: Id,
        /// The message's number in it.
        number: i64,
    },
    /// Some updates were dropped: read the lists again.
    Missed,
}

/// Where updates meet their listeners.
#[derive(Debug)]
pub(crate) struct Hub {
    sender: broadcast::Sender<(Id, Change)>,
}

impl Hub {
    pub(crate) fn new() -> Hub {
        Hub { sender: broadcast::Sender::new(WAITING_UPDATES) }
    }

    pub(crate) fn is_heard(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    pub(crate) fn send(&self, owner: Id, change: Change) {
        // Nobody listening is no failure.
        let _ = self.sender.send((owner, change));
    }

    pub(crate) fn listen(&self, owner: Id) -> Updates {
        Updates { owner, receiver: self.sender.subscribe() }
    }
}

/// A user's live updates, from the moment of asking on.
#[derive(Debug)]
pub struct Updates {
    owner: Id,
    receiver: broadcast::Receiver<(Id, Change)>,
}

impl Updates {
    /// Waits for the next update; `None` when the network is gone.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            match self.receiver.recv().await {
                Ok((owner, change)) if owner == self.owner => return Some(change),
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => return Some(Change::Missed),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl Network {
    /// A user's live updates: notifications, posts that reach the feed.
    pub fn updates(&self, user: Id) -> Updates {
        self.hub.listen(user)
    }
}
