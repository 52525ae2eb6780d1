//! Articles with their newest comments on board, the rest a page away.
//!
//! The documents are those of `models/blog`. What the model keeps (counts, the author's name on the article, the newest
//! comments) is left to the model layer where the store has its hook, and kept here in each write's transaction elsewhere.
//!
//! | subject | module |
//! |---|---|
//! | who writes | `author` |
//! | drafts, articles, their lists | `article` |
//! | comments | `remark` |

mod article;
mod author;
mod remark;

pub use article::{Article, ArticleChange, MAX_BODY, MAX_SLUG, MAX_TAG, MAX_TAGS, MAX_TITLE, NewArticle, Of};
pub use author::{Author, MAX_EMAIL};
pub use remark::{By, Remark};

use crate::error::Result;
use crate::network::{Network, ONCE_KEYS, keep};
use crate::once::KEEP_KEYS;
use crate::settings::{Keeping, Settings};
use bson::doc;
use store::{Index, Store};

/// The blog's model, as it stands in `models/blog`: name and text of its file.
pub const BLOG_MODEL: [(&str, &str); 1] = [("blog.sheaf.kdl", include_str!("../../../../models/blog/blog.sheaf.kdl"))];

const AUTHORS: &str = "authors";
const ARTICLES: &str = "articles";
const COMMENTS: &str = "comments";

/// A blog in one database of a store. Clones are the same blog.
#[derive(Clone)]
pub struct Blog {
    /// What a blog shares with a network: transactions, pages, keys of calls.
    network: Network,
}

impl Blog {
    /// A blog in a database; where the store has hooks, whoever opened it has added the model's ([`Blog::keep_model`]).
    pub fn new(store: Store, database: &str, keeping: Keeping) -> Blog {
        Blog { network: Network::of_model(store, database, Settings::new(keeping), &BLOG_MODEL) }
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
        let old = doc! { "expireAfterSeconds": KEEP_KEYS.as_secs() as i64 };
        let all = [
            (AUTHORS, vec![Index::unique(doc! { "email": 1 })]),
            (
                ARTICLES,
                vec![
                    Index::unique(doc! { "slug": 1 }),
                    Index::new(doc! { "status": 1, "publishedAt": -1, "_id": -1 }),
                    published("tags"),
                    published("authorId"),
                    Index::new(doc! { "authorId": 1, "status": 1, "_id": -1 }),
                ],
            ),
            (COMMENTS, vec![Index::new(doc! { "articleId": 1, "status": 1, "createdAt": -1, "_id": -1 })]),
            (ONCE_KEYS, vec![Index { keys: doc! { "at": 1 }, options: old }]),
        ];
        for (collection, indexes) in all {
            self.network.collection(collection).create_indexes(indexes).await?;
        }
        self.network.prepare_accounts().await
    }
}
