//! `{$alwaysFalse: 1}`: no document.

use super::always_true::must_be_one;
use super::{Node, Operator, Parse};

pub(super) const OPERATOR: Operator = Operator {
    name: "$alwaysFalse",
    parse: Parse::Top(|argument, _| {
        must_be_one("$alwaysFalse", argument)?;
        Ok(Node::Always(false))
    }),
};
