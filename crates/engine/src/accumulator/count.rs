//! `$count`: how many values came.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/count-accumulator/>.

use super::{Accumulator, Options};
use crate::document::Value;
use crate::document::number::Number;
use crate::error::Result;

pub(super) fn start(_: &Options) -> Box<dyn Accumulator> {
    Box::new(Count { count: 0 })
}

#[derive(Debug)]
struct Count {
    count: i64,
}

impl Accumulator for Count {
    fn add(&mut self, _: Value<'_>) -> Result<()> {
        self.count += 1;
        Ok(())
    }

    fn remove(&mut self, _: Value<'_>) -> Result<()> {
        self.count -= 1;
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(Number::int_or_long(self.count).into())
    }

    fn size_bytes(&self) -> usize {
        size_of::<Count>()
    }
}
