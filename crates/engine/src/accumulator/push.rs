//! `$push`: all values in an array; missing ones are passed over.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/push/>.

use super::{Accumulator, Options, array_of, kept, kept_bytes};
use crate::document::Value;
use crate::error::Result;
use bson::RawBson;
use std::collections::VecDeque;

pub(super) fn start(_: &Options) -> Box<dyn Accumulator> {
    Box::new(Push { values: VecDeque::new(), bytes: 0 })
}

#[derive(Debug)]
struct Push {
    values: VecDeque<RawBson>,
    bytes: usize,
}

impl Accumulator for Push {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        if !value.is_missing() {
            let value = kept(value);
            self.bytes += kept_bytes(&value);
            self.values.push_back(value);
        }
        Ok(())
    }

    fn remove(&mut self, value: Value<'_>) -> Result<()> {
        if !value.is_missing()
            && let Some(oldest) = self.values.pop_front()
        {
            self.bytes -= kept_bytes(&oldest);
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(array_of(self.values.iter().map(RawBson::as_raw_bson_ref)))
    }

    fn size_bytes(&self) -> usize {
        size_of::<Push>() + self.bytes
    }
}
