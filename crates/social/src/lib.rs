//! A social network on a store: follows, friendships, blocks, posts, feeds, likes, comments, notifications.
//!
//! The documents are those of `models/social` and `models/chat`. All of it works alike on the engine in this process, where the model layer
//! keeps counts and copies in each write, and on a MongoDB deployment, where the network does it in each write's transaction.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use social::{Network, NewPost, PageRequest};
//! let store = store::Store::in_memory().unwrap();
//! Network::keep_model(&store, "social")?;
//! let network = Network::new(store, "social");
//! network.ensure_indexes().await?;
//! let (ada, bob) = (network.add_user("ada").await?, network.add_user("bob").await?);
//! network.follow(bob, ada).await?;
//! network.post(ada, &NewPost::text("hello")).await?;
//! let feed = network.feed(bob, &PageRequest::default()).await?;
//! assert_eq!(feed.items[0].content, "hello");
//! assert_eq!(network.profile(ada).await?.follower_count, 1);
//! # Ok::<(), social::Error>(()) }).unwrap();
//! ```
//!
//! | subject | module |
//! |---|---|
//! | users, names | `user` |
//! | follows, lists, what users are to each other | `follow` |
//! | blocks, mutes | `block` |
//! | friend requests, friendships | `friend` |
//! | common friends, friends of friends | `mutual` |
//! | posts | `post` |
//! | inboxes: joining, bounds | `inbox` |
//! | posts on their way to their readers | `fanout` |
//! | the feed, posts in lists | `feed`, `listed` |
//! | conversations and messages | `chat` |
//! | files | `files` |
//! | doing a thing once | `once` |
//! | what moderators take down, users who leave for good | `moderation`, `departure` |
//! | what users did, readings and logs of machines | `operations`, `metrics` |
//! | articles with comments, in a database of their own | `blog` |
//! | likes, comments, notifications, live updates | `like`, `comment`, `notification`, `updates` |
//!
//! Background work ([`Network::run`], or [`Network::work`] step by step) takes posts to inboxes and new names to their
//! copies. Nothing is lost while it doesn't run; only inboxes stay behind.

mod block;
mod blog;
mod chat;
mod comment;
mod departure;
mod error;
mod fanout;
mod feed;
mod files;
mod follow;
mod friend;
mod id;
mod inbox;
mod like;
mod listed;
mod metrics;
mod moderation;
mod mutual;
mod network;
mod notification;
mod once;
mod operations;
mod post;
mod read;
mod settings;
mod updates;
mod user;

pub use blog::{
    Article, ArticleChange, Author, BLOG_MODEL, Blog, By, MAX_BODY, MAX_EMAIL, MAX_SLUG, MAX_TAG, MAX_TAGS, MAX_TITLE,
    NewArticle, Of, Remark,
};
pub use chat::{CHUNK_BYTES, CHUNK_ITEMS, Conversation, MAX_MEMBERS, MAX_MESSAGE, Message};
pub use comment::{Comment, MAX_COMMENT};
pub use error::{Error, Result};
pub use fanout::{FanOut, Worked};
pub use files::{Access, FILE_CHUNK, File, MAX_FILE, NewFile, Upload};
pub use follow::{MAX_ASKED, Related, Standing};
pub use friend::FriendRequest;
pub use id::{Id, MAX_PAGE, Page, PageRequest, Time};
pub use metrics::{
    Level, LogLine, LogWindow, MAX_LINE, MAX_READINGS, MAX_SERVER_TEXT, MAX_WINDOWS, Metrics, Reading, Server, Unit,
    Window,
};
pub use mutual::{Circle, Suggestion};
pub use network::{MODEL, Network};
pub use notification::{Event, Notification};
pub use once::MAX_KEY;
pub use operations::{MAX_ACTION, MAX_DETAIL, Operation};
pub use post::{Edit, MAX_CONTENT, MAX_IMAGES, NewPost, Post, PostChange, Visibility};
pub use settings::{Assignment, AuthorNames, Keeping, Settings};
pub use updates::{Change, Update, Updates, WAITING_UPDATES};
pub use user::{Card, MAX_NAME, Profile, ProfileChange};
