//! `recent NAME N of=CHILD by=FIELD order=FIELD { fields …; where … }`: the newest N children, embedded in the parent.
//!
//! All children stay in their own collection; the array holds copies of the last N in the order, newest first,
//! each with its `_id` and the field of `order`. When one
//! of the N is deleted or leaves the filter, the next one moves up.

use super::copy::{self, Copied};
use super::filter::{self, Condition};
use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use crate::value::SortKey;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "recent",
    places: &[Place::Entity],
    syntax: "recent NAME N of=CHILD by=FIELD order=FIELD { fields FIELD … }",
    meaning: "the newest N children embedded, the rest in their own collection",
    parse,
};

/// The newest children.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recent {
    /// The parent's field that holds them.
    pub name: String,
    /// How many.
    pub keep: u64,
    /// The children's entity.
    pub of: String,
    /// The children's field that holds the parent's id.
    pub by: String,
    /// What makes a child newer.
    pub order: SortKey,
    /// What of a child is copied, besides its `_id`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Copied>,
    /// Which children count.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<Condition>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("the embedded list");
    let keep = args.number().filter(|keep| *keep > 0);
    if keep.is_none() {
        args.wrong("missing", span, "how many are kept?".into());
    }
    let (of, by) = (args.required("of"), args.required("by"));
    args.required("order");
    let order = args.sort_key("order").unwrap_or(SortKey { path: "_id".into(), descending: false });
    args.finish();
    let (mut fields, mut filter) = (Vec::new(), Vec::new());
    reader.lines(node, &name, &["where", "fields", "field"], |reader, child| match child.name().value() {
        "where" => filter::line(reader, child, &mut filter),
        _ => copy::line(reader, child, &mut fields),
    });
    fields.sort();
    let recent = Recent { name, keep: keep.unwrap_or(1), of, by, order, fields, filter, span };
    target.entity().parts.recents.push(recent);
}
