//! `{$ltrim: {input, chars}}`: a string without the given characters at its beginning; white space by default.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/ltrim/>.

use super::Operator;
use super::trim::{parse_trim, trim};

pub(super) const OPERATOR: Operator = Operator {
    name: "$ltrim",
    parse: |argument, parser| parse_trim("$ltrim", argument, parser, |values, _| trim("$ltrim", values, true, false)),
};
