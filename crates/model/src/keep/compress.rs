//! Large fields, compressed in place.
//!
//! A text becomes binary of subtype 128 with its UTF-8 bytes compressed, so that any language reads it with its gzip or zstd;
//! any other value becomes binary of subtype 129 with the document `{v: value}` compressed. Values that are small, or that
//! would not get smaller, stay as they are. [`unpack`] gives back what was written.

use super::effect::{Effect, Packed, Place};
use crate::language::compress::Codec;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use engine::{Error, Result};
use std::io::{Read, Write};

/// The binary subtype of a compressed text.
pub const TEXT: u8 = 0x80;

/// The binary subtype of any other compressed value.
pub const VALUE: u8 = 0x81;

/// The most bytes that a value unpacks to: what a document can hold.
const MAX_BYTES: u64 = 16 << 20;

/// How hard zstd tries; its default.
const ZSTD_LEVEL: i32 = 3;

/// What begins each zstd frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A value compressed; `None` if it is to stay as it is.
///
/// # Errors
/// A compressor that fails.
pub fn pack(value: RawBsonRef<'_>, with: Codec, above: usize) -> Result<Option<Binary>> {
    let (plain, subtype) = match value {
        RawBsonRef::String(text) => (text.as_bytes().to_vec(), TEXT),
        RawBsonRef::Document(_) | RawBsonRef::Array(_) => (wrapped(value), VALUE),
        RawBsonRef::Binary(binary) if !is_packed(binary.subtype) => (wrapped(value), VALUE),
        _ => return Ok(None),
    };
    if plain.len() <= above {
        return Ok(None);
    }
    let bytes = match with {
        Codec::Zstd => zstd::encode_all(plain.as_slice(), ZSTD_LEVEL)?,
        Codec::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(&plain)?;
            encoder.finish()?
        }
    };
    Ok((bytes.len() < plain.len()).then(|| Binary { subtype: BinarySubtype::from(subtype), bytes }))
}

fn wrapped(value: RawBsonRef<'_>) -> Vec<u8> {
    rawdoc! { "v": RawBson::from(value) }.into_bytes()
}

fn is_packed(subtype: BinarySubtype) -> bool {
    matches!(u8::from(subtype), TEXT | VALUE)
}

/// What a field's value says: unpacked if it is compressed, else as it is.
///
/// # Errors
/// Bytes that are not what the subtype promises, or more than a document can hold.
pub fn unpack(value: &Bson) -> Result<Bson> {
    let Bson::Binary(Binary { subtype, bytes }) = value else { return Ok(value.clone()) };
    if !is_packed(*subtype) {
        return Ok(value.clone());
    }
    let bad = |why: &str| Error::bad_value(format!("a compressed value can't be read: {why}"));
    let mut plain = Vec::new();
    let read = if bytes.starts_with(&ZSTD_MAGIC) {
        zstd::Decoder::new(bytes.as_slice())?.take(MAX_BYTES + 1).read_to_end(&mut plain)
    } else {
        flate2::read::GzDecoder::new(bytes.as_slice()).take(MAX_BYTES + 1).read_to_end(&mut plain)
    };
    read.map_err(|error| bad(&error.to_string()))?;
    if plain.len() as u64 > MAX_BYTES {
        return Err(bad("it is larger than a document can be"));
    }
    if u8::from(*subtype) == TEXT {
        return String::from_utf8(plain).map(Bson::String).map_err(|_| bad("it is no text"));
    }
    let document = RawDocumentBuf::from_bytes(plain).map_err(|error| bad(&error.to_string()))?;
    let value = document.get("v").ok().flatten().ok_or_else(|| bad("it holds no value"))?;
    super::value::tree(RawBson::from(value))
}

/// The place and the compressed value, if a document holds the field as it came.
pub(super) fn packing(rule: &Packed, image: &RawDocument) -> Result<Option<Effect>> {
    let Some(packed) = packed(rule, image)? else { return Ok(None) };
    let place = Place::default().path(&rule.path);
    Ok(Some(Effect::Set { place, value: Some(RawBson::Binary(packed)) }))
}

/// What a document's field should be, if it isn't.
pub(crate) fn packed(rule: &Packed, image: &RawDocument) -> Result<Option<Binary>> {
    let mut value = RawBsonRef::Document(image);
    for name in rule.path.split('.') {
        let Some(inner) = value.as_document().map(|inner| engine::document::get(inner, name)).transpose()?.flatten()
        else {
            return Ok(None);
        };
        value = inner;
    }
    pack(value, rule.with, rule.above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn what_is_packed_comes_back() {
        let text = "a long story, ".repeat(1_000);
        let values =
            [Bson::String(text.clone()), doc! { "lines": vec![text; 3] }.into(), vec![Bson::Int32(7); 5_000].into()];
        for value in values {
            for codec in [Codec::Zstd, Codec::Gzip] {
                let raw = RawBson::try_from(value.clone()).expect("a value");
                let packed = pack(raw.as_raw_bson_ref(), codec, 4_096).expect("packs").expect("is large");
                assert!(packed.bytes.len() * 3 < wrapped(raw.as_raw_bson_ref()).len());
                let stored = Bson::Binary(packed.clone());
                assert_eq!(unpack(&stored).expect("unpacks"), value);
                assert_eq!(
                    pack(RawBson::Binary(packed).as_raw_bson_ref(), codec, 0).expect("packs"),
                    None,
                    "once only"
                );
            }
        }
    }

    #[test]
    fn what_is_small_or_would_not_shrink_stays_and_what_is_broken_is_refused() {
        assert_eq!(pack(RawBsonRef::String("short"), Codec::Zstd, 5).expect("packs"), None);
        assert_eq!(pack(RawBsonRef::String("shorter"), Codec::Gzip, 5).expect("packs"), None, "gzip would be longer");
        assert_eq!(unpack(&Bson::String("plain".into())).expect("as it is"), Bson::String("plain".into()));
        let broken = Bson::Binary(Binary { subtype: BinarySubtype::from(TEXT), bytes: vec![1, 2, 3] });
        assert!(unpack(&broken).expect_err("is broken").message.contains("compressed"));
    }
}
