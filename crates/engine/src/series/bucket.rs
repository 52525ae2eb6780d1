//! A packed bucket: up to [`MAX_ROWS`] measurements of one meta value and one window, column by column.
//!
//! ```text
//!   version  1 byte      1
//!   count    number      the rows
//!   least    8 bytes     the least time, milliseconds, little-endian
//!   greatest 8 bytes     the greatest time
//!   names    number, then each: length, bytes
//!   shapes   number, then each: number of fields, their names' numbers       the order of fields in a row
//!   runs     number, then each: shape, how many rows in turn have it
//!   columns  for each name: length, the column (see `column.rs`)
//! ```
//! Rows are ordered by time.

use super::bytes::{Reader, broken, fields, put_number};
use super::column::{self, Typed};
use crate::error::Result;
use bson::RawDocument;
use bytes::Bytes;
use std::collections::BTreeSet;

/// The version that is written.
const VERSION: u8 = 1;
/// The most rows of a bucket.
pub(crate) const MAX_ROWS: usize = 1000;
/// The most bytes of a bucket's documents, unless it holds one only.
pub(crate) const MAX_BYTES: usize = 512 << 10;
/// The most different fields of a bucket that is read: a row of 16 MiB has fewer.
const MAX_FIELDS: usize = 8 << 20;

/// What stands at the front of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// How many rows.
    pub(crate) count: usize,
    /// The least time, in milliseconds.
    pub(crate) least_ms: i64,
    /// The greatest.
    pub(crate) greatest_ms: i64,
}

/// Packs documents, ordered by time, with their times.
///
/// # Errors
/// A malformed document.
pub(crate) fn pack(rows: &[(i64, Bytes)]) -> Result<Vec<u8>> {
    let mut names: Vec<&[u8]> = Vec::new();
    let mut shapes: Vec<Vec<usize>> = Vec::new();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut columns: Vec<Vec<Typed<'_>>> = Vec::new();
    for (_, document) in rows {
        let mut shape = Vec::with_capacity(8);
        for (place, field) in fields(document)?.into_iter().enumerate() {
            // Most rows have their fields where the first row has them.
            let usual = names.get(place).is_some_and(|name| *name == field.name).then_some(place);
            let number = usual.or_else(|| names.iter().position(|name| *name == field.name)).unwrap_or_else(|| {
                names.push(field.name);
                columns.push(Vec::with_capacity(rows.len()));
                names.len() - 1
            });
            columns[number].push((field.kind, field.value));
            shape.push(number);
        }
        let number = shapes.iter().rposition(|known| *known == shape).unwrap_or_else(|| {
            shapes.push(shape);
            shapes.len() - 1
        });
        match runs.last_mut() {
            Some((last, length)) if *last == number => *length += 1,
            _ => runs.push((number, 1)),
        }
    }
    let mut out = vec![VERSION];
    put_number(&mut out, rows.len() as u64);
    let times = || rows.iter().map(|row| row.0);
    out.extend_from_slice(&times().min().unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&times().max().unwrap_or(0).to_le_bytes());
    put_number(&mut out, names.len() as u64);
    for name in &names {
        put_number(&mut out, name.len() as u64);
        out.extend_from_slice(name);
    }
    put_number(&mut out, shapes.len() as u64);
    for shape in &shapes {
        put_number(&mut out, shape.len() as u64);
        shape.iter().for_each(|number| put_number(&mut out, *number as u64));
    }
    put_number(&mut out, runs.len() as u64);
    for (shape, length) in &runs {
        put_number(&mut out, *shape as u64);
        put_number(&mut out, *length as u64);
    }
    for values in &columns {
        let packed = column::pack(values)?;
        put_number(&mut out, packed.len() as u64);
        out.extend_from_slice(&packed);
    }
    Ok(out)
}

fn read_header(reader: &mut Reader<'_>) -> Result<Header> {
    if reader.byte()? != VERSION {
        return Err(broken("it was written by a newer release"));
    }
    let count = reader.length(MAX_ROWS)?;
    Ok(Header { count, least_ms: reader.fixed()?, greatest_ms: reader.fixed()? })
}

/// What stands at the front of a bucket.
///
/// # Errors
/// `ManualInterventionRequired` when the bytes are damaged.
pub(crate) fn header(bucket: &[u8]) -> Result<Header> {
    read_header(&mut Reader::new(bucket))
}

/// The documents of a bucket, in order; with `needed`, only with those fields.
///
/// # Errors
/// As [`header`].
pub(crate) fn unpack(bucket: &[u8], needed: Option<&BTreeSet<String>>) -> Result<Vec<Bytes>> {
    let mut reader = Reader::new(bucket);
    let header = read_header(&mut reader)?;
    let mut names = Vec::new();
    for _ in 0..reader.length(MAX_FIELDS)? {
        let length = reader.length(bucket.len())?;
        names.push(reader.take(length)?);
    }
    let mut shapes = Vec::new();
    for _ in 0..reader.length(MAX_ROWS)? {
        let mut shape = Vec::new();
        for _ in 0..reader.length(MAX_FIELDS)? {
            shape.push(reader.length(names.len().saturating_sub(1))?);
        }
        shapes.push(shape);
    }
    let (mut runs, mut counts, mut rows) = (Vec::new(), vec![0; names.len()], 0);
    for _ in 0..reader.length(MAX_ROWS)? {
        let shape = shapes.get(reader.length(MAX_ROWS)?).ok_or_else(|| broken("a row has an unknown shape"))?;
        let length = reader.length(MAX_ROWS)?;
        shape.iter().for_each(|number| counts[*number] += length);
        rows += length;
        runs.push((shape, length));
    }
    if rows != header.count {
        return Err(broken("it holds another number of rows than it says"));
    }
    let is_needed =
        |name: &[u8]| needed.is_none_or(|needed| std::str::from_utf8(name).is_ok_and(|name| needed.contains(name)));
    let mut columns = Vec::with_capacity(names.len());
    for (name, count) in names.iter().zip(&counts) {
        let length = reader.length(bucket.len())?;
        let packed = reader.take(length)?;
        columns.push(if is_needed(name) { Some(column::unpack(packed, *count)?) } else { None });
    }
    let mut next = vec![0; names.len()];
    let mut documents = Vec::with_capacity(header.count);
    for (shape, length) in runs {
        for _ in 0..length {
            let mut document = Vec::with_capacity(128);
            document.extend_from_slice(&[0; 4]);
            for number in shape {
                let Some(column) = &columns[*number] else { continue };
                let (kind, value) = column.value(next[*number]);
                next[*number] += 1;
                document.push(kind);
                document.extend_from_slice(names[*number]);
                document.push(0);
                document.extend_from_slice(value);
            }
            document.push(0);
            let size = document.len() as u32;
            document[..4].copy_from_slice(&size.to_le_bytes());
            RawDocument::from_bytes(&document)?;
            documents.push(Bytes::from(document));
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::oid::ObjectId;
    use bson::{DateTime, RawDocumentBuf, rawdoc};

    fn rows(documents: &[RawDocumentBuf]) -> Vec<(i64, Bytes)> {
        let row = |document: &RawDocumentBuf| {
            let time = document.get_datetime("ts").unwrap().timestamp_millis();
            (time, Bytes::copy_from_slice(document.as_bytes()))
        };
        documents.iter().map(row).collect()
    }

    fn reading(n: i64) -> RawDocumentBuf {
        rawdoc! {
            "_id": ObjectId::new(),
            "ts": DateTime::from_millis(1_700_000_000_000 + n * 1000),
            "sensor": { "id": 7, "site": "north" },
            "temperature": 20.0 + (n % 17) as f64 / 10.0,
            "humidity": 40 + (n % 5) as i32,
        }
    }

    #[test]
    fn a_thousand_readings_take_less_than_a_tenth_of_their_size() {
        let documents: Vec<_> = (0..1000).map(reading).collect();
        let packed = pack(&rows(&documents)).unwrap();
        let plain: usize = documents.iter().map(|document| document.as_bytes().len()).sum();
        assert!(packed.len() * 10 < plain, "{} of {plain}", packed.len());
        let back = unpack(&packed, None).unwrap();
        assert!(back.iter().zip(&documents).all(|(a, b)| a[..] == *b.as_bytes()));
        let header = header(&packed).unwrap();
        assert_eq!((header.count, header.greatest_ms - header.least_ms), (1000, 999_000));
    }

    #[test]
    fn rows_of_different_shapes_keep_their_fields_and_their_order() {
        let ts = DateTime::from_millis(5);
        let documents = [
            rawdoc! { "_id": 1, "ts": ts, "a": 1, "b": [1, "x", null] },
            rawdoc! { "ts": ts, "_id": "x", "b": { "c": 1.5 } },
            rawdoc! { "_id": 1, "ts": ts },
            rawdoc! { "_id": 2, "ts": ts, "a": true, "b": bson::RawBson::MaxKey },
            rawdoc! { "_id": 3, "ts": ts, "a": bson::RawBson::Null, "": "", "r": bson::Regex { pattern: cstr("a"), options: cstr("i") } },
        ];
        let packed = pack(&rows(&documents)).unwrap();
        let back = unpack(&packed, None).unwrap();
        assert!(back.iter().zip(&documents).all(|(a, b)| a[..] == *b.as_bytes()));
        let some = unpack(&packed, Some(&["a".to_owned()].into())).unwrap();
        assert_eq!(some[3][..], *rawdoc! { "a": true }.as_bytes());
        assert_eq!(some[1][..], *rawdoc! {}.as_bytes());
    }

    fn cstr(text: &str) -> bson::raw::CString {
        text.try_into().unwrap()
    }

    #[test]
    fn damaged_bytes_are_refused_and_never_panic() {
        let documents: Vec<_> = (0..50).map(reading).collect();
        let packed = pack(&rows(&documents)).unwrap();
        for length in 0..packed.len() {
            let _ = unpack(&packed[..length], None);
        }
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x41;
            let _ = unpack(&damaged, None);
        }
    }
}
