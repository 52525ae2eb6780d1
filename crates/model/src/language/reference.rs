//! `ref NAME to=ENTITY [on-delete=keep|restrict|cascade|nullify] [required] [many max=N] { expect … }`
//!
//! The id of another entity's document, with the type of that id. When the referred document is deleted: `keep` (the
//! default, as in MongoDB) leaves the id, `restrict` refuses the delete, `cascade` deletes the referring documents,
//! `nullify` sets the field to null. `many` makes it a bounded array of ids. `expect typical= max= growth=` in its block
//! says how many documents refer to one.

use super::expect::{self, Expect};
use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};
use std::ops::Not;

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "ref",
    places: &[Place::Entity, Place::Embed, Place::Edge],
    syntax: "ref NAME to=ENTITY on-delete=keep required=#true { expect typical=N max=N }",
    meaning: "the id of another entity's document",
    parse,
};

/// A reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ref {
    /// The field that holds the id.
    pub name: String,
    /// The entity it refers to.
    pub to: String,
    /// What a delete of the referred document does.
    pub on_delete: OnDelete,
    /// Whether it must be there.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub required: bool,
    /// Whether each referred document has at most one referring one.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub unique: bool,
    /// An array of ids.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub many: bool,
    /// The longest array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// How many documents refer to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// What the delete of a referred document does to those that refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDelete {
    /// The id stays and points nowhere.
    Keep,
    /// The delete is refused while there are any.
    Restrict,
    /// They are deleted too.
    Cascade,
    /// Their field becomes null.
    Nullify,
}

const ON_DELETE: &[(&str, OnDelete)] = &[
    ("keep", OnDelete::Keep),
    ("restrict", OnDelete::Restrict),
    ("cascade", OnDelete::Cascade),
    ("nullify", OnDelete::Nullify),
];

impl Ref {
    /// A plain reference.
    pub fn new(name: impl Into<String>, to: impl Into<String>, span: Span) -> Ref {
        Ref {
            name: name.into(),
            to: to.into(),
            on_delete: OnDelete::Keep,
            required: false,
            unique: false,
            many: false,
            max: None,
            expect: None,
            span,
        }
    }
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let mut reference = Ref::new("", "", span);
    reference.required = args.flag("required");
    reference.unique = args.flag("unique");
    reference.many = args.flag("many");
    reference.name = args.name("a reference");
    reference.to = args.required("to");
    reference.max = args.positive_integer("max");
    if let Some(on_delete) = args.choice("on-delete", ON_DELETE) {
        reference.on_delete = on_delete;
    }
    if reference.many && reference.max.is_none() {
        let message = format!(
            "`{}` may grow without bound: give it `max=N`, or let the other side refer to this one, or declare an `edge`",
            reference.name
        );
        args.wrong("unbounded-embed", span, message);
    }
    if reference.required && reference.on_delete == OnDelete::Nullify {
        args.wrong("bad-value", span, "a `required` reference cannot be nullified on delete".into());
    }
    args.finish();
    let name = reference.name.clone();
    reader.lines(node, &name, &["expect"], |reader, child| reference.expect = Some(expect::read(reader, child)));
    target.body().refs.push(reference);
}
