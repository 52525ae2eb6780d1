//! `expire FIELD [after=DURATION]`: the end of a document's life.
//!
//! A document is deleted once the date in FIELD lies more than `after` (nothing unless given) in the past. The sweep runs
//! every 60 seconds: whoever must not see an expired document has to look at the date.

use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use crate::value::Duration;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "expire",
    places: &[Place::Entity],
    syntax: "expire FIELD after=\"30d\"",
    meaning: "documents are deleted when their time has come",
    parse,
};

/// The end of a document's life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expire {
    /// The field with the date.
    pub field: String,
    /// How long after it.
    pub after: Duration,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let field = args.name("the field with the date");
    let after = args.duration("after").unwrap_or(Duration { ms: 0 });
    if !after.ms.is_multiple_of(1000) || after.ms > 2_147_483_647_000 {
        let span = args.span_of("after");
        args.wrong("bad-value", span, "`after` is in whole seconds, 2147483647 at most".into());
    }
    if target.entity().parts.expire.is_some() {
        args.wrong("duplicate", span, "an entity has one `expire`".into());
    }
    args.finish();
    reader.no_children(node);
    target.entity().parts.expire = Some(Expire { field, after, span });
}
