//! The keys of a document in an index.
//!
//! Where a path meets an array, each element gives keys of its own, and all fields of the pattern that lead through that
//! array take the same element. Two arrays side by side are refused: their product would be meant. An empty array at the
//! end of a path is indexed as undefined; what is missing, as null.

use super::{FieldKind, IndexSpec, KeyField};
use crate::document::collation::Collator;
use crate::document::get;
use crate::document::traverse::array_position;
use crate::error::{Code, Error, Result};
use crate::key::{self, Key};
use bson::{RawArray, RawBsonRef, RawDocument};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The keys of one document.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Keys {
    /// The keys in order, each once.
    pub entries: Vec<Entry>,
    /// For each field of the pattern, the parts of its path that are arrays in this document, as bits from the first part
    /// on. Empty when there are none.
    pub multikey: Vec<u64>,
}

/// One key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The encoded fields.
    pub key: Bytes,
    /// What the encoding cannot tell.
    pub bits: Bytes,
}

impl Keys {
    /// Whether an array is in an indexed path.
    pub fn is_multikey(&self) -> bool {
        self.multikey.iter().any(|parts| *parts != 0)
    }
}

impl IndexSpec {
    /// The keys of a document; none when it is left out by `sparse` or by the partial filter.
    ///
    /// # Errors
    /// `CannotIndexParallelArrays` (171), `Location16766` for an array under a hashed field, `Location16746` for a number in a
    /// path that is a position and a name at once, `Location7246301` for an array beside a wildcard.
    pub fn keys(&self, document: &RawDocument) -> Result<Keys> {
        if let Some(partial) = &self.partial
            && !partial.matches(document)?
        {
            return Ok(Keys::default());
        }
        if let Some(scope) = &self.wildcard {
            return super::wildcard::keys(self, scope, document);
        }
        keys_of(&self.fields, self.sparse, self.collator.as_deref(), document)
    }
}

/// The keys of a document for fields of a key pattern, wherever that comes from: an index or a sort.
///
/// # Errors
/// As [`IndexSpec::keys`].
pub(crate) fn keys_of(
    fields: &[KeyField],
    sparse: bool,
    collator: Option<&Collator>,
    document: &RawDocument,
) -> Result<Keys> {
    let mut generator = Generator { fields, sparse, collator, entries: BTreeMap::new(), multikey: Vec::new() };
    let open: Vec<Field<'_>> = fields.iter().map(|field| Field::Open(&field.path, 0)).collect();
    generator.expand(Some(document), open)?;
    Ok(generator.finish())
}

/// Appends the value under which a field is indexed to a key.
pub(super) fn push_field(
    key: &mut Key,
    kind: FieldKind,
    value: RawBsonRef<'_>,
    collator: Option<&Collator>,
) -> Result<()> {
    match kind {
        FieldKind::Hashed => key.push(RawBsonRef::Int64(hash(value, collator)?), false, None),
        kind => key.push(value, kind.is_descending(), collator),
    }
}

/// The hash under which a hashed field stores a value: FNV-1a over the encoded value, finished by a mix of the bits. Values
/// that compare as equal hash equally.
///
/// # Errors
/// `InvalidBSON` (22) when nested bytes are malformed.
pub fn hash(value: RawBsonRef<'_>, collator: Option<&Collator>) -> Result<i64> {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut bytes = Vec::with_capacity(16);
    key::encode(value, collator, &mut bytes)?;
    let mut hash = bytes.iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    Ok(hash as i64)
}

/// A field of the pattern on its way to a value.
#[derive(Clone, Copy)]
enum Field<'a> {
    /// The rest of its path, and how many parts were walked already.
    Open(&'a str, u32),
    /// Its value; `None` when it is missing.
    Fixed(Option<RawBsonRef<'a>>),
}

/// Where a walk along a path ended.
enum Found<'a> {
    Value(Option<RawBsonRef<'a>>),
    /// An array, the rest of the path behind it, and the parts walked, the array's own included.
    Array(&'a RawArray, Option<&'a str>, u32),
}

struct Generator<'a> {
    fields: &'a [KeyField],
    sparse: bool,
    collator: Option<&'a Collator>,
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    multikey: Vec<u64>,
}

impl<'a> Generator<'a> {
    fn finish(self) -> Keys {
        let entries = self
            .entries
            .into_iter()
            .map(|(key, bits)| Entry { key: Bytes::from(key), bits: Bytes::from(bits) })
            .collect();
        Keys { entries, multikey: self.multikey }
    }

    /// Walks all open fields from a document; at an array, goes on with each element.
    fn expand(&mut self, document: Option<&'a RawDocument>, mut fields: Vec<Field<'a>>) -> Result<()> {
        let mut array: Option<(&'a RawArray, usize)> = None;
        let mut behind: Vec<(usize, Option<&'a str>, u32)> = Vec::new();
        for (number, field) in fields.iter_mut().enumerate() {
            let Field::Open(path, walked) = *field else { continue };
            match walk(document, path, walked)? {
                Found::Value(value) => *field = Field::Fixed(value),
                Found::Array(found, rest, walked) => {
                    match array {
                        Some((first, owner)) if !std::ptr::eq(first.as_bytes(), found.as_bytes()) => {
                            return Err(self.parallel(owner, number));
                        }
                        _ => array = array.or(Some((found, number))),
                    }
                    self.note_array(number, walked)?;
                    behind.push((number, rest, walked));
                }
            }
        }
        let Some((array, _)) = array else { return self.emit(&fields) };
        let mut elements = array.into_iter();
        let mut next = elements.next().transpose()?;
        if next.is_none() {
            return self.with_element(RawBsonRef::Undefined, &behind, &fields);
        }
        while let Some(element) = next {
            self.with_element(element, &behind, &fields)?;
            next = elements.next().transpose()?;
        }
        Ok(())
    }

    /// Goes on with one element of an array for the fields that lead into it.
    fn with_element(
        &mut self,
        element: RawBsonRef<'a>,
        behind: &[(usize, Option<&'a str>, u32)],
        fields: &[Field<'a>],
    ) -> Result<()> {
        let mut fields = fields.to_vec();
        for (number, rest, walked) in behind {
            fields[*number] = match rest {
                None => Field::Fixed(Some(element)),
                Some(rest) => Field::Open(rest, *walked),
            };
        }
        self.expand(element.as_document(), fields)
    }

    fn note_array(&mut self, number: usize, walked: u32) -> Result<()> {
        if self.fields[number].kind == FieldKind::Hashed {
            return Err(Error::location(
                16766,
                format!(
                    "hashed indexes do not currently support array values. Found array at path: {}",
                    self.fields[number].path
                ),
            ));
        }
        self.multikey.resize(self.fields.len(), 0);
        self.multikey[number] |= 1u64 << (walked - 1).min(63);
        Ok(())
    }

    fn emit(&mut self, fields: &[Field<'a>]) -> Result<()> {
        let value = |field: &Field<'a>| match field {
            Field::Fixed(value) => *value,
            Field::Open(..) => None,
        };
        if self.sparse && fields.iter().all(|field| value(field).is_none()) {
            return Ok(());
        }
        let mut key = Key::new();
        for (field, of) in fields.iter().zip(self.fields) {
            push_field(&mut key, of.kind, value(field).unwrap_or(RawBsonRef::Null), self.collator)?;
        }
        let (bytes, types) = key.into_parts();
        self.entries.entry(bytes).or_insert(types);
        Ok(())
    }

    fn parallel(&self, a: usize, b: usize) -> Error {
        let last = |number: usize| self.fields[number].path.rsplit('.').next().unwrap_or_default().to_owned();
        Error::new(
            Code::CANNOT_INDEX_PARALLEL_ARRAYS,
            format!("cannot index parallel arrays [{}] [{}]", last(b), last(a)),
        )
    }
}

fn walk<'a>(document: Option<&'a RawDocument>, path: &'a str, walked: u32) -> Result<Found<'a>> {
    let Some(mut document) = document else { return Ok(Found::Value(None)) };
    let (mut path, mut walked) = (path, walked);
    loop {
        let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        walked += 1;
        let mut value = get(document, name)?;
        let mut rest = rest;
        // A number in the path may name a position.
        while let (Some(RawBsonRef::Array(array)), Some(after)) = (value, rest) {
            let Some((element, behind)) = positional(array, after)? else { break };
            value = Some(element);
            rest = behind;
            walked += 1;
        }
        match (value, rest) {
            (Some(RawBsonRef::Array(array)), rest) => return Ok(Found::Array(array, rest, walked)),
            (Some(RawBsonRef::Document(inner)), Some(rest)) => (document, path) = (inner, rest),
            (value, None) => return Ok(Found::Value(value)),
            (_, Some(_)) => return Ok(Found::Value(None)),
        }
    }
}

/// The element that the next part of a path names by its position, and the path behind it.
fn positional<'a>(array: &'a RawArray, path: &'a str) -> Result<Option<(RawBsonRef<'a>, Option<&'a str>)>> {
    let (part, rest) = path.split_once('.').map_or((path, None), |(part, rest)| (part, Some(rest)));
    let Some(position) = array_position(part) else { return Ok(None) };
    let mut found = None;
    for (index, element) in array.into_iter().enumerate() {
        let element = element?;
        if index == position {
            found = Some(element);
        }
        if let RawBsonRef::Document(document) = element
            && get(document, part)?.is_some()
        {
            return ambiguous(part, array.into_iter().count() > position);
        }
    }
    Ok(found.map(|element| (element, rest)))
}

/// A number is a field's name in some element: then it is a name, unless it is a position as well.
fn ambiguous<T>(part: &str, is_position: bool) -> Result<Option<T>> {
    if is_position {
        return Err(Error::location(
            16746,
            format!(
                "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
                 field: '{part}'"
            ),
        ));
    }
    Ok(None)
}
