//! `{field: {$gte: value}}`: a value at the path of the same kind is greater or equal.
//!
//! Only values of one kind are compared (see [`super::inequality`]). Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/gte/>.

use super::inequality::{Kind, parse};
use super::{Operator, Parse};
use std::cmp::Ordering;

static KIND: Kind = Kind { name: "$gte", side: Ordering::Greater, or_equal: true };

pub(super) const OPERATOR: Operator =
    Operator { name: "$gte", parse: Parse::Field(|field, argument, parser| parse(&KIND, field, argument, parser)) };
