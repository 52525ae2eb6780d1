//! `{$pullAll: {path: [value, …], …}}`: removes the array elements that equal one of the values.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/update/pullAll/>.

use crate::document::{RawArrayBuf, RawBsonRef, type_name, values_equal};
use crate::error::{Error, Result};
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::pull::remove;
use crate::update::{Change, Entries, Missing, Modifier, Operator, ParseContext};

pub(super) const OPERATOR: Operator = Operator { name: "$pullAll", parse };

#[derive(Debug)]
struct PullAll {
    values: RawArrayBuf,
}

fn parse(path: &str, value: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Entries> {
    let RawBsonRef::Array(values) = value else {
        return Err(Error::bad_value(format!(
            "$pullAll requires an array argument but was given a {}",
            type_name(value)
        )));
    };
    Ok(vec![(path.to_owned(), Box::new(PullAll { values: values.to_owned() }))])
}

impl Modifier for PullAll {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        remove("$pullAll", current, |element| {
            for value in &self.values {
                if values_equal(element, value?, at.collator)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    fn missing(&self) -> Missing {
        Missing::Viable
    }
}
