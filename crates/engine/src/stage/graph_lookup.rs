//! `{$graphLookup: {from, startWith, connectFromField, connectToField, as, maxDepth, depthField, restrictSearchWithMatch}}`:
//! the documents that are reached from a row by following a field, breadth first.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/graphLookup/>.

use crate::document::traverse::{Leaf, visit};
use crate::document::{FieldPath, Number, RawBson, RawBsonRef, Row, edit, get, number};
use crate::error::{Error, Result};
use crate::expression::{self, Compiled, Scope};
use crate::filter::Filter;
use crate::namespace::Namespace;
use crate::stage::join::{Join, encoded};
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, RowSource, Rows, Stage, StageContext, StageKind};
use bson::RawArrayBuf;
use std::collections::HashSet;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$graphLookup", parse);

#[derive(Debug)]
struct GraphLookup {
    from: Namespace,
    start: Compiled,
    connect_from: FieldPath,
    connect_to: FieldPath,
    target: FieldPath,
    max_depth: Option<i64>,
    depth_field: Option<FieldPath>,
    restriction: Option<Filter>,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 40327, "the $graphLookup stage specification must be an object")?;
    let (mut from, mut start, mut connect_from, mut connect_to) = (None, None, None, None);
    let (mut target, mut max_depth, mut depth_field, mut restriction) = (None, None, None, None);
    for field in specification {
        let (name, value) = field?;
        let name = name.as_str();
        match name {
            "startWith" => start = Some(expression::parse(value, context.parser)?),
            "maxDepth" => max_depth = Some(parse_depth(value)?),
            "restrictSearchWithMatch" => {
                let filter = object(value, 40185, "restrictSearchWithMatch must be an object")?;
                restriction = Some(Filter::parse(filter, context.parser, context.collator.clone())?);
            }
            "from" | "as" | "connectFromField" | "connectToField" | "depthField" => {
                let RawBsonRef::String(text) = value else {
                    return Err(Error::location(40103, format!("expected string as argument for {name}")));
                };
                match name {
                    "from" => from = Some(Namespace::new(&context.namespace.database, text)?),
                    "as" => target = Some(FieldPath::parse(text)?),
                    "connectFromField" => connect_from = Some(FieldPath::parse(text)?),
                    "connectToField" => connect_to = Some(FieldPath::parse(text)?),
                    _ => depth_field = Some(FieldPath::parse(text)?),
                }
            }
            other => return Err(Error::location(40104, format!("Unknown argument to $graphLookup: {other}"))),
        }
    }
    let missing = |name: &str| Error::location(40105, format!("$graphLookup requires '{name}' to be specified"));
    Ok(vec![Arc::new(GraphLookup {
        from: from
            .ok_or_else(|| Error::failed_to_parse("missing 'from' option to $graphLookup stage specification"))?,
        start: start.ok_or_else(|| missing("startWith"))?,
        connect_from: connect_from.ok_or_else(|| missing("connectFromField"))?,
        connect_to: connect_to.ok_or_else(|| missing("connectToField"))?,
        target: target.ok_or_else(|| missing("as"))?,
        max_depth,
        depth_field,
        restriction,
    })])
}

fn parse_depth(value: RawBsonRef<'_>) -> Result<i64> {
    if Number::of(value).is_none() {
        return Err(Error::location(40100, "maxDepth must be numeric"));
    }
    let depth = number::exact_i64(value)
        .ok_or_else(|| Error::location(40102, "maxDepth could not be represented as a long long"))?;
    if depth < 0 {
        return Err(Error::location(40101, "maxDepth requires a nonnegative argument"));
    }
    Ok(depth)
}

struct Following {
    stage: Arc<GraphLookup>,
    context: Arc<StageContext>,
    input: Rows,
    join: Join,
}

impl Following {
    /// The documents reached from a row, in the order in which they are found.
    fn reached(&mut self, row: &Row) -> Result<RawArrayBuf> {
        let stage = Arc::clone(&self.stage);
        let scope = Scope::new(row.document(), &self.context.environment);
        let mut frontier = match stage.start.evaluate(&scope)?.get() {
            None => Vec::new(),
            Some(RawBsonRef::Array(array)) => {
                array.into_iter().map(|value| Ok(RawBson::from(value?))).collect::<Result<Vec<_>>>()?
            }
            Some(value) => vec![value.into()],
        };
        let collator = self.context.environment.collator.clone();
        let (mut asked, mut seen) = (HashSet::new(), HashSet::new());
        let mut found = RawArrayBuf::new();
        let mut bytes = 0_usize;
        let mut depth = 0_i64;
        while !frontier.is_empty() && stage.max_depth.is_none_or(|most| depth <= most) {
            (self.context.interrupt)()?;
            let mut fresh = Vec::new();
            for value in &frontier {
                if asked.insert(encoded(value.as_raw_bson_ref(), collator.as_deref())?) {
                    fresh.push(value.as_raw_bson_ref());
                }
            }
            let mut next = Vec::new();
            for other in self.join.find(&fresh)?.iter() {
                let document = other.document();
                let id = get(document, "_id")?.unwrap_or(RawBsonRef::Null);
                if seen.contains(&encoded(id, None)?) {
                    continue;
                }
                if let Some(restriction) = &stage.restriction
                    && !restriction.matches(document, &self.context.environment)?
                {
                    continue;
                }
                seen.insert(encoded(id, None)?);
                visit(document, stage.connect_from.as_str(), Leaf::Elements, &mut |value, _| {
                    next.extend(value.map(RawBson::from));
                    Ok(false)
                })?;
                bytes += document.as_bytes().len();
                if bytes > self.context.memory_bytes {
                    return Err(Error::location(40099, "$graphLookup reached maximum memory consumption"));
                }
                match &stage.depth_field {
                    Some(path) => found.push(edit::set(document, path.as_str(), Some(RawBsonRef::Int64(depth)))?),
                    None => found.push(document),
                }
            }
            frontier = next;
            depth += 1;
        }
        Ok(found)
    }
}

impl RowSource for Following {
    fn next(&mut self) -> Result<Option<Row>> {
        let Some(row) = self.input.next()? else { return Ok(None) };
        let found = self.reached(&row)?;
        let document = edit::set(row.document(), self.stage.target.as_str(), Some(RawBsonRef::Array(&found)))?;
        Ok(Some(row.with_document(document)))
    }
}

impl Stage for GraphLookup {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let join = Join::new(self.from.clone(), self.connect_to.clone(), context);
        Ok(Box::new(Following { stage: self, context: Arc::clone(context), input, join }))
    }

    fn reads(&self) -> Vec<Namespace> {
        vec![self.from.clone()]
    }
}
