//! `{$isoDayOfWeek: date}` or `{$isoDayOfWeek: {date, timezone}}`: the day of the week by ISO 8601, 1 for Monday to 7 for Sunday.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/isoDayOfWeek/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$isoDayOfWeek",
    parse: |argument, parser| {
        date_part("$isoDayOfWeek", argument, parser, |civil| (civil.iso_day_of_week() as i32).into())
    },
};
