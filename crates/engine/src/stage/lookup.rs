//! `{$lookup: {from, localField, foreignField, let, pipeline, as}}`: the matching documents of another collection, as an array.
//!
//! Equality is answered by an index of the other collection where it has one, with the answers of recent values kept; else
//! the other collection is read once into a table by its values, if that fits into the memory. A pipeline that depends on
//! nothing of the row runs once. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/lookup/>.

use crate::document::traverse::{Leaf, visit};
use crate::document::{FieldPath, RawArray, RawBsonRef, RawDocument, Row, edit};
use crate::error::{Code, Error, Result};
use crate::expression::{self, Compiled, Scope, VariableId};
use crate::namespace::Namespace;
use crate::stage::join::{Join, Table, collect};
use crate::stage::options::Options;
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, Pipeline, Place, Ready, RowSource, Rows, Stage, StageContext, StageKind};
use bson::RawArrayBuf;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$lookup", parse);

/// How large a row may grow on its way; only what comes out of the pipeline is bounded as documents are.
const MAX_JOINED_BYTES: usize = 100 * 1024 * 1024;

#[derive(Clone, Debug)]
struct Lookup {
    from: Option<Namespace>,
    fields: Option<(FieldPath, FieldPath)>,
    variables: Arc<Vec<(VariableId, Compiled)>>,
    pipeline: Option<Arc<Pipeline>>,
    target: FieldPath,
    /// An `$unwind` of the target right behind it: each document gives a row of its own, and whether rows without any stay.
    unwinding: Option<bool>,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 9, "the $lookup stage specification must be an object")?;
    let mut options = Options::of("$lookup", specification)?;
    let from = parse_from(options.take_any("from"), specification, context)?;
    let target = options.string("as")?;
    let mut field = |name: &str| Ok(options.string(name)?.filter(|path| !path.is_empty()));
    let local: Result<Option<&str>> = field("localField");
    let (local, foreign) = (local?, field("foreignField")?);
    let stages = options.pipeline("pipeline")?;
    let definitions = options.document("let")?;
    let target = target.ok_or_else(|| options.missing("as"))?;
    options.finish()?;
    let target = FieldPath::parse(target)?;
    let fields = match (local, foreign) {
        (Some(local), Some(foreign)) => Some((FieldPath::parse(local)?, FieldPath::parse(foreign)?)),
        (None, None) if stages.is_some() => None,
        (None, None) => {
            return Err(Error::failed_to_parse(
                "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified",
            ));
        }
        _ => {
            return Err(Error::failed_to_parse(
                "$lookup requires both or neither of 'localField' and 'foreignField' to be specified",
            ));
        }
    };
    if definitions.is_some() && stages.is_none() {
        return Err(Error::failed_to_parse("$lookup with a 'let' argument must also specify 'pipeline'"));
    }
    let (variables, pipeline) = parse_pipeline(definitions, stages, from.as_ref(), context)?;
    let variables = Arc::new(variables);
    Ok(vec![Arc::new(Lookup { from, fields, variables, pipeline, target, unwinding: None })])
}

/// The namespace of a collection to read; names that no collection can have are empty ones, not errors.
pub(super) fn other_collection(database: &str, collection: &str) -> Result<Namespace> {
    if collection.is_empty() || collection.starts_with('.') || collection.contains('\0') {
        return Err(Error::new(
            Code::INVALID_NAMESPACE,
            format!("Invalid namespace specified '{database}.{collection}'"),
        ));
    }
    Ok(Namespace { database: database.to_owned(), collection: collection.to_owned() })
}

fn parse_from(
    from: Option<RawBsonRef<'_>>,
    specification: &RawDocument,
    context: &ParseContext<'_>,
) -> Result<Option<Namespace>> {
    match from {
        Some(RawBsonRef::String(collection)) => other_collection(&context.namespace.database, collection).map(Some),
        Some(RawBsonRef::Document(document)) => {
            for field in document {
                let (name, value) = field?;
                match (name.as_str(), value) {
                    ("db" | "coll", RawBsonRef::String(_)) => {}
                    ("db" | "coll", _) => {
                        return Err(Error::type_mismatch("$lookup argument 'from' must hold strings"));
                    }
                    (other, _) => {
                        return Err(Error::location(40415, format!("BSON field 'from.{other}' is an unknown field.")));
                    }
                }
            }
            Err(Error::failed_to_parse("$lookup reads a collection of the same database only: 'from' must be a string"))
        }
        Some(_) => Err(Error::failed_to_parse("$lookup argument 'from' must be a string")),
        None => {
            let stages = crate::document::get(specification, "pipeline")?.and_then(|stages| stages.as_array());
            if stages.map(starts_with_documents).transpose()?.unwrap_or(false) {
                return Ok(None);
            }
            Err(Error::failed_to_parse(
                "must specify 'pipeline' when 'from' is empty, with $documents as its first stage",
            ))
        }
    }
}

/// Whether a pipeline makes its own rows from literals.
fn starts_with_documents(stages: &RawArray) -> Result<bool> {
    let first = stages.into_iter().next().transpose()?.and_then(|stage| stage.as_document());
    let first = first.and_then(|stage| stage.iter().next()).transpose()?;
    Ok(first.is_some_and(|(name, _)| name.as_str() == "$documents"))
}

type Parsed = (Vec<(VariableId, Compiled)>, Option<Arc<Pipeline>>);

fn parse_pipeline(
    definitions: Option<&RawDocument>,
    stages: Option<&RawArray>,
    from: Option<&Namespace>,
    context: &mut ParseContext<'_>,
) -> Result<Parsed> {
    let mut values = Vec::new();
    for field in definitions.into_iter().flatten() {
        let (name, value) = field?;
        check_variable(name.as_str())?;
        values.push((name.as_str(), expression::parse(value, context.parser)?));
    }
    let Some(stages) = stages else { return Ok((Vec::new(), None)) };
    let namespace = from
        .cloned()
        .unwrap_or_else(|| Namespace { database: context.namespace.database.clone(), collection: String::new() });
    let (collator, place, depth) = (context.collator.clone(), context.place, context.depth);
    let in_facet = context.in_facet;
    let outer = context.namespace.clone();
    let (variables, pipeline) = context.parser.scoped(|parser| {
        let variables = values.into_iter().map(|(name, value)| (parser.define(name), value)).collect();
        let mut inner = ParseContext { parser, collator, namespace: outer, place, depth, in_facet };
        inner.sub_pipeline(stages, Place::Lookup, namespace).map(|pipeline| (variables, pipeline))
    })?;
    Ok((variables, Some(Arc::new(pipeline))))
}

/// Refuses a name that no variable of `let` may have.
pub(super) fn check_variable(name: &str) -> Result<()> {
    let mut letters = name.chars();
    let valid = letters.next().is_some_and(|first| first.is_ascii_lowercase() || !first.is_ascii())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii());
    if valid || name == "CURRENT" {
        return Ok(());
    }
    Err(Error::failed_to_parse(format!(
        "'{name}' is not a valid name for a variable: it must begin with a lowercase letter"
    )))
}

struct Joining {
    stage: Arc<Lookup>,
    context: Arc<StageContext>,
    input: Rows,
    equality: Option<Equality>,
    constant: Option<Arc<Vec<Row>>>,
    /// The row that is being unwound, what was found for it, and how much of that was given.
    unwound: Option<(Row, Arc<Vec<Row>>, usize)>,
}

/// How the documents with an equal field are found.
enum Equality {
    /// In another collection.
    Collection(Join),
    /// Among the documents that the pipeline makes.
    Made(Table),
}

impl Stage for Lookup {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        Ok(Box::new(Joining {
            stage: self,
            context: Arc::clone(context),
            input,
            equality: None,
            constant: None,
            unwound: None,
        }))
    }

    fn with_unwinding(&self, path: &str, preserve: bool) -> Option<Arc<dyn Stage>> {
        let fits = self.unwinding.is_none() && self.target.as_str() == path;
        fits.then(|| Arc::new(Lookup { unwinding: Some(preserve), ..self.clone() }) as Arc<dyn Stage>)
    }

    fn reads(&self) -> Vec<Namespace> {
        let inner = self.pipeline.iter().flat_map(|pipeline| pipeline.reads());
        self.from.iter().cloned().chain(inner).collect()
    }
}

impl RowSource for Joining {
    fn next(&mut self) -> Result<Option<Row>> {
        if let Some(preserve) = self.stage.unwinding {
            return self.next_unwound(preserve);
        }
        let Some(row) = self.input.next()? else { return Ok(None) };
        let found = self.found(&row)?;
        let mut array = RawArrayBuf::new();
        let mut bytes = row.bytes().len();
        for other in found.iter() {
            bytes += other.bytes().len();
            if bytes > MAX_JOINED_BYTES {
                return Err(Error::location(
                    4568,
                    "Total size of documents matching pipeline's $lookup stage exceeds maximum document size",
                ));
            }
            array.push(other.document());
        }
        let document = edit::set(row.document(), self.stage.target.as_str(), Some(RawBsonRef::Array(&array)))?;
        Ok(Some(row.with_document(document)))
    }

    /// By `_id` each of the row's values is one read; many values make room for other work by themselves.
    fn is_quick(&self) -> bool {
        let stage = &self.stage;
        let is_by_id = stage.fields.as_ref().is_some_and(|(_, foreign)| foreign.as_str() == "_id");
        let (Some(from), None, true) = (&stage.from, &stage.pipeline, is_by_id) else { return false };
        stage.unwinding.unwrap_or(true)
            && self.input.is_quick()
            && self.context.collections.has_index(from, "_id", &self.context).unwrap_or(false)
    }
}

impl Joining {
    /// The next row with one document in the place of all.
    fn next_unwound(&mut self, preserve: bool) -> Result<Option<Row>> {
        let stage = Arc::clone(&self.stage);
        let target = stage.target.as_str();
        loop {
            if let Some((row, found, given)) = &mut self.unwound
                && let Some(other) = found.get(*given)
            {
                *given += 1;
                let document = edit::set(row.document(), target, Some(RawBsonRef::Document(other.document())))?;
                return Ok(Some(row.clone().with_document(document)));
            }
            self.unwound = None;
            let Some(row) = self.input.next()? else { return Ok(None) };
            let found = self.found(&row)?;
            if found.is_empty() {
                if preserve {
                    let document = edit::set(row.document(), target, None)?;
                    return Ok(Some(row.with_document(document)));
                }
                continue;
            }
            self.unwound = Some((row, found, 0));
        }
    }

    /// The documents that belong to a row.
    fn found(&mut self, row: &Row) -> Result<Arc<Vec<Row>>> {
        let stage = Arc::clone(&self.stage);
        let Some((local, foreign)) = &stage.fields else { return self.piped(row) };
        let matching = self.equal(row, local, foreign)?;
        let Some(pipeline) = stage.pipeline.as_ref().filter(|_| stage.from.is_some()) else { return Ok(matching) };
        let context = self.inner_context(row)?;
        let rows = Box::new(Ready::new(matching.to_vec()));
        Ok(Arc::new(collect(pipeline.open(0, rows, &context)?, usize::MAX)?.unwrap_or_default()))
    }

    /// What the pipeline alone gives for a row.
    fn piped(&mut self, row: &Row) -> Result<Arc<Vec<Row>>> {
        if let Some(constant) = &self.constant {
            return Ok(Arc::clone(constant));
        }
        let stage = Arc::clone(&self.stage);
        let Some(pipeline) = &stage.pipeline else { return Ok(Arc::default()) };
        let context = self.inner_context(row)?;
        let rows = match &stage.from {
            Some(from) => context.collections.aggregate(from, pipeline, &context)?,
            None => pipeline.open_source(&context)?,
        };
        let rows = Arc::new(collect(rows, usize::MAX)?.unwrap_or_default());
        if stage.variables.is_empty() {
            self.constant = Some(Arc::clone(&rows));
        }
        Ok(rows)
    }

    fn inner_context(&self, row: &Row) -> Result<Arc<StageContext>> {
        let scope = Scope::new(row.document(), &self.context.environment);
        let mut variables = Vec::new();
        for (id, expression) in self.stage.variables.iter() {
            variables.push((*id, expression.evaluate(&scope)?.into_owned()));
        }
        let context = self.context.with_variables(variables);
        Ok(Arc::new(match &self.stage.from {
            Some(from) => context.on(from.clone()),
            None => context,
        }))
    }

    /// The documents whose foreign field equals the row's local field, each once.
    fn equal(&mut self, row: &Row, local: &FieldPath, foreign: &FieldPath) -> Result<Arc<Vec<Row>>> {
        let equality = match &mut self.equality {
            Some(equality) => equality,
            none => none.insert(match (&self.stage.from, &self.stage.pipeline) {
                (Some(from), _) => Equality::Collection(Join::new(from.clone(), foreign.clone(), &self.context)),
                (None, Some(pipeline)) => {
                    let rows = collect(pipeline.open_source(&self.context)?, usize::MAX)?.unwrap_or_default();
                    Equality::Made(Table::new(rows, foreign, self.context.environment.collator())?)
                }
                (None, None) => return Ok(Arc::default()),
            }),
        };
        let values = local_values(row.document(), local)?;
        match equality {
            Equality::Collection(join) => join.find(&values),
            Equality::Made(table) => table.find(&values, self.context.environment.collator()),
        }
    }
}

/// The values of a row's local field: an array's elements, null for a missing one.
fn local_values<'a>(document: &'a RawDocument, path: &FieldPath) -> Result<Vec<RawBsonRef<'a>>> {
    let mut values = Vec::new();
    visit(document, path.as_str(), Leaf::Elements, &mut |value, _| {
        values.extend(value);
        Ok(false)
    })?;
    if values.is_empty() {
        values.push(RawBsonRef::Null);
    }
    Ok(values)
}
