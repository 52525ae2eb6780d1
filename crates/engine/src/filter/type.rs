//! `{field: {$type: type}}` or `{field: {$type: [type, …]}}`: a value at the path has one of the types.
//!
//! A type is a number or an alias; `"number"` stands for all numbers. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/type/>.

use super::bounds::{bracket, numbers};
use super::{Bounds, Field, IndexTraits, Interval, Intervals, Node, Operator, Parse, Parser, Predicate};
use crate::document::number::{Number, exact_i64};
use crate::error::{Code, Error, Result};
use crate::expression::Environment;
use bson::spec::ElementType;
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf, rawdoc};

pub(super) const OPERATOR: Operator = Operator { name: "$type", parse: Parse::Field(parse) };

/// Aliases, numbers and types.
static TYPES: &[(&str, i64, ElementType)] = &[
    ("double", 1, ElementType::Double),
    ("string", 2, ElementType::String),
    ("object", 3, ElementType::EmbeddedDocument),
    ("array", 4, ElementType::Array),
    ("binData", 5, ElementType::Binary),
    ("undefined", 6, ElementType::Undefined),
    ("objectId", 7, ElementType::ObjectId),
    ("bool", 8, ElementType::Boolean),
    ("date", 9, ElementType::DateTime),
    ("null", 10, ElementType::Null),
    ("regex", 11, ElementType::RegularExpression),
    ("dbPointer", 12, ElementType::DbPointer),
    ("javascript", 13, ElementType::JavaScriptCode),
    ("symbol", 14, ElementType::Symbol),
    ("javascriptWithScope", 15, ElementType::JavaScriptCodeWithScope),
    ("int", 16, ElementType::Int32),
    ("timestamp", 17, ElementType::Timestamp),
    ("long", 18, ElementType::Int64),
    ("decimal", 19, ElementType::Decimal128),
    ("minKey", -1, ElementType::MinKey),
    ("maxKey", 127, ElementType::MaxKey),
];

/// A set of types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TypeSet {
    types: Vec<ElementType>,
    all_numbers: bool,
}

impl TypeSet {
    /// Adds the type that an alias names.
    pub(super) fn add_alias(&mut self, alias: &str) -> Result<()> {
        if alias == "number" {
            self.all_numbers = true;
            return Ok(());
        }
        let found = TYPES.iter().find(|(name, ..)| *name == alias);
        let (.., kind) = found.ok_or_else(|| Error::bad_value(format!("Unknown type name alias: {alias}")))?;
        self.types.push(*kind);
        Ok(())
    }

    fn add(&mut self, value: RawBsonRef<'_>) -> Result<()> {
        if let RawBsonRef::String(alias) = value {
            return self.add_alias(alias);
        }
        if Number::of(value).is_none() {
            return Err(Error::type_mismatch("type must be represented as a number or a string"));
        }
        let code = exact_i64(value);
        if code == Some(0) {
            return Err(Error::bad_value("Invalid numerical type code: 0. Instead use {$exists:false}."));
        }
        let found = TYPES.iter().find(|(_, number, _)| Some(*number) == code);
        let (.., kind) = found.ok_or_else(|| Error::bad_value(format!("Invalid numerical type code: {value:?}")))?;
        self.types.push(*kind);
        Ok(())
    }

    /// Parses the argument of `$type`: one type or an array of types.
    pub(super) fn parse(argument: RawBsonRef<'_>) -> Result<TypeSet> {
        let mut set = TypeSet::default();
        match argument {
            RawBsonRef::Array(array) => {
                for element in array {
                    set.add(element?)?;
                }
                if set == TypeSet::default() {
                    return Err(Error::new(Code::FAILED_TO_PARSE, "$type must match at least one type"));
                }
            }
            single => set.add(single)?,
        }
        Ok(set)
    }

    /// Whether a value has one of the types.
    pub(super) fn holds(&self, value: RawBsonRef<'_>) -> bool {
        self.types.contains(&value.element_type()) || (self.all_numbers && Number::of(value).is_some())
    }

    /// The types as numbers, with the alias for all numbers.
    pub(super) fn to_array(&self) -> RawArrayBuf {
        let mut array = RawArrayBuf::new();
        if self.all_numbers {
            array.push("number");
        }
        for kind in &self.types {
            let code = TYPES.iter().find(|(.., known)| known == kind).map_or(0, |(_, code, _)| *code);
            array.push(i32::try_from(code).expect("type codes are small"));
        }
        array
    }
}

#[derive(Debug)]
struct Type {
    types: TypeSet,
}

fn parse(field: Field<'_>, argument: RawBsonRef<'_>, _: &mut Parser<'_>) -> Result<Node> {
    Ok(Node::path(field.path, Type { types: TypeSet::parse(argument)? }))
}

impl Predicate for Type {
    fn matches(&self, value: Option<RawBsonRef<'_>>, _: &Environment) -> Result<bool> {
        Ok(value.is_some_and(|value| self.types.holds(value)))
    }

    fn name(&self) -> &'static str {
        "$type"
    }

    fn describe(&self) -> RawDocumentBuf {
        rawdoc! { "$type": self.types.to_array() }
    }

    /// Types that share a place in the order share an interval; an array's own type is no key.
    fn bounds(&self, index: IndexTraits) -> Option<Bounds> {
        if index.multikey && self.types.types.contains(&ElementType::Array) {
            return None;
        }
        let mut intervals: Vec<Interval> = self.types.types.iter().map(|kind| interval(*kind)).collect();
        if self.types.all_numbers {
            intervals.push(numbers());
        }
        Some(Bounds { intervals: Intervals::from_unsorted(intervals, None).ok()?, exact: false })
    }
}

fn interval(kind: ElementType) -> Interval {
    let sample = match kind {
        ElementType::Double | ElementType::Int32 | ElementType::Int64 | ElementType::Decimal128 => return numbers(),
        ElementType::String | ElementType::Symbol => RawBson::String(String::new()),
        ElementType::EmbeddedDocument => RawBson::Document(RawDocumentBuf::new()),
        ElementType::Array => RawBson::Array(RawArrayBuf::new()),
        ElementType::Undefined => RawBson::Undefined,
        ElementType::ObjectId => RawBson::ObjectId(bson::oid::ObjectId::from_bytes([0; 12])),
        ElementType::Boolean => RawBson::Boolean(false),
        ElementType::DateTime => RawBson::DateTime(bson::DateTime::from_millis(0)),
        ElementType::Null => RawBson::Null,
        ElementType::Timestamp => RawBson::Timestamp(bson::Timestamp { time: 0, increment: 0 }),
        ElementType::MinKey => RawBson::MinKey,
        ElementType::MaxKey => RawBson::MaxKey,
        _ => return Interval::all(),
    };
    bracket(sample.as_raw_bson_ref())
}
