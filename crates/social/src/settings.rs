//! How a network behaves.

use std::time::Duration;

/// Who keeps counts and copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeping {
    /// The model layer, in each write itself: the store has a hook for `models/social`.
    Model,
    /// The network, in the transaction of each write.
    Service,
}

/// Which authors' posts are read from the authors, instead of being pushed into inboxes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assignment {
    /// None.
    PushAll,
    /// Everybody's.
    PullAll,
    /// Those of authors with more followers than the threshold.
    PullAbove,
    /// Those of authors with at most as many followers as the threshold: what some guides describe.
    PullBelow,
}

/// Which name of its author a post shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuthorNames {
    /// Today's.
    Live,
    /// That of the day of the post.
    AsPosted,
}

/// How a network behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who keeps counts and copies.
    pub keeping: Keeping,
    /// How posts reach their readers.
    pub assignment: Assignment,
    /// The followers that divide authors who are pushed from those who are pulled.
    pub threshold: u64,
    /// The entries of an inbox; older posts are read from their authors.
    pub inbox_cap: usize,
    /// The newly followed authors that a feed reads from the authors before it takes them into the inbox.
    pub join_above: usize,
    /// The followers that one step of the fan-out serves.
    pub fan_out_batch: usize,
    /// How long nobody else takes up a step that was begun.
    pub fan_out_lease: Duration,
    /// After how long without a look at the feed a user's inbox is given up.
    pub idle_after: Duration,
    /// Which name posts show.
    pub author_names: AuthorNames,
    /// The earlier versions that a post keeps.
    pub history: usize,
    /// How deep replies nest.
    pub reply_depth: u32,
    /// After how long an unanswered friend request is void.
    pub request_expires_after: Duration,
    /// The notifications that a user keeps.
    pub notifications: usize,
    /// How long what is on its way may still arrive when a user has left; after that what is the user's is looked for once
    /// more.
    pub departure_settles: Duration,
    /// How long messages are kept; for good without it.
    pub keep_messages: Option<Duration>,
}

impl Settings {
    /// The defaults, with somebody who keeps counts and copies.
    pub fn new(keeping: Keeping) -> Settings {
        Settings {
            keeping,
            assignment: Assignment::PullAbove,
            threshold: 100_000,
            inbox_cap: 500,
            join_above: 8,
            fan_out_batch: 500,
            fan_out_lease: Duration::from_secs(30),
            idle_after: Duration::from_secs(30 * 24 * 3600),
            author_names: AuthorNames::Live,
            history: 10,
            reply_depth: 5,
            request_expires_after: Duration::from_secs(30 * 24 * 3600),
            notifications: 200,
            departure_settles: Duration::from_secs(120),
            keep_messages: None,
        }
    }

    /// Whether the posts of an author with so many followers are pulled.
    pub fn pulls(&self, followers: i64) -> bool {
        match self.assignment {
            Assignment::PushAll => false,
            Assignment::PullAll => true,
            Assignment::PullAbove => followers > self.threshold as i64,
            Assignment::PullBelow => followers <= self.threshold as i64,
        }
    }
}
