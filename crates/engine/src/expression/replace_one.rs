//! `{$replaceOne: {input, find, replacement}}`: a string with the first occurrence of another one replaced.
//!
//! Null when an argument is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/replaceOne/>.

use super::Operator;
use super::replace_all::{parse_replace, replace};

pub(super) const OPERATOR: Operator = Operator {
    name: "$replaceOne",
    parse: |argument, parser| {
        parse_replace("$replaceOne", argument, parser, |values, _| {
            replace("$replaceOne", values, |text, find, replacement| text.replacen(find, replacement, 1))
        })
    },
};
