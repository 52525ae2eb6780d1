//! What the comparison operators share.

use super::{Compiled, Expression, Parser, Scope, exactly};
use crate::document::collation::Collator;
use crate::document::{Value, compare_values};
use crate::error::Result;
use bson::RawBsonRef;
use std::cmp::Ordering;

/// Where a missing value stands in the order of types: as undefined does.
const MISSING: RawBsonRef<'static> = RawBsonRef::Undefined;

/// Compares values that may be missing; missing comes before null.
pub(super) fn compare(a: &Value<'_>, b: &Value<'_>, collator: Option<&Collator>) -> Result<Ordering> {
    compare_values(a.get().unwrap_or(MISSING), b.get().unwrap_or(MISSING), collator)
}

#[derive(Debug)]
struct Comparison {
    operands: [Compiled; 2],
    answer: fn(Ordering) -> Value<'static>,
}

/// Parses an operator that says something about the order of two values.
pub(super) fn comparison(
    name: &'static str,
    argument: RawBsonRef<'_>,
    parser: &mut Parser,
    answer: fn(Ordering) -> Value<'static>,
) -> Result<Compiled> {
    Ok(Box::new(Comparison { operands: exactly(name, argument, parser)?, answer }))
}

impl Expression for Comparison {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let (left, right) = (self.operands[0].evaluate(scope)?, self.operands[1].evaluate(scope)?);
        Ok((self.answer)(compare(&left, &right, scope.environment.collator())?))
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        self.operands.iter().for_each(|operand| visit(&**operand));
    }
}
