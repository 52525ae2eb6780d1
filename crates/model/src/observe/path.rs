//! What stands at one path of a collection's documents.

use bson::raw::RawBsonRef;
use bson::{Bson, RawDocument};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Different strings that are remembered with their counts; beyond, a field is no enumeration.
pub const MAX_STRINGS: usize = 32;
/// Different values that are told apart.
const MAX_DISTINCT: usize = 20_000;
/// Values that are remembered to look for them in other collections.
const MAX_IDS: usize = 100;
/// Keys of an object that are remembered.
pub const MAX_KEYS: usize = 300;
/// Milliseconds of a day.
pub const DAY_MS: f64 = 86_400_000.0;

/// The first and the last millisecond that numbers in "time" fields are taken for: the years 2000 and 2100.
const EPOCH_MS: std::ops::Range<f64> = 946_684_800_000.0..4_102_444_800_000.0;

/// What stands at one path.
#[derive(Clone, Debug, Default)]
pub struct PathStats {
    /// How many values.
    pub values: u64,
    /// In how many documents.
    pub documents: u64,
    /// How many of each type, by MongoDB's names.
    pub types: BTreeMap<&'static str, u64>,
    /// The different strings with their counts; `None` once there are too many.
    pub strings: Option<BTreeMap<String, u64>>,
    /// How often each value occurs, by its hash.
    counts: HashMap<u64, u32, BuildHasherDefault<DefaultHasher>>,
    /// Whether there are more different values than are told apart.
    many: bool,
    /// Values that may be ids of other documents.
    pub ids: Vec<Bson>,
    /// Strings that are written dates.
    pub date_strings: u64,
    /// Strings that are written ObjectIds.
    pub hex_strings: u64,
    /// Numbers that are milliseconds or seconds since 1970.
    pub epoch_numbers: u64,
    /// Doubles with a fraction.
    pub fractions: u64,
    /// Bytes of strings and binaries.
    pub bytes: u64,
    /// The largest string or binary.
    pub max_bytes: u64,
    /// The lengths of arrays.
    pub lengths: Vec<u32>,
    /// For each array whose elements have rising times: its length and how many it gains a day.
    pub growth: Vec<(u32, f64)>,
    /// Arrays of at least three elements whose elements have times that don't rise.
    pub unordered_times: u64,
    /// The keys of objects with their counts, up to [`MAX_KEYS`].
    pub keys: BTreeMap<String, u64>,
    /// Keys of all objects together.
    pub key_count: u64,
    /// Values that were larger or not, in `_id` order, than the one before: a hint at increasing values.
    pub rises: (u64, u64),
    last: Option<i64>,
    /// The first and the last date, in milliseconds since 1970.
    pub dates: Option<(i64, i64)>,
}

impl PathStats {
    pub(super) fn unseen() -> PathStats {
        PathStats { strings: Some(BTreeMap::new()), ..PathStats::default() }
    }

    /// How many values are not null.
    pub fn known(&self) -> u64 {
        self.values - self.types.get("null").copied().unwrap_or(0)
    }

    /// How many values are of a type.
    pub fn of(&self, kind: &str) -> u64 {
        self.types.get(kind).copied().unwrap_or(0)
    }

    /// How many values are numbers.
    pub fn numbers(&self) -> u64 {
        ["int", "long", "double", "decimal"].iter().map(|kind| self.of(kind)).sum()
    }

    /// The different values; `None` when there are more than are told apart.
    pub fn distinct(&self) -> Option<u64> {
        (!self.many).then_some(self.counts.len() as u64)
    }

    /// The share of the most frequent value.
    pub fn top(&self) -> f64 {
        let most = self.counts.values().max().copied().unwrap_or(0);
        if self.values == 0 { 0.0 } else { f64::from(most) / self.values as f64 }
    }

    /// Usual bytes of a string or binary.
    pub fn usual_bytes(&self) -> u64 {
        let sized = self.of("string") + self.of("binData");
        if sized == 0 { 0 } else { self.bytes.div_ceil(sized) }
    }

    /// A percentile of the array lengths, e.g. 0.99.
    pub fn length_at(&self, share: f64) -> u64 {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        let at = ((lengths.len().saturating_sub(1)) as f64 * share).round() as usize;
        lengths.get(at).copied().unwrap_or(0).into()
    }

    /// The longest array.
    pub fn longest(&self) -> u64 {
        self.lengths.iter().max().copied().unwrap_or(0).into()
    }

    /// Whether arrays stop at a length: a good part of the long ones are exactly as long as the longest.
    pub fn is_capped(&self) -> bool {
        let longest = self.lengths.iter().max().copied().unwrap_or(0);
        let at_cap = self.lengths.iter().filter(|length| **length == longest).count();
        let near = self.lengths.iter().filter(|length| **length * 10 >= longest * 9).count();
        at_cap >= 3 && at_cap * 2 >= near
    }

    /// Whether the objects' keys are data: many different ones, few of them in one object.
    pub fn is_dynamic(&self) -> bool {
        let objects = self.of("object").max(1);
        let average = self.key_count as f64 / objects as f64;
        let different = self.keys.len();
        different >= 20 && different as f64 > average * 4.0
            || different >= 8
                && self.keys.keys().all(|key| super::names::is_data(key))
                && different as f64 > average * 1.5
    }

    pub(super) fn add(&mut self, value: RawBsonRef<'_>) {
        self.values += 1;
        *self.types.entry(type_name(value)).or_default() += 1;
        self.count(value);
        match value {
            RawBsonRef::String(text) => self.add_string(text),
            RawBsonRef::Double(number) => {
                self.fractions += u64::from(number.fract() != 0.0 && number.is_finite());
                self.add_number(number);
            }
            RawBsonRef::Int32(number) => self.add_number(number.into()),
            RawBsonRef::Int64(number) => self.add_number(number as f64),
            RawBsonRef::Binary(binary) => self.add_bytes(binary.bytes.len()),
            RawBsonRef::DateTime(date) => self.add_time(date.timestamp_millis()),
            RawBsonRef::Document(document) => self.add_keys(document),
            _ => {}
        }
        let may_be_id = matches!(
            value,
            RawBsonRef::ObjectId(_) | RawBsonRef::String(_) | RawBsonRef::Int32(_) | RawBsonRef::Int64(_)
        ) || matches!(value, RawBsonRef::Binary(binary) if binary.bytes.len() == 16);
        if may_be_id
            && self.ids.len() < MAX_IDS
            && let Ok(value) = Bson::try_from(value)
            && !self.ids.contains(&value)
        {
            self.ids.push(value);
        }
    }

    fn count(&mut self, value: RawBsonRef<'_>) {
        let hasher = self.counts.hasher();
        let hash = match value {
            RawBsonRef::Document(document) => hasher.hash_one(document.as_bytes()),
            RawBsonRef::Array(array) => hasher.hash_one(array.as_bytes()),
            RawBsonRef::String(text) => hasher.hash_one(text),
            other => hasher.hash_one(format!("{other:?}")),
        };
        if self.counts.len() < MAX_DISTINCT || self.counts.contains_key(&hash) {
            *self.counts.entry(hash).or_default() += 1;
        } else {
            self.many = true;
        }
    }

    fn add_string(&mut self, text: &str) {
        self.add_bytes(text.len());
        self.date_strings += u64::from(is_date(text));
        self.hex_strings += u64::from(text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(strings) = &mut self.strings else { return };
        let has_room = strings.len() < MAX_STRINGS;
        match strings.get_mut(text) {
            Some(count) => *count += 1,
            None if has_room && text.len() <= 64 => {
                strings.insert(text.to_owned(), 1);
            }
            None => self.strings = None,
        }
    }

    fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.max_bytes = self.max_bytes.max(bytes as u64);
    }

    fn add_number(&mut self, number: f64) {
        self.epoch_numbers += u64::from(EPOCH_MS.contains(&number) || EPOCH_MS.contains(&(number * 1000.0)));
    }

    fn add_time(&mut self, time_ms: i64) {
        if let Some(last) = self.last {
            if time_ms >= last { self.rises.0 += 1 } else { self.rises.1 += 1 }
        }
        self.last = Some(time_ms);
        self.dates = Some(self.dates.map_or((time_ms, time_ms), |(from, to)| (from.min(time_ms), to.max(time_ms))));
    }

    fn add_keys(&mut self, document: &RawDocument) {
        for (key, _) in document.iter().flatten() {
            self.key_count += 1;
            let has_room = self.keys.len() < MAX_KEYS;
            match self.keys.get_mut(key.as_str()) {
                Some(count) => *count += 1,
                None if has_room => {
                    self.keys.insert(key.as_str().to_owned(), 1);
                }
                None => {}
            }
        }
    }

    /// Looks at an array: its length, and whether the times of its elements rise.
    pub(super) fn add_array(&mut self, array: &bson::RawArray) {
        let elements: Vec<RawBsonRef<'_>> = array.into_iter().flatten().collect();
        self.lengths.push(elements.len() as u32);
        if elements.len() < 3 {
            return;
        }
        let times: Vec<i64> = elements.iter().filter_map(|element| time_of(*element)).collect();
        if times.len() < elements.len() {
            return;
        }
        if !times.is_sorted() {
            self.unordered_times += 1;
            return;
        }
        let days = (times[times.len() - 1] - times[0]) as f64 / DAY_MS;
        if days > 0.0 {
            self.growth.push((elements.len() as u32, (times.len() - 1) as f64 / days));
        }
    }
}

/// The time of an array's element: a date, or the first date in a document.
fn time_of(element: RawBsonRef<'_>) -> Option<i64> {
    match element {
        RawBsonRef::DateTime(date) => Some(date.timestamp_millis()),
        RawBsonRef::Document(document) => document.iter().flatten().find_map(|(_, value)| match value {
            RawBsonRef::DateTime(date) => Some(date.timestamp_millis()),
            _ => None,
        }),
        _ => None,
    }
}

/// Whether a string is a written date: `2024-05-01`, `2024/05/01 10:00`, `2024-05-01T10:00:00Z`.
pub fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    (10..=35).contains(&bytes.len())
        && [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(digit)
        && matches!(bytes[4], b'-' | b'/' | b'.')
        && bytes[4] == bytes[7]
        && (text[..4] >= *"1900" && text[..4] <= *"2199")
        && text[5..7] <= *"12"
        && text[8..10] <= *"31"
        && bytes.get(10).is_none_or(|after| matches!(after, b'T' | b' '))
}

/// A value's type, by MongoDB's name.
pub fn type_name(value: RawBsonRef<'_>) -> &'static str {
    match value {
        RawBsonRef::Double(_) => "double",
        RawBsonRef::String(_) => "string",
        RawBsonRef::Document(_) => "object",
        RawBsonRef::Array(_) => "array",
        RawBsonRef::Binary(_) => "binData",
        RawBsonRef::ObjectId(_) => "objectId",
        RawBsonRef::Boolean(_) => "bool",
        RawBsonRef::DateTime(_) => "date",
        RawBsonRef::Null | RawBsonRef::Undefined => "null",
        RawBsonRef::Int32(_) => "int",
        RawBsonRef::Timestamp(_) => "timestamp",
        RawBsonRef::Int64(_) => "long",
        RawBsonRef::Decimal128(_) => "decimal",
        _ => "other",
    }
}

/// Keys that occur twice in a document or a document within it.
pub fn duplicate_keys(document: &RawDocument) -> Option<String> {
    let mut seen = BTreeSet::new();
    for (key, value) in document.iter().flatten() {
        if !seen.insert(key.as_str()) {
            return Some(key.as_str().to_owned());
        }
        if let RawBsonRef::Document(inner) = value
            && let Some(found) = duplicate_keys(inner)
        {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_dates() {
        for text in ["2024-05-01", "2024/05/01 10:00", "2024-05-01T10:00:00.000Z"] {
            assert!(is_date(text), "{text}");
        }
        for text in ["2024-13-01", "0123456789", "2024-05-011", "ORD-2024-05-01", "é024-05-01"] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn a_pile_at_one_length_is_a_cap() {
        let mut stats = PathStats::unseen();
        stats.lengths = vec![10, 10, 10, 10, 3, 5, 9];
        assert!(stats.is_capped());
        stats.lengths = vec![10, 97, 250, 400, 399, 390];
        assert!(!stats.is_capped());
    }
}
