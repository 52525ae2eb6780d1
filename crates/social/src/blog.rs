//! Articles with their newest comments on board, the rest a page away.
//!
//! The documents are those of `models/blog`. What the model keeps (counts, the author's name on the article, the newest
//! comments) is left to the model layer where the store has its hook, and kept here in each write's transaction elsewhere.

use crate::error::{Error, Result};
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{Network, keep};
use crate::read;
use crate::settings::{Keeping, Settings};
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use store::{Find, FindOneAndUpdate, Index, Session, Store, Update};

/// The blog's model, as it stands in `models/blog`: name and text of its file.
pub const BLOG_MODEL: [(&str, &str); 1] = [("blog.sheaf.kdl", include_str!("../../../models/blog/blog.sheaf.kdl"))];

/// The longest body of an article, in characters.
pub const MAX_BODY: usize = 200_000;

/// The most tags of an article.
pub const MAX_TAGS: usize = 10;

/// The newest comments on the article itself.
const LATEST: i64 = 10;

const AUTHORS: &str = "authors";
const ARTICLES: &str = "articles";
const COMMENTS: &str = "comments";

/// Who writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Author {
    /// The author's id.
    pub id: Id,
    /// The name, as it stands on the articles.
    pub name: String,
    /// The address.
    pub email: String,
    /// How many articles are published.
    pub article_count: i64,
    /// When the last one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_published: Option<Time>,
}

/// An article to write.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NewArticle {
    /// Its title.
    pub title: String,
    /// Its name in addresses; no other has it.
    pub slug: String,
    /// What it says.
    pub body: String,
    /// What it is about.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// An article; in lists without its body and its comments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Article {
    /// Its id.
    pub id: Id,
    /// Who wrote it.
    pub author: Id,
    /// The author's name.
    pub author_name: String,
    /// Its title.
    pub title: String,
    /// Its name in addresses.
    pub slug: String,
    /// What it says.
    pub body: String,
    /// What it is about.
    pub tags: Vec<String>,
    /// Since when everybody reads it; a draft without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Time>,
    /// How many comments it has.
    pub comment_count: i64,
    /// Its newest comments, newest first.
    pub latest_comments: Vec<Remark>,
    /// Grows with each edit.
    pub version: i64,
}

/// A comment on an article.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remark {
    /// Who says it.
    pub author_name: String,
    /// What.
    pub text: String,
    /// When.
    pub created_at: Time,
}

/// A blog in one database of a store. Clones are the same blog.
#[derive(Clone)]
pub struct Blog {
    network: Network,
}

fn remark(found: &Document) -> Remark {
    Remark {
        author_name: read::text(found, "authorName"),
        text: read::text(found, "text"),
        created_at: read::time(found, "createdAt"),
    }
}

fn article(found: &Document) -> Article {
    let empty = Document::new();
    let mut latest: Vec<_> = read::documents(found, "latestComments").map(remark).collect();
    latest.sort_by_key(|remark| std::cmp::Reverse(remark.created_at));
    Article {
        id: read::id(found, "_id"),
        author: read::id(found, "authorId"),
        author_name: read::text(found.get_document("author").unwrap_or(&empty), "name"),
        title: read::text(found, "title"),
        slug: read::text(found, "slug"),
        body: read::text(found, "body"),
        tags: read::texts(found, "tags"),
        published_at: read::optional_time(found, "publishedAt"),
        comment_count: read::number(found, "commentCount"),
        latest_comments: latest,
        version: read::number(found, "version"),
    }
}

impl Blog {
    /// A blog in a database; where the store has hooks, whoever opened it has added the model's ([`Blog::keep_model`]).
    pub fn new(store: Store, database: &str, keeping: Keeping) -> Blog {
        Blog { network: Network::with_settings(store, database, Settings::new(keeping)) }
    }

    /// Adds the hook that keeps the blog's model to an embedded store, once for each opening of the store.
    ///
    /// # Errors
    /// A deployment, which has no hooks.
    pub fn keep_model(store: &Store, database: &str) -> Result<()> {
        keep(store, database, &BLOG_MODEL)
    }

    /// Creates the indexes that the blog's queries and rules need.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn ensure_indexes(&self) -> Result<()> {
        let published = |field: &str| Index::new(doc! { field: 1, "status": 1, "publishedAt": -1, "_id": -1 });
        let all = [
            (AUTHORS, vec![Index::unique(doc! { "email": 1 })]),
            (
                ARTICLES,
                vec![
                    Index::unique(doc! { "slug": 1 }),
                    Index::new(doc! { "status": 1, "publishedAt": -1, "_id": -1 }),
                    published("tags"),
                    published("authorId"),
                ],
            ),
            (COMMENTS, vec![Index::new(doc! { "articleId": 1, "status": 1, "createdAt": -1, "_id": -1 })]),
        ];
        for (collection, indexes) in all {
            self.network.collection(collection).create_indexes(indexes).await?;
        }
        Ok(())
    }

    /// Adds an author.
    ///
    /// # Errors
    /// [`Error::NameTaken`] for an address that another author has.
    pub async fn add_author(&self, name: &str, email: &str) -> Result<Id> {
        let id = Id::new();
        let author = doc! { "_id": id, "name": name, "email": email, "bio": "" };
        let added = self.network.collection(AUTHORS).insert_one(author, None).await.map_err(Error::from);
        match added {
            Err(error) if error.is_duplicate_key() => Err(Error::NameTaken(email.to_owned())),
            added => added.map(|()| id),
        }
    }

    /// An author.
    ///
    /// # Errors
    /// [`Error::UnknownUser`].
    pub async fn author(&self, id: Id) -> Result<Author> {
        let found = self.network.collection(AUTHORS).find_one(doc! { "_id": id }, None).await?;
        let found = found.ok_or(Error::UnknownUser(id))?;
        Ok(Author {
            id,
            name: read::text(&found, "name"),
            email: read::text(&found, "email"),
            article_count: read::number(&found, "articleCount"),
            last_published: read::optional_time(&found, "lastPublished"),
        })
    }

    /// Gives an author another name, on all articles at once.
    ///
    /// # Errors
    /// [`Error::UnknownUser`].
    pub async fn rename_author(&self, id: Id, name: &str) -> Result<()> {
        let (network, name) = (self.network.clone(), name.to_owned());
        self.network
            .transact(move |session| {
                let (network, name) = (network.clone(), name.clone());
                Box::pin(async move {
                    let authors = network.collection(AUTHORS);
                    let set = doc! { "$set": { "name": &name } };
                    let update = Update::default();
                    if authors.update_one(doc! { "_id": id }, set, update, Some(&mut *session)).await?.matched == 0 {
                        return Err(Error::UnknownUser(id));
                    }
                    if !network.kept() {
                        let set = doc! { "$set": { "author.name": name } };
                        let articles = network.collection(ARTICLES);
                        articles.update_many(doc! { "authorId": id }, set, Update::default(), Some(session)).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Writes an article, a draft at first.
    ///
    /// # Errors
    /// [`Error::UnknownUser`], [`Error::NameTaken`] for a slug that another article has, [`Error::Invalid`].
    pub async fn write(&self, author: Id, new: &NewArticle) -> Result<Id> {
        if new.title.is_empty() || new.slug.is_empty() || new.tags.len() > MAX_TAGS {
            return Err(Error::Invalid(format!("an article has a title, a slug, and at most {MAX_TAGS} tags")));
        }
        if new.body.chars().count() > MAX_BODY {
            return Err(Error::Invalid(format!("an article has at most {MAX_BODY} characters")));
        }
        let (network, new, slug) = (self.network.clone(), new.clone(), new.slug.clone());
        let written = self.network.transact(move |session| {
            let (network, new, id) = (network.clone(), new.clone(), Id::new());
            Box::pin(async move {
                let known = network.collection(AUTHORS).find_one(doc! { "_id": author }, Some(&mut *session)).await?;
                let name = read::text(&known.ok_or(Error::UnknownUser(author))?, "name");
                let mut document = doc! {
                    "_id": id, "authorId": author, "author": { "name": name }, "title": new.title, "slug": new.slug,
                    "body": new.body, "tags": new.tags, "status": "draft", "version": 1_i64,
                };
                if !network.kept() {
                    document.extend(doc! { "commentCount": 0_i64, "latestComments": [] });
                }
                network.collection(ARTICLES).insert_one(document, Some(session)).await?;
                Ok(id)
            })
        });
        match written.await {
            Err(error) if error.is_duplicate_key() => Err(Error::NameTaken(slug)),
            written => written,
        }
    }

    /// Shows a draft to everybody; whether it was one.
    ///
    /// # Errors
    /// [`Error::UnknownPost`].
    pub async fn publish(&self, id: Id) -> Result<bool> {
        let network = self.network.clone();
        self.network
            .transact(move |session| {
                let network = network.clone();
                Box::pin(async move {
                    let (articles, now) = (network.collection(ARTICLES), Time::now());
                    let (draft, before) = (doc! { "_id": id, "status": "draft" }, FindOneAndUpdate::default());
                    let set = doc! { "$set": { "status": "published", "publishedAt": now } };
                    let found = articles.find_one_and_update(draft, set, before, Some(&mut *session)).await?;
                    let Some(found) = found else {
                        let there = articles.find_one(doc! { "_id": id }, Some(session)).await?;
                        return there.map(|_| false).ok_or(Error::UnknownPost(id));
                    };
                    if !network.kept() {
                        let author = doc! { "_id": read::id(&found, "authorId") };
                        let count = doc! { "$inc": { "articleCount": 1_i64 }, "$max": { "lastPublished": now } };
                        network.collection(AUTHORS).update_one(author, count, Update::default(), Some(session)).await?;
                    }
                    Ok(true)
                })
            })
            .await
    }

    /// Changes the text of an article of a version; gives the version now.
    ///
    /// # Errors
    /// [`Error::Changed`] if it has another version or is gone.
    pub async fn edit(&self, id: Id, version: i64, title: &str, body: &str) -> Result<i64> {
        let set = doc! { "$set": { "title": title, "body": body }, "$inc": { "version": 1_i64 } };
        let same = doc! { "_id": id, "version": version };
        let done = self.network.collection(ARTICLES).update_one(same, set, Update::default(), None).await?;
        if done.matched == 1 { Ok(version + 1) } else { Err(Error::Changed) }
    }

    /// A published article with its newest comments: one document.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn article(&self, slug: &str) -> Result<Option<Article>> {
        let published = doc! { "slug": slug, "status": "published" };
        Ok(self.network.collection(ARTICLES).find_one(published, None).await?.as_ref().map(article))
    }

    /// The newest articles: all, those of a tag, or those of an author.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn newest(&self, of: &Of, page: &PageRequest) -> Result<Page<Article>> {
        let mut filter = doc! { "status": "published" };
        match of {
            Of::All => {}
            Of::Tag(tag) => drop(filter.insert("tags", tag)),
            Of::Author(id) => drop(filter.insert("authorId", *id)),
        }
        let without = doc! { "body": 0, "latestComments": 0 };
        let found = self.network.latest_first(ARTICLES, filter, "publishedAt", Some(without), page).await?;
        Ok(Page { items: found.items.iter().map(article).collect(), next: found.next })
    }

    /// Comments on a published article.
    ///
    /// # Errors
    /// [`Error::UnknownPost`], [`Error::Invalid`].
    pub async fn comment(&self, article: Id, author_name: &str, text: &str) -> Result<Id> {
        if text.trim().is_empty() || text.chars().count() > crate::comment::MAX_COMMENT {
            return Err(Error::Invalid(format!("a comment has 1 to {} characters", crate::comment::MAX_COMMENT)));
        }
        let id = Id::new();
        let comment = doc! {
            "_id": id, "articleId": article, "authorName": author_name, "text": text, "status": "visible",
            "createdAt": Time::now(),
        };
        let network = self.network.clone();
        self.network
            .transact(move |session| {
                let (network, comment) = (network.clone(), comment.clone());
                Box::pin(async move {
                    let published = doc! { "_id": article, "status": "published" };
                    let there = network.collection(ARTICLES).find_one(published, Some(&mut *session)).await?;
                    there.ok_or(Error::UnknownPost(article))?;
                    network.collection(COMMENTS).insert_one(comment, Some(&mut *session)).await?;
                    recount(&network, article, 1, session).await?;
                    Ok(id)
                })
            })
            .await
    }

    /// Takes a comment out of sight as spam; whether it was visible.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn hide_comment(&self, comment: Id) -> Result<bool> {
        let network = self.network.clone();
        self.network
            .transact(move |session| {
                let network = network.clone();
                Box::pin(async move {
                    let (visible, before) = (doc! { "_id": comment, "status": "visible" }, FindOneAndUpdate::default());
                    let spam = doc! { "$set": { "status": "spam" } };
                    let comments = network.collection(COMMENTS);
                    let found = comments.find_one_and_update(visible, spam, before, Some(&mut *session)).await?;
                    let Some(found) = found else { return Ok(false) };
                    recount(&network, read::id(&found, "articleId"), -1, session).await?;
                    Ok(true)
                })
            })
            .await
    }

    /// The comments on an article, the newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn comments(&self, article: Id, page: &PageRequest) -> Result<Page<Remark>> {
        let visible = doc! { "articleId": article, "status": "visible" };
        let found = self.network.latest_first(COMMENTS, visible, "createdAt", None, page).await?;
        Ok(Page { items: found.items.iter().map(remark).collect(), next: found.next })
    }
}

/// Which articles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// All.
    All,
    /// Those of a tag.
    Tag(String),
    /// Those of an author.
    Author(Id),
}

/// What a comment moves on its article, unless the model layer does that.
async fn recount(network: &Network, article: Id, by: i64, session: &mut Session) -> Result<()> {
    if network.kept() {
        return Ok(());
    }
    let page = Find {
        sort: Some(doc! { "createdAt": -1, "_id": -1 }),
        projection: Some(doc! { "authorName": 1, "text": 1, "createdAt": 1 }),
        limit: LATEST,
        ..Find::default()
    };
    let visible = doc! { "articleId": article, "status": "visible" };
    let latest = network.collection(COMMENTS).find(visible, page, Some(&mut *session)).await?;
    let change = doc! { "$inc": { "commentCount": by }, "$set": { "latestComments": latest } };
    network.collection(ARTICLES).update_one(doc! { "_id": article }, change, Update::default(), Some(session)).await?;
    Ok(())
}
