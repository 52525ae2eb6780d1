//! `split NAME collection=C { fields … }`: rarely read fields in a document of their own.
//!
//! The listed fields are stored in another collection under the same `_id`, so that the often read part stays small.
//! Sheaf's services read both with one call where a query names such a field.

use super::entity::check_collection;
use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "split",
    places: &[Place::Entity],
    syntax: "split NAME collection=COLLECTION { fields FIELD FIELD … }",
    meaning: "rarely read fields in a document of their own",
    parse,
};

/// Fields stored apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Its name.
    pub name: String,
    /// The collection of the other part.
    pub collection: String,
    /// The fields stored there.
    pub fields: Vec<String>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("the split");
    let collection = args.text("collection").unwrap_or_else(|| name.clone());
    check_collection(&mut args, &collection);
    args.finish();
    let mut fields = Vec::new();
    reader.lines(node, &name, &["fields"], |reader, child| {
        let mut args = Args::new(reader, child, "fields FIELD FIELD …");
        fields.extend(args.words());
        args.finish();
    });
    if fields.is_empty() {
        let mut args = Args::new(reader, node, ROW.syntax);
        args.wrong("missing", span, "name the fields in a block".into());
    }
    fields.sort();
    target.entity().parts.splits.push(Split { name, collection, fields, span });
}
