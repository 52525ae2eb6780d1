//! `{$sample: {size: n}}`: so many rows at random, in random order.
//!
//! All rows are read and a reservoir keeps the ones with the lowest random keys. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/sample/>.

use crate::document::{Number, RawBsonRef};
use crate::error::{Error, Result};
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, Rows, Sorter, Stage, StageContext, StageKind, deferred};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$sample", parse);

#[derive(Debug)]
struct Sample {
    size: u64,
}

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 28745, "the $sample stage specification must be an object")?;
    let mut size = None;
    for field in specification {
        let (name, value) = field?;
        if name.as_str() != "size" {
            return Err(Error::location(28748, format!("unrecognized option to $sample: {}", name.as_str())));
        }
        let number = Number::of(value)
            .ok_or_else(|| Error::location(28746, "size argument to $sample must be a number"))?
            .to_i64_option();
        size = Some(number);
    }
    let size = size.ok_or_else(|| Error::location(28749, "$sample stage must specify a size"))?;
    let size = u64::try_from(size).ok().filter(|size| *size > 0);
    let size = size.ok_or_else(|| Error::location(28747, "size argument to $sample must be a positive integer"))?;
    Ok(vec![Arc::new(Sample { size })])
}

impl Stage for Sample {
    fn open(self: Arc<Self>, mut input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let context = Arc::clone(context);
        Ok(deferred(move || {
            let folder = context.allow_disk_use.then(|| context.spill_folder.clone());
            let mut sorter = Sorter::new(Some(self.size), context.memory_bytes, folder);
            while let Some(row) = input.next()? {
                let key = (context.environment.random)().to_bits().to_be_bytes();
                sorter.push(key.to_vec(), row)?;
            }
            sorter.finish()
        }))
    }
}
