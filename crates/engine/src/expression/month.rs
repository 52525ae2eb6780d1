//! `{$month: date}` or `{$month: {date, timezone}}`: the month, 1 to 12.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/month/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$month",
    parse: |argument, parser| date_part("$month", argument, parser, |civil| (civil.month as i32).into()),
};
