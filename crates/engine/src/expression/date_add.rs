//! `{$dateAdd: {startDate, unit, amount, timezone}}`: the date plus so many units.
//!
//! Days and longer units keep the clock of the time zone. Null when an operand is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateAdd/>.

use super::Operator;
use super::date_shift::date_shift;

pub(super) const OPERATOR: Operator =
    Operator { name: "$dateAdd", parse: |argument, parser| date_shift("$dateAdd", argument, parser, 1) };
