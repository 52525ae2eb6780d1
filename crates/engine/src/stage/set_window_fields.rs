//! `{$setWindowFields: {partitionBy, sortBy, output: {field: {$function: …, window}}}}`: fields computed over the rows around each
//! row.
//!
//! Rows are sorted by partition and order first; a partition is held in memory. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/setWindowFields/>.

use crate::accumulator::window;
use crate::document::order::{SortField, sort_key};
use crate::document::{FieldPath, RawBsonRef, RawDocument, Row, Value, edit};
use crate::error::{Code, Error, Result};
use crate::expression::{self, Compiled, Scope, WindowExpression};
use crate::stage::join::encoded;
use crate::stage::options::Options;
use crate::stage::sort_pattern::SortPart;
use crate::stage::{ParseContext, RowSource, Rows, SortPattern, Sorter, Stage, StageContext, StageKind};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$setWindowFields", parse);

#[derive(Debug)]
struct SetWindowFields {
    partition: Option<Compiled>,
    fields: Vec<SortField>,
    pattern: Option<SortPattern>,
    output: Vec<(FieldPath, WindowExpression)>,
}

pub(super) fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let RawBsonRef::Document(specification) = argument else {
        return Err(Error::failed_to_parse("the $setWindowFields stage specification must be an object"));
    };
    let mut options = Options::of("$setWindowFields", specification)?;
    let partition = options.take("partitionBy").map(|value| expression::parse(value, context.parser)).transpose()?;
    let sort_by = options.document("sortBy")?.filter(|pattern| !pattern.is_empty());
    let output = options.document("output")?.ok_or_else(|| options.missing("output"))?;
    options.finish()?;
    let pattern = sort_by.map(SortPattern::parse).transpose()?;
    let fields = pattern.as_ref().map_or_else(Vec::new, sort_fields);
    let mut parsed: Vec<(FieldPath, WindowExpression)> = Vec::new();
    for field in output {
        let (name, value) = field?;
        let path = FieldPath::parse(name.as_str())?;
        let RawBsonRef::Document(function) = value else {
            return Err(Error::failed_to_parse(format!(
                "The field '{path}' must be an object that holds a window function"
            )));
        };
        refuse_conflict(&path, &parsed)?;
        parsed.push((path, WindowExpression::parse(function, &fields, context.parser)?));
    }
    Ok(vec![Arc::new(SetWindowFields { partition, fields, pattern, output: parsed })])
}

fn sort_fields(pattern: &SortPattern) -> Vec<SortField> {
    let field = |part: &SortPart| {
        part.path.as_ref().map(|path| SortField { path: path.as_str().into(), descending: part.descending })
    };
    pattern.parts().iter().filter_map(field).collect()
}

fn refuse_conflict(path: &FieldPath, known: &[(FieldPath, WindowExpression)]) -> Result<()> {
    let inside = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for (other, _) in known {
        if inside(path.as_str(), other.as_str()) || inside(other.as_str(), path.as_str()) {
            return Err(Error::location(
                40176,
                format!("specification contains two conflicting paths. Cannot specify both '{other}' and '{path}'"),
            ));
        }
    }
    Ok(())
}

struct Windows {
    stage: Arc<SetWindowFields>,
    context: Arc<StageContext>,
    input: Option<Rows>,
    sorted: Option<Rows>,
    ahead: Option<(Vec<u8>, Row)>,
    ready: std::vec::IntoIter<Row>,
}

impl Windows {
    fn partition_key(&self, row: &Row) -> Result<Vec<u8>> {
        let Some(partition) = &self.stage.partition else { return Ok(Vec::new()) };
        let value = partition.evaluate(&Scope::new(row.document(), &self.context.environment))?;
        if matches!(value.get(), Some(RawBsonRef::Array(_))) {
            return Err(Error::new(
                Code::TYPE_MISMATCH,
                "An expression used to partition cannot evaluate to value of type array",
            ));
        }
        encoded(value.or_null(), self.context.environment.collator())
    }

    /// Sorts the input by partition and order.
    fn sort(&mut self, mut input: Rows) -> Result<()> {
        let context = Arc::clone(&self.context);
        if self.stage.partition.is_none() && self.stage.pattern.is_none() {
            self.sorted = Some(input);
            return Ok(());
        }
        let folder = context.allow_disk_use.then(|| context.spill_folder.clone());
        let mut sorter = Sorter::new(None, context.memory_bytes, folder);
        while let Some(row) = input.next()? {
            let mut key = self.partition_key(&row)?;
            if let Some(pattern) = &self.stage.pattern {
                let environment = &context.environment;
                key.extend(pattern.key(&row, environment.collator(), &*environment.random)?);
            }
            sorter.push(key, row)?;
        }
        self.sorted = Some(sorter.finish()?);
        Ok(())
    }

    /// Reads the rows of the next partition.
    fn partition(&mut self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        let mut current: Option<Vec<u8>> = None;
        loop {
            let (key, row) = match self.ahead.take() {
                Some(ahead) => ahead,
                None => {
                    let Some(sorted) = &mut self.sorted else { break };
                    let Some(row) = sorted.next()? else { break };
                    (self.partition_key(&row)?, row)
                }
            };
            if current.as_ref().is_some_and(|current| *current != key) {
                self.ahead = Some((key, row));
                break;
            }
            bytes += row.bytes().len();
            if bytes > self.context.memory_bytes {
                return Err(Error::location(
                    5414201,
                    format!(
                        "Exceeded memory limit of {} bytes in a partition of $setWindowFields",
                        self.context.memory_bytes
                    ),
                ));
            }
            current = Some(key);
            rows.push(row);
        }
        Ok(rows)
    }

    /// Computes the fields of a partition.
    fn compute(&self, rows: Vec<Row>) -> Result<Vec<Row>> {
        let environment = &self.context.environment;
        let keys = rows.iter().map(|row| sort_key(row.document(), &self.stage.fields, environment.collator()));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let descending: Vec<bool> = self.stage.fields.iter().map(|field| field.descending).collect();
        let mut results = Vec::with_capacity(self.stage.output.len());
        for (_, function) in &self.stage.output {
            let operand = |row: &Row| -> Result<Value<'static>> {
                let scope = Scope::new(row.document(), environment);
                Ok(function.operand(&scope)?.into_owned())
            };
            let operands = rows.iter().map(operand).collect::<Result<Vec<_>>>()?;
            let window = window::Rows {
                operands: &operands,
                keys: &keys,
                descending: &descending,
                collator: environment.collator(),
            };
            results.push(function.compute(&window, environment)?);
        }
        let mut shown = Vec::with_capacity(rows.len());
        for (at, row) in rows.into_iter().enumerate() {
            let mut document = row.document().to_owned();
            for ((path, _), values) in self.stage.output.iter().zip(&results) {
                document = edit::set(&document, path.as_str(), values[at].get())?;
            }
            shown.push(row.with_document(document));
        }
        Ok(shown)
    }
}

impl RowSource for Windows {
    fn next(&mut self) -> Result<Option<Row>> {
        loop {
            if let Some(row) = self.ready.next() {
                return Ok(Some(row));
            }
            if let Some(input) = self.input.take() {
                self.sort(input)?;
            }
            let rows = self.partition()?;
            if rows.is_empty() {
                return Ok(None);
            }
            self.ready = self.compute(rows)?.into_iter();
        }
    }
}

impl Stage for SetWindowFields {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        Ok(Box::new(Windows {
            stage: self,
            context: Arc::clone(context),
            input: Some(input),
            sorted: None,
            ahead: None,
            ready: Vec::new().into_iter(),
        }))
    }
}

/// The document of a specification that another stage stands for.
pub(super) fn of(specification: &RawDocument, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    parse(RawBsonRef::Document(specification), context)
}
