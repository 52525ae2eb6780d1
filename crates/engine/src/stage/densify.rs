//! `{$densify: {field, partitionByFields, range: {step, unit, bounds}}}`: rows for the values that are missing between those that
//! are there.
//!
//! Rows are sorted by partition and field first, and held in memory. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/densify/>.

use crate::accumulator::window::frame::Unit;
use crate::document::{
    FieldPath, Number, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, Row, edit, number, type_name,
};
use crate::error::{Error, Result};
use crate::stage::join::{collect, encoded};
use crate::stage::options::Options;
use crate::stage::spill::too_much;
use crate::stage::{ParseContext, Ready, Rows, Stage, StageContext, StageKind, deferred};
use bson::DateTime;
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$densify", parse);

/// The most rows that one stage makes.
const MAX_GENERATED: usize = 500_000;

#[derive(Debug)]
struct Densify {
    field: FieldPath,
    partition: Vec<FieldPath>,
    step: Step,
    bounds: Bounds,
}

#[derive(Debug)]
enum Step {
    Number(Number),
    Time(i64, Unit),
}

#[derive(Debug)]
enum Bounds {
    Full,
    Partition,
    Between(RawBson, RawBson),
}

fn parse(argument: RawBsonRef<'_>, _: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let RawBsonRef::Document(specification) = argument else {
        return Err(Error::location(5733401, "the $densify stage specification must be an object"));
    };
    let mut options = Options::of("$densify", specification)?;
    let field = FieldPath::parse(options.required_string("field")?)?;
    let mut partition = Vec::new();
    if let Some(names) = options.take("partitionByFields") {
        let names = names.as_array().ok_or_else(|| options.wrong_type("partitionByFields", names, "array"))?;
        for name in names {
            let RawBsonRef::String(name) = name? else {
                return Err(Error::type_mismatch("'partitionByFields' must be an array of strings"));
            };
            partition.push(FieldPath::parse(name)?);
        }
    }
    let range = options.document("range")?.ok_or_else(|| options.missing("range"))?;
    options.finish()?;
    let (step, bounds) = parse_range(range, partition.is_empty())?;
    Ok(vec![Arc::new(Densify { field, partition, step, bounds })])
}

fn parse_range(range: &RawDocument, alone: bool) -> Result<(Step, Bounds)> {
    let mut options = Options::of("$densify.range", range)?;
    let step = options.take("step").ok_or_else(|| options.missing("step"))?;
    let step = Number::of(step).ok_or_else(|| options.wrong_type("step", step, "number"))?;
    let unit = options.string("unit")?;
    let bounds = options.take("bounds").ok_or_else(|| options.missing("bounds"))?;
    options.finish()?;
    if step.to_f64() <= 0.0 || step.is_nan() {
        return Err(Error::location(
            5733401,
            "the step parameter in a range statement must be a strictly positive numeric value",
        ));
    }
    let step = match unit {
        None => Step::Number(step),
        Some(name) => {
            let unit = Unit::named(name).ok_or_else(|| Error::bad_value(format!("unknown time unit value: {name}")))?;
            let count = step.to_i64_exact().ok_or_else(|| {
                Error::location(
                    5946800,
                    "the step parameter in a range statement must be a whole number when densifying a date range",
                )
            })?;
            Step::Time(count, unit)
        }
    };
    let bounds = match bounds {
        RawBsonRef::String("full") => Bounds::Full,
        RawBsonRef::String("partition") if alone => {
            return Err(Error::location(
                5733408,
                "one may not specify the bounds as 'partition' without specifying a non-empty array of partitionByFields",
            ));
        }
        RawBsonRef::String("partition") => Bounds::Partition,
        RawBsonRef::Array(array) => {
            let ends = array.into_iter().map(|end| Ok(RawBson::from(end?))).collect::<Result<Vec<_>>>()?;
            let [low, high] = <[RawBson; 2]>::try_from(ends).map_err(|_| {
                Error::location(5733403, "a bounding array in a range statement must have exactly two elements")
            })?;
            check_bounds(&low, &high, &step)?;
            Bounds::Between(low, high)
        }
        _ => {
            return Err(Error::location(
                5946802,
                "the bounds parameter in a range statement must be an array type or a string: 'full' or 'partition'",
            ));
        }
    };
    Ok((step, bounds))
}

fn check_bounds(low: &RawBson, high: &RawBson, step: &Step) -> Result<()> {
    let fits = |end: &RawBson| match step {
        Step::Number(_) => Number::of(end.as_raw_bson_ref()).is_some(),
        Step::Time(..) => matches!(end, RawBson::DateTime(_)),
    };
    if !fits(low) || !fits(high) {
        return Err(Error::location(
            5733402,
            "a bounding array must contain either both dates with a unit or both numeric types without one",
        ));
    }
    if compare(low.as_raw_bson_ref(), high.as_raw_bson_ref()) == Ordering::Greater {
        return Err(Error::location(5733402, "the lower bound of $densify must not be above the upper bound"));
    }
    Ok(())
}

fn compare(a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Ordering {
    match (a, b) {
        (RawBsonRef::DateTime(a), RawBsonRef::DateTime(b)) => a.timestamp_millis().cmp(&b.timestamp_millis()),
        _ => number::compare(a, b),
    }
}

/// A value that steps lead to from a base.
fn stepped(base: RawBsonRef<'_>, step: &Step, count: i64) -> Option<RawBson> {
    match (base, step) {
        (RawBsonRef::DateTime(base), Step::Time(size, unit)) => unit
            .after(base.timestamp_millis(), size.checked_mul(count)?)
            .map(|millis| RawBson::DateTime(DateTime::from_millis(millis))),
        (base, Step::Number(size)) => {
            Some(RawBson::from(Number::of(base)?.add(size.multiply(Number::int_or_long(count)))))
        }
        _ => None,
    }
}

/// The rows that come out of one partition after another.
struct Dense<'s> {
    stage: &'s Densify,
    rows: Vec<Row>,
    generated: usize,
    bytes: usize,
    memory_bytes: usize,
}

impl Dense<'_> {
    fn keep(&mut self, row: Row) -> Result<()> {
        self.bytes += row.bytes().len();
        if self.bytes > self.memory_bytes {
            return Err(too_much("$densify", self.memory_bytes));
        }
        self.rows.push(row);
        Ok(())
    }

    fn generate(&mut self, value: &RawBson, template: Option<&RawDocument>) -> Result<()> {
        self.generated += 1;
        if self.generated > MAX_GENERATED {
            return Err(Error::location(
                5897900,
                format!("Generated {MAX_GENERATED} documents in $densify, which is over the limit of {MAX_GENERATED}."),
            ));
        }
        let mut document = RawDocumentBuf::new();
        if let Some(template) = template {
            for path in &self.stage.partition {
                if let Some(value) = path.evaluate(RawBsonRef::Document(template))?.get() {
                    document = edit::set(&document, path.as_str(), Some(value))?;
                }
            }
        }
        let document = edit::set(&document, self.stage.field.as_str(), Some(value.as_raw_bson_ref()))?;
        self.keep(Row::from(document))
    }

    /// Makes rows for the steps from `base` on: those between `from` and `to`, without the ends that are said.
    fn between(
        &mut self,
        base: RawBsonRef<'_>,
        first: i64,
        to: RawBsonRef<'_>,
        including: bool,
        template: Option<&RawDocument>,
    ) -> Result<i64> {
        let mut count = first;
        while let Some(value) = stepped(base, &self.stage.step, count) {
            let order = compare(value.as_raw_bson_ref(), to);
            if order == Ordering::Greater || (order == Ordering::Equal && !including) {
                break;
            }
            self.generate(&value, template)?;
            count += 1;
        }
        Ok(count)
    }

    /// One sorted partition within bounds; `low` and `high` are the range to fill, `high` included when `closed`.
    fn partition(
        &mut self,
        rows: Vec<(RawBson, Row)>,
        low: Option<&RawBson>,
        high: Option<&RawBson>,
        closed: bool,
    ) -> Result<()> {
        let Some(template) = rows.first().map(|(_, row)| row.clone()) else { return Ok(()) };
        let base = low.cloned().unwrap_or_else(|| rows[0].0.clone());
        let mut count = 0_i64;
        for (value, row) in rows {
            let here = value.as_raw_bson_ref();
            let outside = high.is_some_and(|high| compare(here, high.as_raw_bson_ref()) == Ordering::Greater);
            if !outside && compare(here, base.as_raw_bson_ref()) != Ordering::Less {
                count = self.between(base.as_raw_bson_ref(), count, here, false, Some(template.document()))?;
                let at = stepped(base.as_raw_bson_ref(), &self.stage.step, count);
                if at.is_some_and(|at| compare(at.as_raw_bson_ref(), here) == Ordering::Equal) {
                    count += 1;
                }
            } else if outside && let Some(high) = high {
                count = self.between(
                    base.as_raw_bson_ref(),
                    count,
                    high.as_raw_bson_ref(),
                    closed,
                    Some(template.document()),
                )?;
            }
            self.keep(row)?;
        }
        if let Some(high) = high {
            self.between(base.as_raw_bson_ref(), count, high.as_raw_bson_ref(), closed, Some(template.document()))?;
        }
        Ok(())
    }
}

impl Densify {
    fn run(&self, input: Rows, context: &StageContext) -> Result<Rows> {
        let rows = collect(input, context.memory_bytes)?.ok_or_else(|| too_much("$densify", context.memory_bytes))?;
        let mut dense =
            Dense { stage: self, rows: Vec::new(), generated: 0, bytes: 0, memory_bytes: context.memory_bytes };
        let mut sorted = Vec::new();
        for row in rows {
            let value = self.field.evaluate(RawBsonRef::Document(row.document()))?;
            if value.is_nullish() {
                dense.keep(row)?;
                continue;
            }
            let value = RawBson::from(value.or_null());
            self.check(&value)?;
            let mut key = Vec::new();
            for path in &self.partition {
                let part = path.evaluate(RawBsonRef::Document(row.document()))?;
                key.extend(encoded(part.or_null(), context.environment.collator())?);
            }
            let place = encoded(value.as_raw_bson_ref(), None)?;
            sorted.push((key, place, value, row));
        }
        sorted.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        let ends = match &self.bounds {
            Bounds::Full => {
                let low = sorted.iter().min_by(|a, b| a.1.cmp(&b.1)).map(|entry| entry.2.clone());
                let high = sorted.iter().max_by(|a, b| a.1.cmp(&b.1)).map(|entry| entry.2.clone());
                low.zip(high)
            }
            Bounds::Between(low, high) => Some((low.clone(), high.clone())),
            Bounds::Partition => None,
        };
        let closed = !matches!(self.bounds, Bounds::Between(..));
        if let Bounds::Between(low, high) = &self.bounds
            && sorted.is_empty()
        {
            dense.between(low.as_raw_bson_ref(), 0, high.as_raw_bson_ref(), false, None)?;
        }
        let mut sorted = sorted.into_iter().peekable();
        while let Some((key, _, value, row)) = sorted.next() {
            let mut partition = vec![(value, row)];
            while let Some((_, _, value, row)) = sorted.next_if(|next| next.0 == key) {
                partition.push((value, row));
            }
            let (low, high) = ends.as_ref().map_or((None, None), |(low, high)| (Some(low), Some(high)));
            dense.partition(partition, low, high, closed)?;
        }
        Ok(Box::new(Ready::new(dense.rows)))
    }

    fn check(&self, value: &RawBson) -> Result<()> {
        let kind = type_name(value.as_raw_bson_ref());
        match (&self.step, value) {
            (Step::Time(..), RawBson::DateTime(_)) => Ok(()),
            (Step::Number(_), value) if Number::of(value.as_raw_bson_ref()).is_some() => Ok(()),
            (Step::Number(_), RawBson::DateTime(_)) => {
                Err(Error::location(6053600, "$densify: a step without a unit needs a number, found date"))
            }
            (Step::Time(..), value) if Number::of(value.as_raw_bson_ref()).is_some() => {
                Err(Error::location(6053600, format!("$densify: a step with a unit needs a date, found {kind}")))
            }
            _ => Err(Error::location(5733201, format!("Densify field type must be numeric or a date, found {kind}"))),
        }
    }
}

impl Stage for Densify {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let context = Arc::clone(context);
        Ok(deferred(move || self.run(input, &context)))
    }
}
