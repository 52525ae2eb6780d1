//! Posts: who may see them, edits with a bounded history, deletion with a tombstone.
//!
//! | visibility | seen by |
//! |---|---|
//! | `public` | everybody |
//! | `followers` | the author's followers |
//! | `friends` | the author's friends |
//! | `private` | the author |
//!
//! Nobody sees a post of somebody with whom there is a block, whatever its visibility. A deleted post leaves a document
//! without content, so that whatever still refers to it shows nothing.

use crate::error::{Error, Result};
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{FAN_OUTS, FOLLOWS, Network, POSTS, RACES};
use crate::once::OnceKey;
use crate::read;
use crate::settings::AuthorNames;
use crate::user::Card;
use bson::{Document, doc};
use serde::{Deserialize, Serialize};
use store::{FindOneAndUpdate, Session, Update};

/// The longest post, in characters.
pub const MAX_CONTENT: usize = 5_000;

/// The most pictures of a post.
pub const MAX_IMAGES: usize = 9;

/// Who may see a post.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Visibility {
    /// Everybody.
    #[default]
    Public,
    /// The author's followers.
    Followers,
    /// The author's friends.
    Friends,
    /// The author.
    Private,
}

impl Visibility {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Visibility::Public => "public",
            Visibility::Followers => "followers",
            Visibility::Friends => "friends",
            Visibility::Private => "private",
        }
    }

    pub(crate) fn of(post: &Document) -> Visibility {
        match post.get_str("visibility").unwrap_or("private") {
            "public" => Visibility::Public,
            "followers" => Visibility::Followers,
            "friends" => Visibility::Friends,
            _ => Visibility::Private,
        }
    }
}

/// What somebody posts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewPost {
    /// What it says.
    pub content: String,
    /// Where its pictures are: addresses, or ids of files.
    #[serde(default)]
    pub images: Vec<String>,
    /// Who may see it.
    #[serde(default)]
    pub visibility: Visibility,
}

impl NewPost {
    /// A public post of words alone.
    pub fn text(content: impl Into<String>) -> NewPost {
        NewPost { content: content.into(), ..NewPost::default() }
    }

    fn check(&self) -> Result<()> {
        check_content(&self.content, !self.images.is_empty())?;
        if self.images.len() > MAX_IMAGES {
            return Err(Error::Invalid(format!("a post has at most {MAX_IMAGES} pictures")));
        }
        Ok(())
    }
}

fn check_content(content: &str, empty: bool) -> Result<()> {
    if content.chars().count() > MAX_CONTENT {
        return Err(Error::Invalid(format!("a post has at most {MAX_CONTENT} characters")));
    }
    if content.trim().is_empty() && !empty {
        return Err(Error::Invalid("a post says or shows something".into()));
    }
    Ok(())
}

/// What changes of a post; what is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PostChange {
    /// What it says.
    pub content: Option<String>,
    /// Who may see it.
    pub visibility: Option<Visibility>,
    /// The version that the change is meant for; any if left out.
    pub version: Option<i64>,
}

/// A post as somebody sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Post {
    /// Its id; the order by id is the order by time.
    pub id: Id,
    /// Who posted it.
    pub author: Card,
    /// What it says.
    pub content: String,
    /// Where its pictures are.
    pub images: Vec<String>,
    /// Who may see it.
    pub visibility: Visibility,
    /// How many like it.
    pub like_count: i64,
    /// How many comments and replies it has.
    pub comment_count: i64,
    /// Grows with each edit.
    pub version: i64,
    /// When it was posted.
    pub created_at: Time,
    /// When it was last edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Time>,
}

/// What a post said before an edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// What it said.
    pub content: String,
    /// Until when.
    pub until: Time,
}

impl Network {
    /// Posts. The post is in the author's list at once; it reaches its readers' inboxes by [`Network::work`].
    ///
    /// # Errors
    /// [`Error::UnknownUser`], [`Error::Invalid`].
    pub async fn post(&self, author: Id, post: &NewPost) -> Result<Id> {
        self.post_keyed(author, post, None).await
    }

    /// Posts once: the same call with the same key gives the post that is there.
    ///
    /// # Errors
    /// As [`Network::post`].
    pub async fn post_once(&self, author: Id, post: &NewPost, key: &str) -> Result<Id> {
        self.post_keyed(author, post, Some(OnceKey::new(author, key)?)).await
    }

    async fn post_keyed(&self, author: Id, post: &NewPost, once: Option<OnceKey>) -> Result<Id> {
        post.check()?;
        let (network, post, key) = (self.clone(), post.clone(), once.clone());
        let done = self.transact(move |session| {
            let (network, post, key) = (network.clone(), post.clone(), key.clone());
            Box::pin(async move {
                let id = network.post_in(author, &post, session).await?;
                network.note_key(key.as_ref(), id, session).await?;
                Ok((id, ()))
            })
        });
        Ok(self.made(once, done.await).await?.0)
    }

    async fn post_in(&self, author: Id, post: &NewPost, session: &mut Session) -> Result<Id> {
        let user = self.user(author, Some(&mut *session)).await?;
        let (id, name) = (Id::new(), read::text(&user, "username"));
        let mut document = doc! {
            "_id": id, "authorId": author,
            "author": { "username": &name, "avatar": read::text(&user, "avatar") },
            "postedAs": name, "content": &post.content, "images": post.images.clone(),
            "visibility": post.visibility.name(), "status": "published", "version": 1_i64, "createdAt": Time::now(),
        };
        if !self.kept() {
            document.extend(doc! { "likeCount": 0_i64, "commentCount": 0_i64, "latestComments": [] });
        }
        self.collection(POSTS).insert_one(document, Some(&mut *session)).await?;
        let job = doc! { "_id": id, "authorId": author, "turn": Time::now(), "pushed": 0_i64 };
        self.collection(FAN_OUTS).insert_one(job, Some(&mut *session)).await?;
        self.account(POSTS, &[id], Some(session)).await?;
        Ok(id)
    }

    /// A post that a user may see.
    pub(crate) async fn visible_post(&self, viewer: Id, id: Id) -> Result<Document> {
        let post = self.collection(POSTS).find_one(doc! { "_id": id }, None).await?;
        let post = post.filter(|post| post.get_str("status").is_ok_and(|status| status == "published"));
        let post = post.ok_or(Error::UnknownPost(id))?;
        let author = read::id(&post, "authorId");
        if author == viewer || self.circles(viewer, author).await?.contains(&Visibility::of(&post)) {
            return Ok(post);
        }
        Err(Error::UnknownPost(id))
    }

    /// Which visibilities a user's relation to an author opens.
    async fn circles(&self, viewer: Id, author: Id) -> Result<Vec<Visibility>> {
        let edge = doc! { "followerId": viewer, "followeeId": author };
        let edge = self.collection(FOLLOWS).find_one(edge, None).await?;
        let status = edge.map(|edge| read::text(&edge, "status")).unwrap_or_default();
        if status == "blocked" {
            return Ok(Vec::new());
        }
        let mut circles = vec![Visibility::Public];
        if status == "active" {
            circles.push(Visibility::Followers);
        }
        if !self.friends_of(viewer, &[author]).await?.is_empty() {
            circles.push(Visibility::Friends);
        }
        Ok(circles)
    }

    /// A post, for somebody who may see it.
    ///
    /// # Errors
    /// [`Error::UnknownPost`].
    pub async fn read_post(&self, viewer: Id, id: Id) -> Result<Post> {
        Ok(self.show(&self.visible_post(viewer, id).await?))
    }

    /// An author's posts that a user may see, newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`], [`Error::Blocked`].
    pub async fn posts_of(&self, viewer: Id, author: Id, page: &PageRequest) -> Result<Page<Post>> {
        let mut filter = doc! { "authorId": author, "status": "published" };
        if viewer != author {
            let circles = self.circles(viewer, author).await?;
            if circles.is_empty() {
                return Err(Error::Blocked);
            }
            let names: Vec<_> = circles.into_iter().map(Visibility::name).collect();
            filter.insert("visibility", doc! { "$in": names });
        }
        if let Some(after) = page.after_id()? {
            filter.insert("_id", doc! { "$lt": after });
        }
        let posts = self.listed(filter, Some(doc! { "_id": -1 }), page.size() + 1).await?;
        let posts = posts.into_iter().map(|post| post.shown(self.settings.author_names)).collect();
        Ok(Page::cut(posts, page.size(), |post: &Post| post.id.to_string()))
    }

    /// A post's document as it is shown.
    pub(crate) fn show(&self, post: &Document) -> Post {
        let id = read::id(post, "authorId");
        let empty = Document::new();
        let copy = post.get_document("author").unwrap_or(&empty);
        let username = match self.settings.author_names {
            AuthorNames::Live => read::text(copy, "username"),
            AuthorNames::AsPosted => read::text(post, "postedAs"),
        };
        Post {
            id: read::id(post, "_id"),
            author: Card { id, username, avatar: read::text(copy, "avatar") },
            content: read::text(post, "content"),
            images: read::texts(post, "images"),
            visibility: Visibility::of(post),
            like_count: read::number(post, "likeCount"),
            comment_count: read::number(post, "commentCount"),
            version: read::number(post, "version"),
            created_at: read::time(post, "createdAt"),
            edited_at: read::optional_time(post, "editedAt"),
        }
    }

    /// A post of an author, which the author may change.
    async fn own_post(&self, author: Id, id: Id) -> Result<Document> {
        let post = self.collection(POSTS).find_one(doc! { "_id": id, "status": "published" }, None).await?;
        match post {
            Some(post) if read::id(&post, "authorId") == author => Ok(post),
            Some(_) => match self.visible_post(author, id).await {
                Ok(_) => Err(Error::NotAllowed("change the post of another user")),
                Err(error) => Err(error),
            },
            None => Err(Error::UnknownPost(id)),
        }
    }

    /// Edits a post of one's own; what it said before goes into its history.
    ///
    /// # Errors
    /// [`Error::UnknownPost`], [`Error::NotAllowed`], [`Error::Invalid`]; [`Error::Changed`] if it has another version.
    pub async fn edit_post(&self, author: Id, id: Id, change: &PostChange) -> Result<Post> {
        for _ in 0..RACES {
            let post = self.own_post(author, id).await?;
            let version = read::number(&post, "version");
            if change.version.is_some_and(|expected| expected != version) {
                return Err(Error::Changed);
            }
            let now = Time::now();
            let mut set = doc! { "editedAt": now };
            let mut update = doc! { "$inc": { "version": 1_i64 } };
            if let Some(content) = &change.content {
                check_content(content, !read::texts(&post, "images").is_empty())?;
                set.insert("content", content);
                let before = doc! { "content": read::text(&post, "content"), "until": now };
                let keep = -(self.settings.history as i64);
                update.insert("$push", doc! { "history": { "$each": [before], "$slice": keep } });
            }
            if let Some(visibility) = change.visibility {
                set.insert("visibility", visibility.name());
            }
            update.insert("$set", set);
            let guard = doc! { "_id": id, "authorId": author, "status": "published", "version": version };
            let options = FindOneAndUpdate { after: true, ..FindOneAndUpdate::default() };
            if let Some(post) = self.collection(POSTS).find_one_and_update(guard, update, options, None).await? {
                return Ok(self.show(&post));
            }
        }
        Err(Error::Changed)
    }

    /// What a post said before its edits, oldest first, for whoever may see the post.
    ///
    /// # Errors
    /// [`Error::UnknownPost`].
    pub async fn post_history(&self, viewer: Id, id: Id) -> Result<Vec<Edit>> {
        let post = self.visible_post(viewer, id).await?;
        let edit = |edit: &Document| Edit { content: read::text(edit, "content"), until: read::time(edit, "until") };
        Ok(read::documents(&post, "history").map(edit).collect())
    }

    /// Deletes a post of one's own, for everybody at once.
    ///
    /// # Errors
    /// [`Error::UnknownPost`], [`Error::NotAllowed`].
    pub async fn delete_post(&self, author: Id, id: Id) -> Result<()> {
        self.own_post(author, id).await?;
        if self.bury_post(author, id, "published").await? { Ok(()) } else { Err(Error::UnknownPost(id)) }
    }

    /// Leaves a tombstone of a post that has a status; whether it had.
    pub(crate) async fn bury_post(&self, author: Id, id: Id, status: &'static str) -> Result<bool> {
        let network = self.clone();
        self.atomically(move |mut session| {
            let network = network.clone();
            Box::pin(async move {
                let guard = doc! { "_id": id, "authorId": author, "status": status };
                let tombstone = doc! {
                    "$set": { "status": "deleted", "content": "", "images": [], "deletedAt": Time::now() },
                    "$unset": { "history": "", "hiddenBy": "", "hiddenWhy": "", "hiddenAt": "" },
                };
                let posts = network.collection(POSTS);
                let done = posts.update_one(guard, tombstone, Update::default(), session.as_deref_mut()).await?;
                if done.matched == 0 {
                    return Ok(false);
                }
                network.account(POSTS, &[id], session).await?;
                Ok(true)
            })
        })
        .await
    }
}
