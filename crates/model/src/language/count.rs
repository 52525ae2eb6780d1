//! `count NAME of=CHILD by=FIELD { where … }`: how many children there are, as a 64-bit integer on the parent.
//!
//! A parent without children has 0, from its insert on.

use super::derived::{self, Kind};
use super::{Declaration, Place};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "count",
    places: &[Place::Entity],
    syntax: "count NAME of=CHILD by=FIELD { where FIELD VALUE … }",
    meaning: "how many children there are",
    parse: |reader, node, target| derived::parse(reader, node, target, Kind::Count, ROW.syntax),
};
