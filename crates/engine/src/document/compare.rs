//! BSON comparison order: types in their fixed order, numbers as one, strings by bytes or by a collation.

use crate::document::collation::Collator;
use crate::document::value::value_bytes;
use crate::error::Result;
use bson::{RawArray, RawBsonRef, RawDocument};
use std::cmp::Ordering;

/// Where a value's type stands in the order of types.
pub fn canonical_rank(value: RawBsonRef<'_>) -> u8 {
    match value {
        RawBsonRef::MinKey => 0,
        RawBsonRef::Undefined => 5,
        RawBsonRef::Null => 10,
        RawBsonRef::Double(_) | RawBsonRef::Int32(_) | RawBsonRef::Int64(_) | RawBsonRef::Decimal128(_) => 15,
        RawBsonRef::String(_) | RawBsonRef::Symbol(_) => 20,
        RawBsonRef::Document(_) => 25,
        RawBsonRef::Array(_) => 30,
        RawBsonRef::Binary(_) => 35,
        RawBsonRef::ObjectId(_) => 40,
        RawBsonRef::Boolean(_) => 45,
        RawBsonRef::DateTime(_) => 50,
        RawBsonRef::Timestamp(_) => 55,
        RawBsonRef::RegularExpression(_) => 60,
        RawBsonRef::DbPointer(_) => 65,
        RawBsonRef::JavaScriptCode(_) => 70,
        RawBsonRef::JavaScriptCodeWithScope(_) => 75,
        RawBsonRef::MaxKey => 127,
    }
}

/// Compares two values in BSON order.
///
/// # Errors
/// `InvalidBSON` (22) when nested bytes are malformed.
pub fn compare_values(a: RawBsonRef<'_>, b: RawBsonRef<'_>, collator: Option<&Collator>) -> Result<Ordering> {
    use RawBsonRef as B;
    let rank = canonical_rank(a).cmp(&canonical_rank(b));
    if rank != Ordering::Equal {
        return Ok(rank);
    }
    Ok(match (a, b) {
        (B::String(a) | B::Symbol(a), B::String(b) | B::Symbol(b)) => match collator {
            Some(collator) => collator.compare(a, b),
            None => a.as_bytes().cmp(b.as_bytes()),
        },
        (B::Document(a), B::Document(b)) => return compare_documents(a, b, collator),
        (B::Array(a), B::Array(b)) => return compare_arrays(a, b, collator),
        (B::Binary(a), B::Binary(b)) => a
            .bytes
            .len()
            .cmp(&b.bytes.len())
            .then_with(|| u8::from(a.subtype).cmp(&u8::from(b.subtype)))
            .then_with(|| a.bytes.cmp(b.bytes)),
        (B::ObjectId(a), B::ObjectId(b)) => a.bytes().cmp(&b.bytes()),
        (B::Boolean(a), B::Boolean(b)) => a.cmp(&b),
        (B::DateTime(a), B::DateTime(b)) => a.timestamp_millis().cmp(&b.timestamp_millis()),
        (B::Timestamp(a), B::Timestamp(b)) => a.time.cmp(&b.time).then(a.increment.cmp(&b.increment)),
        (B::RegularExpression(a), B::RegularExpression(b)) => {
            a.pattern.as_str().cmp(b.pattern.as_str()).then_with(|| a.options.as_str().cmp(b.options.as_str()))
        }
        (B::JavaScriptCode(a), B::JavaScriptCode(b)) => a.cmp(b),
        (B::JavaScriptCodeWithScope(a), B::JavaScriptCodeWithScope(b)) => match a.code.cmp(b.code) {
            Ordering::Equal => return compare_documents(a.scope, b.scope, collator),
            order => order,
        },
        (B::DbPointer(_), B::DbPointer(_)) => {
            let (a, b) = (value_bytes(a)?, value_bytes(b)?);
            a.len().cmp(&b.len()).then_with(|| a.cmp(&b))
        }
        (B::MinKey | B::MaxKey | B::Null | B::Undefined, _) => Ordering::Equal,
        _ => crate::document::number::compare(a, b),
    })
}

/// Compares two documents field by field: type, then name, then value; the shorter one first.
///
/// # Errors
/// `InvalidBSON` (22) when the bytes are malformed.
pub fn compare_documents(a: &RawDocument, b: &RawDocument, collator: Option<&Collator>) -> Result<Ordering> {
    let (mut a, mut b) = (a.iter(), b.iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ok(Ordering::Equal),
            (None, Some(_)) => return Ok(Ordering::Less),
            (Some(_), None) => return Ok(Ordering::Greater),
            (Some(a), Some(b)) => {
                let ((a_name, a), (b_name, b)) = (a?, b?);
                let order = canonical_rank(a)
                    .cmp(&canonical_rank(b))
                    .then_with(|| a_name.as_str().as_bytes().cmp(b_name.as_str().as_bytes()));
                let order = if order == Ordering::Equal { compare_values(a, b, collator)? } else { order };
                if order != Ordering::Equal {
                    return Ok(order);
                }
            }
        }
    }
}

fn compare_arrays(a: &RawArray, b: &RawArray, collator: Option<&Collator>) -> Result<Ordering> {
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ok(Ordering::Equal),
            (None, Some(_)) => return Ok(Ordering::Less),
            (Some(_), None) => return Ok(Ordering::Greater),
            (Some(a), Some(b)) => match compare_values(a?, b?, collator)? {
                Ordering::Equal => {}
                order => return Ok(order),
            },
        }
    }
}

/// Whether two values are equal in BSON order (`1` equals `1.0`).
///
/// # Errors
/// `InvalidBSON` (22) when nested bytes are malformed.
pub fn values_equal(a: RawBsonRef<'_>, b: RawBsonRef<'_>, collator: Option<&Collator>) -> Result<bool> {
    Ok(compare_values(a, b, collator)? == Ordering::Equal)
}
