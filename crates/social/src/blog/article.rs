//! Articles: drafts of their authors at first, everybody's once they are published.

use super::remark::{Remark, remark};
use super::{ARTICLES, AUTHORS, Blog};
use crate::error::{Error, Result};
use crate::id::{Id, Page, PageRequest, Time};
use crate::once::OnceKey;
use crate::read;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use store::{Find, FindOneAndUpdate, Session};

/// The longest title, in characters.
pub const MAX_TITLE: usize = 200;

/// The longest name in addresses, in bytes.
pub const MAX_SLUG: usize = 100;

/// The longest body of an article, in characters.
pub const MAX_BODY: usize = 200_000;

/// The most tags of an article.
pub const MAX_TAGS: usize = 10;

/// The longest tag, in characters.
pub const MAX_TAG: usize = 40;

/// An article to write.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NewArticle {
    /// Its title.
    pub title: String,
    /// Its name in addresses, of small letters, digits and hyphens; no other has it.
    pub slug: String,
    /// What it says.
    pub body: String,
    /// What it is about.
    #[serde(default)]
    pub tags: Vec<String>,
}

impl NewArticle {
    fn check(&self) -> Result<()> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.slug.is_empty() || self.slug.len() > MAX_SLUG || !self.slug.bytes().all(plain) {
            let why = format!("a slug has 1 to {MAX_SLUG} small letters, digits and hyphens");
            return Err(Error::Invalid(why));
        }
        check_title(&self.title)?;
        check_body(&self.body)?;
        check_tags(&self.tags)
    }
}

fn check_title(title: &str) -> Result<()> {
    if title.trim().is_empty() || title.chars().count() > MAX_TITLE {
        return Err(Error::Invalid(format!("a title has 1 to {MAX_TITLE} characters")));
    }
    Ok(())
}

fn check_body(body: &str) -> Result<()> {
    if body.chars().count() > MAX_BODY {
        return Err(Error::Invalid(format!("an article has at most {MAX_BODY} characters")));
    }
    Ok(())
}

fn check_tags(tags: &[String]) -> Result<()> {
    let fits = |tag: &String| !tag.trim().is_empty() && tag.chars().count() <= MAX_TAG;
    if tags.len() > MAX_TAGS || !tags.iter().all(fits) {
        return Err(Error::Invalid(format!("an article has at most {MAX_TAGS} tags of 1 to {MAX_TAG} characters")));
    }
    Ok(())
}

/// What changes of an article; what is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ArticleChange {
    /// Its title.
    pub title: Option<String>,
    /// What it says.
    pub body: Option<String>,
    /// What it is about.
    pub tags: Option<Vec<String>>,
    /// The version that the change is meant for; any if left out.
    pub version: Option<i64>,
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

fn article(found: &Document) -> Article {
    let empty = Document::new();
    let mut latest: Vec<_> = read::documents(found, "latestComments").map(remark).collect();
    latest.sort_by_key(|remark| std::cmp::Reverse((remark.created_at, remark.id)));
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

/// What lists leave out.
fn without_text() -> Document {
    doc! { "body": 0, "latestComments": 0 }
}

impl Blog {
    /// Writes an article, a draft at first.
    ///
    /// # Errors
    /// [`Error::UnknownUser`], [`Error::NameTaken`] for a slug that another article has, [`Error::Invalid`].
    pub async fn write(&self, author: Id, new: &NewArticle) -> Result<Id> {
        self.write_keyed(author, new, None).await
    }

    /// Writes an article once: the same call with the same key gives the article that is there.
    ///
    /// # Errors
    /// As [`Blog::write`].
    pub async fn write_once(&self, author: Id, new: &NewArticle, key: &str) -> Result<Id> {
        self.write_keyed(author, new, Some(OnceKey::new(author, key)?)).await
    }

    async fn write_keyed(&self, author: Id, new: &NewArticle, once: Option<OnceKey>) -> Result<Id> {
        new.check()?;
        let (blog, new, key, slug) = (self.clone(), new.clone(), once.clone(), new.slug.clone());
        let done = self.network.transact(move |session| {
            let (blog, new, key) = (blog.clone(), new.clone(), key.clone());
            Box::pin(async move {
                let id = blog.write_in(author, new, session).await?;
                blog.network.note_key(key.as_ref(), id, session).await?;
                Ok((id, ()))
            })
        });
        match self.network.made(once, done.await).await {
            // Nothing was made with the key, so it is the slug that is there already.
            Err(error) if error.is_duplicate_key() => Err(Error::NameTaken(slug)),
            made => Ok(made?.0),
        }
    }

    async fn write_in(&self, author: Id, new: NewArticle, session: &mut Session) -> Result<Id> {
        let (network, id) = (&self.network, Id::new());
        let known = network.collection(AUTHORS).find_one(doc! { "_id": author }, Some(&mut *session)).await?;
        let name = read::text(&known.ok_or(Error::UnknownUser(author))?, "name");
        let mut document = doc! {
            "_id": id, "authorId": author, "author": { "name": name }, "title": new.title, "slug": new.slug,
            "body": new.body, "tags": new.tags, "status": "draft", "version": 1_i64,
        };
        if !network.kept() {
            document.extend(doc! { "commentCount": 0_i64, "latestComments": [] });
        }
        network.collection(ARTICLES).insert_one(document, Some(&mut *session)).await?;
        network.account(ARTICLES, &[id], Some(session)).await?;
        Ok(id)
    }

    /// Shows a draft of one's own to everybody; whether it was one.
    ///
    /// # Errors
    /// [`Error::UnknownPost`]; [`Error::NotAllowed`] for the published article of another author.
    pub async fn publish(&self, author: Id, id: Id) -> Result<bool> {
        self.own_article(author, id).await?;
        let network = self.network.clone();
        self.network
            .transact(move |session| {
                let network = network.clone();
                Box::pin(async move {
                    let (articles, now) = (network.collection(ARTICLES), Time::now());
                    let draft = doc! { "_id": id, "authorId": author, "status": "draft" };
                    let set = doc! { "$set": { "status": "published", "publishedAt": now } };
                    let before = FindOneAndUpdate::default();
                    if articles.find_one_and_update(draft, set, before, Some(&mut *session)).await?.is_none() {
                        return Ok(false);
                    }
                    network.account(ARTICLES, &[id], Some(session)).await?;
                    Ok(true)
                })
            })
            .await
    }

    /// Changes an article of one's own; gives it as it is now.
    ///
    /// # Errors
    /// [`Error::UnknownPost`], [`Error::Invalid`]; [`Error::NotAllowed`] for the published article of another author;
    /// [`Error::Changed`] if it has another version.
    pub async fn edit(&self, author: Id, id: Id, change: &ArticleChange) -> Result<Article> {
        let mut set = Document::new();
        if let Some(title) = &change.title {
            check_title(title)?;
            set.insert("title", title);
        }
        if let Some(body) = &change.body {
            check_body(body)?;
            set.insert("body", body);
        }
        if let Some(tags) = &change.tags {
            check_tags(tags)?;
            set.insert("tags", tags.clone());
        }
        self.own_article(author, id).await?;
        let mut same = doc! { "_id": id, "authorId": author };
        if let Some(version) = change.version {
            same.insert("version", version);
        }
        let mut update = doc! { "$inc": { "version": 1_i64 } };
        if !set.is_empty() {
            update.insert("$set", set);
        }
        let after = FindOneAndUpdate { after: true, ..FindOneAndUpdate::default() };
        let done = self.network.collection(ARTICLES).find_one_and_update(same, update, after, None).await?;
        done.as_ref().map(article).ok_or(Error::Changed)
    }

    /// An article of one's own, draft or not.
    ///
    /// # Errors
    /// [`Error::UnknownPost`]; [`Error::NotAllowed`] for the published article of another author.
    pub async fn own_article(&self, author: Id, id: Id) -> Result<Article> {
        let found = self.network.collection(ARTICLES).find_one(doc! { "_id": id }, None).await?;
        let found = found.as_ref().map(article).ok_or(Error::UnknownPost(id))?;
        match found.published_at {
            _ if found.author == author => Ok(found),
            Some(_) => Err(Error::NotAllowed("change the article of another author")),
            None => Err(Error::UnknownPost(id)),
        }
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
        let found = self.network.latest_first(ARTICLES, filter, "publishedAt", Some(without_text()), page).await?;
        Ok(Page { items: found.items.iter().map(article).collect(), next: found.next })
    }

    /// An author's drafts, the newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`].
    pub async fn drafts(&self, author: Id, page: &PageRequest) -> Result<Page<Article>> {
        let mut filter = doc! { "authorId": author, "status": "draft" };
        if let Some(after) = page.after_id()? {
            filter.insert("_id", doc! { "$lt": after });
        }
        let find = Find {
            sort: Some(doc! { "_id": -1 }),
            projection: Some(without_text()),
            limit: page.size() as i64 + 1,
            ..Find::default()
        };
        let found = self.network.collection(ARTICLES).find(filter, find, None).await?;
        Ok(Page::cut(found.iter().map(article).collect(), page.size(), |article: &Article| article.id.to_string()))
    }
}
