//! `$min`, `$max`: the lowest or highest value in BSON order; `$minN`, `$maxN`: several of them in an array, the most
//! extreme first. Null and missing are passed over.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/min/>, `max`, `minN` and `maxN`.

use super::{Accumulator, Options, array_of, kept, kept_bytes};
use crate::document::collation::Collator;
use crate::document::{Value, compare_values};
use crate::error::Result;
use bson::{RawBson, RawBsonRef};
use std::cmp::Ordering;
use std::sync::Arc;

/// Which end counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Lowest,
    Highest,
}

pub(super) fn start_single(options: &Options, end: End) -> Box<dyn Accumulator> {
    Box::new(Extremes { end, n: 1, single: true, values: Vec::new(), bytes: 0, collator: options.collator.clone() })
}

pub(super) fn start_several(options: &Options, end: End) -> Box<dyn Accumulator> {
    Box::new(Extremes {
        end,
        n: options.n,
        single: false,
        values: Vec::new(),
        bytes: 0,
        collator: options.collator.clone(),
    })
}

#[derive(Debug)]
struct Extremes {
    end: End,
    n: usize,
    single: bool,
    /// The most extreme first; of equal ones the older one.
    values: Vec<RawBson>,
    bytes: usize,
    collator: Option<Arc<Collator>>,
}

impl Extremes {
    fn order(&self, a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Result<Ordering> {
        let order = compare_values(a, b, self.collator.as_deref())?;
        Ok(if self.end == End::Lowest { order } else { order.reverse() })
    }

    /// Where a new value belongs: behind all that are not after it.
    fn place(&self, value: RawBsonRef<'_>) -> Result<usize> {
        let (mut low, mut high) = (0, self.values.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.order(self.values[middle].as_raw_bson_ref(), value)? == Ordering::Greater {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }
}

impl Accumulator for Extremes {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        if value.is_nullish() {
            return Ok(());
        }
        let place = self.place(value.or_null())?;
        if place >= self.n {
            return Ok(());
        }
        let value = kept(value);
        self.bytes += kept_bytes(&value);
        self.values.insert(place, value);
        if self.values.len() > self.n
            && let Some(last) = self.values.pop()
        {
            self.bytes -= kept_bytes(&last);
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        if self.single {
            return Ok(self.values.first().cloned().map_or(Value::NULL, Value::Owned));
        }
        Ok(array_of(self.values.iter().map(RawBson::as_raw_bson_ref)))
    }

    fn size_bytes(&self) -> usize {
        size_of::<Extremes>() + self.bytes
    }
}
