//! `{$dateSubtract: {startDate, unit, amount, timezone}}`: the date minus so many units.
//!
//! Days and longer units keep the clock of the time zone. Null when an operand is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateSubtract/>.

use super::Operator;
use super::date_shift::date_shift;

pub(super) const OPERATOR: Operator =
    Operator { name: "$dateSubtract", parse: |argument, parser| date_shift("$dateSubtract", argument, parser, -1) };
