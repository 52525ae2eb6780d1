//! What the network's answers look like, for the description. The values are the domain's own, which serialise to this; the
//! tests compare every answer with its schema.

#![allow(dead_code, reason = "these describe what others make")]

use utoipa::ToSchema;

/// A user beside what is the user's.
#[derive(ToSchema)]
pub(crate) struct Card {
    id: String,
    username: String,
    avatar: String,
}

/// A user's page.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct UserProfile {
    id: String,
    username: String,
    avatar: String,
    bio: String,
    follower_count: i64,
    following_count: i64,
    friend_count: i64,
    post_count: i64,
    #[schema(format = DateTime)]
    created_at: String,
}

/// Something a user did, or that was done to what is the user's.
#[derive(ToSchema)]
pub(crate) struct Operation {
    id: String,
    /// E.g. `login`, `postHidden`, `commentRemoved`.
    action: String,
    detail: String,
    #[schema(format = DateTime)]
    at: String,
}

/// A user in a list of relations.
#[derive(ToSchema)]
pub(crate) struct Related {
    user: Card,
    #[schema(format = DateTime)]
    since: String,
}

/// What another user is to the caller.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Standing {
    follows: bool,
    followed_by: bool,
    friends: bool,
    blocked: bool,
    muted: bool,
}

/// An open friend request.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct FriendRequest {
    user: Card,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    expires_at: String,
}

/// Somebody whom the caller may know.
#[derive(ToSchema)]
pub(crate) struct Suggestion {
    user: Card,
    /// How many common friends.
    common: u64,
}

/// Who may see a post.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) enum Visible {
    Public,
    Followers,
    Friends,
    Private,
}

/// A post.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Post {
    id: String,
    author: Card,
    content: String,
    images: Vec<String>,
    visibility: Visible,
    like_count: i64,
    comment_count: i64,
    version: i64,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime, nullable = false)]
    edited_at: Option<String>,
}

/// What a post said before.
#[derive(ToSchema)]
pub(crate) struct Edit {
    content: String,
    #[schema(format = DateTime)]
    until: String,
}

/// A comment.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Comment {
    id: String,
    post: String,
    author: Card,
    text: String,
    #[schema(nullable = false)]
    parent: Option<String>,
    depth: i64,
    reply_count: i64,
    #[schema(format = DateTime)]
    created_at: String,
}

/// Something that happened to a user.
#[derive(ToSchema)]
pub(crate) struct Notification {
    id: String,
    /// `follow`, `friendRequest`, `friendAccepted`, `like`, `comment`, `reply`.
    event: String,
    from: Card,
    subject: String,
    #[schema(format = DateTime)]
    at: String,
    read: bool,
}

/// A live update: its `type` is `notification`, `post`, `message` or `missed`.
#[derive(ToSchema)]
pub(crate) struct Update {
    #[schema(rename = "type")]
    kind: String,
}

/// A conversation, as the caller sees it.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Conversation {
    id: String,
    title: String,
    direct: bool,
    members: Vec<Card>,
    last_number: i64,
    unread: i64,
    #[schema(format = DateTime)]
    last_at: String,
}

/// A message.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Message {
    number: i64,
    sender: String,
    text: String,
    #[schema(format = DateTime)]
    at: String,
    #[schema(format = DateTime, nullable = false)]
    edited_at: Option<String>,
    recalled: bool,
}

/// An upload under way.
#[derive(ToSchema)]
pub(crate) struct Upload {
    id: String,
    received: u64,
    length: u64,
}

/// A file.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct File {
    id: String,
    name: String,
    content_type: String,
    length: u64,
    sha256: String,
    owner: String,
    #[schema(format = DateTime)]
    uploaded_at: String,
}

/// An author of the blog.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct BlogAuthor {
    id: String,
    name: String,
    /// How many articles are published.
    article_count: i64,
    #[schema(format = DateTime, nullable = false)]
    last_published: Option<String>,
}

/// An article in a list.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ArticleEntry {
    id: String,
    author: String,
    author_name: String,
    title: String,
    slug: String,
    tags: Vec<String>,
    /// Since when everybody reads it; a draft without it.
    #[schema(format = DateTime, nullable = false)]
    published_at: Option<String>,
    comment_count: i64,
    version: i64,
}

/// An article.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Article {
    id: String,
    author: String,
    author_name: String,
    title: String,
    slug: String,
    body: String,
    tags: Vec<String>,
    /// Since when everybody reads it; a draft without it.
    #[schema(format = DateTime, nullable = false)]
    published_at: Option<String>,
    comment_count: i64,
    /// The newest ten.
    latest_comments: Vec<Remark>,
    version: i64,
}

/// A comment on an article.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Remark {
    id: String,
    author_name: String,
    text: String,
    #[schema(format = DateTime)]
    created_at: String,
}

/// A machine.
#[derive(ToSchema)]
pub(crate) struct Server {
    id: String,
    host: String,
    region: String,
}

/// How a machine was at a moment.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Reading {
    /// The machine.
    server: String,
    #[schema(format = DateTime)]
    at: String,
    /// Processor use, from zero to one.
    cpu: f64,
    /// Memory use, from zero to one.
    memory: f64,
    /// Free bytes on the disk.
    disk_free: i64,
}

/// What the readings of a window come to.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct Window {
    /// When it begins.
    #[schema(format = DateTime)]
    at: String,
    /// How many.
    readings: i64,
    /// The mean.
    cpu: f64,
    highest_cpu: f64,
    /// The mean.
    memory: f64,
    least_disk_free: i64,
}

/// How much a line matters.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) enum LogLevel {
    Debug,
    Info,
    Warning,
    Error,
}

/// A line of a machine's log.
#[derive(ToSchema)]
pub(crate) struct LogLine {
    /// The machine.
    server: String,
    #[schema(format = DateTime)]
    at: String,
    level: LogLevel,
    #[schema(max_length = 2000)]
    message: String,
}

/// How many lines of a level a window has.
#[derive(ToSchema)]
pub(crate) struct LogWindow {
    /// When it begins.
    #[schema(format = DateTime)]
    at: String,
    level: LogLevel,
    lines: i64,
}
