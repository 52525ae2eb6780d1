//! `{$isoWeek: date}` or `{$isoWeek: {date, timezone}}`: the week by ISO 8601, 1 to 53.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/isoWeek/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$isoWeek",
    parse: |argument, parser| date_part("$isoWeek", argument, parser, |civil| (civil.iso_week().1 as i32).into()),
};
