//! Conversations and their messages.
//!
//! Messages lie in chunks: documents of at most [`CHUNK_ITEMS`] messages and about [`CHUNK_BYTES`] bytes, with the id
//! (conversation, number of the first message). A message's number is its chunk's first number plus its place in it, so that
//! numbers have no gaps and a message needs no other order:
//!
//! ```text
//!   chunk (c, 1)  sealed   [1, 2, … 30]
//!   chunk (c, 31) sealed   [31, … 52]        full by bytes
//!   chunk (c, 53) open     [53, 54]          the next message is 55
//! ```
//!
//! Appending is one guarded update of the open chunk. One that is full is sealed, after which nobody appends to it, so that
//! its count is final and the next chunk's first number with it; of several who make that chunk, its id lets one.
//! Messages are never taken out of a chunk: a recalled one stays as an empty place. A chunk gets its end of life together
//! with its successor, so that the newest is never missing and numbers are never given twice.
//!
//! A message may carry a key of its sender's, and one key is one message. Whoever appends reads the newest chunk, then looks
//! the key up, then appends to that chunk unless it holds the key. A message of the key in an older chunk was found, because
//! a chunk is sealed before the next one is made; one in the same chunk is in the way; one in a newer chunk means that this
//! one is sealed, and the append begins again.

use crate::error::{Error, Result};
use crate::friend::pair;
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{CONVERSATIONS, MESSAGE_CHUNKS, Network};
use crate::once::OnceKey;
use crate::read;
use crate::user::Card;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use store::{Find, FindOneAndUpdate, Update};

/// The most messages of a chunk.
pub const CHUNK_ITEMS: i64 = 30;

/// The bytes at which a chunk is full.
pub const CHUNK_BYTES: i64 = 65_536;

/// The longest message, in characters.
pub const MAX_MESSAGE: usize = 4_000;

/// The most members of a conversation.
pub const MAX_MEMBERS: usize = 500;

/// What a message takes beside its text.
const MESSAGE_OVERHEAD: i64 = 80;

/// How often an append is tried again that met a full chunk.
const APPEND_TRIES: usize = 1_000;

/// A conversation, as one of its members sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Its id.
    pub id: Id,
    /// Its title; empty between two.
    pub title: String,
    /// Whether it is one between two.
    pub direct: bool,
    /// Who is in it.
    pub members: Vec<Card>,
    /// The number of the last message; zero before the first.
    pub last_number: i64,
    /// How many messages the member has not read.
    pub unread: i64,
    /// When something last happened in it.
    pub last_at: Time,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its number in the conversation, from one, without gaps.
    pub number: i64,
    /// Who sent it.
    pub sender: Id,
    /// What it says; nothing once it is recalled.
    pub text: String,
    /// When it was sent.
    pub at: Time,
    /// When it was last edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Time>,
    /// Whether its sender took it back.
    pub recalled: bool,
}

/// A chunk's id.
fn key(conversation: Id, first: i64) -> Document {
    doc! { "c": conversation, "f": first }
}

fn first_of(chunk: &Document) -> i64 {
    chunk.get_document("_id").map_or(0, |id| read::number(id, "f"))
}

fn size_of(text: &str) -> i64 {
    text.len() as i64 + MESSAGE_OVERHEAD
}

fn check_text(text: &str) -> Result<()> {
    if text.trim().is_empty() || text.chars().count() > MAX_MESSAGE {
        return Err(Error::Invalid(format!("a message has 1 to {MAX_MESSAGE} characters")));
    }
    Ok(())
}

fn member(user: Id, from: i64) -> Document {
    doc! { "userId": user, "joinedAt": Time::now(), "from": from, "read": from - 1 }
}

fn message(document: &Document, number: i64) -> Message {
    Message {
        number,
        sender: read::id(document, "s"),
        text: read::text(document, "t"),
        at: read::time(document, "at"),
        edited_at: read::optional_time(document, "edited"),
        recalled: document.get_bool("recalled").unwrap_or_default(),
    }
}

impl Network {
    /// The conversation between two users; there is one for each pair.
    ///
    /// # Errors
    /// [`Error::SelfRelation`], [`Error::UnknownUser`], [`Error::Blocked`].
    pub async fn talk_to(&self, user: Id, other: Id) -> Result<Id> {
        self.two_users(user, other).await?;
        if !self.blocked_of(user, &[other]).await?.is_empty() {
            return Err(Error::Blocked);
        }
        let (id, conversations) = (Id::new(), self.collection(CONVERSATIONS));
        let conversation = doc! {
            "_id": id, "title": "", "pair": pair(user, other), "members": [member(user, 1), member(other, 1)],
            "createdAt": Time::now(), "lastAt": Time::now(),
        };
        match conversations.insert_one(conversation, None).await {
            Ok(()) => Ok(id),
            Err(error) if error.is_duplicate_key() => {
                let found = conversations.find_one(doc! { "pair": pair(user, other) }, None).await?;
                found.map(|found| read::id(&found, "_id")).ok_or(Error::Changed)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a conversation of several.
    ///
    /// # Errors
    /// [`Error::UnknownUser`], [`Error::Blocked`], [`Error::Invalid`].
    pub async fn begin_group(&self, user: Id, title: &str, others: &[Id]) -> Result<Id> {
        self.begin_group_keyed(user, title, others, None).await
    }

    /// Begins a conversation of several once: the same call with the same key gives the one that is there.
    ///
    /// # Errors
    /// As [`Network::begin_group`].
    pub async fn begin_group_once(&self, user: Id, title: &str, others: &[Id], key: &str) -> Result<Id> {
        self.begin_group_keyed(user, title, others, Some(OnceKey::new(user, key)?)).await
    }

    async fn begin_group_keyed(&self, user: Id, title: &str, others: &[Id], once: Option<OnceKey>) -> Result<Id> {
        let mut all: Vec<Id> = vec![user];
        for other in others {
            if !all.contains(other) {
                all.push(*other);
            }
        }
        if all.len() > MAX_MEMBERS || title.chars().count() > crate::user::MAX_NAME {
            let message = format!("at most {MAX_MEMBERS} members and {} characters of title", crate::user::MAX_NAME);
            return Err(Error::Invalid(message));
        }
        self.all_present(&all).await?;
        if !self.blocked_of(user, &all).await?.is_empty() {
            return Err(Error::Blocked);
        }
        let id = Id::new();
        let members: Vec<Bson> = all.iter().map(|id| member(*id, 1).into()).collect();
        let conversation = doc! {
            "_id": id, "title": title, "members": members, "createdAt": Time::now(), "lastAt": Time::now(),
        };
        let (network, key) = (self.clone(), once.clone());
        let done = self.transact(move |session| {
            let (network, conversation, key) = (network.clone(), conversation.clone(), key.clone());
            Box::pin(async move {
                network.collection(CONVERSATIONS).insert_one(conversation, Some(&mut *session)).await?;
                network.note_key(key.as_ref(), id, session).await?;
                Ok((id, ()))
            })
        });
        Ok(self.made(once, done.await).await?.0)
    }

    /// Adds a member to a group; the new one sees what is said from now on. Whether it is new.
    ///
    /// # Errors
    /// [`Error::UnknownConversation`], [`Error::UnknownUser`], [`Error::Blocked`], [`Error::NotAllowed`].
    pub async fn add_member(&self, user: Id, conversation: Id, new: Id) -> Result<bool> {
        let found = self.conversation_of(user, conversation).await?;
        if found.contains_key("pair") {
            return Err(Error::NotAllowed("add a third to a conversation between two"));
        }
        self.two_users(user, new).await?;
        if !self.blocked_of(user, &[new]).await?.is_empty() {
            return Err(Error::Blocked);
        }
        let from = self.last_number(conversation).await? + 1;
        let room = doc! {
            "_id": conversation, "members.userId": { "$ne": new },
            format!("members.{}", MAX_MEMBERS - 1): { "$exists": false },
        };
        let push = doc! { "$push": { "members": member(new, from) } };
        let done = self.collection(CONVERSATIONS).update_one(room, push, Update::default(), None).await?;
        Ok(done.matched == 1)
    }

    /// Leaves a group; whether the user was in it.
    ///
    /// # Errors
    /// [`Error::UnknownConversation`], [`Error::NotAllowed`].
    pub async fn leave(&self, user: Id, conversation: Id) -> Result<()> {
        if self.conversation_of(user, conversation).await?.contains_key("pair") {
            return Err(Error::NotAllowed("leave a conversation between two"));
        }
        self.leave_group(user, conversation).await
    }

    pub(crate) async fn leave_group(&self, user: Id, conversation: Id) -> Result<()> {
        let pull = doc! { "$pull": { "members": { "userId": user } } };
        let group = doc! { "_id": conversation };
        self.collection(CONVERSATIONS).update_one(group, pull, Update::default(), None).await?;
        Ok(())
    }

    /// A conversation's document, for a member.
    async fn conversation_of(&self, user: Id, conversation: Id) -> Result<Document> {
        let mine = doc! { "_id": conversation, "members.userId": user };
        let found = self.collection(CONVERSATIONS).find_one(mine, None).await?;
        found.ok_or(Error::UnknownConversation(conversation))
    }

    /// Refuses who is not a member: for what is kept for members beside messages.
    pub(crate) async fn is_member(&self, user: Id, conversation: Id) -> Result<bool> {
        match self.conversation_of(user, conversation).await {
            Ok(_) => Ok(true),
            Err(Error::UnknownConversation(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The newest chunk, without its messages.
    async fn newest_chunk(&self, conversation: Id) -> Result<Option<Document>> {
        let all = doc! { "_id": { "$gte": key(conversation, 0), "$lte": key(conversation, i64::MAX) } };
        let page = Find {
            sort: Some(doc! { "_id": -1 }),
            projection: Some(doc! { "messages": 0 }),
            limit: 1,
            ..Find::default()
        };
        Ok(self.collection(MESSAGE_CHUNKS).find(all, page, None).await?.into_iter().next())
    }

    /// The number of the last message; zero before the first.
    async fn last_number(&self, conversation: Id) -> Result<i64> {
        let newest = self.newest_chunk(conversation).await?;
        Ok(newest.map_or(0, |chunk| first_of(&chunk) + read::number(&chunk, "count") - 1))
    }

    /// Sends a message; gives its number. The sender has then read everything up to it.
    ///
    /// # Errors
    /// [`Error::UnknownConversation`], [`Error::Blocked`], [`Error::Invalid`].
    pub async fn send(&self, user: Id, conversation: Id, text: &str) -> Result<i64> {
        self.send_keyed(user, conversation, text, None).await
    }

    /// Sends a message once: sending again with the same key gives the number of the message that is there, whatever became
    /// of the first call.
    ///
    /// # Errors
    /// As [`Network::send`]; [`Error::Invalid`] for a key that is empty or longer than [`crate::MAX_KEY`] bytes.
    pub async fn send_once(&self, user: Id, conversation: Id, text: &str, key: &str) -> Result<i64> {
        self.send_keyed(user, conversation, text, Some(OnceKey::new(user, key)?)).await
    }

    async fn send_keyed(&self, user: Id, conversation: Id, text: &str, once: Option<OnceKey>) -> Result<i64> {
        check_text(text)?;
        let found = self.conversation_of(user, conversation).await?;
        let members: Vec<_> = read::documents(&found, "members").map(|member| read::id(member, "userId")).collect();
        if found.contains_key("pair") && !self.blocked_of(user, &members).await?.is_empty() {
            return Err(Error::Blocked);
        }
        let number = self.append(user, conversation, text, once.as_ref().map(OnceKey::as_str)).await?;
        let after = doc! { "$max": { "lastAt": Time::now(), "members.$[own].read": number } };
        let own = Update { array_filters: vec![doc! { "own.userId": user }], ..Update::default() };
        self.collection(CONVERSATIONS).update_one(doc! { "_id": conversation }, after, own, None).await?;
        Ok(number)
    }

    /// Puts a message behind the last one, unless there is one of its key; gives the message's number.
    async fn append(&self, user: Id, conversation: Id, text: &str, once: Option<&str>) -> Result<i64> {
        let mut entry = doc! { "s": user, "t": text, "at": Time::now() };
        if let Some(once) = once {
            entry.insert("k", once);
        }
        for _ in 0..APPEND_TRIES {
            let newest = self.newest_chunk(conversation).await?;
            if let Some(number) = self.number_of(conversation, once).await? {
                return Ok(number);
            }
            let (next, before) = match &newest {
                None => (1, None),
                Some(chunk) if chunk.get_bool("sealed").unwrap_or_default() => {
                    (first_of(chunk) + read::number(chunk, "count"), Some(first_of(chunk)))
                }
                Some(open) => match self.append_to(conversation, first_of(open), &entry, once).await? {
                    Some(number) => return Ok(number),
                    None => continue,
                },
            };
            if self.begin_chunk(conversation, next, &entry, before).await? {
                return Ok(next);
            }
        }
        Err(Error::Changed)
    }

    /// Puts a message into an open chunk, unless one of its key is there; seals the chunk if it is full.
    async fn append_to(
        &self,
        conversation: Id,
        first: i64,
        entry: &Document,
        once: Option<&str>,
    ) -> Result<Option<i64>> {
        let (chunks, size) = (self.collection(MESSAGE_CHUNKS), size_of(entry.get_str("t").unwrap_or_default()));
        let mut room = doc! {
            "_id": key(conversation, first), "sealed": false,
            "count": { "$lt": CHUNK_ITEMS }, "bytes": { "$lte": CHUNK_BYTES - size },
        };
        if let Some(once) = once {
            room.insert("messages.k", doc! { "$ne": once });
        }
        let push = doc! { "$push": { "messages": entry.clone() }, "$inc": { "count": 1_i64, "bytes": size } };
        let count =
            FindOneAndUpdate { after: true, projection: Some(doc! { "count": 1 }), ..FindOneAndUpdate::default() };
        if let Some(after) = chunks.find_one_and_update(room, push, count, None).await? {
            return Ok(Some(first + read::number(&after, "count") - 1));
        }
        let full = doc! {
            "_id": key(conversation, first), "sealed": false,
            "$or": [{ "count": { "$gte": CHUNK_ITEMS } }, { "bytes": { "$gt": CHUNK_BYTES - size } }],
        };
        chunks.update_one(full, doc! { "$set": { "sealed": true } }, Update::default(), None).await?;
        Ok(None)
    }

    /// The number of the message of a key.
    async fn number_of(&self, conversation: Id, once: Option<&str>) -> Result<Option<i64>> {
        let Some(once) = once else { return Ok(None) };
        let holding = doc! { "_id.c": conversation, "messages.k": once };
        let Some(chunk) = self.collection(MESSAGE_CHUNKS).find_one(holding, None).await? else { return Ok(None) };
        let place =
            read::documents(&chunk, "messages").position(|entry| entry.get_str("k").is_ok_and(|key| key == once));
        Ok(place.map(|place| first_of(&chunk) + place as i64))
    }

    /// Makes a chunk of one message, unless another was faster. The chunk before it ends when its messages have been kept
    /// long enough, from now on: none of them is newer.
    async fn begin_chunk(&self, conversation: Id, first: i64, entry: &Document, before: Option<i64>) -> Result<bool> {
        let chunk = doc! {
            "_id": key(conversation, first), "count": 1_i64, "bytes": size_of(entry.get_str("t").unwrap_or_default()),
            "sealed": false, "messages": [entry.clone()],
        };
        let begun = match (self.settings.keep_messages, before) {
            (Some(keep), Some(before)) => {
                let network = self.clone();
                self.transact(move |session| {
                    let (network, chunk) = (network.clone(), chunk.clone());
                    Box::pin(async move {
                        let chunks = network.collection(MESSAGE_CHUNKS);
                        chunks.insert_one(chunk, Some(&mut *session)).await?;
                        let end = Time::from_timestamp_ms(Time::now().timestamp_ms() + keep.as_millis() as i64);
                        let set = doc! { "$set": { "expireAt": end } };
                        let old = doc! { "_id": key(conversation, before) };
                        chunks.update_one(old, set, Update::default(), Some(session)).await?;
                        Ok(())
                    })
                })
                .await
            }
            _ => self.collection(MESSAGE_CHUNKS).insert_one(chunk, None).await.map_err(Error::from),
        };
        match begun {
            Ok(()) => Ok(true),
            Err(error) if error.is_duplicate_key() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A page of messages, newest first, for a member: those before the page's cursor, or the last ones.
    ///
    /// # Errors
    /// [`Error::UnknownConversation`], [`Error::InvalidCursor`].
    pub async fn messages(&self, user: Id, conversation: Id, page: &PageRequest) -> Result<Page<Message>> {
        let found = self.conversation_of(user, conversation).await?;
        let own = read::documents(&found, "members").find(|member| read::id(member, "userId") == user);
        let from = own.map_or(i64::MAX, |member| read::number(member, "from"));
        let mut before = match &page.after {
            Some(text) => text.parse().map_err(|_| Error::InvalidCursor(text.clone()))?,
            None => i64::MAX,
        };
        let (mut messages, wanted): (Vec<Message>, usize) = (Vec::new(), page.size() + 1);
        while messages.len() < wanted {
            let left = (wanted - messages.len()) as i64;
            let older = doc! { "_id": { "$gte": key(conversation, 0), "$lt": key(conversation, before) } };
            let find = Find { sort: Some(doc! { "_id": -1 }), limit: left / CHUNK_ITEMS + 2, ..Find::default() };
            let chunks = self.collection(MESSAGE_CHUNKS).find(older, find, None).await?;
            for chunk in &chunks {
                let first = first_of(chunk);
                let numbered: Vec<_> = (first..).zip(read::documents(chunk, "messages")).collect();
                let shown = numbered.into_iter().rev().filter(|(number, _)| *number < before && *number >= from);
                messages.extend(shown.map(|(number, entry)| message(entry, number)));
                before = first;
            }
            if chunks.is_empty() || before <= from {
                break;
            }
        }
        Ok(Page::cut(messages, page.size(), |message| message.number.to_string()))
    }

    /// The chunk of a message, with the message's place in it.
    async fn place_of(&self, conversation: Id, number: i64) -> Result<(Document, usize)> {
        let upto = doc! { "_id": { "$gte": key(conversation, 0), "$lte": key(conversation, number) } };
        let page = Find { sort: Some(doc! { "_id": -1 }), limit: 1, ..Find::default() };
        let chunk = self.collection(MESSAGE_CHUNKS).find(upto, page, None).await?.into_iter().next();
        let chunk = chunk.filter(|chunk| number < first_of(chunk) + read::number(chunk, "count"));
        let chunk = chunk.ok_or(Error::UnknownMessage(number))?;
        let place = (number - first_of(&chunk)) as usize;
        Ok((chunk, place))
    }

    /// Changes what a message of one's own says.
    ///
    /// # Errors
    /// [`Error::UnknownConversation`], [`Error::UnknownMessage`], [`Error::NotAllowed`], [`Error::Invalid`].
    pub async fn edit_message(&self, user: Id, conversation: Id, number: i64, text: &str) -> Result<()> {
        check_text(text)?;
        self.rewrite(user, conversation, number, Some(text)).await
    }

    /// Takes a message of one's own back: its place stays, empty.
    ///
    /// # Errors
    /// [`Error::UnknownConversation`], [`Error::UnknownMessage`], [`Error::NotAllowed`].
    pub async fn recall_message(&self, user: Id, conversation: Id, number: i64) -> Result<()> {
        self.rewrite(user, conversation, number, None).await
    }

    async fn rewrite(&self, user: Id, conversation: Id, number: i64, text: Option<&str>) -> Result<()> {
        self.conversation_of(user, conversation).await?;
        for _ in 0..APPEND_TRIES {
            let (chunk, place) = self.place_of(conversation, number).await?;
            let entry = read::documents(&chunk, "messages").nth(place).cloned().unwrap_or_default();
            if read::id(&entry, "s") != user {
                return Err(Error::NotAllowed("change the message of another user"));
            }
            if entry.get_bool("recalled").unwrap_or_default() {
                return if text.is_some() { Err(Error::UnknownMessage(number)) } else { Ok(()) };
            }
            let (before, field) = (read::text(&entry, "t"), |name: &str| format!("messages.{place}.{name}"));
            let guard = doc! { "_id": key(conversation, first_of(&chunk)), field("t"): &before };
            let set = match text {
                Some(text) => doc! { field("t"): text, field("edited"): Time::now() },
                None => doc! { field("t"): "", field("recalled"): true },
            };
            let grown = text.map_or(0, str::len) as i64 - before.len() as i64;
            let change = doc! { "$set": set, "$inc": { "bytes": grown } };
            let done = self.collection(MESSAGE_CHUNKS).update_one(guard, change, Update::default(), None).await?;
            if done.matched == 1 {
                return Ok(());
            }
        }
        Err(Error::Changed)
    }

    /// Marks messages as read, up to one of them.
    ///
    /// # Errors
    /// [`Error::UnknownConversation`].
    pub async fn read_messages(&self, user: Id, conversation: Id, up_to: i64) -> Result<()> {
        let up_to = up_to.min(self.last_number(conversation).await?);
        let read = doc! { "$max": { "members.$[own].read": up_to } };
        let own = Update { array_filters: vec![doc! { "own.userId": user }], ..Update::default() };
        let mine = doc! { "_id": conversation, "members.userId": user };
        let done = self.collection(CONVERSATIONS).update_one(mine, read, own, None).await?;
        if done.matched == 0 { Err(Error::UnknownConversation(conversation)) } else { Ok(()) }
    }

    /// A conversation, for a member.
    ///
    /// # Errors
    /// [`Error::UnknownConversation`].
    pub async fn conversation(&self, user: Id, conversation: Id) -> Result<Conversation> {
        let found = self.conversation_of(user, conversation).await?;
        let shown = self.with_members(user, std::slice::from_ref(&found)).await?.pop();
        shown.ok_or(Error::UnknownConversation(conversation))
    }

    /// A user's conversations, the one with the newest message first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn conversations(&self, user: Id, page: &PageRequest) -> Result<Page<Conversation>> {
        let mine = doc! { "members.userId": user };
        let found = self.latest_first(CONVERSATIONS, mine, "lastAt", None, page).await?;
        Ok(Page { items: self.with_members(user, &found.items).await?, next: found.next })
    }

    async fn with_members(&self, user: Id, found: &[Document]) -> Result<Vec<Conversation>> {
        let everybody = found.iter().flat_map(|found| read::documents(found, "members"));
        let ids: HashSet<_> = everybody.map(|member| read::id(member, "userId")).collect();
        let cards: HashMap<_, _> = self.cards(&ids.into_iter().collect::<Vec<_>>()).await?;
        let mut conversations = Vec::new();
        for found in found {
            let id = read::id(found, "_id");
            let last_number = self.last_number(id).await?;
            let own = read::documents(found, "members").find(|member| read::id(member, "userId") == user);
            let members = read::documents(found, "members");
            conversations.push(Conversation {
                id,
                title: read::text(found, "title"),
                direct: found.contains_key("pair"),
                members: members.filter_map(|member| cards.get(&read::id(member, "userId")).cloned()).collect(),
                last_number,
                unread: own.map_or(0, |own| last_number - read::number(own, "read")),
                last_at: read::time(found, "lastAt"),
            });
        }
        Ok(conversations)
    }
}
