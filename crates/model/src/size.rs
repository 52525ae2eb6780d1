//! How many bytes a document takes: exact where the model says the numbers, BSON's own arithmetic throughout.
//!
//! A document is 4 bytes of length, its elements and a zero byte. An element is a type byte, its name with a zero byte,
//! and its value. An array is a document whose names are "0", "1", …: its keys grow with the number of elements, which
//! is why an array of n ObjectIds takes much more than 12 n bytes.

use crate::language::entity::Entity;
use crate::language::field::Field;
use crate::model::{Body, Model};
use crate::shape::{Leaf, Shape};
use crate::value::Type;

/// The largest document MongoDB stores.
pub const MAX_DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;

/// The bytes of a document in the usual and in the worst declared case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// The usual document.
    pub typical: u64,
    /// The largest one.
    pub max: u64,
}

impl Size {
    fn both(bytes: u64) -> Size {
        Size { typical: bytes, max: bytes }
    }

    fn plus(self, other: Size) -> Size {
        Size { typical: self.typical.saturating_add(other.typical), max: self.max.saturating_add(other.max) }
    }
}

/// The bytes of the empty document: its length and the closing zero.
pub const EMPTY: u64 = 5;

/// The bytes an element takes beside its value: type byte, name, zero byte.
pub fn key_bytes(name: &str) -> u64 {
    2 + name.len() as u64
}

/// The bytes an array of `count` elements takes beside the elements' values.
pub fn array_overhead(count: u64) -> u64 {
    EMPTY + 2 * count + index_digits(count)
}

/// The digits of all the indexes below `count` together.
fn index_digits(count: u64) -> u64 {
    let mut digits = 0;
    let (mut width, mut from) = (1, 0);
    while from < count {
        let to = 10u64.saturating_pow(width).min(count);
        digits += u64::from(width) * (to - from);
        (width, from) = (width + 1, to);
    }
    digits
}

/// The bytes of an array of `count` values of `value` bytes each.
pub fn array_bytes(count: u64, value: u64) -> u64 {
    array_overhead(count).saturating_add(count.saturating_mul(value))
}

/// The most values of `value` bytes in an array that takes at most `bytes`.
pub fn array_capacity(bytes: u64, value: u64) -> u64 {
    let (mut low, mut high) = (0, bytes);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if array_bytes(middle, value) <= bytes {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// The bytes of a value of a type with `size` bytes of content.
pub fn value_bytes(kind: Type, size: Option<u64>) -> u64 {
    match (kind, size) {
        (Type::String | Type::Binary, Some(size)) => 5 + size,
        (Type::Object | Type::Any, Some(size)) => size,
        _ => kind.bytes(),
    }
}

impl Model {
    /// The bytes of an entity's documents, kept fields included.
    pub fn document_size(&self, entity: &Entity) -> Size {
        let shape = self.shape(entity);
        let mut size = Size::both(EMPTY + key_bytes("_id") + value_bytes(entity.id, None));
        size = size.plus(self.body_size(&shape, "", &entity.body));
        for derived in &entity.parts.derived {
            size = size.plus(self.leaf_size(&shape, &derived.name, &derived.name));
        }
        for recent in &entity.parts.recents {
            let element = self.object_size(&shape, &recent.name);
            let bytes = key_bytes(&recent.name) + array_bytes(recent.keep, element.max);
            size = size.plus(Size::both(bytes));
        }
        for states in &entity.parts.states {
            size = size.plus(self.leaf_size(&shape, &states.name, &states.name));
            if let (Some(history), Some(max)) = (&states.history, states.max) {
                let element = self.object_size(&shape, history).max;
                let typical = array_bytes(max.min(states.steps.len() as u64), element);
                let key = key_bytes(history);
                size = size.plus(Size { typical: key + typical, max: key + array_bytes(max, element) });
            }
        }
        for stock in &entity.parts.stocks {
            for name in std::iter::once(&stock.name).chain(&stock.held) {
                size = size.plus(Size::both(key_bytes(name) + 8));
            }
        }
        if let Some(lock) = &entity.parts.lock {
            size = size.plus(Size::both(key_bytes(&lock.field) + 8));
        }
        for edge in &self.edges {
            let from = edge.count_from.iter().filter(|_| edge.from == entity.name);
            let to = edge.count_to.iter().filter(|_| edge.to == entity.name);
            for name in from.chain(to) {
                size = size.plus(Size::both(key_bytes(name) + 8));
            }
        }
        if let Some(declared) = entity.expect.as_ref().and_then(|expect| expect.size) {
            size = Size { typical: declared, max: size.max.max(declared) };
        }
        size
    }

    /// The bytes of the elements of a body, without the document around them.
    pub(crate) fn body_size(&self, shape: &Shape, prefix: &str, body: &Body) -> Size {
        let mut size = Size::default();
        for field in &body.fields {
            size = size.plus(self.field_size(shape, prefix, field));
        }
        for embed in &body.embeds {
            let inner = format!("{prefix}{}.", embed.name);
            let mut element = Size::both(EMPTY).plus(self.body_size(shape, &inner, &embed.body));
            let key = key_bytes(&embed.name);
            if !embed.many {
                size = size.plus(Size::both(key)).plus(element);
                continue;
            }
            let max = embed.max.unwrap_or(0);
            let expect = embed.expect.as_ref();
            let typical = expect.and_then(|expect| expect.typical).unwrap_or(max.min(5));
            let bytes = |count: u64, element: u64| match expect.and_then(|expect| expect.size) {
                Some(size) => EMPTY.saturating_add(count.saturating_mul(size)),
                None => array_bytes(count, element),
            };
            element = Size { typical: bytes(typical, element.typical), max: bytes(max, element.max) };
            size = size.plus(Size::both(key)).plus(element);
        }
        for reference in &body.refs {
            let path = format!("{prefix}{}", reference.name);
            let value = shape.leaf(&path).map_or(12, |leaf| value_bytes(leaf.kind, leaf.size));
            let key = key_bytes(&reference.name);
            let max = reference.max.filter(|_| reference.many);
            let bytes = |count: Option<u64>| count.map_or(value, |count| array_bytes(count, value));
            size = size.plus(Size { typical: key + bytes(max.map(|max| max.min(5))), max: key + bytes(max) });
        }
        let snapshots = body.snapshots.iter().map(|copy| (&copy.name, &copy.fields));
        for (name, fields) in snapshots.chain(body.lives.iter().map(|copy| (&copy.name, &copy.fields))) {
            let base = name.as_ref().map_or(prefix.to_owned(), |name| format!("{prefix}{name}."));
            if let Some(name) = name {
                size = size.plus(Size::both(key_bytes(name) + EMPTY));
            }
            for copied in fields {
                size = size.plus(self.leaf_size(shape, &format!("{base}{}", copied.name), &copied.name));
            }
        }
        size
    }

    fn field_size(&self, shape: &Shape, prefix: &str, field: &Field) -> Size {
        let key = key_bytes(&field.name);
        let inner = format!("{prefix}{}.", field.name);
        let value = match field.kind {
            Type::Object if field.body != Body::default() => {
                Size::both(EMPTY).plus(self.body_size(shape, &inner, &field.body))
            }
            kind => Size::both(value_bytes(kind, field.size)),
        };
        if !field.list {
            return Size::both(key).plus(value);
        }
        let max = field.max.unwrap_or(0);
        Size { typical: key + array_bytes(max.min(5), value.typical), max: key + array_bytes(max, value.max) }
    }

    /// The bytes of the element at a path, from the shape alone.
    fn leaf_size(&self, shape: &Shape, path: &str, name: &str) -> Size {
        let key = Size::both(key_bytes(name));
        let Some(leaf) = shape.leaf(path) else { return key.plus(Size::both(Type::Any.bytes())) };
        key.plus(match leaf.kind {
            Type::Object => self.object_size(shape, path),
            kind => Size::both(value_bytes(kind, leaf.size)),
        })
    }

    /// The bytes of the document at a path, from the paths below it.
    pub(crate) fn object_size(&self, shape: &Shape, path: &str) -> Size {
        let below = format!("{path}.");
        let children: Vec<(&str, &Leaf)> = shape
            .iter()
            .filter(|(path, _)| path.strip_prefix(&below).is_some_and(|rest| !rest.contains('.')))
            .collect();
        if children.is_empty() {
            let size = shape.leaf(path).and_then(|leaf| leaf.size);
            return Size::both(value_bytes(Type::Object, size));
        }
        children.iter().fold(Size::both(EMPTY), |size, (path, _)| {
            size.plus(self.leaf_size(shape, path, path.rsplit('.').next().unwrap_or(path)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, doc, oid::ObjectId};

    fn followers(count: u64) -> u64 {
        let ids = vec![Bson::ObjectId(ObjectId::from_bytes([1; 12])); count as usize];
        let document = doc! { "_id": ObjectId::from_bytes([0; 12]), "followers": ids };
        document.to_vec().expect("encodes").len() as u64
    }

    #[test]
    fn array_arithmetic_agrees_with_encoded_documents() {
        let around = EMPTY + key_bytes("_id") + 12 + key_bytes("followers");
        for count in [0, 1, 9, 10, 11, 99, 100, 101, 1_000, 12_345] {
            assert_eq!(around + array_bytes(count, 12), followers(count), "{count} ids");
        }
    }

    #[test]
    fn a_document_holds_844_414_followers_and_not_one_more() {
        let around = EMPTY + key_bytes("_id") + 12 + key_bytes("followers");
        assert_eq!(array_capacity(MAX_DOCUMENT_BYTES - around, 12), 844_414);
        assert!(followers(844_414) <= MAX_DOCUMENT_BYTES);
        assert!(followers(844_415) > MAX_DOCUMENT_BYTES);
    }

    #[test]
    fn followers_150_000_take_about_2_9_megabytes() {
        let bytes = followers(150_000);
        assert!((2_850_000..2_950_000).contains(&bytes), "{bytes}");
    }
}
