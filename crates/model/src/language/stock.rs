//! `stock FIELD [kept] ledger=C [holds=C] [hold-for=DURATION] [held=FIELD]`: a quantity that never goes below zero.
//!
//! FIELD is the quantity available, a 64-bit integer. Every movement appends a line to the ledger's collection: item,
//! quantity, before, after, why, who, when. With `holds` a quantity can be set aside for `hold-for` (15 minutes unless
//! given), after which it comes back; `held` names the field with the sum of the holds (FIELD + "Held" unless given).
//!
//! With `kept` the model itself keeps the quantities, as it keeps counts and sums: FIELD is what the ledger's lines add up to
//! less what the holds set aside, and nobody writes it. A line is `{item, quantity, …}`, a hold `{item, quantity, …}`.

use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use crate::value::Duration;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "stock",
    places: &[Place::Entity],
    syntax: "stock FIELD kept ledger=COLLECTION holds=COLLECTION hold-for=\"15m\"",
    meaning: "a quantity that never goes below zero, with holds and a ledger",
    parse,
};

/// A guarded quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stock {
    /// The field with the quantity available.
    pub name: String,
    /// Whether the model keeps the quantities from ledger and holds; else whoever writes them does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// The collection of the movements.
    pub ledger: String,
    /// The collection of the holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// The field with the sum of the holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// How long a hold lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_for: Option<Duration>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("the quantity");
    let kept = args.flag("kept");
    let ledger = args.required("ledger");
    let holds = args.text("holds");
    let (mut held, mut hold_for) = (args.text("held"), args.duration("hold-for"));
    if holds.is_some() {
        held = held.or_else(|| Some(format!("{name}Held")));
        hold_for = hold_for.or(Some(Duration { ms: 900_000 }));
    } else if held.is_some() || hold_for.is_some() {
        args.wrong("missing", span, "`held` and `hold-for` need `holds=COLLECTION`".into());
    }
    args.finish();
    reader.no_children(node);
    target.entity().parts.stocks.push(Stock { name, kept, ledger, holds, held, hold_for, span });
}
