//! Users, follows, posts and inboxes.

use bson::oid::ObjectId;
use bson::{DateTime, doc};
use store::{Collection, Error, Find, Result, Store};

/// How many inboxes are written at once.
const FAN_OUT_BATCH: i64 = 500;

/// A social network in one database of a store.
#[derive(Clone)]
pub struct Network {
    store: Store,
    database: String,
}

/// A post that reached its readers.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    /// The post.
    pub id: ObjectId,
    /// How many inboxes it was pushed into.
    pub readers: u64,
}

/// A post in somebody's feed.
#[derive(Clone, Debug)]
pub struct FeedItem {
    /// The post.
    pub post_id: ObjectId,
    /// Its author's name.
    pub author: String,
    /// What it says.
    pub content: String,
}

impl Network {
    /// A network in a database.
    pub fn new(store: Store, database: &str) -> Network {
        Network { store, database: database.to_owned() }
    }

    fn collection(&self, name: &str) -> Collection {
        self.store.collection(&self.database, name)
    }

    /// Creates the indexes that the network's queries and rules need; what is there stays.
    ///
    /// # Errors
    /// A store that fails, an index of the same name and another key.
    pub async fn ensure_indexes(&self) -> Result<()> {
        self.collection("users").create_index(doc! { "username": 1 }, true).await?;
        self.collection("follows").create_index(doc! { "followerId": 1, "followeeId": 1 }, true).await?;
        self.collection("follows").create_index(doc! { "followeeId": 1, "_id": 1 }, false).await?;
        self.collection("posts").create_index(doc! { "authorId": 1, "createdAt": -1 }, false).await?;
        self.collection("inboxes").create_index(doc! { "ownerId": 1, "postId": 1 }, true).await?;
        self.collection("inboxes").create_index(doc! { "ownerId": 1, "createdAt": -1 }, false).await
    }

    /// Adds a user; gives the id.
    ///
    /// # Errors
    /// A name that is taken (11000), a store that fails.
    pub async fn add_user(&self, name: &str) -> Result<ObjectId> {
        let id = ObjectId::new();
        let user = doc! { "_id": id, "username": name, "avatar": "", "createdAt": DateTime::now() };
        self.collection("users").insert_one(user, None).await?;
        Ok(id)
    }

    /// One user follows another; following twice is once.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn follow(&self, follower: ObjectId, followee: ObjectId) -> Result<()> {
        let edge = doc! {
            "_id": ObjectId::new(), "followerId": follower, "followeeId": followee, "status": "active",
            "followedAt": DateTime::now(),
        };
        match self.collection("follows").insert_one(edge, None).await {
            Err(error) if error.is_duplicate_key() => Ok(()),
            done => done,
        }
    }

    /// Posts, and pushes the post into the inboxes of all followers.
    ///
    /// # Errors
    /// An unknown author, a store that fails; the push can then be done again by [`Network::push`].
    pub async fn post(&self, author: ObjectId, content: &str) -> Result<Posted> {
        let user = self.collection("users").find_one(doc! { "_id": author }, None).await?;
        let user = user.ok_or_else(|| Error::new(0, format!("there is no user {author}")))?;
        let id = ObjectId::new();
        let shown = doc! { "username": user.get_str("username").unwrap_or_default(), "avatar": "" };
        let post = doc! {
            "_id": id, "authorId": author, "author": shown, "content": content, "status": "published",
            "createdAt": DateTime::now(),
        };
        self.collection("posts").insert_one(post, None).await?;
        Ok(Posted { id, readers: self.push(id).await? })
    }

    /// Pushes a post into the inboxes of all followers who do not have it yet; gives how many have it then.
    ///
    /// # Errors
    /// An unknown post, a store that fails.
    pub async fn push(&self, post_id: ObjectId) -> Result<u64> {
        let post = self.collection("posts").find_one(doc! { "_id": post_id }, None).await?;
        let post = post.ok_or_else(|| Error::new(0, format!("there is no post {post_id}")))?;
        let author = post.get_object_id("authorId").map_err(|error| Error::new(0, error.to_string()))?;
        let (mut readers, mut after) = (0, None);
        loop {
            let mut filter = doc! { "followeeId": author };
            if let Some(after) = after {
                filter.insert("_id", doc! { "$gt": after });
            }
            let page = Find { sort: Some(doc! { "_id": 1 }), limit: FAN_OUT_BATCH, ..Find::default() };
            let followers = self.collection("follows").find(filter, page, None).await?;
            let Some(last) = followers.last() else { return Ok(readers) };
            after = Some(last.get_object_id("_id").map_err(|error| Error::new(0, error.to_string()))?);
            readers += self.push_to(&post, &followers).await?;
        }
    }

    /// Pushes a post into the inboxes of some followers.
    async fn push_to(&self, post: &bson::Document, followers: &[bson::Document]) -> Result<u64> {
        let post_id = post.get_object_id("_id").map_err(|error| Error::new(0, error.to_string()))?;
        let item = |follow: &bson::Document| {
            doc! {
                "ownerId": follow.get_object_id("followerId").unwrap_or_default(),
                "postId": post_id,
                "createdAt": post.get("createdAt").cloned().unwrap_or(bson::Bson::Null),
                "content": post.get_str("content").unwrap_or_default(),
                "author": post.get_document("author").cloned().unwrap_or_default(),
            }
        };
        let active = followers.iter().filter(|follow| follow.get_str("status").is_ok_and(|status| status == "active"));
        let items: Vec<_> = active.map(item).collect();
        let count = items.len() as u64;
        let inboxes = self.collection("inboxes");
        match inboxes.insert_many(items.clone(), None).await {
            // Some had it already: an interrupted push is done again, one inbox at a time.
            Err(error) if error.is_duplicate_key() => {
                for item in items {
                    match inboxes.insert_one(item, None).await {
                        Err(error) if !error.is_duplicate_key() => return Err(error),
                        _ => {}
                    }
                }
            }
            done => done?,
        }
        Ok(count)
    }

    /// The newest posts in a user's feed.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn feed(&self, owner: ObjectId, limit: i64) -> Result<Vec<FeedItem>> {
        let page = Find { sort: Some(doc! { "createdAt": -1, "_id": -1 }), limit, ..Find::default() };
        let items = self.collection("inboxes").find(doc! { "ownerId": owner }, page, None).await?;
        let item = |item: bson::Document| FeedItem {
            post_id: item.get_object_id("postId").unwrap_or_default(),
            author: item.get_document("author").and_then(|a| a.get_str("username")).unwrap_or_default().to_owned(),
            content: item.get_str("content").unwrap_or_default().to_owned(),
        };
        Ok(items.into_iter().map(item).collect())
    }
}
