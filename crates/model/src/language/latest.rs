//! `latest NAME of=CHILD by=FIELD order=FIELD { fields …; where … }`: some fields of the last child in an order.
//!
//! They stand in a sub-document, with the child's `_id` and the field of `order`. Among children with the same value of `order` the one with the larger `_id` is the
//! later one.

use super::derived::{self, Kind};
use super::{Declaration, Place};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "latest",
    places: &[Place::Entity],
    syntax: "latest NAME of=CHILD by=FIELD order=FIELD { fields FIELD … }",
    meaning: "some fields of the last child in an order",
    parse: |reader, node, target| derived::parse(reader, node, target, Kind::Latest, ROW.syntax),
};
