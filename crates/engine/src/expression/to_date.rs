//! `{$toDate: expression}`: the value as a date; a number is milliseconds since 1970.
//!
//! Null gives null; what does not convert is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toDate/>.

use super::Operator;
use super::conversion::Target;
use super::shorthand::shorthand;

pub(super) const OPERATOR: Operator =
    Operator { name: "$toDate", parse: |argument, parser| shorthand("$toDate", argument, parser, Target::Date) };
