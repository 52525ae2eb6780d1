//! Arguments: a command declares its fields once, and gets them parsed, with MongoDB's errors for what is wrong.
//!
//! ```ignore
//! arguments! {
//!     struct KillOp<'a> {
//!         /// The operation's number.
//!         op: i64 = "op",
//!         comment: Option<&'a str> = "note",
//!     }
//! }
//! let arguments = KillOp::parse(ctx)?;
//! ```
//!
//! A field of an `Option` type may be missing or null; any other must be there. Fields that every command takes (`$db`,
//! `lsid`, …) are passed over, unknown ones are refused.

use super::Context;
use crate::message::Sequence;
use bson::raw::{RawBinaryRef, RawBsonRef};
use bson::spec::{BinarySubtype, ElementType};
use bson::{RawArray, RawDocument};
use engine::{Code, Error, Result};
use std::borrow::Cow;
use std::fmt;

/// Where a field is, for messages: `find.limit`.
#[derive(Clone, Copy)]
pub(crate) struct Path<'p> {
    pub(crate) parent: &'p str,
    pub(crate) field: &'p str,
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.parent, self.field)
    }
}

impl Path<'_> {
    /// The field has a type it can't have.
    pub(crate) fn wrong_type(&self, value: RawBsonRef<'_>, expected: &[&str]) -> Error {
        let kind = type_name(value.element_type());
        // MongoDB leaves the list's bracket open in the middle of its quotes; drivers' tests compare the text.
        let expected = match expected {
            [one] => format!("expected type '{one}'"),
            several => format!("expected types '[{}']", several.join(", ")),
        };
        Error::type_mismatch(format!("BSON field '{self}' is the wrong type '{kind}', {expected}"))
    }

    /// The field must be there and is not.
    pub(crate) fn missing(&self) -> Error {
        Error::location(40414, format!("BSON field '{self}' is missing but a required field"))
    }

    /// The field occurs more than once.
    pub(crate) fn duplicate(&self) -> Error {
        Error::location(40413, format!("BSON field '{self}' is a duplicate field"))
    }

    /// The field is not known.
    pub(crate) fn unknown(&self) -> Error {
        Error::location(40415, format!("BSON field '{self}' is an unknown field."))
    }

    /// The value is below what it may be.
    pub(crate) fn at_least(&self, value: i64, minimum: i64) -> Result<i64> {
        if value >= minimum {
            return Ok(value);
        }
        let field = self.field;
        let message = format!("BSON field '{field}' value must be >= {minimum}, actual value '{value}'");
        Err(Error::bad_value(message))
    }
}

/// A type that a field can have.
pub(crate) trait Field<'a>: Sized {
    /// Whether null counts as missing: MongoDB passes over it in every typed field.
    const NULL_IS_MISSING: bool = true;

    /// From the field's value.
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self>;

    /// From a document sequence of the field's name.
    fn from_sequence(path: Path<'_>, _sequence: &'a Sequence) -> Result<Self> {
        Err(Error::type_mismatch(format!("BSON field '{path}' can't be a document sequence")))
    }

    /// What it is when it is missing.
    fn missing(path: Path<'_>) -> Result<Self> {
        Err(path.missing())
    }
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    const NULL_IS_MISSING: bool = T::NULL_IS_MISSING;

    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        T::from_value(path, value).map(Some)
    }

    fn from_sequence(path: Path<'_>, sequence: &'a Sequence) -> Result<Self> {
        T::from_sequence(path, sequence).map(Some)
    }

    fn missing(_path: Path<'_>) -> Result<Self> {
        Ok(None)
    }
}

/// A boolean that may be given as a number too, false when missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl<'a> Field<'a> for Flag {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        match value {
            RawBsonRef::Boolean(value) => Ok(Flag(value)),
            // What is no number is not zero either.
            RawBsonRef::Double(number) => Ok(Flag(number != 0.0)),
            RawBsonRef::Decimal128(number) => Ok(Flag(as_double(number) != 0.0)),
            other => match number(other) {
                Some(number) => Ok(Flag(number != 0)),
                None => Err(path.wrong_type(other, &["bool", "long", "int", "decimal", "double"])),
            },
        }
    }

    fn missing(_path: Path<'_>) -> Result<Self> {
        Ok(Flag(false))
    }
}

/// A flag of any type: false for null, zero and false, true for everything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Truth(pub(crate) bool);

impl<'a> Field<'a> for Truth {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        Ok(Truth(Flag::from_value(path, value).map_or(true, |flag| flag.0)))
    }

    fn missing(_path: Path<'_>) -> Result<Self> {
        Ok(Truth(false))
    }
}

impl<'a> Field<'a> for bool {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        value.as_bool().ok_or_else(|| path.wrong_type(value, &["bool"]))
    }
}

impl<'a> Field<'a> for i64 {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        number(value).ok_or_else(|| path.wrong_type(value, &["long", "int", "decimal", "double"]))
    }
}

/// A collection's UUID.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uuid<'a>(pub(crate) RawBinaryRef<'a>);

impl<'a> Field<'a> for Uuid<'a> {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        let Some(binary) = value.as_binary() else { return Err(path.wrong_type(value, &["binData"])) };
        if binary.subtype != BinarySubtype::Uuid {
            let message = format!("BSON field '{path}' is the wrong binData type, expected type 'UUID'");
            return Err(Error::type_mismatch(message));
        }
        if binary.bytes.len() != 16 {
            let message = "uuid must be a 16-byte binary field with UUID (4) subtype";
            return Err(Error::new(Code::INVALID_UUID, message));
        }
        Ok(Uuid(binary))
    }
}

impl<'a> Field<'a> for f64 {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        match value {
            RawBsonRef::Double(number) => Ok(number),
            RawBsonRef::Decimal128(number) => Ok(as_double(number)),
            other => number(other)
                .map(|number| number as f64)
                .ok_or_else(|| path.wrong_type(value, &["double", "decimal", "long", "int"])),
        }
    }
}

impl<'a> Field<'a> for &'a str {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))
    }
}

impl<'a> Field<'a> for &'a RawDocument {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        value.as_document().ok_or_else(|| path.wrong_type(value, &["object"]))
    }
}

impl<'a> Field<'a> for &'a RawArray {
    fn from_value(path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        value.as_array().ok_or_else(|| path.wrong_type(value, &["array"]))
    }
}

impl<'a> Field<'a> for RawBsonRef<'a> {
    const NULL_IS_MISSING: bool = false;

    fn from_value(_path: Path<'_>, value: RawBsonRef<'a>) -> Result<Self> {
        Ok(value)
    }
}

/// A number of any type as an integer, cut to its range.
pub(crate) fn number(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        RawBsonRef::Int32(number) => Some(i64::from(number)),
        RawBsonRef::Int64(number) => Some(number),
        RawBsonRef::Double(number) => Some(number as i64),
        RawBsonRef::Decimal128(number) => Some(as_double(number).round_ties_even() as i64),
        _ => None,
    }
}

/// A decimal as a double: close enough wherever an option's number is asked for.
fn as_double(number: bson::Decimal128) -> f64 {
    let text = number.to_string();
    text.parse().unwrap_or(f64::NAN)
}

/// The least double that no 64-bit integer has.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// A number that must be whole and finite; `None` for other types.
///
/// # Errors
/// `FailedToParse` (9) for fractions, infinities, no-numbers and what 64 bits can't hold.
pub(crate) fn whole(value: RawBsonRef<'_>, field: &str) -> Result<Option<i64>> {
    let double = match value {
        RawBsonRef::Double(number) => number,
        RawBsonRef::Decimal128(number) => as_double(number),
        other => return Ok(number(other)),
    };
    let fits = (-TOO_LARGE..TOO_LARGE).contains(&double);
    if !fits || double.fract() != 0.0 {
        return Err(Error::failed_to_parse(format!("Expected an integer: {field}: {double}")));
    }
    Ok(Some(double as i64))
}

/// The name of a type in MongoDB's messages.
pub(crate) fn type_name(kind: ElementType) -> &'static str {
    match kind {
        ElementType::Double => "double",
        ElementType::String => "string",
        ElementType::EmbeddedDocument => "object",
        ElementType::Array => "array",
        ElementType::Binary => "binData",
        ElementType::Undefined => "undefined",
        ElementType::ObjectId => "objectId",
        ElementType::Boolean => "bool",
        ElementType::DateTime => "date",
        ElementType::Null => "null",
        ElementType::RegularExpression => "regex",
        ElementType::DbPointer => "dbPointer",
        ElementType::JavaScriptCode => "javascript",
        ElementType::Symbol => "symbol",
        ElementType::JavaScriptCodeWithScope => "javascriptWithScope",
        ElementType::Int32 => "int",
        ElementType::Timestamp => "timestamp",
        ElementType::Int64 => "long",
        ElementType::Decimal128 => "decimal",
        ElementType::MaxKey => "maxKey",
        ElementType::MinKey => "minKey",
    }
}

/// Whether a value counts as missing in a typed field.
pub(crate) fn is_null(value: RawBsonRef<'_>) -> bool {
    matches!(value, RawBsonRef::Null | RawBsonRef::Undefined)
}

/// A document's fields, read once: a command's are asked for several times.
pub(crate) type Fields<'a> = Vec<(&'a str, RawBsonRef<'a>)>;

/// Most commands have fewer fields.
const USUAL_FIELDS: usize = 12;

/// Reads a document's fields.
///
/// # Errors
/// What is not well-formed.
pub(crate) fn fields(document: &RawDocument) -> Result<Fields<'_>> {
    let mut fields = Vec::with_capacity(USUAL_FIELDS);
    for field in document {
        let (name, value) = field?;
        fields.push((name.as_str(), value));
    }
    Ok(fields)
}

/// The fields that are walked: a command's, or those of a document nested in it.
pub(crate) struct Arguments<'f, 'a> {
    pub(crate) document: &'a RawDocument,
    /// Its fields, without the command's own.
    pub(crate) fields: Cow<'f, [(&'a str, RawBsonRef<'a>)]>,
    pub(crate) sequences: &'a [Sequence],
    /// Whether fields that every command takes are passed over.
    pub(crate) generic: bool,
    /// Whether unknown fields are passed over too.
    pub(crate) lenient: bool,
}

impl<'f, 'a> Arguments<'f, 'a> {
    /// A command's.
    pub(crate) fn of(ctx: &'f Context<'a>) -> Arguments<'f, 'a> {
        let lenient = ctx.command.ignores_unknown_fields;
        let fields = Cow::Borrowed(ctx.fields.get(1..).unwrap_or_default());
        Arguments { document: ctx.body(), fields, sequences: &ctx.message.sequences, generic: true, lenient }
    }

    /// A nested document's.
    ///
    /// # Errors
    /// What is not well-formed.
    pub(crate) fn nested(document: &'a RawDocument) -> Result<Arguments<'f, 'a>> {
        let fields = Cow::Owned(fields(document)?);
        Ok(Arguments { document, fields, sequences: &[], generic: false, lenient: false })
    }
}

/// Whether every command takes the field.
pub(crate) fn is_generic(field: &str) -> bool {
    match field.as_bytes().first() {
        Some(b'$') => matches!(
            field,
            "$audit"
                | "$client"
                | "$clusterTime"
                | "$configServerState"
                | "$configTime"
                | "$db"
                | "$oplogQueryData"
                | "$queryOptions"
                | "$readPreference"
                | "$replData"
                | "$topologyTime"
        ),
        _ => matches!(
            field,
            "allowImplicitCollectionCreation"
                | "apiDeprecationErrors"
                | "apiStrict"
                | "apiVersion"
                | "autocommit"
                | "comment"
                | "coordinator"
                | "databaseVersion"
                | "help"
                | "lsid"
                | "maxTimeMS"
                | "maxTimeMSOpOnly"
                | "readConcern"
                | "shardVersion"
                | "startOrContinueTransaction"
                | "startTransaction"
                | "serialization_context"
                | "stmtId"
                | "tracking_info"
                | "txnNumber"
                | "txnRetryCounter"
                | "writeConcern"
        ),
    }
}

/// Declares the arguments of a command; see the module's documentation.
macro_rules! arguments {
    (
        $(#[$meta:meta])*
        struct $name:ident<$life:lifetime> {
            $($(#[$field_meta:meta])* $field:ident: $kind:ty = $key:literal),* $(,)?
        }
    ) => {
        // Some fields are known only so that they are checked and not refused.
        #[allow(dead_code)]
        $(#[$meta])*
        pub(crate) struct $name<$life> {
            $($(#[$field_meta])* pub(crate) $field: $kind,)*
            whole: &$life ::bson::RawDocument,
        }

        #[allow(dead_code)]
        impl<$life> $name<$life> {
            /// Parses a command's arguments.
            pub(crate) fn parse(ctx: &$crate::command::Context<$life>) -> ::engine::Result<$name<$life>> {
                $name::parse_from(ctx.called, $crate::command::Arguments::of(ctx))
            }

            /// Parses the fields of a document nested in a command; `parent` is its path.
            pub(crate) fn parse_nested(
                parent: &str,
                document: &$life ::bson::RawDocument,
            ) -> ::engine::Result<$name<$life>> {
                $name::parse_from(parent, $crate::command::Arguments::nested(document)?)
            }

            #[allow(unused_variables)]
            fn parse_from(
                parent: &str,
                arguments: $crate::command::Arguments<'_, $life>,
            ) -> ::engine::Result<$name<$life>> {
                #[allow(unused_imports)]
                use $crate::command::arguments::{Field, Path, is_generic, is_null};
                $(let mut $field: Option<$kind> = None;)*
                for (key, value) in arguments.fields.iter().copied() {
                    let path = Path { parent, field: key };
                    match key {
                        $($key => {
                            if $field.is_some() {
                                return Err(path.duplicate());
                            }
                            if !(is_null(value) && <$kind as Field<$life>>::NULL_IS_MISSING) {
                                $field = Some(<$kind as Field<$life>>::from_value(path, value)?);
                            }
                        })*
                        key if arguments.lenient || arguments.generic && is_generic(key) => {}
                        _ => return Err(path.unknown()),
                    }
                }
                for sequence in arguments.sequences {
                    let path = Path { parent, field: &sequence.field };
                    match sequence.field.as_str() {
                        $($key => {
                            if $field.is_some() {
                                return Err(path.duplicate());
                            }
                            $field = Some(<$kind as Field<$life>>::from_sequence(path, sequence)?);
                        })*
                        _ => return Err(path.unknown()),
                    }
                }
                Ok($name {
                    $($field: match $field {
                        Some(value) => value,
                        None => <$kind as Field<$life>>::missing(Path { parent, field: $key })?,
                    },)*
                    whole: arguments.document,
                })
            }
        }
    };
}
pub(crate) use arguments;

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, RawDocumentBuf, doc};

    arguments! {
        struct Sample<'a> {
            limit: Option<i64> = "limit",
            single: Flag = "single",
            filter: Option<&'a RawDocument> = "filter",
            name: &'a str = "name",
        }
    }

    fn parse(document: Document) -> Result<(Option<i64>, bool, String)> {
        let raw = RawDocumentBuf::try_from(&document)?;
        let arguments = Sample::parse_from(
            "sample",
            Arguments {
                document: &raw,
                fields: Cow::Borrowed(&fields(&raw)?[1..]),
                sequences: &[],
                generic: true,
                lenient: false,
            },
        )?;
        Ok((arguments.limit, arguments.single.0, arguments.name.to_owned()))
    }

    fn message(document: Document) -> String {
        parse(document).expect_err("refused").to_string()
    }

    #[test]
    fn fields_are_parsed_and_generic_ones_passed_over() {
        let document =
            doc! { "sample": 1, "limit": 2.9, "single": 1, "name": "x", "filter": null, "$db": "d", "lsid": {} };
        assert_eq!(parse(document).expect("parses"), (Some(2), true, "x".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_said_in_mongodbs_words() {
        assert_eq!(
            message(doc! { "sample": 1, "limit": "x" }),
            "TypeMismatch (14): BSON field 'sample.limit' is the wrong type 'string', expected types '[long, int, decimal, double']"
        );
        assert_eq!(
            message(doc! { "sample": 1, "filter": 1 }),
            "TypeMismatch (14): BSON field 'sample.filter' is the wrong type 'int', expected type 'object'"
        );
        assert_eq!(
            message(doc! { "sample": 1, "foo": 1 }),
            "Location40415 (40415): BSON field 'sample.foo' is an unknown field."
        );
        assert_eq!(
            message(doc! { "sample": 1 }),
            "Location40414 (40414): BSON field 'sample.name' is missing but a required field"
        );
    }
}
