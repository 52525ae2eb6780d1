//! `{$minute: date}` or `{$minute: {date, timezone}}`: the minute, 0 to 59.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/minute/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$minute",
    parse: |argument, parser| date_part("$minute", argument, parser, |civil| (civil.minute as i32).into()),
};
