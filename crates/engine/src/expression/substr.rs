//! `{$substr: [string, start, length]}`: the old name of `$substrBytes`.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/substr/>.

use super::Operator;
use super::operand::function;
use super::substr_bytes::substr_bytes;

pub(super) const OPERATOR: Operator =
    Operator { name: "$substr", parse: |argument, parser| function("$substr", argument, parser, substr_bytes) };
