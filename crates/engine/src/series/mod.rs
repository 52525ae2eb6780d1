//! Time series: measurements packed into buckets, column by column.
//!
//! ```text
//!   group = (meta value, window)      window: the time rounded down to a multiple of the buckets' span
//!
//!   0x10 collection, group, number  ->  a loose measurement, as it was inserted
//!   0x11 collection, group, number  ->  a packed bucket of up to 1,000 measurements (see `bucket.rs`)
//!   0x20 index, fields,     group   ->  an index leads to groups; its time field holds the window's beginning
//! ```
//!
//! - An insert writes one loose measurement, and an index entry where its group has none like it yet: its cost does not depend
//!   on what the group holds. [`packer`] packs a group once a bucket's worth is loose, or once its window is over and quiet:
//!   each measurement is packed once, whatever the order they come in. What comes late is loose again until there is enough
//!   of it, and small buckets of a group are joined with what is as large as they are.
//! - A group is read as a whole from one view: its buckets, then its loose measurements, each ordered by time. So it does not
//!   matter to a cursor what was packed between two batches. Index entries say the same before and after packing.
//! - The groups lie in the order of meta and time: reading by meta and time range needs no index, and the one on both that
//!   MongoDB creates stands for this order. A range begins one span earlier than asked, since a window holds what comes
//!   after its beginning; buckets that lie outside by their least and greatest time are not unpacked.
//! - Deletes and updates take a lock of the collection that packing also takes, so that measurements stay where they were
//!   found, and rewrite each bucket at most once.
//! - There is no index on `_id`, as in MongoDB, and no change events.

pub(crate) mod bucket;
mod bytes;
mod check_index;
mod column;
pub(crate) mod group;
pub(crate) mod listing;
pub(crate) mod packer;
mod report;
mod update;
mod validate;
mod write;

use crate::document::get;
use crate::error::{Error, Result};
use crate::key;
use ::bytes::Bytes;
use bson::{DateTime, RawBsonRef, RawDocument, RawDocumentBuf};
use std::sync::Arc;

pub(crate) use check_index::check_index;
pub(crate) use packer::Packer;
pub(crate) use update::{check_update, refuse_update};
pub(crate) use write::{Change, in_transaction};

/// The prefix of the names under which buckets can be looked at.
pub const BUCKETS_PREFIX: &str = "system.buckets.";

/// The options of a time series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The field of the time.
    pub time_field: Arc<str>,
    /// The field that tells series apart.
    pub meta_field: Option<Arc<str>>,
    /// The milliseconds that a window spans; it may have been less before.
    pub span_ms: i64,
}

impl Series {
    /// Parses the option `timeseries` of `create`.
    ///
    /// # Errors
    /// `InvalidOptions` (72) without a time field.
    pub fn parse(options: &RawDocument) -> Result<Series> {
        let missing = || Error::new(crate::Code::INVALID_OPTIONS, "a time series needs a timeField");
        let time_field: Arc<str> = options.get_str("timeField").map_err(|_| missing())?.into();
        let meta_field: Option<Arc<str>> =
            options.get_str("metaField").ok().map(Arc::from).filter(|meta| *meta != time_field);
        let of_granularity = match options.get_str("granularity") {
            Ok("hours") => 2_592_000,
            Ok("minutes") => 86_400,
            _ => 3600,
        };
        let span = match options.get("bucketMaxSpanSeconds")? {
            Some(RawBsonRef::Int32(seconds)) => i64::from(seconds),
            Some(RawBsonRef::Int64(seconds)) => seconds,
            Some(RawBsonRef::Double(seconds)) => seconds as i64,
            _ => of_granularity,
        };
        Ok(Series { time_field, meta_field, span_ms: span.max(1).saturating_mul(1000) })
    }

    /// A measurement's time.
    ///
    /// # Errors
    /// `BadValue` (2) where it has none.
    pub fn time_of(&self, document: &RawDocument) -> Result<i64> {
        match get(document, &self.time_field)? {
            Some(RawBsonRef::DateTime(time)) => Ok(time.timestamp_millis()),
            _ => Err(Error::bad_value(format!(
                "'{}' must be present and contain a valid BSON UTC datetime value",
                self.time_field
            ))),
        }
    }

    /// The beginning of the window that a time lies in.
    pub fn window_of(&self, time_ms: i64) -> i64 {
        time_ms.saturating_sub(time_ms.rem_euclid(self.span_ms))
    }

    /// Whether a time lies in a window, which may have been shorter once than windows are now.
    pub(crate) fn lies_in(&self, window_ms: i64, time_ms: i64) -> bool {
        window_ms <= time_ms && time_ms.saturating_sub(window_ms) < self.span_ms
    }

    /// The key of the group that a measurement belongs to, and its window.
    pub(crate) fn group_of(&self, document: &RawDocument) -> Result<(Bytes, i64)> {
        let window = self.window_of(self.time_of(document)?);
        let mut group = Vec::with_capacity(32);
        if let Some(meta) = &self.meta_field {
            key::encode(get(document, meta)?.unwrap_or(RawBsonRef::Null), None, &mut group)?;
        }
        key::encode(RawBsonRef::DateTime(DateTime::from_millis(window)), None, &mut group)?;
        Ok((group.into(), window))
    }

    /// The pattern of the index that the order of groups stands for.
    pub fn order(&self) -> RawDocumentBuf {
        let mut pattern = RawDocumentBuf::new();
        for field in self.meta_field.iter().chain([&self.time_field]) {
            crate::document::append(&mut pattern, field, RawBsonRef::Int32(1)).expect("a field of a stored option");
        }
        pattern
    }

    /// The specification of that index, as `listIndexes` shows it.
    pub fn order_spec(&self) -> RawDocumentBuf {
        let names: Vec<String> =
            self.meta_field.iter().chain([&self.time_field]).map(|field| format!("{field}_1")).collect();
        bson::rawdoc! { "v": 2, "key": self.order(), "name": names.join("_") }
    }

    /// Whether an index is the one that the order of groups stands for.
    pub(crate) fn is_order(&self, spec: &crate::index::IndexSpec) -> bool {
        *spec.pattern() == *self.order() && spec.partial().is_none() && !spec.sparse()
    }
}

#[cfg(test)]
mod tests;
