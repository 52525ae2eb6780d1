//! `shard FIELD… [hashed]` and `shard auto`: how the collection is spread over shards.
//!
//! `auto` (also the meaning of no declaration on a sharded deployment) lets `sheaf plan` choose the key. `hashed` hashes
//! the first field.

use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};
use std::ops::Not;

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "shard",
    places: &[Place::Entity],
    syntax: "shard FIELD FIELD … or shard FIELD hashed or shard auto",
    meaning: "the shard key",
    parse,
};

/// A shard key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shard {
    /// Its fields; none means that the plan chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Whether the first field is hashed.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub hashed: bool,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let hashed = args.flag("hashed");
    let mut fields = args.words();
    if fields.is_empty() {
        args.wrong("missing", span, "name the key's fields, or write `shard auto`".into());
    }
    if fields.len() == 1 && fields[0] == "auto" {
        fields.clear();
        if hashed {
            args.wrong("bad-value", span, "`auto` decides about `hashed` too".into());
        }
    }
    if target.entity().parts.shard.is_some() {
        args.wrong("duplicate", span, "an entity has one `shard`".into());
    }
    args.finish();
    reader.no_children(node);
    target.entity().parts.shard = Some(Shard { fields, hashed, span });
}
