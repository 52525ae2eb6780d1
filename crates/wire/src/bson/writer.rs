//! The writer: appends a reply's document to the buffer that goes to the socket, nested documents in place.

use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument, RawDocumentBuf};

/// Builds one document (and what is nested in it) at the end of a buffer.
///
/// `put` adds a named field to the innermost open document, `push` an element to the innermost open array; every `begin`
/// is closed by an `end`.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    open: Vec<Open>,
}

struct Open {
    start: usize,
    next_index: u32,
}

impl Writer {
    /// A writer that appends its document to `bytes`.
    pub(crate) fn after(bytes: Vec<u8>) -> Writer {
        let mut writer = Writer { bytes, open: Vec::with_capacity(4) };
        writer.enter();
        writer
    }

    /// A writer of a document that stands alone.
    pub(crate) fn new() -> Writer {
        Writer::after(Vec::with_capacity(256))
    }

    /// Takes back everything written into the outermost document.
    pub(crate) fn clear(&mut self) {
        let start = self.open[0].start;
        self.bytes.truncate(start);
        self.open.clear();
        self.enter();
    }

    /// A named field.
    pub(crate) fn put<'v>(&mut self, key: &str, value: impl Into<RawBsonRef<'v>>) {
        let value = value.into();
        self.key(value.element_type() as u8, key);
        self.value(value);
    }

    /// The next element of an array.
    pub(crate) fn push<'v>(&mut self, value: impl Into<RawBsonRef<'v>>) {
        let value = value.into();
        self.index(value.element_type() as u8);
        self.value(value);
    }

    /// A named string field, if there is a string.
    pub(crate) fn put_some<'v, T: Into<RawBsonRef<'v>>>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// A named string field that is put together from parts.
    pub(crate) fn put_joined(&mut self, key: &str, parts: &[&str]) {
        self.key(0x02, key);
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.bytes.extend_from_slice(&(length as i32 + 1).to_le_bytes());
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part.as_bytes()));
        self.bytes.push(0);
    }

    /// All fields of `document`, as fields of the innermost open document.
    pub(crate) fn put_all(&mut self, document: &RawDocument) {
        let bytes = document.as_bytes();
        self.bytes.extend_from_slice(&bytes[4..bytes.len() - 1]);
    }

    /// An array of strings.
    pub(crate) fn put_strings<'s>(&mut self, key: &str, values: impl IntoIterator<Item = &'s str>) {
        self.begin_array(key);
        for value in values {
            self.push(value);
        }
        self.end();
    }

    /// Opens a named document.
    pub(crate) fn begin(&mut self, key: &str) {
        self.key(0x03, key);
        self.enter();
    }

    /// Opens a named array.
    pub(crate) fn begin_array(&mut self, key: &str) {
        self.key(0x04, key);
        self.enter();
    }

    /// Opens a document as the next element of an array.
    pub(crate) fn begin_element(&mut self) {
        self.index(0x03);
        self.enter();
    }

    /// Closes what was opened last.
    pub(crate) fn end(&mut self) {
        let open = self.open.pop().expect("every end has its begin");
        self.bytes.push(0);
        let length = (self.bytes.len() - open.start) as i32;
        self.bytes[open.start..open.start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Closes the outermost document; the buffer.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        debug_assert_eq!(self.open.len(), 1, "every begin has its end");
        self.end();
        self.bytes
    }

    /// Closes a document that stands alone.
    pub(crate) fn finish_document(self) -> RawDocumentBuf {
        RawDocumentBuf::from_bytes(self.finish()).expect("the writer writes documents")
    }

    fn enter(&mut self) {
        self.open.push(Open { start: self.bytes.len(), next_index: 0 });
        self.bytes.extend_from_slice(&[0; 4]);
    }

    fn key(&mut self, kind: u8, key: &str) {
        debug_assert!(!key.contains('\0'), "field names hold no NUL");
        self.bytes.push(kind);
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.push(0);
    }

    fn index(&mut self, kind: u8) {
        let open = self.open.last_mut().expect("an array is open");
        let mut number = open.next_index;
        open.next_index += 1;
        let mut digits = [0_u8; 10];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&digits[first..]);
        self.bytes.push(0);
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(&(text.len() as i32 + 1).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    fn cstring(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    fn value(&mut self, value: RawBsonRef<'_>) {
        let bytes = &mut self.bytes;
        match value {
            RawBsonRef::Double(number) => bytes.extend_from_slice(&number.to_le_bytes()),
            RawBsonRef::String(text) | RawBsonRef::JavaScriptCode(text) | RawBsonRef::Symbol(text) => self.text(text),
            RawBsonRef::Document(document) => bytes.extend_from_slice(document.as_bytes()),
            RawBsonRef::Array(array) => bytes.extend_from_slice(RawArray::as_bytes(array)),
            RawBsonRef::Boolean(value) => bytes.push(u8::from(value)),
            RawBsonRef::Int32(number) => bytes.extend_from_slice(&number.to_le_bytes()),
            RawBsonRef::Int64(number) => bytes.extend_from_slice(&number.to_le_bytes()),
            RawBsonRef::DateTime(date) => bytes.extend_from_slice(&date.timestamp_millis().to_le_bytes()),
            RawBsonRef::ObjectId(id) => bytes.extend_from_slice(&id.bytes()),
            RawBsonRef::Decimal128(decimal) => bytes.extend_from_slice(&decimal.bytes()),
            RawBsonRef::Timestamp(stamp) => {
                bytes.extend_from_slice(&stamp.increment.to_le_bytes());
                bytes.extend_from_slice(&stamp.time.to_le_bytes());
            }
            RawBsonRef::RegularExpression(regex) => {
                self.cstring(regex.pattern.as_str());
                self.cstring(regex.options.as_str());
            }
            RawBsonRef::Binary(binary) => {
                let old = binary.subtype == bson::spec::BinarySubtype::BinaryOld;
                let length = binary.bytes.len() as i32;
                bytes.extend_from_slice(&(length + if old { 4 } else { 0 }).to_le_bytes());
                bytes.push(binary.subtype.into());
                if old {
                    bytes.extend_from_slice(&length.to_le_bytes());
                }
                bytes.extend_from_slice(binary.bytes);
            }
            RawBsonRef::Null | RawBsonRef::Undefined | RawBsonRef::MinKey | RawBsonRef::MaxKey => {}
            // Both are deprecated and built by nothing here; the `bson` crate keeps their parts private.
            other @ (RawBsonRef::JavaScriptCodeWithScope(_) | RawBsonRef::DbPointer(_)) => {
                let mut holder = RawDocumentBuf::new();
                holder.append(bson::raw::cstr!(""), bson::raw::RawBson::from(other));
                let whole = holder.as_bytes();
                self.bytes.extend_from_slice(&whole[6..whole.len() - 1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, doc};

    #[test]
    fn what_is_written_is_read_back() {
        let source = doc! {
            "double": 1.5, "text": "ä", "array": [1, 2], "null": null, "bool": true, "int": 1, "long": 2_i64,
            "date": bson::DateTime::from_millis(1), "id": bson::oid::ObjectId::from_bytes([1; 12]),
            "binary": bson::Binary { subtype: bson::spec::BinarySubtype::BinaryOld, bytes: vec![1, 2] },
            "regex": bson::Regex { pattern: "a".try_into().expect("valid"), options: "i".try_into().expect("valid") },
            "scoped": bson::JavaScriptCodeWithScope { code: "x".into(), scope: doc! { "y": [1] } },
            "timestamp": bson::Timestamp { time: 1, increment: 2 }, "min": bson::Bson::MinKey,
            "decimal": bson::Bson::Decimal128("1.5".parse().expect("valid")),
        };
        let raw = RawDocumentBuf::try_from(&source).expect("serializes");
        let mut writer = Writer::after(vec![9; 21]);
        writer.put("gone", 1);
        writer.clear();
        for element in raw.iter() {
            let (key, value) = element.expect("valid");
            writer.put(key.as_str(), value);
        }
        let bytes = writer.finish();
        assert_eq!(&bytes[21..], raw.as_bytes());
    }

    #[test]
    fn nesting_and_indexes() {
        let mut writer = Writer::new();
        writer.begin_array("a");
        for number in 0..12 {
            writer.push(number);
        }
        writer.begin_element();
        writer.put("x", "y");
        writer.end();
        writer.end();
        writer.begin("d");
        writer.put_joined("ns", &["shop", ".", "orders"]);
        writer.end();
        let document = Document::try_from(writer.finish_document()).expect("valid");
        assert_eq!(
            document,
            doc! { "a": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, { "x": "y" }], "d": { "ns": "shop.orders" } }
        );
    }
}
