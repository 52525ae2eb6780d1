//! Comments and replies.
//!
//! A comment knows all comments above it, so that a thread is deleted by one query. A reply counts itself on its parent in
//! its own transaction: that is also what keeps a reply and the deletion of its parent from passing each other.

use crate::error::{Error, Result};
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{COMMENTS, Network};
use crate::notification::{Event, Told};
use crate::once::OnceKey;
use crate::read;
use crate::user::{Card, card};
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use store::{Find, FindOneAndUpdate, Session, Update};

/// The longest comment, in characters.
pub const MAX_COMMENT: usize = 1_000;

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Comment {
    /// Its id; the order by id is the order by time.
    pub id: Id,
    /// The post.
    pub post: Id,
    /// Who wrote it.
    pub author: Card,
    /// What it says.
    pub text: String,
    /// The comment that it replies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Id>,
    /// How many comments are above it.
    pub depth: i64,
    /// How many reply to it directly.
    pub reply_count: i64,
    /// When it was written.
    pub created_at: Time,
}

impl Network {
    /// Comments on a post, or replies to a comment on it.
    ///
    /// # Errors
    /// [`Error::UnknownPost`], [`Error::UnknownComment`], [`Error::TooDeep`], [`Error::Invalid`].
    pub async fn comment(&self, user: Id, post: Id, text: &str, parent: Option<Id>) -> Result<Comment> {
        self.comment_keyed(user, post, text, parent, None).await
    }

    /// Comments once: the same call with the same key gives the comment that is there.
    ///
    /// # Errors
    /// As [`Network::comment`]; [`Error::UnknownComment`] if the key's comment has been deleted.
    pub async fn comment_once(&self, user: Id, post: Id, text: &str, parent: Option<Id>, key: &str) -> Result<Comment> {
        self.comment_keyed(user, post, text, parent, Some(OnceKey::new(user, key)?)).await
    }

    async fn comment_keyed(
        &self,
        user: Id,
        post: Id,
        text: &str,
        parent: Option<Id>,
        once: Option<OnceKey>,
    ) -> Result<Comment> {
        if text.trim().is_empty() || text.chars().count() > MAX_COMMENT {
            return Err(Error::Invalid(format!("a comment has 1 to {MAX_COMMENT} characters")));
        }
        let author = read::id(&self.visible_post(user, post).await?, "authorId");
        let card = card(&self.user(user, None).await?);
        let draft = doc! {
            "postId": post, "authorId": user, "authorName": &card.username, "text": text, "parentId": Bson::Null,
            "ancestors": [], "depth": 0_i64, "replyCount": 0_i64,
        };
        let (network, key) = (self.clone(), once.clone());
        let done = self.transact(move |session| {
            let (network, mut comment, key) = (network.clone(), draft.clone(), key.clone());
            Box::pin(async move {
                let id = Id::new();
                comment.extend(doc! { "_id": id, "createdAt": Time::now() });
                network.note_key(key.as_ref(), id, session).await?;
                let told = network.comment_in(&mut comment, author, parent, session).await?;
                Ok((id, (comment, told)))
            })
        });
        match self.made(once, done.await).await? {
            (_, Some((comment, told))) => {
                for told in told {
                    self.bound(told).await?;
                }
                Ok(show(&comment, card))
            }
            (id, None) => {
                let comment = self.collection(COMMENTS).find_one(doc! { "_id": id }, None).await?;
                Ok(show(&comment.ok_or(Error::UnknownComment(id))?, card))
            }
        }
    }

    /// Writes a comment and what it moves elsewhere; gives whom to tell what.
    async fn comment_in(
        &self,
        comment: &mut Document,
        author: Id,
        parent: Option<Id>,
        session: &mut Session,
    ) -> Result<[Told; 2]> {
        let (id, post, user) = (read::id(comment, "_id"), read::id(comment, "postId"), read::id(comment, "authorId"));
        let above = match parent {
            Some(parent) => Some(self.reply_to(parent, post, comment, session).await?),
            None => None,
        };
        self.collection(COMMENTS).insert_one(comment.clone(), Some(&mut *session)).await?;
        self.account(COMMENTS, &[id], Some(&mut *session)).await?;
        let reply = match above {
            Some(above) => self.note(above, Event::Reply, user, id, session).await?,
            None => None,
        };
        let on_post = match above {
            Some(above) if above == author => None,
            _ => self.note(author, Event::Comment, user, id, session).await?,
        };
        Ok([reply, on_post])
    }

    /// Hangs a comment below its parent; gives the parent's author.
    async fn reply_to(&self, parent: Id, post: Id, comment: &mut Document, session: &mut Session) -> Result<Id> {
        let count = doc! { "$inc": { "replyCount": 1_i64 } };
        let place = doc! { "_id": parent, "postId": post };
        let options = FindOneAndUpdate::default();
        let found = self.collection(COMMENTS).find_one_and_update(place, count, options, Some(session)).await?;
        let found = found.ok_or(Error::UnknownComment(parent))?;
        let depth = read::number(&found, "depth") + 1;
        if depth > i64::from(self.settings.reply_depth) {
            return Err(Error::TooDeep { max: self.settings.reply_depth });
        }
        let mut ancestors = found.get_array("ancestors").cloned().unwrap_or_default();
        ancestors.push(parent.into());
        comment.insert("parentId", parent);
        comment.insert("ancestors", ancestors);
        comment.insert("depth", depth);
        Ok(read::id(&found, "authorId"))
    }

    /// Deletes a comment with all replies; gives how many comments went. The author of the comment and that of the post may.
    ///
    /// # Errors
    /// [`Error::UnknownComment`], [`Error::NotAllowed`].
    pub async fn delete_comment(&self, user: Id, comment: Id) -> Result<u64> {
        let found = self.known_comment(comment).await?;
        let on = match self.visible_post(user, read::id(&found, "postId")).await {
            Err(Error::UnknownPost(_)) => return Err(Error::UnknownComment(comment)),
            on => on?,
        };
        if read::id(&found, "authorId") != user && read::id(&on, "authorId") != user {
            return Err(Error::NotAllowed("delete the comment of another user"));
        }
        self.delete_thread(&found, None).await
    }

    pub(crate) async fn known_comment(&self, comment: Id) -> Result<Document> {
        let found = self.collection(COMMENTS).find_one(doc! { "_id": comment }, None).await?;
        found.ok_or(Error::UnknownComment(comment))
    }

    /// Deletes a comment with its replies; gives how many went. `logged` goes into the log of its author's operations.
    pub(crate) async fn delete_thread(&self, found: &Document, logged: Option<String>) -> Result<u64> {
        let comment = read::id(found, "_id");
        let (network, parent) = (self.clone(), read::optional_id(found, "parentId"));
        let author = read::id(found, "authorId");
        self.transact(move |session| {
            let (network, logged) = (network.clone(), logged.clone());
            Box::pin(async move {
                let comments = network.collection(COMMENTS);
                if comments.delete_one(doc! { "_id": comment }, Some(&mut *session)).await? == 0 {
                    return Err(Error::UnknownComment(comment));
                }
                let below = doc! { "ancestors": comment };
                let only_ids = Find { projection: Some(doc! { "_id": 1 }), ..Find::default() };
                let replies = comments.find(below.clone(), only_ids, Some(&mut *session)).await?;
                let gone = 1 + comments.delete_many(below, Some(&mut *session)).await?;
                if let Some(parent) = parent {
                    let count = doc! { "$inc": { "replyCount": -1_i64 } };
                    let parent = doc! { "_id": parent };
                    comments.update_one(parent, count, Update::default(), Some(&mut *session)).await?;
                }
                let mut all = vec![comment];
                all.extend(replies.iter().map(|reply| read::id(reply, "_id")));
                network.account(COMMENTS, &all, Some(&mut *session)).await?;
                if let Some(detail) = logged {
                    network.note_operation(author, "commentRemoved", &detail, Some(&mut *session)).await?;
                }
                Ok(gone)
            })
        })
        .await
    }

    /// The comments on a post, or the replies to one of them, newest first.
    ///
    /// # Errors
    /// [`Error::UnknownPost`], [`Error::InvalidCursor`].
    pub async fn comments(&self, viewer: Id, post: Id, of: Option<Id>, page: &PageRequest) -> Result<Page<Comment>> {
        self.visible_post(viewer, post).await?;
        let parent = of.map_or(Bson::Null, Bson::from);
        let filter = doc! { "postId": post, "parentId": parent };
        let found = self.newest_first(COMMENTS, filter, page.after_id()?, page.size() + 1).await?;
        let found = Page::cut(found, page.size(), |comment| read::id(comment, "_id").to_string());
        Ok(Page { items: self.with_authors(&found.items).await?, next: found.next })
    }

    /// The newest comments and replies that stand on the post itself, newest first.
    ///
    /// # Errors
    /// [`Error::UnknownPost`].
    pub async fn latest_comments(&self, viewer: Id, post: Id) -> Result<Vec<Comment>> {
        let found = self.visible_post(viewer, post).await?;
        let mut latest: Vec<_> = read::documents(&found, "latestComments").cloned().collect();
        latest.sort_unstable_by_key(|comment| std::cmp::Reverse(read::id(comment, "_id")));
        for comment in &mut latest {
            comment.insert("postId", post);
        }
        self.with_authors(&latest).await
    }

    async fn with_authors(&self, comments: &[Document]) -> Result<Vec<Comment>> {
        let ids: Vec<_> = comments.iter().map(|comment| read::id(comment, "authorId")).collect();
        let cards: HashMap<_, _> = self.cards(&ids).await?;
        let with = |comment: &Document| Some(show(comment, cards.get(&read::id(comment, "authorId"))?.clone()));
        Ok(comments.iter().filter_map(with).collect())
    }
}

fn show(comment: &Document, author: Card) -> Comment {
    Comment {
        id: read::id(comment, "_id"),
        post: read::id(comment, "postId"),
        author,
        text: read::text(comment, "text"),
        parent: read::optional_id(comment, "parentId"),
        depth: read::number(comment, "depth"),
        reply_count: read::number(comment, "replyCount"),
        created_at: read::time(comment, "createdAt"),
    }
}
