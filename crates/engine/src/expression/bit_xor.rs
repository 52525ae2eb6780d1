//! `{$bitXor: [integer, …]}`: the bitwise exclusive or; `0` without operands.
//!
//! An int64 when an operand is one, otherwise an int32; null when an operand is null. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/bitXor/>.

use super::Operator;
use super::bitwise::bitwise;

pub(super) const OPERATOR: Operator =
    Operator { name: "$bitXor", parse: |argument, parser| bitwise("$bitXor", argument, parser, 0, |a, b| a ^ b) };
