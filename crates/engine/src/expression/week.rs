//! `{$week: date}` or `{$week: {date, timezone}}`: the week of the year, 0 to 53; weeks begin on Sundays, and days before the first Sunday are in week 0.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/week/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$week",
    parse: |argument, parser| date_part("$week", argument, parser, |civil| (civil.week() as i32).into()),
};
