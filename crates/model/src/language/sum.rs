//! `sum NAME of=CHILD by=FIELD field=FIELD { where … }`: a field of the children, added up.
//!
//! The field is an `int`, a `long` (the sum is a long) or a `decimal`; a sum of doubles would depend on the order of the
//! writes and is refused. A child without the field adds nothing.

use super::derived::{self, Kind};
use super::{Declaration, Place};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "sum",
    places: &[Place::Entity],
    syntax: "sum NAME of=CHILD by=FIELD field=FIELD { where FIELD VALUE … }",
    meaning: "a field of the children, added up",
    parse: |reader, node, target| derived::parse(reader, node, target, Kind::Sum, ROW.syntax),
};
