//! `{$bitAnd: [integer, …]}`: the bitwise and; `-1` without operands.
//!
//! An int64 when an operand is one, otherwise an int32; null when an operand is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/bitAnd/>.

use super::Operator;
use super::bitwise::bitwise;

pub(super) const OPERATOR: Operator =
    Operator { name: "$bitAnd", parse: |argument, parser| bitwise("$bitAnd", argument, parser, -1, |a, b| a & b) };
