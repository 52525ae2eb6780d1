//! The columns of a CSV file: where their values go, and of which types they are.

use super::Grace;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Decimal128, Document, oid::ObjectId};

/// How cells are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsing {
    /// What becomes of a cell that is not of its column's type.
    pub(super) grace: Grace,
    /// Whether empty cells are left out.
    pub(super) ignore_blanks: bool,
}

/// All columns.
#[derive(Debug)]
pub(super) struct Columns {
    columns: Vec<Column>,
    parsing: Parsing,
}

#[derive(Debug)]
struct Column {
    path: Vec<String>,
    kind: Kind,
}

/// Types of columns; the names are `mongoimport`'s, and `objectid`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Auto,
    Base64,
    Hex,
    Boolean,
    Date,
    Decimal,
    Double,
    Int32,
    Int64,
    ObjectId,
    String,
}

impl Kind {
    fn parse(name: &str, argument: &str) -> Result<Kind, String> {
        Ok(match (name, argument) {
            ("auto", "") => Kind::Auto,
            ("binary", "base64" | "") => Kind::Base64,
            ("binary", "hex") => Kind::Hex,
            ("boolean", "") => Kind::Boolean,
            ("date", "") => Kind::Date,
            ("decimal", "") => Kind::Decimal,
            ("double", "") => Kind::Double,
            ("int32", "") => Kind::Int32,
            ("int64", "") => Kind::Int64,
            ("objectid", "") => Kind::ObjectId,
            ("string", "") => Kind::String,
            _ => {
                return Err(format!(
                    "{name}({argument}) is no type: auto(), binary(base64|hex), boolean(), date(), decimal(), double(), int32(), int64(), objectid(), string()"
                ));
            }
        })
    }

    /// The value of a cell, or why it has none.
    fn value(self, text: &str) -> Result<Bson, String> {
        let wrong = |what: &str| format!("'{text}' is no {what}");
        match self {
            Kind::Auto => Ok(guess(text)),
            Kind::String => Ok(Bson::String(text.to_owned())),
            Kind::Base64 | Kind::Hex => {
                let bytes = match self {
                    Kind::Base64 => STANDARD.decode(text).map_err(|_| wrong("base64"))?,
                    _ => unhex(text).ok_or_else(|| wrong("row of hexadecimal digits"))?,
                };
                Ok(Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes }))
            }
            Kind::Boolean => match text.to_ascii_lowercase().as_str() {
                "true" | "1" => Ok(Bson::Boolean(true)),
                "false" | "0" => Ok(Bson::Boolean(false)),
                _ => Err(wrong("truth value")),
            },
            Kind::Date => {
                let time = DateTime::parse_rfc3339_str(text)
                    .or_else(|_| DateTime::parse_rfc3339_str(format!("{text}T00:00:00Z")));
                time.map(Bson::DateTime).map_err(|_| wrong("date as RFC 3339 has it"))
            }
            Kind::Decimal => text.parse::<Decimal128>().map(Bson::Decimal128).map_err(|_| wrong("decimal")),
            Kind::Double => text.parse::<f64>().map(Bson::Double).map_err(|_| wrong("double")),
            Kind::Int32 => text.parse::<i32>().map(Bson::Int32).map_err(|_| wrong("int32")),
            Kind::Int64 => text.parse::<i64>().map(Bson::Int64).map_err(|_| wrong("int64")),
            Kind::ObjectId => ObjectId::parse_str(text).map(Bson::ObjectId).map_err(|_| wrong("ObjectId")),
        }
    }
}

/// A number or truth value if the text looks like one.
fn guess(text: &str) -> Bson {
    if let Ok(number) = text.parse::<i32>() {
        return Bson::Int32(number);
    }
    if let Ok(number) = text.parse::<i64>() {
        return Bson::Int64(number);
    }
    let is_numeric = text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    match text.parse::<f64>() {
        Ok(number) if is_numeric => Bson::Double(number),
        _ => match text {
            "true" => Bson::Boolean(true),
            "false" => Bson::Boolean(false),
            _ => Bson::String(text.to_owned()),
        },
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

impl Columns {
    /// Parses the columns' names.
    pub(super) fn parse(names: &[String], typed: bool, parsing: Parsing) -> Result<Columns, String> {
        let mut columns: Vec<Column> = Vec::with_capacity(names.len());
        for name in names {
            let (path, kind) = if typed { split_type(name)? } else { (name.as_str(), Kind::Auto) };
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            if path.iter().any(String::is_empty) {
                return Err(format!("the column '{name}' has an empty name or part"));
            }
            let within = |other: &Column| path.starts_with(&other.path) || other.path.starts_with(&path);
            if columns.iter().any(within) {
                return Err(format!("the column '{name}' stands twice, or within another column"));
            }
            columns.push(Column { path, kind });
        }
        Ok(Columns { columns, parsing })
    }

    /// The document of a row; none if the row is left out.
    pub(super) fn document<'c>(&self, cells: impl Iterator<Item = &'c str>) -> Result<Option<Document>, String> {
        let mut document = Document::new();
        for (number, text) in cells.enumerate() {
            let named;
            let (path, kind) = match self.columns.get(number) {
                Some(column) => (&column.path[..], column.kind),
                None => {
                    // As mongoimport: cells beyond the last column have names of their own.
                    named = [format!("field{number}")];
                    (&named[..], Kind::Auto)
                }
            };
            if text.is_empty() && self.parsing.ignore_blanks {
                continue;
            }
            let value = match (kind.value(text), self.parsing.grace) {
                (Ok(value), _) => value,
                (Err(_), Grace::AutoCast) => guess(text),
                (Err(_), Grace::SkipField) => continue,
                (Err(_), Grace::SkipRow) => return Ok(None),
                (Err(what), Grace::Stop) => return Err(what),
            };
            set(&mut document, path, value);
        }
        Ok(Some(document))
    }
}

fn split_type(name: &str) -> Result<(&str, Kind), String> {
    let untyped = || format!("the column '{name}' has no type: write e.g. {name}.auto()");
    let (head, argument) = name.strip_suffix(')').and_then(|head| head.rsplit_once('(')).ok_or_else(untyped)?;
    let (path, kind) = head.rsplit_once('.').ok_or_else(untyped)?;
    Ok((path, Kind::parse(kind, argument)?))
}

fn set(document: &mut Document, path: &[String], value: Bson) {
    match path {
        [] => {}
        [name] => {
            document.insert(name, value);
        }
        [name, rest @ ..] => {
            if !matches!(document.get(name), Some(Bson::Document(_))) {
                document.insert(name, Document::new());
            }
            if let Some(Bson::Document(inner)) = document.get_mut(name) {
                set(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn columns(names: &[&str], typed: bool, grace: Grace) -> Result<Columns, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Columns::parse(&names, typed, Parsing { grace, ignore_blanks: false })
    }

    #[test]
    fn typed_columns_make_the_types_they_say() {
        let names = ["_id.int64()", "price.amount.decimal()", "price.currency.string()", "when.date()", "on.boolean()"];
        let columns = columns(&names, true, Grace::Stop).unwrap();
        let row = ["7", "12.50", "007", "2024-01-15", "true"];
        let expected = doc! {
            "_id": 7_i64,
            "price": { "amount": "12.50".parse::<Decimal128>().unwrap(), "currency": "007" },
            "when": DateTime::from_millis(1_705_276_800_000),
            "on": true,
        };
        assert_eq!(columns.document(row.into_iter()).unwrap().unwrap(), expected);
        assert!(columns.document(["x"].into_iter()).is_err());
    }

    #[test]
    fn untyped_cells_are_guessed() {
        let columns = columns(&["a", "b", "c", "d"], false, Grace::Stop).unwrap();
        let row = ["1", "5000000000", "1.5", "1.5.2", "extra"];
        let expected = doc! { "a": 1, "b": 5_000_000_000_i64, "c": 1.5, "d": "1.5.2", "field4": "extra" };
        assert_eq!(columns.document(row.into_iter()).unwrap().unwrap(), expected);
        assert_eq!(guess("Infinity"), Bson::String("Infinity".into()));
    }

    #[test]
    fn a_cell_of_another_type_is_treated_as_asked() {
        let names = ["a.int32()", "b.int32()"];
        let row = || ["1", "x"].into_iter();
        let skipped = columns(&names, true, Grace::SkipField).unwrap().document(row()).unwrap();
        assert_eq!(skipped, Some(doc! { "a": 1 }));
        assert_eq!(columns(&names, true, Grace::SkipRow).unwrap().document(row()).unwrap(), None);
        let cast = columns(&names, true, Grace::AutoCast).unwrap().document(row()).unwrap();
        assert_eq!(cast, Some(doc! { "a": 1, "b": "x" }));
    }

    #[test]
    fn columns_within_each_other_are_refused() {
        assert!(columns(&["a", "a.b"], false, Grace::Stop).is_err());
        assert!(columns(&["a.b", "a.c"], false, Grace::Stop).is_ok());
    }
}
