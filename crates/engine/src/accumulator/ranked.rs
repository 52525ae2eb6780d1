//! `$top`, `$bottom`: the output of the row that comes first or last in an order; `$topN`, `$bottomN`: those of several
//! rows in an array, in the order.
//!
//! A value is an array: the output, then the parts of the sort key. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/top/>, `bottom`, `topN` and `bottomN`.

use super::{Accumulator, Options, array_of, kept_bytes};
use crate::document::Value;
use crate::document::collation::Collator;
use crate::document::order::compare_keys;
use crate::error::{Error, Result};
use bson::{RawBson, RawBsonRef};
use std::cmp::Ordering;
use std::sync::Arc;

/// Which end counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Top,
    Bottom,
}

pub(super) fn start(options: &Options, end: End, single: bool) -> Box<dyn Accumulator> {
    Box::new(Ranked {
        end,
        single,
        n: if single { 1 } else { options.n },
        rows: Vec::new(),
        bytes: 0,
        descending: options.descending.clone(),
        collator: options.collator.clone(),
    })
}

#[derive(Debug)]
struct Ranked {
    end: End,
    single: bool,
    n: usize,
    /// The best rows in the order: `(key, output)`.
    rows: Vec<(Vec<RawBson>, RawBson)>,
    bytes: usize,
    descending: Vec<bool>,
    collator: Option<Arc<Collator>>,
}

impl Ranked {
    fn order(&self, a: &[RawBson], b: &[RawBson]) -> Result<Ordering> {
        compare_keys(
            a.iter().map(RawBson::as_raw_bson_ref),
            b.iter().map(RawBson::as_raw_bson_ref),
            &self.descending,
            self.collator.as_deref(),
        )
    }

    /// Where a new key belongs: behind its equals.
    fn place(&self, key: &[RawBson]) -> Result<usize> {
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.order(&self.rows[middle].0, key)? == Ordering::Greater {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    fn row_bytes(row: &(Vec<RawBson>, RawBson)) -> usize {
        row.0.iter().map(kept_bytes).sum::<usize>() + kept_bytes(&row.1)
    }
}

impl Accumulator for Ranked {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        let Some(RawBsonRef::Array(row)) = value.get() else {
            return Err(Error::internal("$top and its like take an array of the output and the sort key"));
        };
        let mut parts = row.into_iter();
        let output: RawBson = parts.next().transpose()?.unwrap_or(RawBsonRef::Null).into();
        let key = parts.map(|part| Ok(part?.into())).collect::<Result<Vec<RawBson>>>()?;
        let place = self.place(&key)?;
        let full = self.rows.len() == self.n;
        match self.end {
            End::Top if place >= self.n => return Ok(()),
            End::Bottom if full && place == 0 => return Ok(()),
            _ => {}
        }
        let row = (key, output);
        self.bytes += Ranked::row_bytes(&row);
        self.rows.insert(place, row);
        if full {
            let dropped = if self.end == End::Top { self.rows.len() - 1 } else { 0 };
            let dropped = self.rows.remove(dropped);
            self.bytes -= Ranked::row_bytes(&dropped);
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        if self.single {
            return Ok(self.rows.first().map_or(Value::NULL, |row| Value::Owned(row.1.clone())));
        }
        Ok(array_of(self.rows.iter().map(|row| row.1.as_raw_bson_ref())))
    }

    fn size_bytes(&self) -> usize {
        size_of::<Ranked>() + self.bytes
    }
}
