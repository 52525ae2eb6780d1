//! `{$isoWeekYear: date}` or `{$isoWeekYear: {date, timezone}}`: the year by ISO 8601, which the week belongs to, as an int64.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/isoWeekYear/>.

use super::Operator;
use super::date_part::date_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$isoWeekYear",
    parse: |argument, parser| date_part("$isoWeekYear", argument, parser, |civil| (civil.iso_week().0).into()),
};
