//! Live updates for connected users: what to show without asking, whichever process made it.
//!
//! ```text
//!   writes of any process ─> the store's change stream ─> one follower in each process with listeners ─> its listeners
//! ```
//!
//! The follower begins with the first listener of its process and ends with the last. A change becomes updates for those who
//! listen: a notification for its owner, a message for the members of its conversation, a post that has reached its readers
//! for the author's followers among the listeners, which is one question to the follow edges whatever the number of
//! followers.
//!
//! An update has a place, the change stream's resume token. A listener that comes back with the last one first gets what was
//! missed, from a stream of its own that begins there. An update is a hint, not a record: whoever is told
//! [`Change::Missed`] finds everything in the lists.

use crate::error::{Error, Result};
use crate::id::Id;
use crate::network::{CONVERSATIONS, FAN_OUTS, FOLLOWS, MESSAGE_CHUNKS, MUTES, NOTIFICATIONS, Network, POSTS};
use crate::notification::Event;
use crate::post::Visibility;
use crate::read;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{ChangeStream, Find, Start, Watch};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The updates that wait for a slow listener; those that come then are dropped, and the listener is told.
pub const WAITING_UPDATES: usize = 256;

/// After how long a silent listener is told how far the others are, so that it can come back there.
const SILENCE: Duration = Duration::from_secs(15);

/// The changes that a listener who comes back is led through; whoever missed more reads the lists.
const MAX_CATCH_UP: usize = 10_000;

/// The listeners that one question names.
const LISTENERS_PER_QUERY: usize = 500;

/// How long to wait before a change stream that broke is opened again.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

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

/// What changed, and where one is then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Where to go on: what comes after this is still to be told. Places of one store are ordered as texts.
    pub place: String,
    /// What changed; nothing when it is only said how far one is.
    pub change: Option<Change>,
}

/// Somebody who listens.
#[derive(Debug)]
struct Listener {
    sender: mpsc::Sender<Update>,
    missed: Arc<AtomicBool>,
}

impl Listener {
    fn tell(&self, update: Update) {
        match self.sender.try_send(update) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(_)) => self.missed.store(true, Ordering::Release),
        }
    }
}

#[derive(Debug, Default)]
struct Heard {
    listeners: HashMap<Id, Vec<Listener>>,
    /// Everything up to here was told.
    place: String,
    follower: Option<JoinHandle<()>>,
}

/// Where updates meet the listeners of this process.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    heard: Mutex<Heard>,
    /// Held by who opens the change stream.
    opening: tokio::sync::Mutex<()>,
}

impl Hub {
    pub(crate) fn new() -> Hub {
        Hub::default()
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(self: &Arc<Hub>, owner: Id) -> Updates {
        let (sender, receiver) = mpsc::channel(WAITING_UPDATES);
        let missed = Arc::new(AtomicBool::new(false));
        let listener = Listener { sender, missed: missed.clone() };
        self.heard().listeners.entry(owner).or_default().push(listener);
        Updates { owner, hub: self.clone(), receiver, missed, caught_up: Vec::new().into_iter(), last: String::new() }
    }

    fn listening(&self) -> HashSet<Id> {
        self.heard().listeners.keys().copied().collect()
    }

    fn tell(&self, place: &str, told: Vec<(Id, Change)>) {
        let heard = self.heard();
        for (owner, change) in told {
            for listener in heard.listeners.get(&owner).into_iter().flatten() {
                listener.tell(Update { place: place.to_owned(), change: Some(change.clone()) });
            }
        }
    }

    /// Nobody knows what there was between two streams.
    fn tell_missed(&self) {
        for listener in self.heard().listeners.values().flatten() {
            listener.missed.store(true, Ordering::Release);
        }
    }

    fn place(&self) -> String {
        self.heard().place.clone()
    }

    fn reach(&self, place: Option<String>) {
        if let Some(place) = place {
            self.heard().place = place;
        }
    }

    /// Whether a follower is at work.
    fn is_followed(&self) -> bool {
        self.heard().follower.as_ref().is_some_and(|follower| !follower.is_finished())
    }

    /// Ends the follower if nobody listens: whoever comes then begins a new one.
    fn ends(&self) -> bool {
        let mut heard = self.heard();
        let ends = heard.listeners.is_empty();
        if ends {
            heard.follower = None;
        }
        ends
    }
}

/// A user's live updates, from the moment of asking on.
#[derive(Debug)]
pub struct Updates {
    owner: Id,
    hub: Arc<Hub>,
    receiver: mpsc::Receiver<Update>,
    missed: Arc<AtomicBool>,
    /// What was missed before, and is told first.
    caught_up: std::vec::IntoIter<Update>,
    /// The place of the last update that was caught up.
    last: String,
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.receiver.close();
        let mut heard = self.hub.heard();
        if let Some(listeners) = heard.listeners.get_mut(&self.owner) {
            listeners.retain(|listener| !listener.sender.is_closed());
            if listeners.is_empty() {
                heard.listeners.remove(&self.owner);
            }
        }
    }
}

impl Updates {
    /// Waits for the next update. The first says where one is.
    pub async fn next(&mut self) -> Update {
        if let Some(update) = self.caught_up.next() {
            return update;
        }
        loop {
            if self.missed.swap(false, Ordering::AcqRel) {
                return Update { place: self.hub.place(), change: Some(Change::Missed) };
            }
            // What is up to this place is in the queue already, so an empty queue says that all of it was told.
            let place = self.hub.place();
            let update = match self.receiver.try_recv() {
                Ok(update) => update,
                Err(_) => match tokio::time::timeout(SILENCE, self.receiver.recv()).await {
                    Ok(Some(update)) => update,
                    Ok(None) | Err(_) => return Update { place, change: None },
                },
            };
            if update.place > self.last {
                return update;
            }
        }
    }
}

/// The resume token's text.
fn place_of(token: Option<&Document>) -> Option<String> {
    token?.get_str("_data").ok().map(str::to_owned)
}

impl Network {
    /// A user's live updates: notifications, posts that reach the feed, messages; after a place that an earlier update said,
    /// or from now on.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] for a place that no update said; a store that fails or has no change streams.
    pub async fn updates(&self, user: Id, after: Option<&str>) -> Result<Updates> {
        let mut updates = self.hub.listen(user);
        self.follow_changes().await?;
        let first = match after {
            None => vec![Update { place: self.hub.place(), change: None }],
            Some(after) => self.missed_since(user, after).await?,
        };
        updates.last = first.last().map(|update| update.place.clone()).unwrap_or_default();
        if after.is_none() {
            // Nothing was caught up, so nothing comes twice.
            updates.last = String::new();
        }
        updates.caught_up = first.into_iter();
        Ok(updates)
    }

    async fn watch_changes(&self, start: Start) -> store::Result<ChangeStream> {
        let of = |collection: &str, kinds: &[&str]| doc! { "ns.coll": collection, "operationType": { "$in": kinds } };
        let told = vec![
            of(NOTIFICATIONS, &["insert"]),
            of(MESSAGE_CHUNKS, &["insert", "update"]),
            // A place in the queue of the fan-out goes when the post has reached everybody.
            of(FAN_OUTS, &["delete"]),
        ];
        let pipeline = vec![doc! { "$match": { "$or": told } }];
        self.store.watch_database(self.database(), Watch { pipeline, start, ..Watch::default() }).await
    }

    /// Begins to follow the changes, unless that is under way.
    async fn follow_changes(&self) -> Result<()> {
        let _opening = self.hub.opening.lock().await;
        if self.hub.is_followed() {
            return Ok(());
        }
        let stream = self.watch_changes(Start::Now).await?;
        self.hub.reach(place_of(stream.resume_token().as_ref()));
        let network = self.clone();
        // Locked, so that it can't end before it is known.
        let mut heard = self.hub.heard();
        heard.follower = Some(tokio::spawn(async move { network.follow_stream(stream).await }));
        Ok(())
    }

    /// Tells the listeners what changes, until there are none.
    async fn follow_stream(&self, mut stream: ChangeStream) {
        loop {
            let failed = self.tell_next(&mut stream).await.is_err() || !stream.is_alive();
            if self.hub.ends() {
                return;
            }
            if failed {
                stream = self.reopened(stream).await;
            }
        }
    }

    async fn tell_next(&self, stream: &mut ChangeStream) -> Result<()> {
        if let Some(event) = stream.next_if_any().await? {
            let place = place_of(event.get_document("_id").ok()).unwrap_or_default();
            let told = self.told_by(&event, &self.hub.listening()).await?;
            self.hub.tell(&place, told);
        }
        self.hub.reach(place_of(stream.resume_token().as_ref()));
        Ok(())
    }

    /// Another stream in the place of a broken one: from where that was, or from now on if that is no longer kept.
    async fn reopened(&self, broken: ChangeStream) -> ChangeStream {
        drop(broken);
        let mut start = Start::ResumeAfter(doc! { "_data": self.hub.place() });
        loop {
            tokio::time::sleep(REOPEN_PAUSE).await;
            match self.watch_changes(start.clone()).await {
                Ok(stream) => {
                    if start == Start::Now {
                        self.hub.tell_missed();
                    }
                    return stream;
                }
                Err(error) if error.is_history_lost() || error.is_invalid_resume_token() => start = Start::Now,
                Err(_) => {}
            }
        }
    }

    /// What a user missed since a place; the last update says where the listening goes on.
    async fn missed_since(&self, user: Id, after: &str) -> Result<Vec<Update>> {
        let missed = |place: String| vec![Update { place, change: Some(Change::Missed) }];
        let mut stream = match self.watch_changes(Start::ResumeAfter(doc! { "_data": after })).await {
            Ok(stream) => stream,
            Err(error) if error.is_history_lost() => return Ok(missed(self.hub.place())),
            Err(error) if error.is_invalid_resume_token() => return Err(Error::InvalidCursor(after.to_owned())),
            Err(error) => return Err(error.into()),
        };
        let (only, mut updates) = (HashSet::from([user]), Vec::new());
        for _ in 0..MAX_CATCH_UP {
            let Some(event) = stream.next_if_any().await? else {
                let place = place_of(stream.resume_token().as_ref()).unwrap_or_else(|| after.to_owned());
                updates.push(Update { place, change: None });
                return Ok(updates);
            };
            let place = place_of(event.get_document("_id").ok()).unwrap_or_default();
            for (_, change) in self.told_by(&event, &only).await? {
                updates.push(Update { place: place.clone(), change: Some(change) });
            }
            if updates.len() > WAITING_UPDATES {
                break;
            }
        }
        Ok(missed(self.hub.place()))
    }

    /// Whom of some users an event tells what.
    async fn told_by(&self, event: &Document, users: &HashSet<Id>) -> Result<Vec<(Id, Change)>> {
        let namespace = event.get_document("ns").ok().and_then(|namespace| namespace.get_str("coll").ok());
        match namespace {
            Some(NOTIFICATIONS) => {
                Ok(notification(event).filter(|(owner, _)| users.contains(owner)).into_iter().collect())
            }
            Some(MESSAGE_CHUNKS) => self.message_told(event, users).await,
            Some(FAN_OUTS) => self.post_told(event, users).await,
            _ => Ok(Vec::new()),
        }
    }

    /// A message is told to the members of its conversation, but for its sender.
    async fn message_told(&self, event: &Document, users: &HashSet<Id>) -> Result<Vec<(Id, Change)>> {
        let Some(Sent { conversation, number, sender }) = sent(event) else { return Ok(Vec::new()) };
        let page = Find { projection: Some(doc! { "members.userId": 1 }), ..Find::default() };
        let found = self.collection(CONVERSATIONS).find(doc! { "_id": conversation }, page, None).await?;
        let members = found.iter().flat_map(|found| read::documents(found, "members"));
        let members = members.map(|member| read::id(member, "userId"));
        let told = members.filter(|member| Some(*member) != sender && users.contains(member));
        Ok(told.map(|member| (member, Change::Message { conversation, number })).collect())
    }

    /// A post is told to those who follow its author and may see it.
    async fn post_told(&self, event: &Document, users: &HashSet<Id>) -> Result<Vec<(Id, Change)>> {
        let post = event.get_document("documentKey").ok().and_then(|key| read::optional_id(key, "_id"));
        let (Some(id), false) = (post, users.is_empty()) else { return Ok(Vec::new()) };
        let published = doc! { "_id": id, "status": "published" };
        let Some(post) = self.collection(POSTS).find_one(published, None).await? else { return Ok(Vec::new()) };
        let (author, visibility) = (read::id(&post, "authorId"), Visibility::of(&post));
        if visibility == Visibility::Private {
            return Ok(Vec::new());
        }
        let (users, mut told) = (users.iter().copied().collect::<Vec<_>>(), Vec::new());
        for users in users.chunks(LISTENERS_PER_QUERY) {
            let mut readers = self.others("followeeId", author, "followerId", users, FOLLOWS).await?;
            if visibility == Visibility::Friends {
                let friends = self.friends_of(author, users).await?;
                readers.retain(|reader| friends.contains(reader));
            }
            if !readers.is_empty() {
                let muting = self.others("mutedId", author, "userId", users, MUTES).await?;
                readers.retain(|reader| !muting.contains(reader));
            }
            told.extend(readers.into_iter().map(|reader| (reader, Change::Post { id, author })));
        }
        Ok(told)
    }
}

/// What an inserted notification says, and to whom.
fn notification(event: &Document) -> Option<(Id, Change)> {
    let note = event.get_document("fullDocument").ok()?;
    let change = Change::Notification {
        id: read::id(note, "_id"),
        event: Event::of(note.get_str("event").ok()?)?,
        from: read::id(note, "fromUserId"),
        subject: read::id(note, "subject"),
    };
    Some((read::id(note, "ownerId"), change))
}

/// A message that was sent.
struct Sent {
    conversation: Id,
    number: i64,
    sender: Option<Id>,
}

/// The message of a chunk that was begun or appended to; nothing for edits, recalls and what seals a chunk.
fn sent(event: &Document) -> Option<Sent> {
    let key = event.get_document("documentKey").ok()?.get_document("_id").ok()?;
    let fields = match event.get_str("operationType").ok()? {
        "insert" => event.get_document("fullDocument").ok()?,
        _ => event.get_document("updateDescription").ok()?.get_document("updatedFields").ok()?,
    };
    let count = fields.get("count").is_some().then(|| read::number(fields, "count"))?;
    // An appended message stands under its place, or at the end of all.
    let message = fields.iter().filter(|(name, _)| name.starts_with("messages")).find_map(|(_, value)| match value {
        Bson::Document(message) => Some(message),
        Bson::Array(messages) => messages.last()?.as_document(),
        _ => None,
    });
    let sender = message.and_then(|message| read::optional_id(message, "s"));
    Some(Sent { conversation: read::id(key, "c"), number: read::number(key, "f") + count - 1, sender })
}
