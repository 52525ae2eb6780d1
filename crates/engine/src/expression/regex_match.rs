//! `{$regexMatch: {input, regex, options}}`: whether a regular expression matches somewhere in a string.
//!
//! False when the input or the expression is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/regexMatch/>.

use super::regex_arguments::{Matcher, Matching};
use super::{Compiled, Expression, Operator, Scope};
use crate::document::Value;
use crate::error::Result;

pub(super) const OPERATOR: Operator = Operator {
    name: "$regexMatch",
    parse: |argument, parser| {
        Ok(Box::new(RegexMatch { matcher: Matcher::parse("$regexMatch", argument, parser)? }) as Compiled)
    },
};

#[derive(Debug)]
struct RegexMatch {
    matcher: Matcher,
}

impl Expression for RegexMatch {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        Ok(Value::from(match self.matcher.evaluate(scope)? {
            Some(Matching { regex, text }) => regex.is_match(&text)?,
            None => false,
        }))
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.matcher.each_operand(visit);
    }
}
