//! `compress FIELD [above=BYTES] [with=zstd|gzip]`: a large field, compressed in place.
//!
//! Sheaf's services store the value as binary when it is larger than `above` bytes (4096 unless given). Such a field
//! can be neither filtered nor sorted by.

use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "compress",
    places: &[Place::Entity],
    syntax: "compress FIELD above=4096 with=zstd",
    meaning: "a large field, compressed in place",
    parse,
};

/// A compressed field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compress {
    /// The field.
    pub field: String,
    /// Values up to this many bytes are left alone.
    pub above: u64,
    /// How it is compressed.
    pub with: Codec,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// How a field is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// Zstandard.
    Zstd,
    /// Gzip, which every language can read.
    Gzip,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let field = args.name("the field");
    let above = args.integer("above").unwrap_or(4096);
    let with = args.choice("with", &[("zstd", Codec::Zstd), ("gzip", Codec::Gzip)]).unwrap_or(Codec::Zstd);
    args.finish();
    reader.no_children(node);
    target.entity().parts.compressed.push(Compress { field, above, with, span });
}
