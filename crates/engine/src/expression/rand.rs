//! `{$rand: {}}`: a random double from 0 (included) to 1 (excluded), anew for each evaluation.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/rand/>.

use super::{Compiled, Expression, Operator, Parser, Scope};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$rand", parse: parse_rand };

#[derive(Debug)]
struct Rand;

fn parse_rand(argument: RawBsonRef<'_>, _: &mut Parser) -> Result<Compiled> {
    let has_arguments = match argument {
        RawBsonRef::Document(document) => !document.is_empty(),
        RawBsonRef::Array(array) => !array.is_empty(),
        _ => return Err(Error::location(10065, "invalid parameter: expected an object ($rand)")),
    };
    if has_arguments {
        return Err(Error::location(3040501, "$rand does not currently accept arguments"));
    }
    Ok(Box::new(Rand))
}

impl Expression for Rand {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        Ok((scope.environment.random)().into())
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}
