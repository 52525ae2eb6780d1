//! `embed NAME one { … }` and `embed NAME many max=N [key=FIELD] [when-full=reject|drop-oldest] { … }`
//!
//! Documents owned by their parent: read with it, written with it, deleted with it. `many` needs a bound; `key` names
//! the field that tells elements apart within one parent. When the array is full, a further element is refused
//! (`reject`, the default) or the oldest one is dropped.

use super::expect::Expect;
use super::{Args, Declaration, Place, Reader, Target};
use crate::model::Body;
use crate::problem::Span;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};
use std::ops::Not;

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "embed",
    places: &[Place::Entity, Place::Embed, Place::Edge],
    syntax: "embed NAME one { … } or embed NAME many max=N key=FIELD when-full=reject { … }",
    meaning: "one or several documents owned by the parent",
    parse,
};

/// Documents inside another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Embed {
    /// The field that holds them.
    pub name: String,
    /// An array instead of one document.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub many: bool,
    /// Whether it must be there.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub required: bool,
    /// The longest array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// The field that tells elements apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What happens to an element too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_full: Option<WhenFull>,
    /// Elements of a usual and of the largest parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// What an element holds.
    #[serde(flatten)]
    pub body: Body,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// What happens to an element that the array has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// The write is refused.
    Reject,
    /// The oldest element makes room.
    DropOldest,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let many = args.flag("many");
    let one = args.flag("one");
    let required = args.flag("required");
    let name = args.name("an embed");
    let mut embed = Embed {
        name,
        many,
        required,
        max: args.positive_integer("max"),
        key: args.text("key"),
        when_full: args.choice("when-full", &[("reject", WhenFull::Reject), ("drop-oldest", WhenFull::DropOldest)]),
        expect: None,
        body: Body::default(),
        span,
    };
    if many && one {
        args.wrong("bad-value", span, "it is either `one` or `many`".into());
    } else if !many {
        for key in ["max", "key", "when-full"] {
            let given = args.span_of(key);
            if given.offset != span.offset {
                args.wrong("bad-value", given, format!("`{key}` belongs to `many`"));
            }
        }
    } else if embed.max.is_none() {
        args.wrong("unbounded-embed", span, unbounded(&embed.name));
    }
    if many && embed.when_full.is_none() {
        embed.when_full = Some(WhenFull::Reject);
    }
    args.finish();
    let path = embed.name.clone();
    reader.children(node, &path, Target::Embed(&mut embed.body, &mut embed.expect));
    target.body().embeds.push(embed);
}

fn unbounded(name: &str) -> String {
    format!(
        "`{name}` may grow without bound: give it `max=N`, keep the newest ones only (`recent`), or make it an entity of \
         its own with a `ref`"
    )
}
