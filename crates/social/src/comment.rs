//! Comments and replies.
//!
//! A comment knows all comments above it, so that a thread is deleted by one query. A reply counts itself on its parent in
//! its own transaction: that is also what keeps a reply and the deletion of its parent from passing each other.

use crate::error::{Error, Result};
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{COMMENTS, Network, POSTS};
use crate::notification::Event;
use crate::read;
use crate::user::Card;
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
        if text.trim().is_empty() || text.chars().count() > MAX_COMMENT {
            return Err(Error::Invalid(format!("a comment has 1 to {MAX_COMMENT} characters")));
        }
        let author = read::id(&self.visible_post(user, post).await?, "authorId");
        let card = self.cards(&[user]).await?.remove(&user).ok_or(Error::UnknownUser(user))?;
        let (network, text, name) = (self.clone(), text.to_owned(), card.username.clone());
        let (document, above) = self
            .transact(move |session| {
                let (network, text, name) = (network.clone(), text.clone(), name.clone());
                Box::pin(async move {
                    let mut comment = doc! {
                        "_id": Id::new(), "postId": post, "authorId": user, "authorName": name, "text": text,
                        "createdAt": Time::now(), "parentId": Bson::Null, "ancestors": [], "depth": 0_i64,
                        "replyCount": 0_i64,
                    };
                    let above = match parent {
                        Some(parent) => Some(network.reply_to(parent, post, &mut comment, session).await?),
                        None => None,
                    };
                    network.collection(COMMENTS).insert_one(comment.clone(), Some(&mut *session)).await?;
                    network.adjust(POSTS, post, "commentCount", 1, Some(&mut *session)).await?;
                    network.refresh_latest(post, session).await?;
                    Ok((comment, above))
                })
            })
            .await?;
        let id = read::id(&document, "_id");
        if let Some(above) = above {
            self.notify(above, Event::Reply, user, id).await?;
        }
        if above != Some(author) {
            self.notify(author, Event::Comment, user, id).await?;
        }
        Ok(show(&document, card))
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

    /// The newest comments on the post itself, unless the model layer keeps them.
    async fn refresh_latest(&self, post: Id, session: &mut Session) -> Result<()> {
        if self.kept() {
            return Ok(());
        }
        let page = Find {
            sort: Some(doc! { "_id": -1 }),
            projection: Some(doc! { "authorId": 1, "authorName": 1, "text": 1, "createdAt": 1 }),
            limit: self.settings.latest_comments as i64,
            ..Find::default()
        };
        let latest = self.collection(COMMENTS).find(doc! { "postId": post }, page, Some(&mut *session)).await?;
        let set = doc! { "$set": { "latestComments": latest } };
        self.collection(POSTS).update_one(doc! { "_id": post }, set, Update::default(), Some(session)).await?;
        Ok(())
    }

    /// Deletes a comment with all replies; gives how many comments went. The author of the comment and that of the post may.
    ///
    /// # Errors
    /// [`Error::UnknownComment`], [`Error::NotAllowed`].
    pub async fn delete_comment(&self, user: Id, comment: Id) -> Result<u64> {
        let found = self.collection(COMMENTS).find_one(doc! { "_id": comment }, None).await?;
        let found = found.ok_or(Error::UnknownComment(comment))?;
        let post = read::id(&found, "postId");
        let on = self.visible_post(user, post).await.map_err(|_| Error::UnknownComment(comment))?;
        if read::id(&found, "authorId") != user && read::id(&on, "authorId") != user {
            return Err(Error::NotAllowed("delete the comment of another user"));
        }
        let (network, parent) = (self.clone(), read::optional_id(&found, "parentId"));
        self.transact(move |session| {
            let network = network.clone();
            Box::pin(async move {
                let comments = network.collection(COMMENTS);
                if comments.delete_one(doc! { "_id": comment }, Some(&mut *session)).await? == 0 {
                    return Err(Error::UnknownComment(comment));
                }
                let gone = 1 + comments.delete_many(doc! { "ancestors": comment }, Some(&mut *session)).await?;
                if let Some(parent) = parent {
                    let count = doc! { "$inc": { "replyCount": -1_i64 } };
                    let parent = doc! { "_id": parent };
                    comments.update_one(parent, count, Update::default(), Some(&mut *session)).await?;
                }
                network.adjust(POSTS, post, "commentCount", -(gone as i64), Some(&mut *session)).await?;
                network.refresh_latest(post, session).await?;
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
