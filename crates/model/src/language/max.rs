//! `max NAME of=CHILD by=FIELD field=FIELD { where … }`: the largest value of a field of the children.
//!
//! Absent while there is no child with the field. When the child that holds it goes, the next one is looked up.

use super::derived::{self, Kind};
use super::{Declaration, Place};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "max",
    places: &[Place::Entity],
    syntax: "max NAME of=CHILD by=FIELD field=FIELD { where FIELD VALUE … }",
    meaning: "the largest value of a field of the children",
    parse: |reader, node, target| derived::parse(reader, node, target, Kind::Max, ROW.syntax),
};
