//! Documents as text for error messages, the way the shell writes them: `{ a: 1, b: "x" }`.

use bson::{RawBsonRef, RawDocument};
use std::fmt::Write;

/// The longest text of one string value before it is cut.
const MAX_STRING_BYTES: usize = 160;

/// A document as text.
pub fn text(document: &RawDocument) -> String {
    let mut out = String::new();
    write_document(document, &mut out);
    out
}

/// A value as text.
pub fn value_text(value: RawBsonRef<'_>) -> String {
    let mut out = String::new();
    write_value(value, &mut out);
    out
}

fn write_document(document: &RawDocument, out: &mut String) {
    let mut separator = "{ ";
    for (name, value) in document.iter().flatten() {
        out.push_str(separator);
        out.push_str(name.as_str());
        out.push_str(": ");
        write_value(value, out);
        separator = ", ";
    }
    out.push_str(if separator == "{ " { "{}" } else { " }" });
}

fn write_value(value: RawBsonRef<'_>, out: &mut String) {
    use RawBsonRef as B;
    let done = match value {
        B::Document(document) => {
            write_document(document, out);
            Ok(())
        }
        B::Array(array) => {
            let mut separator = "[ ";
            for element in array.into_iter().flatten() {
                out.push_str(separator);
                write_value(element, out);
                separator = ", ";
            }
            out.push_str(if separator == "[ " { "[]" } else { " ]" });
            Ok(())
        }
        B::String(text) | B::Symbol(text) => write_string(text, out),
        B::Int32(number) => write!(out, "{number}"),
        B::Int64(number) => write!(out, "{number}"),
        B::Double(number) if number.fract() == 0.0 && number.abs() < 1e15 => write!(out, "{number:.1}"),
        B::Double(number) => write!(out, "{number}"),
        B::Decimal128(number) => write!(out, "{number}"),
        B::Boolean(value) => write!(out, "{value}"),
        B::Null => write!(out, "null"),
        B::Undefined => write!(out, "undefined"),
        B::MinKey => write!(out, "MinKey"),
        B::MaxKey => write!(out, "MaxKey"),
        B::ObjectId(id) => write!(out, "ObjectId('{id}')"),
        B::DateTime(time) => write!(out, "new Date({})", time.timestamp_millis()),
        B::Timestamp(time) => write!(out, "Timestamp({}, {})", time.time, time.increment),
        B::RegularExpression(regex) => write!(out, "/{}/{}", regex.pattern.as_str(), regex.options.as_str()),
        B::JavaScriptCode(code) => write!(out, "{code}"),
        B::Binary(binary) => {
            let hex: String = binary.bytes.iter().take(64).map(|byte| format!("{byte:02X}")).collect();
            write!(out, "BinData({}, {hex})", u8::from(binary.subtype))
        }
        B::JavaScriptCodeWithScope(_) | B::DbPointer(_) => write!(out, "{value:?}"),
    };
    done.expect("writing to a string does not fail");
}

fn write_string(text: &str, out: &mut String) -> std::fmt::Result {
    let mut end = text.len().min(MAX_STRING_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = if end < text.len() { "..." } else { "" };
    write!(out, "\"{}{cut}\"", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn documents_read_as_in_the_shell() {
        let document = rawdoc! { "a": 1, "b": "x", "c": { "d": [1.5, 2.0, null] }, "e": {} };
        assert_eq!(text(&document), r#"{ a: 1, b: "x", c: { d: [ 1.5, 2.0, null ] }, e: {} }"#);
    }
}
