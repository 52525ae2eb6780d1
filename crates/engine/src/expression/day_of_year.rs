//! `{$dayOfYear: date}` or `{$dayOfYear: {date, timezone}}`: the day of the year, 1 to 366.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dayOfYear/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$dayOfYear",
    parse: |argument, parser| date_part("$dayOfYear", argument, parser, |civil| (civil.day_of_year() as i32).into()),
};
