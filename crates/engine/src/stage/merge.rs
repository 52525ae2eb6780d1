//! `{$merge: {into, on, let, whenMatched, whenNotMatched}}`: writes the rows into another collection.
//!
//! Rows are written in bounded batches; nothing comes out. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/merge/>.

use crate::document::{FieldPath, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, Row, append, type_name, validate};
use crate::error::{Error, Result};
use crate::expression::{self, Compiled, Scope};
use crate::namespace::Namespace;
use crate::stage::lookup::check_variable;
use crate::stage::options::Options;
use crate::stage::{NoRows, ParseContext, Position, Rows, Stage, StageContext, StageKind, Write, deferred};
use bson::oid::ObjectId;
use bson::rawdoc;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$merge", parse).at(Position::Last);

/// How many rows are written at once, and about how many bytes.
const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug)]
struct Merge {
    into: Namespace,
    on: Vec<FieldPath>,
    variables: Vec<(String, Compiled)>,
    matched: Matched,
    unmatched: Unmatched,
}

#[derive(Debug)]
enum Matched {
    Merge,
    Replace,
    KeepExisting,
    Fail,
    Pipeline(RawBson),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unmatched {
    Insert,
    Discard,
    Fail,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let document = match argument {
        RawBsonRef::String(collection) => {
            let into = target(None, collection, context)?;
            return Ok(vec![Arc::new(Merge {
                into,
                on: vec![FieldPath::unchecked("_id")],
                variables: Vec::new(),
                matched: Matched::Merge,
                unmatched: Unmatched::Insert,
            })]);
        }
        RawBsonRef::Document(document) => document,
        other => {
            return Err(Error::type_mismatch(format!(
                "$merge only supports a string or object argument, not {}",
                type_name(other)
            )));
        }
    };
    let mut options = Options::of("$merge", document)?;
    let into = options.take_any("into").ok_or_else(|| options.missing("into"))?;
    let on = options.take_any("on");
    let definitions = options.document("let")?;
    let matched = options.take_any("whenMatched");
    let unmatched = options.string("whenNotMatched")?;
    options.finish()?;
    let into = parse_into(into, context)?;
    let on = on.map_or_else(|| Ok(vec![FieldPath::unchecked("_id")]), parse_on)?;
    let unmatched = match unmatched {
        None | Some("insert") => Unmatched::Insert,
        Some("discard") => Unmatched::Discard,
        Some("fail") => Unmatched::Fail,
        Some(other) => {
            return Err(Error::bad_value(format!(
                "Enumeration value '{other}' for field '$merge.whenNotMatched' is not a valid value."
            )));
        }
    };
    let is_pipeline = matches!(matched, Some(RawBsonRef::Array(_)));
    if definitions.is_some() && !is_pipeline {
        return Err(Error::location(
            51199,
            "Cannot use 'let' variables with 'whenMatched' modes other than a pipeline",
        ));
    }
    let variables = parse_variables(definitions, context)?;
    let matched = parse_matched(matched)?;
    if unmatched != Unmatched::Insert && matches!(matched, Matched::KeepExisting | Matched::Fail) {
        return Err(Error::location(
            51181,
            "Combination of $merge modes is not supported: 'keepExisting' and 'fail' need whenNotMatched 'insert'",
        ));
    }
    Ok(vec![Arc::new(Merge { into, on, variables, matched, unmatched })])
}

fn parse_into(into: RawBsonRef<'_>, context: &ParseContext<'_>) -> Result<Namespace> {
    match into {
        RawBsonRef::String("") => {
            Err(Error::location(5786800, "Invalid $merge target namespace: the collection's name is empty"))
        }
        RawBsonRef::String(collection) => target(None, collection, context),
        RawBsonRef::Document(document) => {
            let mut options = Options::of("into", document)?;
            let database = options.string("db")?.filter(|database| !database.is_empty());
            let collection = options.string("coll")?.filter(|collection| !collection.is_empty());
            options.finish()?;
            let collection = collection
                .ok_or_else(|| Error::location(5786801, "Invalid $merge target namespace: 'coll' is missing"))?;
            target(database, collection, context)
        }
        other => Err(Error::location(
            51178,
            format!("$merge 'into' field must be either a string or an object, but found {}", type_name(other)),
        )),
    }
}

fn target(database: Option<&str>, collection: &str, context: &ParseContext<'_>) -> Result<Namespace> {
    let database = database.unwrap_or(&context.namespace.database);
    if matches!(database, "admin" | "config" | "local") {
        return Err(Error::location(
            31320,
            format!("$merge cannot be used to write into the internal database '{database}'"),
        ));
    }
    let into = Namespace::new(database, collection)?;
    if into.is_system() {
        return Err(Error::location(31319, format!("Cannot $merge to special collection: {collection}")));
    }
    Ok(into)
}

fn parse_on(on: RawBsonRef<'_>) -> Result<Vec<FieldPath>> {
    let array = match on {
        RawBsonRef::String(path) => return Ok(vec![FieldPath::parse(path)?]),
        RawBsonRef::Array(array) if array.is_empty() => {
            return Err(Error::location(
                51187,
                "If explicitly specifying $merge 'on', must include at least one field",
            ));
        }
        RawBsonRef::Array(array) => array,
        other => {
            return Err(Error::location(
                51186,
                format!(
                    "$merge 'on' field must be either a string or an array of strings, but found {}",
                    type_name(other)
                ),
            ));
        }
    };
    let mut paths: Vec<FieldPath> = Vec::new();
    for element in array {
        let RawBsonRef::String(path) = element? else {
            return Err(Error::location(51134, "$merge 'on' array elements must be strings"));
        };
        let path = FieldPath::parse(path)?;
        if paths.contains(&path) {
            return Err(Error::location(31465, format!("Found a duplicate field '{path}' in $merge 'on'")));
        }
        paths.push(path);
    }
    Ok(paths)
}

fn parse_variables(
    definitions: Option<&RawDocument>,
    context: &mut ParseContext<'_>,
) -> Result<Vec<(String, Compiled)>> {
    let mut variables = Vec::new();
    for field in definitions.into_iter().flatten() {
        let (name, value) = field?;
        let name = name.as_str();
        check_variable(name)?;
        if name == "new" && value != RawBsonRef::String("$$ROOT") {
            return Err(Error::location(
                51273,
                "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'",
            ));
        }
        variables.push((name.to_owned(), expression::parse(value, context.parser)?));
    }
    Ok(variables)
}

fn parse_matched(matched: Option<RawBsonRef<'_>>) -> Result<Matched> {
    match matched {
        None | Some(RawBsonRef::String("merge")) => Ok(Matched::Merge),
        Some(RawBsonRef::String("replace")) => Ok(Matched::Replace),
        Some(RawBsonRef::String("keepExisting")) => Ok(Matched::KeepExisting),
        Some(RawBsonRef::String("fail")) => Ok(Matched::Fail),
        Some(RawBsonRef::String(other)) => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field '$merge.whenMatched' is not a valid value."
        ))),
        // What its stages have wrong shows when a document first matches.
        Some(RawBsonRef::Array(stages)) => {
            for stage in stages {
                if stage?.as_document().is_none() {
                    return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
                }
            }
            Ok(Matched::Pipeline(RawBson::Array(stages.to_owned())))
        }
        Some(other) => Err(Error::location(
            51191,
            format!("$merge 'whenMatched' field must be either a string or an array, but found {}", type_name(other)),
        )),
    }
}

impl Merge {
    fn run(&self, mut input: Rows, context: &StageContext) -> Result<()> {
        let collections = &context.collections;
        collections.check_writable(&self.into, false, context)?;
        let fields: Vec<String> = self.on.iter().map(|path| path.as_str().to_owned()).collect();
        let index = collections
            .unique_index(&self.into, &fields, context)?
            .ok_or_else(|| Error::location(51183, "Cannot find index to verify that join fields will be unique"))?;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(row) = input.next()? {
            (context.interrupt)()?;
            bytes += row.bytes().len();
            batch.push(self.write(&row, index.sparse, context)?);
            if batch.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
                self.flush(std::mem::take(&mut batch), context)?;
                bytes = 0;
            }
        }
        self.flush(batch, context)
    }

    fn flush(&self, batch: Vec<Write>, context: &StageContext) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let outcomes = context.collections.write(&self.into, batch, context)?;
        if self.unmatched == Unmatched::Fail && outcomes.iter().any(|outcome| !outcome.matched) {
            return Err(Error::location(
                13113,
                "$merge could not find a matching document in the target collection for at least one document in the source \
                 collection",
            ));
        }
        Ok(())
    }

    fn write(&self, row: &Row, sparse: bool, context: &StageContext) -> Result<Write> {
        let by_id = self.on.iter().any(|path| path.as_str() == "_id");
        let has_id = crate::document::get(row.document(), "_id")?.is_some();
        let document = if by_id && !has_id {
            validate::storable(row.document().to_owned(), ObjectId::new)?
        } else {
            row.document().to_owned()
        };
        if matches!(self.matched, Matched::Fail) {
            return Ok(Write::Insert(document));
        }
        let mut filter = RawDocumentBuf::new();
        for path in &self.on {
            let value = path.evaluate(RawBsonRef::Document(&document))?;
            if matches!(value.get(), Some(RawBsonRef::Array(_))) {
                return Err(Error::location(
                    51185,
                    format!("$merge write error: 'on' field '{path}' cannot be an array"),
                ));
            }
            if value.is_nullish() && (sparse || path.as_str() == "_id") {
                return Err(Error::location(
                    51132,
                    format!("$merge write error: 'on' field '{path}' cannot be missing, null, undefined"),
                ));
            }
            let mut equal = RawDocumentBuf::new();
            append(&mut equal, "$eq", value.or_null())?;
            append(&mut filter, path.as_str(), RawBsonRef::Document(&equal))?;
        }
        let mut variables = RawDocumentBuf::new();
        let update = self.update(&document, &mut variables, context)?;
        let document = match self.matched {
            Matched::Merge | Matched::KeepExisting => by_name(&document)?,
            _ => document,
        };
        let insert = (self.unmatched == Unmatched::Insert).then_some(document);
        Ok(Write::Update { filter, update, variables, insert })
    }

    /// The update of a document that matched, and the variables that it uses.
    fn update(
        &self,
        document: &RawDocument,
        variables: &mut RawDocumentBuf,
        context: &StageContext,
    ) -> Result<RawBson> {
        let new = RawBsonRef::Document(document);
        Ok(match &self.matched {
            Matched::Replace => RawBson::Document(document.to_owned()),
            Matched::KeepExisting | Matched::Fail => RawBson::Document(rawdoc! { "$setOnInsert": {} }),
            Matched::Merge => {
                append(variables, "new", new)?;
                let merged = rawdoc! { "s": [{ "$replaceWith": { "$mergeObjects": ["$$ROOT", "$$new"] } }] };
                merged.get_array("s")?.to_owned().into()
            }
            Matched::Pipeline(stages) => {
                if !self.variables.iter().any(|(name, _)| name == "new") {
                    append(variables, "new", new)?;
                }
                let scope = Scope::new(document, &context.environment);
                for (name, value) in &self.variables {
                    if let Some(value) = value.evaluate(&scope)?.get() {
                        append(variables, name, value)?;
                    }
                }
                stages.clone()
            }
        })
    }
}

/// The document with its `_id` in front and its other fields in the order in which an upsert sets them.
fn by_name(document: &RawDocument) -> Result<RawDocumentBuf> {
    let mut fields = document.iter().collect::<Result<Vec<_>, _>>()?;
    fields.sort_by_key(|(name, _)| (name.as_str() != "_id", name.as_str()));
    let mut ordered = RawDocumentBuf::new();
    for (name, value) in fields {
        ordered.append(name, value);
    }
    Ok(ordered)
}

impl Stage for Merge {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let context = Arc::clone(context);
        Ok(deferred(move || {
            self.run(input, &context)?;
            Ok(Box::new(NoRows))
        }))
    }

    fn writes(&self) -> Option<Namespace> {
        Some(self.into.clone())
    }
}
