//! Posts in lists: read from their bytes in one go, since a page of a feed is some dozens of them.

use crate::error::Result;
use crate::id::{Id, Time};
use crate::network::{Network, POSTS};
use crate::post::{Post, Visibility};
use crate::settings::AuthorNames;
use crate::user::Card;
use bson::oid::ObjectId;
use bson::{DateTime, Document, doc};
use serde::Deserialize;
use std::collections::HashSet;
use store::Find;

/// A post as it is stored, without what lists leave out.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    #[serde(rename = "_id")]
    id: ObjectId,
    author_id: ObjectId,
    author: Copied,
    #[serde(default)]
    posted_as: String,
    content: String,
    #[serde(default)]
    images: Vec<String>,
    visibility: Visibility,
    status: String,
    // The model layer makes counts with the first that is counted.
    #[serde(default)]
    like_count: i64,
    #[serde(default)]
    comment_count: i64,
    version: i64,
    created_at: DateTime,
    #[serde(default)]
    edited_at: Option<DateTime>,
}

/// What a post has of its author.
#[derive(Debug, Deserialize)]
struct Copied {
    username: String,
    #[serde(default)]
    avatar: String,
}

impl Listed {
    pub(crate) fn id(&self) -> Id {
        Id(self.id)
    }

    pub(crate) fn author(&self) -> Id {
        Id(self.author_id)
    }

    pub(crate) fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// Whether who follows the author sees it, given which authors are friends.
    pub(crate) fn is_shown_to_follower(&self, friends: &HashSet<Id>) -> bool {
        self.status == "published"
            && match self.visibility {
                Visibility::Public | Visibility::Followers => true,
                Visibility::Friends => friends.contains(&self.author()),
                Visibility::Private => false,
            }
    }

    /// As it is shown.
    pub(crate) fn shown(self, names: AuthorNames) -> Post {
        let username = match names {
            AuthorNames::Live => self.author.username,
            AuthorNames::AsPosted => self.posted_as,
        };
        Post {
            id: Id(self.id),
            author: Card { id: Id(self.author_id), username, avatar: self.author.avatar },
            content: self.content,
            images: self.images,
            visibility: self.visibility,
            like_count: self.like_count,
            comment_count: self.comment_count,
            version: self.version,
            created_at: Time(self.created_at),
            edited_at: self.edited_at.map(Time),
        }
    }
}

impl Network {
    /// Posts by a filter, in the store's order or the newest first.
    pub(crate) async fn listed(&self, filter: Document, sort: Option<Document>, limit: usize) -> Result<Vec<Listed>> {
        let projection = Some(doc! { "history": 0, "latestComments": 0 });
        let page = Find { sort, projection, limit: limit as i64, ..Find::default() };
        let (mut found, mut posts) = (self.collection(POSTS).stream(filter, page, None).await?, Vec::new());
        while let Some(post) = found.next_raw(None).await? {
            posts.push(bson::deserialize_from_slice(post.as_bytes()).map_err(store::Error::from)?);
        }
        Ok(posts)
    }
}
