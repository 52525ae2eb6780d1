//! `min NAME of=CHILD by=FIELD field=FIELD { where … }`: the smallest value of a field of the children.
//!
//! Absent while there is no child with the field. When the child that holds it goes, the next one is looked up.

use super::derived::{self, Kind};
use super::{Declaration, Place};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "min",
    places: &[Place::Entity],
    syntax: "min NAME of=CHILD by=FIELD field=FIELD { where FIELD VALUE … }",
    meaning: "the smallest value of a field of the children",
    parse: |reader, node, target| derived::parse(reader, node, target, Kind::Min, ROW.syntax),
};
