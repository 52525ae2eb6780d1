//! `{$regexFindAll: {input, regex, options}}`: all matches of a regular expression, each as `{match, idx, captures}`.
//!
//! `idx` counts code points. An empty array when the input or the expression is null or missing. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/regexFindAll/>.

use super::regex_arguments::{Matcher, Matching, describe};
use super::{Compiled, Expression, Operator, Scope};
use crate::document::{MAX_DOCUMENT_BYTES, Value};
use crate::error::{Code, Error, Result};
use bson::RawArrayBuf;

pub(super) const OPERATOR: Operator = Operator {
    name: "$regexFindAll",
    parse: |argument, parser| {
        Ok(Box::new(RegexFindAll { matcher: Matcher::parse("$regexFindAll", argument, parser)? }) as Compiled)
    },
};

#[derive(Debug)]
struct RegexFindAll {
    matcher: Matcher,
}

/// The most that the matches of one evaluation may hold, in bytes.
const MAX_RESULT_BYTES: usize = 4 * MAX_DOCUMENT_BYTES;

impl Expression for RegexFindAll {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let mut found = RawArrayBuf::new();
        let Some(Matching { regex, text }) = self.matcher.evaluate(scope)? else { return Ok(found.into()) };
        let (mut start, mut counted, mut index) = (0, 0, 0);
        while let Some(captures) = regex.captures_at(&text, start)? {
            let whole = captures.whole();
            index += text[counted..whole.start].chars().count();
            counted = whole.start;
            found.push(describe(&text, &captures, index)?);
            if found.as_bytes().len() > MAX_RESULT_BYTES {
                return Err(Error::new(Code(51151), "$regexFindAll found more than 64 MiB of matches"));
            }
            start = match text[whole.end..].chars().next() {
                Some(next) if whole.is_empty() => whole.end + next.len_utf8(),
                _ => whole.end,
            };
            if start >= text.len() {
                break;
            }
        }
        Ok(found.into())
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.matcher.each_operand(visit);
    }
}
