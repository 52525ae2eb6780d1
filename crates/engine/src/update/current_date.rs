//! `{$currentDate: {path: true | {$type: "date" | "timestamp"}, …}}`: sets a field to the operation's time.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/update/currentDate/>.

use crate::document::{RawBson, RawBsonRef, type_name};
use crate::error::{Error, Result};
use crate::update::apply::At;
use crate::update::node::Node;
use crate::update::{Change, Entries, Modifier, Operator, ParseContext};

pub(super) const OPERATOR: Operator = Operator { name: "$currentDate", parse };

#[derive(Debug)]
enum CurrentDate {
    Date,
    Timestamp,
}

fn parse(path: &str, value: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Entries> {
    let kind = match value {
        RawBsonRef::Boolean(_) => CurrentDate::Date,
        RawBsonRef::Document(spec) => {
            let mut kind = None;
            for field in spec {
                let (name, value) = field?;
                kind = match (name.as_str(), value) {
                    ("$type", RawBsonRef::String("date")) => Some(CurrentDate::Date),
                    ("$type", RawBsonRef::String("timestamp")) => Some(CurrentDate::Timestamp),
                    ("$type", _) => return Err(bad_type()),
                    (other, _) => {
                        return Err(Error::bad_value(format!("Unrecognized $currentDate option: {other}")));
                    }
                };
            }
            kind.ok_or_else(bad_type)?
        }
        other => {
            return Err(Error::bad_value(format!(
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({{$type: \
                 'timestamp/date'}}).",
                type_name(other)
            )));
        }
    };
    Ok(vec![(path.to_owned(), Box::new(kind))])
}

fn bad_type() -> Error {
    Error::bad_value(
        "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}",
    )
}

impl CurrentDate {
    fn now(&self, at: &At<'_, '_>) -> RawBson {
        match self {
            CurrentDate::Date => RawBson::DateTime(at.context.environment.now),
            CurrentDate::Timestamp => RawBson::Timestamp(at.context.environment.cluster_time),
        }
    }
}

impl Modifier for CurrentDate {
    fn modify<'a>(&'a self, current: &mut Node<'a>, at: &At<'_, 'a>) -> Result<Change> {
        *current = Node::Owned(self.now(at));
        Ok(Change::Modified)
    }

    fn create<'a>(&'a self, at: &At<'_, 'a>) -> Result<Option<Node<'a>>> {
        Ok(Some(Node::Owned(self.now(at))))
    }
}
