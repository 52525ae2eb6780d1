//! `$first`, `$last`: the value that came first or last; `$firstN`, `$lastN`: several of them in an array. A missing value
//! counts as null.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/first/>, `last`, `firstN` and `lastN`.

use super::{Accumulator, array_of, kept, kept_bytes};
use crate::document::Value;
use crate::error::Result;
use bson::RawBson;
use std::collections::VecDeque;

/// Which end counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    First,
    Last,
}

pub(super) fn start_single(end: End) -> Box<dyn Accumulator> {
    Box::new(Single { end, value: None })
}

pub(super) fn start_several(end: End, n: usize) -> Box<dyn Accumulator> {
    Box::new(Several { end, n, values: VecDeque::new(), bytes: 0 })
}

#[derive(Debug)]
struct Single {
    end: End,
    value: Option<RawBson>,
}

impl Accumulator for Single {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        if self.end == End::Last || self.value.is_none() {
            self.value = Some(kept(value));
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(self.value.clone().map_or(Value::NULL, Value::Owned))
    }

    fn size_bytes(&self) -> usize {
        self.value.as_ref().map_or(size_of::<Single>(), kept_bytes)
    }
}

#[derive(Debug)]
struct Several {
    end: End,
    n: usize,
    values: VecDeque<RawBson>,
    bytes: usize,
}

impl Accumulator for Several {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        if self.values.len() == self.n {
            if self.end == End::First {
                return Ok(());
            }
            if let Some(oldest) = self.values.pop_front() {
                self.bytes -= kept_bytes(&oldest);
            }
        }
        let value = kept(value);
        self.bytes += kept_bytes(&value);
        self.values.push_back(value);
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(array_of(self.values.iter().map(RawBson::as_raw_bson_ref)))
    }

    fn size_bytes(&self) -> usize {
        size_of::<Several>() + self.bytes
    }
}
