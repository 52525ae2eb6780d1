//! `{$year: date}` or `{$year: {date, timezone}}`: the year.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/year/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$year",
    parse: |argument, parser| date_part("$year", argument, parser, |civil| (civil.year as i32).into()),
};
