//! `{$group: {_id: expression, field: {$accumulator: …}, …}}`: one row for each value of `_id`.
//!
//! Groups come out in the order in which they were first seen. When they fill the memory, rows of groups not yet known go to
//! temporary files by the hash of their key, and each file is grouped in its turn. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/group/>.

use crate::accumulator::Accumulator;
use crate::document::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf, Row, Value, append};
use crate::error::{Error, Result};
use crate::expression::{self, Accumulation, Compiled, Scope};
use crate::key;
use crate::stage::accumulation::{as_in_group, parse_field};
use crate::stage::pipeline::object;
use crate::stage::spill::{Spill, SpillReader, too_much};
use crate::stage::{ParseContext, RowSource, Rows, Stage, StageContext, StageKind};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$group", parse);

/// Into how many files rows are parted at once.
const PARTITIONS: usize = 16;

/// How often a file may be parted again.
const MAX_PASSES: usize = 8;

/// About how many bytes a group takes beside its key and its values.
const OVERHEAD_BYTES: usize = 160;

#[derive(Debug)]
struct Group {
    id: Compiled,
    fields: Vec<(String, Accumulation)>,
}

pub(super) fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 15947, "a group's fields must be specified in an object")?;
    let mut id = None;
    let mut fields: Vec<(String, Accumulation)> = Vec::new();
    for field in specification {
        let (name, value) = field?;
        if name.as_str() == "_id" {
            if id.is_some() {
                return Err(Error::location(15948, "a group's _id may only be specified once"));
            }
            refuse_inclusion(value)?;
            id = Some(expression::parse(value, context.parser)?);
            continue;
        }
        fields.push((name.as_str().to_owned(), parse_field(name.as_str(), value, context.parser)?));
    }
    let id = id.ok_or_else(|| Error::location(15955, "a group specification must include an _id"))?;
    Ok(vec![Arc::new(Group { id, fields })])
}

/// Refuses `{_id: {a: 1}}`, which looks like a projection.
fn refuse_inclusion(id: RawBsonRef<'_>) -> Result<()> {
    let RawBsonRef::Document(document) = id else { return Ok(()) };
    for field in document {
        let (name, value) = field?;
        if name.as_str().starts_with('$') {
            return Ok(());
        }
        if matches!(value, RawBsonRef::Boolean(_)) || crate::document::Number::of(value).is_some() {
            return Err(Error::location(17390, "$group does not support inclusion-style expressions"));
        }
    }
    Ok(())
}

impl Stage for Group {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        Ok(Box::new(Grouping {
            stage: self,
            context: Arc::clone(context),
            input: Some(input),
            ready: Vec::new().into_iter(),
            waiting: Vec::new(),
        }))
    }
}

/// The stage for parts at hand.
pub(super) fn of(id: Compiled, fields: Vec<(String, Accumulation)>) -> Arc<dyn Stage> {
    Arc::new(Group { id, fields })
}

/// One group.
struct Bucket {
    id: RawBson,
    accumulators: Vec<Box<dyn Accumulator>>,
    /// What it takes beside the accumulators' values: its key, once encoded and once as a value, and the rest.
    own_bytes: usize,
    /// All it takes, as of the last measurement.
    bytes: usize,
}

/// The groups that are in memory.
#[derive(Default)]
struct Table {
    places: HashMap<Vec<u8>, usize>,
    buckets: Vec<Bucket>,
    bytes: usize,
    spilled: Vec<Option<Spill>>,
    hasher: RandomState,
}

struct Grouping {
    stage: Arc<Group>,
    context: Arc<StageContext>,
    input: Option<Rows>,
    ready: std::vec::IntoIter<Bucket>,
    waiting: Vec<(SpillReader, usize)>,
}

impl RowSource for Grouping {
    fn next(&mut self) -> Result<Option<Row>> {
        loop {
            if let Some(bucket) = self.ready.next() {
                return self.row(&bucket).map(Some);
            }
            if let Some(input) = self.input.take() {
                self.read(input)?;
            } else if let Some((reader, pass)) = self.waiting.pop() {
                self.read_again(reader, pass)?;
            } else {
                return Ok(None);
            }
        }
    }
}

impl Grouping {
    fn row(&self, bucket: &Bucket) -> Result<Row> {
        let mut document = RawDocumentBuf::new();
        append(&mut document, "_id", bucket.id.as_raw_bson_ref())?;
        for ((name, _), accumulator) in self.stage.fields.iter().zip(&bucket.accumulators) {
            append(&mut document, name, accumulator.result()?.or_null())?;
        }
        Ok(Row::from(document))
    }

    /// Groups the input.
    fn read(&mut self, mut input: Rows) -> Result<()> {
        let stage = Arc::clone(&self.stage);
        let context = Arc::clone(&self.context);
        let mut table = Table::default();
        let mut key = Vec::new();
        input.each(&mut |document| {
            let scope = Scope::new(document, &context.environment);
            let id = stage.id.evaluate(&scope)?;
            key.clear();
            key::encode(id.or_null(), context.environment.collator(), &mut key)?;
            let Some(at) = table.place(&key, &id, &stage, &context)? else {
                let mut operands = RawDocumentBuf::new();
                append(&mut operands, "_id", id.or_null())?;
                for (at, (_, field)) in stage.fields.iter().enumerate() {
                    if let Some(value) = field.operand(&scope)?.get() {
                        append(&mut operands, &at.to_string(), value)?;
                    }
                }
                return table.spill(&key, &operands, &context, 0);
            };
            let bucket = &mut table.buckets[at];
            for ((_, field), accumulator) in stage.fields.iter().zip(&mut bucket.accumulators) {
                accumulator.add(field.operand(&scope)?)?;
            }
            table.measure(at);
            Ok(())
        })?;
        self.finish(table, 0)
    }

    /// Groups what was spilled.
    fn read_again(&mut self, mut reader: SpillReader, pass: usize) -> Result<()> {
        let stage = Arc::clone(&self.stage);
        let context = Arc::clone(&self.context);
        let mut table = Table::default();
        while let Some([key, operands]) = reader.next::<2>()? {
            let operands = RawDocument::from_bytes(&operands)?;
            let id = crate::document::get(operands, "_id")?.map_or(Value::NULL, Value::Borrowed);
            match table.place(&key, &id, &stage, &context)? {
                Some(at) => {
                    for (number, accumulator) in table.buckets[at].accumulators.iter_mut().enumerate() {
                        let value = crate::document::get(operands, &number.to_string())?;
                        accumulator.add(value.map_or(Value::Missing, Value::Borrowed))?;
                    }
                    table.measure(at);
                }
                None => table.spill(&key, operands, &context, pass)?,
            }
        }
        self.finish(table, pass)
    }

    fn finish(&mut self, table: Table, pass: usize) -> Result<()> {
        for spill in table.spilled.into_iter().rev().flatten() {
            self.waiting.push((spill.into_reader()?, pass + 1));
        }
        self.ready = table.buckets.into_iter();
        Ok(())
    }
}

impl Table {
    /// The group of a key, made if there is room for one more.
    fn place(&mut self, key: &[u8], id: &Value<'_>, stage: &Group, context: &StageContext) -> Result<Option<usize>> {
        if let Some(at) = self.places.get(key) {
            return Ok(Some(*at));
        }
        if self.bytes > context.memory_bytes && !self.buckets.is_empty() {
            return Ok(None);
        }
        let id = RawBson::from(id.or_null());
        // What `n` refers to is the group's `_id`.
        let empty = RawDocumentBuf::new();
        let document = match &id {
            RawBson::Document(document) => document,
            _ => &empty,
        };
        let scope = Scope::new(document, &context.environment);
        let accumulators = stage.fields.iter().map(|(_, field)| field.start(&scope).map_err(as_in_group));
        let accumulators = accumulators.collect::<Result<Vec<_>>>()?;
        let at = self.buckets.len();
        self.add(key, id, accumulators);
        Ok(Some(at))
    }

    fn add(&mut self, key: &[u8], id: RawBson, accumulators: Vec<Box<dyn Accumulator>>) {
        let own_bytes = key.len() * 2 + OVERHEAD_BYTES;
        self.bytes += own_bytes;
        self.places.insert(key.to_vec(), self.buckets.len());
        self.buckets.push(Bucket { id, accumulators, own_bytes, bytes: own_bytes });
    }

    /// Counts a group's bytes anew.
    fn measure(&mut self, at: usize) {
        let bucket = &mut self.buckets[at];
        let values = bucket.accumulators.iter().map(|accumulator| accumulator.size_bytes());
        let bytes = bucket.own_bytes + values.sum::<usize>();
        self.bytes = (self.bytes + bytes).saturating_sub(bucket.bytes);
        bucket.bytes = bytes;
    }

    fn spill(&mut self, key: &[u8], operands: &RawDocument, context: &StageContext, pass: usize) -> Result<()> {
        if !context.allow_disk_use || pass >= MAX_PASSES {
            return Err(too_much("$group", context.memory_bytes));
        }
        if self.spilled.is_empty() {
            self.spilled.resize_with(PARTITIONS, || None);
        }
        let at = usize::try_from(self.hasher.hash_one(key) % PARTITIONS as u64).unwrap_or(0);
        let spill = match &mut self.spilled[at] {
            Some(spill) => spill,
            none => none.insert(Spill::new(&context.spill_folder)?),
        };
        spill.push(&[key, operands.as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_group_still_counts_its_key() {
        let mut table = Table::default();
        table.add(&[7; 10_000], RawBson::String("x".repeat(10_000)), Vec::new());
        let before = table.bytes;
        table.measure(0);
        assert_eq!(table.bytes, before);
        assert!(before > 20_000);
    }
}
