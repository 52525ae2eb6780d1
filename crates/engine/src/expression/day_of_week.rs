//! `{$dayOfWeek: date}` or `{$dayOfWeek: {date, timezone}}`: the day of the week, 1 for Sunday to 7 for Saturday.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dayOfWeek/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$dayOfWeek",
    parse: |argument, parser| date_part("$dayOfWeek", argument, parser, |civil| (civil.day_of_week() as i32).into()),
};
