//! What is asked: a relation between a parent and its children, or a field of one document wanted in another.
//!
//! Both are plain numbers, so that they come from a model, from a measured database or from a person's answers alike.

use serde::Serialize;

/// A parent and its children.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Relation {
    /// Its name, such as `article.comment`.
    pub name: String,
    /// The parent's entity.
    pub parent: String,
    /// The children's entity or field.
    pub child: String,
    /// How it is declared now.
    pub declared: &'static str,
    /// How many parents there are.
    pub parents: u64,
    /// Children of a usual parent.
    pub typical: u64,
    /// Children of the largest parent.
    pub max: u64,
    /// Children that the busiest parent gains in a day.
    pub growth_per_day: f64,
    /// The number of children that the declaration lets no parent exceed.
    pub bound: Option<u64>,
    /// Bytes of a child as an array's element, its key included.
    pub element_bytes: u64,
    /// Bytes of a child as a document of its own.
    pub document_bytes: u64,
    /// Bytes of a parent without its children.
    pub parent_bytes: u64,
    /// Whether a child has several parents of the same kind, as a tag or a follower has.
    pub many_to_many: bool,
    /// How many parents show the same child; 1 for a child of their own.
    pub shared_by: u64,
    /// How it is read.
    pub reads: Reads,
    /// How it is written.
    pub writes: Writes,
}

/// Reads per second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reads {
    /// A parent together with children.
    pub parent_with: f64,
    /// How many children are shown then.
    pub shown: u64,
    /// A parent without its children.
    pub parent_alone: f64,
    /// Children of one parent without it, in pages.
    pub pages: f64,
    /// Children on a page.
    pub page: u64,
    /// One child by its own key, or children of all parents.
    pub singles: f64,
}

/// Writes per second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Writes {
    /// New children of existing parents.
    pub inserts: f64,
    /// Children that are written together with their new parent.
    pub with_parent: f64,
    /// Changed children.
    pub changes: f64,
    /// Changed parents.
    pub parent_changes: f64,
}

/// A field of one document wanted in another.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Wanted {
    /// Its name, such as `order.buyer`.
    pub name: String,
    /// The entity that shows the fields.
    pub holder: String,
    /// The entity that has them.
    pub source: String,
    /// The reference between them.
    pub via: String,
    /// The fields.
    pub fields: Vec<String>,
    /// How it is declared now.
    pub declared: &'static str,
    /// Whether the value of the moment must stay (`true`) or the present one be shown (`false`); unknown without.
    pub of_the_moment: Option<bool>,
    /// Documents that show one source, usually.
    pub typical: u64,
    /// Documents that show one source, at most.
    pub max: u64,
    /// Changes of the fields a second, over all sources.
    pub source_changes: f64,
    /// Queries a second that show the fields.
    pub reads: f64,
    /// Documents in one answer.
    pub page: u64,
    /// New holders a second.
    pub inserts: f64,
    /// Bytes of the fields.
    pub bytes: u64,
    /// Bytes of a holder.
    pub holder_bytes: u64,
    /// Bytes of a source.
    pub source_bytes: u64,
}
