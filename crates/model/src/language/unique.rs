//! `unique FIELD FIELD … { where … }`: no two documents have the same values in these fields together.
//!
//! For one field alone write `field NAME TYPE unique`. With `where` lines only the documents they choose are compared (a
//! partial index).

use super::filter::{self, Condition};
use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "unique",
    places: &[Place::Entity],
    syntax: "unique FIELD FIELD …",
    meaning: "a unique key over several fields",
    parse,
};

/// A unique key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unique {
    /// Its fields, in the order of the index.
    pub fields: Vec<String>,
    /// Which documents are compared.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<Condition>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let fields = args.words();
    if fields.is_empty() {
        args.wrong("missing", span, "name the fields".into());
    }
    args.finish();
    let mut filter = Vec::new();
    reader.lines(node, "unique", &["where"], |reader, child| filter::line(reader, child, &mut filter));
    target.entity().parts.uniques.push(Unique { fields, filter, span });
}
