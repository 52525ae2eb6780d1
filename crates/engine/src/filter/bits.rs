//! What the four `$bits…` operators share.
//!
//! A mask is a non-negative whole number, binary data, or an array of bit positions. Numbers that are whole and fit in 64
//! bits are looked at in two's complement, with the sign beyond bit 63; binary data has zeros beyond its end; other
//! values have no bits and never match.

use super::bounds::{bracket, numbers};
use super::{Bounds, Field, IndexTraits, Node, Predicate};
use crate::document::number::{Number, exact_i32, exact_i64};
use crate::document::type_name;
use crate::error::{Error, Result};
use crate::expression::Environment;
use bson::spec::BinarySubtype;
use bson::{Binary, RawArrayBuf, RawBinaryRef, RawBson, RawBsonRef, RawDocumentBuf};

/// Which of the four operators.
#[derive(Debug)]
pub(super) struct Kind {
    /// The operator's name.
    pub(super) name: &'static str,
    /// Whether all bits of the mask must be so, or one.
    pub(super) all: bool,
    /// Whether they must be set or clear.
    pub(super) set: bool,
}

#[derive(Debug)]
struct Bits {
    kind: &'static Kind,
    /// The mask's bit positions.
    positions: Vec<u32>,
}

/// Parses a mask.
pub(super) fn parse(kind: &'static Kind, field: Field<'_>, argument: RawBsonRef<'_>) -> Result<Node> {
    let positions = match argument {
        RawBsonRef::Array(array) => {
            array.into_iter().map(|element| bit_position(kind, element?)).collect::<Result<Vec<_>>>()?
        }
        RawBsonRef::Binary(binary) => {
            let bytes = Bytes::of(binary);
            (0..bytes.bit_count()).filter(|position| bytes.bit(*position)).collect()
        }
        number if Number::of(number).is_some() => {
            let mask = exact_i64(number).filter(|mask| *mask >= 0).ok_or_else(|| {
                Error::failed_to_parse(format!(
                    "{}: expected a non-negative whole number of at most 63 bits, got {number:?}",
                    kind.name
                ))
            })?;
            (0..63).filter(|position| mask >> position & 1 == 1).collect()
        }
        other => {
            return Err(Error::bad_value(format!(
                "{} takes an Array, a number, or a BinData but received: {}",
                kind.name,
                type_name(other)
            )));
        }
    };
    Ok(Node::path(field.path, Bits { kind, positions }))
}

fn bit_position(kind: &Kind, element: RawBsonRef<'_>) -> Result<u32> {
    exact_i32(element).and_then(|position| u32::try_from(position).ok()).ok_or_else(|| {
        Error::bad_value(format!(
            "{}: bit positions must be non-negative whole numbers of 32 bits but got: {element:?}",
            kind.name
        ))
    })
}

/// The bytes of binary data, with the length before them that the old subtype stores.
struct Bytes<'a> {
    length: Option<[u8; 4]>,
    bytes: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn of(binary: RawBinaryRef<'a>) -> Bytes<'a> {
        let length = matches!(binary.subtype, BinarySubtype::BinaryOld)
            .then(|| u32::try_from(binary.bytes.len()).expect("a document is below 4 GiB").to_le_bytes());
        Bytes { length, bytes: binary.bytes }
    }

    fn bit_count(&self) -> u32 {
        let bytes = self.bytes.len() + self.length.map_or(0, |length| length.len());
        u32::try_from(bytes * 8).expect("a document is below 512 MiB")
    }

    fn bit(&self, position: u32) -> bool {
        let index = position as usize / 8;
        let byte = match &self.length {
            Some(length) if index < length.len() => Some(length[index]),
            Some(length) => self.bytes.get(index - length.len()).copied(),
            None => self.bytes.get(index).copied(),
        };
        byte.is_some_and(|byte| byte >> (position % 8) & 1 == 1)
    }
}

impl Predicate for Bits {
    fn matches(&self, value: Option<RawBsonRef<'_>>, _: &Environment) -> Result<bool> {
        let Kind { all, set, .. } = *self.kind;
        let test = |bit: &dyn Fn(u32) -> bool| {
            if all {
                self.positions.iter().all(|position| bit(*position) == set)
            } else {
                self.positions.iter().any(|position| bit(*position) == set)
            }
        };
        Ok(match value {
            Some(RawBsonRef::Binary(binary)) => {
                let bytes = Bytes::of(binary);
                test(&|position| bytes.bit(position))
            }
            Some(value) => exact_i64(value).is_some_and(|number| test(&|position| number >> position.min(63) & 1 == 1)),
            None => false,
        })
    }

    fn name(&self) -> &'static str {
        self.kind.name
    }

    fn describe(&self) -> RawDocumentBuf {
        let mut positions = RawArrayBuf::new();
        for position in &self.positions {
            positions.push(i32::try_from(*position).expect("positions are parsed from 32 bits"));
        }
        super::eq::operator(self.kind.name, RawBsonRef::Array(&positions))
    }

    fn bounds(&self, _: IndexTraits) -> Option<Bounds> {
        let binary = RawBson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: Vec::new() });
        Some(Bounds::inexact(vec![numbers(), bracket(binary.as_raw_bson_ref())]))
    }
}
