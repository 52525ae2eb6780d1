//! `{$bitOr: [integer, …]}`: the bitwise or; `0` without operands.
//!
//! An int64 when an operand is one, otherwise an int32; null when an operand is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/bitOr/>.

use super::Operator;
use super::bitwise::bitwise;

pub(super) const OPERATOR: Operator =
    Operator { name: "$bitOr", parse: |argument, parser| bitwise("$bitOr", argument, parser, 0, |a, b| a | b) };
