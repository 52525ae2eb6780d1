//! `snapshot [NAME] via=REF [fill=missing|always|never] { fields … }`: fields of the referred document, frozen.
//!
//! They are filled when the document is written: `missing` (the default) fills those the writer left out, `always`
//! replaces what the writer sent, `never` takes them from the writer. Afterwards they don't change, whatever happens to
//! the source. With a NAME they stand in a sub-document, otherwise beside the reference.

use super::copy::{self, Copied};
use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "snapshot",
    places: &[Place::Entity, Place::Embed, Place::Edge],
    syntax: "snapshot NAME via=REF fill=missing { fields FIELD FIELD … }",
    meaning: "fields of a referred document, frozen at write time",
    parse,
};

/// A frozen copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The sub-document it stands in; beside the reference without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The reference to the source.
    pub via: String,
    /// When the copy is taken from the source.
    pub fill: Fill,
    /// What is copied.
    pub fields: Vec<Copied>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// When a snapshot is taken from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// Where the writer left a field out.
    Missing,
    /// Whatever the writer sent.
    Always,
    /// Never: the writer provides it.
    Never,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let fill = args.choice("fill", &[("missing", Fill::Missing), ("always", Fill::Always), ("never", Fill::Never)]);
    let span = args.span();
    let via = args.required("via");
    let name = args.word();
    args.finish();
    let fields = copy::block(reader, node, name.as_deref().unwrap_or("snapshot"));
    if fields.is_empty() {
        let mut args = Args::new(reader, node, ROW.syntax);
        args.wrong("missing", span, "name the fields to copy in a block".into());
    }
    let fill = fill.unwrap_or(Fill::Missing);
    target.body().snapshots.push(Snapshot { name, via, fill, fields, span });
}
