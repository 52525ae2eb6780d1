//! What `count`, `sum`, `min`, `max` and `latest` share: a value on a parent, derived from its children.
//!
//! `of=` names the children's entity, `by=` their field that holds the parent's id (a `ref`, or a field of the id's
//! type). `where` lines choose among the children by their own fields.

use super::copy::{self, Copied};
use super::filter::{self, Condition};
use super::{Args, Reader, Target};
use crate::problem::Span;
use crate::value::SortKey;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// A derived value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    /// The parent's field that holds it.
    pub name: String,
    /// How it is derived.
    pub kind: Kind,
    /// The children's entity.
    pub of: String,
    /// The children's field that holds the parent's id.
    pub by: String,
    /// The children's field that is added up or compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What makes a child the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<SortKey>,
    /// What of the latest child is copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Copied>,
    /// Which children count.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<Condition>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// How a value is derived from children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// How many there are.
    Count,
    /// A field added up.
    Sum,
    /// A field's smallest value.
    Min,
    /// A field's largest value.
    Max,
    /// The child that comes last in an order.
    Latest,
}

impl Kind {
    /// The declaration's name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Count => "count",
            Kind::Sum => "sum",
            Kind::Min => "min",
            Kind::Max => "max",
            Kind::Latest => "latest",
        }
    }
}

/// Reads one of the five declarations.
pub(super) fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>, kind: Kind, syntax: &'static str) {
    let mut args = Args::new(reader, node, syntax);
    let span = args.span();
    let name = args.name("the derived value");
    let of = args.required("of");
    let by = args.required("by");
    let field = matches!(kind, Kind::Sum | Kind::Min | Kind::Max).then(|| args.required("field"));
    let order = match kind {
        Kind::Latest => {
            args.required("order");
            args.sort_key("order")
        }
        _ => None,
    };
    args.finish();
    let mut filter = Vec::new();
    let mut fields = Vec::new();
    let known: &[&str] = if kind == Kind::Latest { &["where", "fields", "field"] } else { &["where"] };
    reader.lines(node, &name, known, |reader, child| match child.name().value() {
        "where" => filter::line(reader, child, &mut filter),
        _ => copy::line(reader, child, &mut fields),
    });
    fields.sort();
    if kind == Kind::Latest && fields.is_empty() {
        let mut args = Args::new(reader, node, syntax);
        args.wrong("missing", span, "name the child's fields to keep in a block".into());
    }
    target.entity().parts.derived.push(Derived { name, kind, of, by, field, order, fields, filter, span });
}
