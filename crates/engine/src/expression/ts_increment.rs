//! `{$tsIncrement: timestamp}`: the ordinal within its second of a timestamp, as an int64.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/tsIncrement/>.

use super::Operator;
use super::timestamp::timestamp_part;

pub(super) const OPERATOR: Operator = Operator {
    name: "$tsIncrement",
    parse: |argument, parser| {
        timestamp_part("$tsIncrement", argument, parser, 5687302, |timestamp| timestamp.increment)
    },
};
