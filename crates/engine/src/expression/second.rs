//! `{$second: date}` or `{$second: {date, timezone}}`: the second, 0 to 59.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/second/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$second",
    parse: |argument, parser| date_part("$second", argument, parser, |civil| (civil.second as i32).into()),
};
