//! Ids, times and pages, as they leave the crate: ids are 24 hex digits, times RFC 3339, cursors opaque texts.

use crate::error::{Error, Result};
use bson::oid::ObjectId;
use bson::{Bson, DateTime};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The most items of a page.
pub const MAX_PAGE: u32 = 200;

/// An id. Ids grow with the time of their making, so that the order by id is the order by time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(crate) ObjectId);

impl Id {
    /// A new one.
    pub fn new() -> Id {
        Id(ObjectId::new())
    }

    /// When it was made.
    pub fn time(&self) -> Time {
        Time(self.0.timestamp())
    }
}

impl Default for Id {
    fn default() -> Id {
        Id::new()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Id {
    type Err = Error;

    fn from_str(text: &str) -> Result<Id> {
        ObjectId::parse_str(text).map(Id).map_err(|_| Error::Invalid(format!("{text} is not an id of 24 hex digits")))
    }
}

impl From<ObjectId> for Id {
    fn from(id: ObjectId) -> Id {
        Id(id)
    }
}

impl From<Id> for ObjectId {
    fn from(id: Id) -> ObjectId {
        id.0
    }
}

impl From<Id> for Bson {
    fn from(id: Id) -> Bson {
        Bson::ObjectId(id.0)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A moment in UTC, to the millisecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Time(pub(crate) DateTime);

impl Time {
    /// This moment.
    pub fn now() -> Time {
        Time(DateTime::now())
    }

    /// Milliseconds since 1970.
    pub fn timestamp_ms(&self) -> i64 {
        self.0.timestamp_millis()
    }

    /// The moment so many milliseconds after 1970.
    pub fn from_timestamp_ms(ms: i64) -> Time {
        Time(DateTime::from_millis(ms))
    }
}

impl From<Time> for Bson {
    fn from(time: Time) -> Bson {
        Bson::DateTime(time.0)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        serializer.serialize_str(&self.0.try_to_rfc3339_string().map_err(S::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let text = String::deserialize(deserializer)?;
        DateTime::parse_rfc3339_str(&text).map(Time).map_err(D::Error::custom)
    }
}

/// Which page of a list: what follows a cursor, the beginning without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRequest {
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many items; at most [`MAX_PAGE`].
    #[serde(default = "default_limit")]
    pub limit: u32,
}

fn default_limit() -> u32 {
    20
}

impl Default for PageRequest {
    fn default() -> PageRequest {
        PageRequest { after: None, limit: default_limit() }
    }
}

impl PageRequest {
    /// The first page.
    pub fn first(limit: u32) -> PageRequest {
        PageRequest { after: None, limit }
    }

    /// How many items, within the bound.
    pub(crate) fn size(&self) -> usize {
        self.limit.clamp(1, MAX_PAGE) as usize
    }

    /// The id that the page comes after.
    pub(crate) fn after_id(&self) -> Result<Option<Id>> {
        let parse = |text: &String| text.parse().map_err(|_| Error::InvalidCursor(text.clone()));
        self.after.as_ref().map(parse).transpose()
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page; none after the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page from one item more than it shows, if there are so many.
    pub(crate) fn cut(mut items: Vec<T>, size: usize, cursor: impl Fn(&T) -> String) -> Page<T> {
        let more = items.len() > size;
        items.truncate(size);
        let next = if more { items.last().map(cursor) } else { None };
        Page { items, next }
    }
}
