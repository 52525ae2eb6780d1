//! `{$bucketAuto: {groupBy, buckets, output, granularity}}`: rows spread evenly over buckets by a value.
//!
//! Rows are sorted by the value first; equal values never part. A granularity rounds the boundaries to a series of preferred
//! numbers. Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/bucketAuto/>.

use crate::document::{Number, RawBson, RawBsonRef, RawDocumentBuf, Row, Value, append, number};
use crate::error::{Error, Result};
use crate::expression::{Accumulation, Compiled, Scope};
use crate::stage::bucket::{count_output, parse_operand, parse_output};
use crate::stage::granularity::Granularity;
use crate::stage::join::encoded;
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, Ready, Rows, Sorter, Stage, StageContext, StageKind, deferred};
use bytes::Bytes;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$bucketAuto", parse);

#[derive(Debug)]
struct BucketAuto {
    operand: Compiled,
    buckets: usize,
    fields: Vec<(String, Accumulation)>,
    granularity: Option<Granularity>,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 40240, "The argument to $bucketAuto must be an object")?;
    let (mut operand, mut buckets, mut output, mut granularity) = (None, None, None, None);
    for field in specification {
        let (name, value) = field?;
        match name.as_str() {
            "groupBy" => operand = Some(parse_operand(value, 40239, "$bucketAuto", context.parser)?),
            "buckets" => buckets = Some(parse_buckets(value)?),
            "output" => output = Some(parse_output(value, 40244, "$bucketAuto", context.parser)?),
            "granularity" => {
                let RawBsonRef::String(name) = value else {
                    return Err(Error::location(40261, "The $bucketAuto 'granularity' field must be a string"));
                };
                granularity = Some(
                    Granularity::named(name)
                        .ok_or_else(|| Error::location(40257, format!("Unknown rounding granularity '{name}'")))?,
                );
            }
            other => return Err(Error::location(40245, format!("Unrecognized option to $bucketAuto: {other}."))),
        }
    }
    let (Some(operand), Some(buckets)) = (operand, buckets) else {
        return Err(Error::location(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified"));
    };
    let fields = match output {
        Some(fields) if !fields.is_empty() => fields,
        _ => count_output(context.parser)?,
    };
    Ok(vec![Arc::new(BucketAuto { operand, buckets, fields, granularity })])
}

fn parse_buckets(value: RawBsonRef<'_>) -> Result<usize> {
    if Number::of(value).is_none() {
        return Err(Error::location(40241, "The $bucketAuto 'buckets' field must be a numeric value"));
    }
    let buckets = number::exact_i32(value).ok_or_else(|| {
        Error::location(40242, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer")
    })?;
    usize::try_from(buckets)
        .ok()
        .filter(|buckets| *buckets > 0)
        .ok_or_else(|| Error::location(40243, "The $bucketAuto 'buckets' field must be greater than 0"))
}

/// A bucket that is being filled.
struct Bucket {
    min: RawBson,
    max: RawBson,
    results: Vec<RawBson>,
}

/// The sorted rows, with one looked ahead.
struct Sorted<'s> {
    stage: &'s BucketAuto,
    context: &'s StageContext,
    rows: Rows,
    next: Option<(Row, RawBson)>,
}

impl Sorted<'_> {
    fn advance(&mut self) -> Result<Option<(Row, RawBson)>> {
        let after = match self.rows.next()? {
            Some(row) => {
                let scope = Scope::new(row.document(), &self.context.environment);
                let value = RawBson::from(self.stage.operand.evaluate(&scope)?.or_null());
                Some((row, value))
            }
            None => None,
        };
        Ok(std::mem::replace(&mut self.next, after))
    }
}

impl BucketAuto {
    fn run(&self, mut input: Rows, context: &StageContext) -> Result<Rows> {
        let folder = context.allow_disk_use.then(|| context.spill_folder.clone());
        let mut sorter = Sorter::new(None, context.memory_bytes, folder);
        let mut count = 0_usize;
        while let Some(row) = input.next()? {
            let scope = Scope::new(row.document(), &context.environment);
            let value = self.operand.evaluate(&scope)?;
            if self.granularity.is_some() {
                check_roundable(&value)?;
            }
            let key = encoded(value.or_null(), context.environment.collator())?;
            sorter.push(key, row)?;
            count += 1;
        }
        let mut sorted = Sorted { stage: self, context, rows: sorter.finish()?, next: None };
        sorted.advance()?;
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let size = ((count as f64 / self.buckets as f64).round() as usize).max(1);
        let mut buckets: Vec<Bucket> = Vec::new();
        while sorted.next.is_some() {
            let wanted = if buckets.len() + 1 == self.buckets { usize::MAX } else { size };
            let previous = buckets.last().map(|bucket| bucket.max.clone());
            if let Some(bucket) = self.fill(&mut sorted, wanted, previous)? {
                buckets.push(bucket);
            }
        }
        let rows = buckets.iter().map(|bucket| self.row(bucket)).collect::<Result<Vec<_>>>()?;
        Ok(Box::new(Ready::new(rows)))
    }

    /// Fills one bucket.
    fn fill(&self, sorted: &mut Sorted<'_>, wanted: usize, previous: Option<RawBson>) -> Result<Option<Bucket>> {
        let environment = &sorted.context.environment;
        let collator = environment.collator();
        let empty = RawDocumentBuf::new();
        let outer = Scope::new(&empty, environment);
        let mut accumulators = self.fields.iter().map(|(_, field)| field.start(&outer)).collect::<Result<Vec<_>>>()?;
        let (mut first, mut last): (Option<RawBson>, Option<(RawBson, Option<Bytes>)>) = (None, None);
        let mut taken = 0_usize;
        let mut boundary: Option<RawBson> = None;
        while let Some((_, value)) = &sorted.next {
            if taken >= wanted {
                let within = match (&self.granularity, &last) {
                    (Some(granularity), Some((last, _))) => {
                        let rounded = boundary.get_or_insert_with(|| granularity.up_value(last));
                        less(value, rounded)?
                    }
                    (None, Some((_, Some(key)))) => encoded(value.as_raw_bson_ref(), collator)? == key[..],
                    _ => false,
                };
                if !within {
                    break;
                }
            }
            let Some((row, value)) = sorted.advance()? else { break };
            let scope = Scope::new(row.document(), environment);
            for ((_, field), accumulator) in self.fields.iter().zip(&mut accumulators) {
                accumulator.add(field.operand(&scope)?)?;
            }
            taken += 1;
            first.get_or_insert_with(|| value.clone());
            last = Some((value, row.sort_key));
        }
        let (Some(first), Some((last, _))) = (first, last) else { return Ok(None) };
        let results = accumulators.iter().map(|accumulator| Ok(RawBson::from(accumulator.result()?.or_null())));
        let results = results.collect::<Result<Vec<_>>>()?;
        let next = sorted.next.as_ref().map(|(_, value)| value);
        let (min, max) = match &self.granularity {
            Some(granularity) => granularity.bounds(&first, &last, next, previous),
            None => (first, next.cloned().unwrap_or(last)),
        };
        Ok(Some(Bucket { min, max, results }))
    }

    fn row(&self, bucket: &Bucket) -> Result<Row> {
        let mut bounds = RawDocumentBuf::new();
        append(&mut bounds, "min", bucket.min.as_raw_bson_ref())?;
        append(&mut bounds, "max", bucket.max.as_raw_bson_ref())?;
        let mut document = RawDocumentBuf::new();
        append(&mut document, "_id", RawBsonRef::Document(&bounds))?;
        for ((name, _), result) in self.fields.iter().zip(&bucket.results) {
            append(&mut document, name, result.as_raw_bson_ref())?;
        }
        Ok(Row::from(document))
    }
}

fn less(a: &RawBson, b: &RawBson) -> Result<bool> {
    Ok(number::compare(a.as_raw_bson_ref(), b.as_raw_bson_ref()).is_lt())
}

/// Only numbers from zero on are rounded.
fn check_roundable(value: &Value<'_>) -> Result<()> {
    let Some(number) = value.get().and_then(Number::of) else {
        return Err(Error::location(
            40258,
            format!(
                "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found {}",
                value.type_name()
            ),
        ));
    };
    if number.is_nan() {
        return Err(Error::location(
            40259,
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found NaN",
        ));
    }
    if number.to_f64() < 0.0 {
        return Err(Error::location(
            40260,
            "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number",
        ));
    }
    Ok(())
}

impl Stage for BucketAuto {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let context = Arc::clone(context);
        Ok(deferred(move || self.run(input, &context)))
    }
}
