//! `{$tsSecond: timestamp}`: the seconds since 1970 of a timestamp, as an int64.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/tsSecond/>.

use super::Operator;
use super::timestamp::timestamp_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$tsSecond",
    parse: |argument, parser| timestamp_part("$tsSecond", argument, parser, 5687301, |timestamp| timestamp.time),
};
