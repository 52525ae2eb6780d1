//! `expect …`: what the numbers will be.
//!
//! In an entity: `expect count=N [growth="N/day"] [changes="N/s"] [size=BYTES]`, the documents there will be, how many
//! are added and changed, and the bytes of one, if the declared fields don't say it.
//! In an `embed many`, a `ref` and an `edge`: `expect typical=N max=N [growth="N/day"]`, the elements or children one
//! parent has in the usual and in the worst case, and how many the busiest parent gains.

use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use crate::value::Rate;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "expect",
    places: &[Place::Entity, Place::Embed, Place::Edge],
    syntax: "expect count=N typical=N max=N growth=\"N/day\" changes=\"N/s\" size=BYTES",
    meaning: "expected counts, growth, rates of change and sizes",
    parse,
};

/// Expected numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Expect {
    /// Documents in the collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Elements or children of a usual parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<u64>,
    /// Elements or children of the largest parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Additions: to the collection, or to the busiest parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Rate>,
    /// Changes of existing documents or elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Rate>,
    /// Bytes of one document, or of one element with its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let expect = read(reader, node);
    let slot = target.expect();
    if slot.is_some() {
        let span = reader.head_span(node);
        let mut args = Args::new(reader, node, ROW.syntax);
        args.wrong("duplicate", span, "`expect` stands here twice".into());
    }
    *slot = Some(expect);
}

/// Reads an `expect` line.
pub(super) fn read(reader: &mut Reader, node: &KdlNode) -> Expect {
    let mut args = Args::new(reader, node, ROW.syntax);
    let expect = Expect {
        count: args.integer("count"),
        typical: args.integer("typical"),
        max: args.positive_integer("max"),
        growth: args.rate("growth"),
        changes: args.rate("changes"),
        size: args.positive_integer("size"),
        span: args.span(),
    };
    if let (Some(typical), Some(max)) = (expect.typical, expect.max)
        && typical > max
    {
        let span = args.span_of("typical");
        args.wrong("bad-value", span, format!("`typical` ({typical}) is more than `max` ({max})"));
    }
    args.finish();
    reader.no_children(node);
    expect
}
