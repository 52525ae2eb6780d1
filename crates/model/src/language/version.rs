//! `version [FIELD]`: an optimistic lock.
//!
//! FIELD (`version` unless given) is a 64-bit integer that grows by one with every write. Whoever changes a document names
//! the version it read; if another one is stored, nothing is changed.

use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "version",
    places: &[Place::Entity],
    syntax: "version FIELD",
    meaning: "an optimistic lock",
    parse,
};

/// An optimistic lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// The field with the version.
    pub field: String,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let field = args.word().unwrap_or_else(|| "version".into());
    if target.entity().parts.lock.is_some() {
        args.wrong("duplicate", span, "an entity has one `version`".into());
    }
    args.finish();
    reader.no_children(node);
    target.entity().parts.lock = Some(Version { field, span });
}
