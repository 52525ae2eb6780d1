//! `{field: {$gt: value}}`: a value at the path of the same kind is greater.
//!
//! Only values of one kind are compared (see [`super::inequality`]). Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/gt/>.

use super::inequality::{Kind, parse};
use super::{Operator, Parse};
use std::cmp::Ordering;

static KIND: Kind = Kind { name: "$gt", side: Ordering::Greater, or_equal: false };

pub(super) const OPERATOR: Operator =
    Operator { name: "$gt", parse: Parse::Field(|field, argument, parser| parse(&KIND, field, argument, parser)) };
