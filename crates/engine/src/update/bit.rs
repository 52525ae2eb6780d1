//! `{$bit: {path: {and | or | xor: integer, …}, …}}`: bitwise operations on an integer, in the order given; a missing field
//! counts as zero.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/update/bit/>.

use crate::document::{RawBson, RawBsonRef, type_name};
use crate::error::{Error, Result};
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::set::identical;
use crate::update::{Change, Entries, Modifier, Operator, ParseContext, show, show_id};

pub(super) const OPERATOR: Operator = Operator { name: "$bit", parse };

#[derive(Debug)]
struct Bit {
    steps: Vec<(Operation, RawBson)>,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    And,
    Or,
    Xor,
}

fn parse(path: &str, value: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Entries> {
    let RawBsonRef::Document(spec) = value else {
        return Err(Error::bad_value(format!(
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: \
             {{and/or/xor: #}}}}",
            type_name(value)
        )));
    };
    let mut steps = Vec::new();
    for field in spec {
        let (name, operand) = field?;
        let operation = match name.as_str() {
            "and" => Operation::And,
            "or" => Operation::Or,
            "xor" => Operation::Xor,
            other => {
                return Err(Error::bad_value(format!(
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{other}' which is an unknown operator: \
                     {{{other}: {}}}",
                    show(operand)
                )));
            }
        };
        if !matches!(operand, RawBsonRef::Int32(_) | RawBsonRef::Int64(_)) {
            return Err(Error::bad_value(format!(
                "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {{{}: {}}}",
                type_name(operand),
                name.as_str(),
                show(operand)
            )));
        }
        steps.push((operation, operand.into()));
    }
    if steps.is_empty() {
        return Err(Error::bad_value(format!(
            "You must pass in at least one bitwise operation. The format is: {{$bit: {{{path}: {{and/or/xor: #}}}}"
        )));
    }
    Ok(vec![(path.to_owned(), Box::new(Bit { steps }))])
}

impl Bit {
    /// The result, or `None` for a value that is no integer.
    fn apply(&self, value: RawBsonRef<'_>) -> Option<RawBson> {
        let mut value = RawBson::from(value);
        for (operation, operand) in &self.steps {
            let (a, b, wide) = integers(value.as_raw_bson_ref(), operand.as_raw_bson_ref())?;
            let result = match operation {
                Operation::And => a & b,
                Operation::Or => a | b,
                Operation::Xor => a ^ b,
            };
            value = integer(result, wide);
        }
        Some(value)
    }
}

impl Modifier for Bit {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        let value = current.value()?;
        let before = value.or_null();
        let after = self.apply(before).ok_or_else(|| {
            Error::bad_value(format!(
                "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                show_id(at.before),
                at.name(),
                type_name(before)
            ))
        })?;
        if identical(before, after.as_raw_bson_ref()) {
            return Ok(Change::None);
        }
        *current = Node::Owned(after);
        Ok(Change::Modified)
    }

    fn create<'a>(&'a self, _: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        Ok(self.apply(RawBsonRef::Int32(0)).map(Node::Owned))
    }
}

/// Two integers, and whether one of them is 64 bits wide.
fn integers(a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Option<(i64, i64, bool)> {
    match (a, b) {
        (RawBsonRef::Int32(a), RawBsonRef::Int32(b)) => Some((i64::from(a), i64::from(b), false)),
        (RawBsonRef::Int32(a), RawBsonRef::Int64(b)) => Some((i64::from(a), b, true)),
        (RawBsonRef::Int64(a), RawBsonRef::Int32(b)) => Some((a, i64::from(b), true)),
        (RawBsonRef::Int64(a), RawBsonRef::Int64(b)) => Some((a, b, true)),
        _ => None,
    }
}

/// An integer as narrow as its operands, if it fits.
fn integer(value: i64, wide: bool) -> RawBson {
    match i32::try_from(value) {
        Ok(narrow) if !wide => RawBson::Int32(narrow),
        _ => RawBson::Int64(value),
    }
}
