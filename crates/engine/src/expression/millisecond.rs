//! `{$millisecond: date}` or `{$millisecond: {date, timezone}}`: the millisecond, 0 to 999.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/millisecond/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$millisecond",
    parse: |argument, parser| date_part("$millisecond", argument, parser, |civil| (civil.millisecond as i32).into()),
};
