//! `{$hour: date}` or `{$hour: {date, timezone}}`: the hour, 0 to 23.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/hour/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$hour",
    parse: |argument, parser| date_part("$hour", argument, parser, |civil| (civil.hour as i32).into()),
};
