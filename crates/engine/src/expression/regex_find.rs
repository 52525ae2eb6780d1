//! `{$regexFind: {input, regex, options}}`: the first match of a regular expression, as `{match, idx, captures}`.
//!
//! `idx` counts code points. Null without a match, or when the input or the expression is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/regexFind/>.

use super::regex_arguments::{Matcher, Matching, describe};
use super::{Compiled, Expression, Operator, Scope};
use crate::document::Value;
use crate::error::Result;

pub(super) const OPERATOR: Operator = Operator {
    name: "$regexFind",
    parse: |argument, parser| {
        Ok(Box::new(RegexFind { matcher: Matcher::parse("$regexFind", argument, parser)? }) as Compiled)
    },
};

#[derive(Debug)]
struct RegexFind {
    matcher: Matcher,
}

impl Expression for RegexFind {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let Some(Matching { regex, text }) = self.matcher.evaluate(scope)? else { return Ok(Value::NULL) };
        let Some(captures) = regex.captures_at(&text, 0)? else { return Ok(Value::NULL) };
        let index = text[..captures.whole().start].chars().count();
        Ok(describe(&text, &captures, index)?.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.matcher.each_operand(visit);
    }
}
