//! Comments on articles: the newest stand on the article, all of them a page away.

use super::{ARTICLES, Blog, COMMENTS};
use crate::comment::MAX_COMMENT;
use crate::error::{Error, Result};
use crate::id::{Id, Page, PageRequest, Time};
use crate::once::OnceKey;
use crate::read;
use crate::user::check_name;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use store::FindOneAndUpdate;

/// A comment on an article.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remark {
    /// Its id.
    pub id: Id,
    /// Who says it.
    pub author_name: String,
    /// What.
    pub text: String,
    /// When.
    pub created_at: Time,
}

/// Who takes a comment out of sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The author of the article.
    Author(Id),
    /// Whoever may do it on all articles.
    Moderator,
}

pub(super) fn remark(found: &Document) -> Remark {
    Remark {
        id: read::id(found, "_id"),
        author_name: read::text(found, "authorName"),
        text: read::text(found, "text"),
        created_at: read::time(found, "createdAt"),
    }
}

impl Blog {
    /// Comments on a published article.
    ///
    /// # Errors
    /// [`Error::UnknownPost`], [`Error::Invalid`].
    pub async fn comment(&self, article: Id, author_name: &str, text: &str) -> Result<Id> {
        self.comment_keyed(article, author_name, text, None).await
    }

    /// Comments once: the same call with the same key gives the comment that is there.
    ///
    /// # Errors
    /// As [`Blog::comment`].
    pub async fn comment_once(&self, article: Id, author_name: &str, text: &str, key: &str) -> Result<Id> {
        self.comment_keyed(article, author_name, text, Some(OnceKey::new(article, key)?)).await
    }

    async fn comment_keyed(&self, article: Id, author_name: &str, text: &str, once: Option<OnceKey>) -> Result<Id> {
        check_name(author_name)?;
        if text.trim().is_empty() || text.chars().count() > MAX_COMMENT {
            return Err(Error::Invalid(format!("a comment has 1 to {MAX_COMMENT} characters")));
        }
        let comment = doc! {
            "articleId": article, "authorName": author_name, "text": text, "status": "visible",
        };
        let (network, key) = (self.network.clone(), once.clone());
        let done = self.network.transact(move |session| {
            let (network, key, mut comment, id) = (network.clone(), key.clone(), comment.clone(), Id::new());
            Box::pin(async move {
                let published = doc! { "_id": article, "status": "published" };
                let there = network.collection(ARTICLES).find_one(published, Some(&mut *session)).await?;
                there.ok_or(Error::UnknownPost(article))?;
                comment.extend(doc! { "_id": id, "createdAt": Time::now() });
                network.collection(COMMENTS).insert_one(comment, Some(&mut *session)).await?;
                network.note_key(key.as_ref(), id, session).await?;
                network.account(COMMENTS, &[id], Some(session)).await?;
                Ok((id, ()))
            })
        });
        Ok(self.network.made(once, done.await).await?.0)
    }

    /// Takes a comment out of sight as spam; whether it was visible.
    ///
    /// # Errors
    /// [`Error::UnknownComment`]; [`Error::NotAllowed`] if it is on the article of another author.
    pub async fn hide_comment(&self, by: By, comment: Id) -> Result<bool> {
        let network = self.network.clone();
        self.network
            .transact(move |session| {
                let network = network.clone();
                Box::pin(async move {
                    let comments = network.collection(COMMENTS);
                    let found = comments.find_one(doc! { "_id": comment }, Some(&mut *session)).await?;
                    let article = read::id(&found.ok_or(Error::UnknownComment(comment))?, "articleId");
                    if let By::Author(author) = by {
                        let own = doc! { "_id": article, "authorId": author };
                        let own = network.collection(ARTICLES).find_one(own, Some(&mut *session)).await?;
                        own.ok_or(Error::NotAllowed("hide a comment on the article of another author"))?;
                    }
                    let (visible, before) = (doc! { "_id": comment, "status": "visible" }, FindOneAndUpdate::default());
                    let spam = doc! { "$set": { "status": "spam" } };
                    let hidden = comments.find_one_and_update(visible, spam, before, Some(&mut *session)).await?;
                    if hidden.is_none() {
                        return Ok(false);
                    }
                    network.account(COMMENTS, &[comment], Some(session)).await?;
                    Ok(true)
                })
            })
            .await
    }

    /// The comments on a published article, the newest first.
    ///
    /// # Errors
    /// [`Error::UnknownPost`], [`Error::InvalidCursor`].
    pub async fn comments(&self, article: Id, page: &PageRequest) -> Result<Page<Remark>> {
        let published = doc! { "_id": article, "status": "published" };
        let there = self.network.collection(ARTICLES).find_one(published, None).await?;
        there.ok_or(Error::UnknownPost(article))?;
        let visible = doc! { "articleId": article, "status": "visible" };
        let found = self.network.latest_first(COMMENTS, visible, "createdAt", None, page).await?;
        Ok(Page { items: found.items.iter().map(remark).collect(), next: found.next })
    }
}
