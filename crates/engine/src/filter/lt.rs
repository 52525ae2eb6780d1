//! `{field: {$lt: value}}`: a value at the path of the same kind is less.
//!
//! Only values of one kind are compared (see [`super::inequality`]). Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/lt/>.

use super::inequality::{Kind, parse};
use super::{Operator, Parse};
use std::cmp::Ordering;

static KIND: Kind = Kind { name: "$lt", side: Ordering::Less, or_equal: false };

pub(super) const OPERATOR: Operator =
    Operator { name: "$lt", parse: Parse::Field(|field, argument, parser| parse(&KIND, field, argument, parser)) };
