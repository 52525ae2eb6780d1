//! `{$inc: {path: number, …}}`: adds to a number; a missing field becomes the number.
//!
//! 32-bit sums that overflow become 64-bit; 64-bit ones are refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/update/inc/>.

use crate::document::{Number, RawBson, RawBsonRef, number, type_name};
use crate::error::{Error, Result};
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::{Change, Modifier, Operator, show, show_id};

pub(super) const OPERATOR: Operator = Operator {
    name: "$inc",
    parse: |path, value, _| {
        check_argument("increment", path, value)?;
        Ok(vec![(path.to_owned(), Box::new(Inc { by: value.into() }) as Box<dyn Modifier>)])
    },
};

#[derive(Debug)]
struct Inc {
    by: RawBson,
}

impl Modifier for Inc {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        compute("$inc", current, self.by.as_raw_bson_ref(), at, Number::checked_add)
    }

    fn create<'a>(&'a self, _: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        Ok(Some(Node::Raw(self.by.as_raw_bson_ref())))
    }
}

/// Refuses an argument that is no number.
pub(super) fn check_argument(verb: &str, path: &str, value: RawBsonRef<'_>) -> Result<()> {
    if Number::of(value).is_some() {
        return Ok(());
    }
    Err(Error::type_mismatch(format!("Cannot {verb} with non-numeric argument: {{{path}: {}}}", show(value))))
}

/// Replaces a number by the result of an operation with it, which is `None` on overflow.
pub(super) fn compute<'a>(
    operator: &str,
    current: &mut Node<'a>,
    operand: RawBsonRef<'_>,
    at: &At<'_, 'a>,
    operation: fn(Number, Number) -> Option<Number>,
) -> Result<Change> {
    let value = current.value()?;
    let before = value.or_null();
    let (Some(left), Some(right)) = (Number::of(before), Number::of(operand)) else {
        return Err(Error::type_mismatch(format!(
            "Cannot apply {operator} to a value of non-numeric type. {{{}}} has the field '{}' of non-numeric type {}",
            show_id(at.before),
            at.name(),
            type_name(before)
        )));
    };
    let after = operation(left, right).map(RawBson::from).ok_or_else(|| {
        Error::bad_value(format!(
            "Failed to apply {operator} operations to current value ({}) for document {{{}}}",
            show(before),
            show_id(at.before)
        ))
    })?;
    // The same number of the same type changes nothing: a negative zero stays.
    let after_value = after.as_raw_bson_ref();
    if before.element_type() == after_value.element_type() && number::compare(before, after_value).is_eq() {
        return Ok(Change::None);
    }
    *current = Node::Owned(after);
    Ok(Change::Modified)
}
