//! `{$rtrim: {input, chars}}`: a string without the given characters at its end; white space by default.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/rtrim/>.

use super::Operator;
use super::trim::{parse_trim, trim};

pub(super) const OPERATOR: Operator = Operator {
    name: "$rtrim",
    parse: |argument, parser| parse_trim("$rtrim", argument, parser, |values, _| trim("$rtrim", values, false, true)),
};
