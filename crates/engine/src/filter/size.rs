//! `{field: {$size: n}}`: the value is an array of `n` elements.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/size/>.

use super::{Field, Node, Operator, Parse, Parser, Predicate};
use crate::document::number::{Number, exact_i32};
use crate::document::traverse::Leaf;
use crate::error::{Error, Result};
use crate::expression::Environment;
use bson::{RawBsonRef, RawDocumentBuf, rawdoc};

pub(super) const OPERATOR: Operator = Operator { name: "$size", parse: Parse::Field(parse) };

#[derive(Debug)]
struct Size {
    elements: i32,
}

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, _: &mut Parser<'_>) -> Result<Node> {
    if Number::of(argument).is_none() {
        return Err(Error::bad_value(format!("Failed to parse $size. Expected a number in: $size: {argument:?}")));
    }
    let elements = exact_i32(argument)
        .ok_or_else(|| Error::bad_value(format!("Failed to parse $size. Expected an integer: $size: {argument:?}")))?;
    if elements < 0 {
        return Err(Error::bad_value(format!(
            "Failed to parse $size. Expected a non-negative number in: $size: {elements}"
        )));
    }
    Ok(Node::path(field.path, Size { elements }))
}

impl Predicate for Size {
    fn matches(&self, value: Option<RawBsonRef<'_>>, _: &Environment) -> Result<bool> {
        let Some(RawBsonRef::Array(array)) = value else { return Ok(false) };
        let wanted = usize::try_from(self.elements).expect("a size is not negative");
        Ok(array.iter_elements().take(wanted + 1).count() == wanted)
    }

    fn name(&self) -> &'static str {
        "$size"
    }

    fn describe(&self) -> RawDocumentBuf {
        rawdoc! { "$size": self.elements }
    }

    fn leaf(&self) -> Leaf {
        Leaf::Array
    }
}
