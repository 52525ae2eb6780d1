//! Likes: one for each user and post.

use crate::error::Result;
use crate::follow::Related;
use crate::id::{Id, Page, PageRequest, Time};
use crate::network::{LIKES, Network};
use crate::notification::Event;
use crate::read;
use bson::doc;
use std::collections::HashSet;
use store::{Find, FindOneAndUpdate};

impl Network {
    /// A user likes a post; liking twice is once. Whether it is new.
    ///
    /// # Errors
    /// [`crate::Error::UnknownPost`], [`crate::Error::UnknownUser`].
    pub async fn like(&self, user: Id, post: Id) -> Result<bool> {
        self.user(user, None).await?;
        let author = read::id(&self.visible_post(user, post).await?, "authorId");
        let network = self.clone();
        let liked = self.transact(move |session| {
            let network = network.clone();
            Box::pin(async move {
                let id = Id::new();
                let like = doc! { "_id": id, "postId": post, "userId": user, "createdAt": Time::now() };
                network.collection(LIKES).insert_one(like, Some(&mut *session)).await?;
                network.account(LIKES, &[id], Some(&mut *session)).await?;
                network.note(author, Event::Like, user, post, session).await
            })
        });
        match liked.await {
            Err(error) if error.is_duplicate_key() => Ok(false),
            Err(error) => Err(error),
            Ok(told) => {
                self.bound(told).await?;
                Ok(true)
            }
        }
    }

    /// Takes a like back; whether there was one.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn unlike(&self, user: Id, post: Id) -> Result<bool> {
        let network = self.clone();
        self.atomically(move |mut session| {
            let network = network.clone();
            Box::pin(async move {
                let like = doc! { "postId": post, "userId": user };
                let any = FindOneAndUpdate::default();
                let gone = network.collection(LIKES).find_one_and_delete(like, any, session.as_deref_mut()).await?;
                let Some(gone) = gone else { return Ok(false) };
                network.account(LIKES, &[read::id(&gone, "_id")], session).await?;
                Ok(true)
            })
        })
        .await
    }

    /// Who likes a post, newest first.
    ///
    /// # Errors
    /// [`crate::Error::UnknownPost`], [`crate::Error::InvalidCursor`].
    pub async fn likers(&self, viewer: Id, post: Id, page: &PageRequest) -> Result<Page<Related>> {
        self.visible_post(viewer, post).await?;
        self.related(LIKES, doc! { "postId": post }, "userId", "createdAt", page).await
    }

    /// Which of some posts a user likes: one query for a page.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn likes_of(&self, user: Id, posts: &[Id]) -> Result<HashSet<Id>> {
        if posts.is_empty() {
            return Ok(HashSet::new());
        }
        let filter = doc! { "userId": user, "postId": { "$in": posts.to_vec() } };
        let page = Find { projection: Some(doc! { "_id": 0, "postId": 1 }), ..Find::default() };
        let likes = self.collection(LIKES).find(filter, page, None).await?;
        Ok(likes.iter().map(|like| read::id(like, "postId")).collect())
    }
}
