//! `bucket NAME of=CHILD by=FIELD order=FIELD items=N bytes=N [collection=C] { fields … }`: children packed into chunks.
//!
//! A chunk is a document of its own: `{_id: {by, n}, <by>, n, count, bytes, first, last, items: […]}`. It holds the
//! children of one parent that follow each other in the order, at most `items` of them and `bytes` bytes; a range of the
//! order is read from few documents. The children stay the source; without `fields` a chunk holds them whole.

use super::copy::{self, Copied};
use super::entity::check_collection;
use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use crate::value::SortKey;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "bucket",
    places: &[Place::Entity],
    syntax: "bucket NAME of=CHILD by=FIELD order=FIELD items=30 bytes=65536",
    meaning: "children packed into chunk documents, bounded by items and bytes",
    parse,
};

/// The most bytes a chunk may be declared to hold.
pub const MAX_BYTES: u64 = 1 << 20;

/// Children packed into chunks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// The collection of the chunks.
    pub collection: String,
    /// The children's entity.
    pub of: String,
    /// The children's field that holds the parent's id.
    pub by: String,
    /// The order of the children.
    pub order: SortKey,
    /// The most children in one chunk.
    pub items: u64,
    /// The most bytes in one chunk.
    pub bytes: u64,
    /// What of a child is copied; everything without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Copied>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("the bucket");
    let collection = args.text("collection").unwrap_or_else(|| name.clone());
    check_collection(&mut args, &collection);
    let (of, by) = (args.required("of"), args.required("by"));
    args.required("order");
    let order = args.sort_key("order").unwrap_or(SortKey { path: "_id".into(), descending: false });
    let items = args.positive_integer("items");
    let bytes = args.positive_integer("bytes").unwrap_or(64 * 1024);
    if items.is_none() {
        args.wrong("missing", span, "`items=` is missing, the most children in one chunk".into());
    }
    if bytes > MAX_BYTES {
        let span = args.span_of("bytes");
        args.wrong("bad-value", span, format!("a chunk is rewritten with every child: at most {MAX_BYTES} bytes"));
    }
    args.finish();
    let fields = copy::block(reader, node, &name);
    let items = items.unwrap_or(1);
    target.entity().parts.buckets.push(Bucket { name, collection, of, by, order, items, bytes, fields, span });
}
