//! `{$alwaysTrue: 1}`: every document.

use super::{Node, Operator, Parse};
use crate::document::number::exact_i64;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator {
    name: "$alwaysTrue",
    parse: Parse::Top(|argument, _| {
        must_be_one("$alwaysTrue", argument)?;
        Ok(Node::Always(true))
    }),
};

/// Refuses any other argument than 1.
pub(super) fn must_be_one(name: &str, argument: RawBsonRef<'_>) -> Result<()> {
    match exact_i64(argument) {
        Some(1) => Ok(()),
        _ => Err(Error::failed_to_parse(format!("{name} must be an integer value of 1"))),
    }
}
