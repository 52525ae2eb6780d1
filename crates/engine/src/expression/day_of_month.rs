//! `{$dayOfMonth: date}` or `{$dayOfMonth: {date, timezone}}`: the day of the month, 1 to 31.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dayOfMonth/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$dayOfMonth",
    parse: |argument, parser| date_part("$dayOfMonth", argument, parser, |civil| (civil.day as i32).into()),
};
