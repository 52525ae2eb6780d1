//! `{field: {$mod: [divisor, remainder]}}`: a number at the path, cut to a whole one, has that remainder.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/mod/>.

use super::bounds::numbers;
use super::{Bounds, Field, IndexTraits, Node, Operator, Parse, Parser, Predicate};
use crate::document::number::Number;
use crate::error::{Error, Result};
use crate::expression::Environment;
use bson::{RawBsonRef, RawDocumentBuf, rawdoc};

pub(super) const OPERATOR: Operator = Operator { name: "$mod", parse: Parse::Field(parse) };

#[derive(Debug)]
struct Mod {
    divisor: i64,
    remainder: i64,
}

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, _: &mut Parser<'_>) -> Result<Node> {
    let RawBsonRef::Array(array) = argument else {
        return Err(Error::bad_value("malformed mod, needs to be an array"));
    };
    let mut elements = array.into_iter();
    let mut next = |what: &str| -> Result<i64> {
        let element = elements.next().ok_or_else(|| Error::bad_value("malformed mod, not enough elements"))??;
        whole(element).map_err(|reason| Error::bad_value(format!("malformed mod, {what} {reason}")))
    };
    let (divisor, remainder) = (next("divisor")?, next("remainder")?);
    if elements.next().is_some() {
        return Err(Error::bad_value("malformed mod, too many elements"));
    }
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    Ok(Node::path(field.path, Mod { divisor, remainder }))
}

/// A number cut to a whole one.
fn whole(value: RawBsonRef<'_>) -> Result<i64, &'static str> {
    let number = Number::of(value).ok_or("not a number")?;
    if !number.is_finite() {
        return Err("value is invalid: it must be finite");
    }
    number.to_i64_checked().ok_or("value is invalid: it does not fit in 64 bits")
}

impl Predicate for Mod {
    fn matches(&self, value: Option<RawBsonRef<'_>>, _: &Environment) -> Result<bool> {
        let dividend = value.and_then(|value| whole(value).ok());
        Ok(dividend.is_some_and(|dividend| dividend.wrapping_rem(self.divisor) == self.remainder))
    }

    fn name(&self) -> &'static str {
        "$mod"
    }

    fn describe(&self) -> RawDocumentBuf {
        rawdoc! { "$mod": [self.divisor, self.remainder] }
    }

    fn bounds(&self, _: IndexTraits) -> Option<Bounds> {
        Some(Bounds::inexact(vec![numbers()]))
    }
}
