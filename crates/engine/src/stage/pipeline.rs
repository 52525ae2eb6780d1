//! A pipeline: stages in order, checked against each other, with the beginning that a planner can take over.

use crate::document::collation::Collator;
use crate::document::type_name;
use crate::error::{Code, Error, Result};
use crate::expression::{Environment, Parser};
use crate::filter::Filter;
use crate::namespace::Namespace;
use crate::stage::{NoRows, Position, Rows, SortPattern, Stage, StageContext, find, unknown};
use bson::{RawArray, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use std::sync::Arc;

/// The most stages of a pipeline, sub-pipelines apart.
const MAX_STAGES: usize = 1000;

/// How deep pipelines may be nested in each other.
const MAX_SUB_PIPELINES: usize = 20;

/// Where a pipeline stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The pipeline of a command.
    Top,
    /// Inside `$facet`.
    Facet,
    /// Inside `$lookup`.
    Lookup,
    /// Inside `$unionWith`.
    Union,
    /// The definition of a view.
    View,
}

/// What parsing a pipeline needs to know.
pub struct ParseContext<'p> {
    /// Variables in scope.
    pub parser: &'p mut Parser,
    /// The operation's collation.
    pub collator: Option<Arc<Collator>>,
    /// The collection that the pipeline is asked of; its collection is empty for `aggregate: 1`.
    pub namespace: Namespace,
    /// Where the pipeline stands.
    pub place: Place,
    /// How many pipelines are around it.
    pub depth: usize,
    /// Whether `$facet` is around it, however far.
    pub in_facet: bool,
}

impl ParseContext<'_> {
    /// Parses a pipeline inside this one.
    ///
    /// # Errors
    /// `Location232` when they are nested too deeply, and as [`Pipeline::parse`].
    pub fn sub_pipeline(&mut self, stages: &RawArray, place: Place, namespace: Namespace) -> Result<Pipeline> {
        if place != Place::Facet && self.depth >= MAX_SUB_PIPELINES {
            return Err(Error::location(
                232,
                format!("Maximum number of nested sub-pipelines exceeded. Limit is {MAX_SUB_PIPELINES}"),
            ));
        }
        let mut inner = ParseContext {
            parser: &mut *self.parser,
            collator: self.collator.clone(),
            namespace,
            place,
            depth: self.depth + usize::from(place != Place::Facet),
            in_facet: self.in_facet || place == Place::Facet,
        };
        Pipeline::parse(stages, &mut inner)
    }
}

/// A parsed pipeline.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    steps: Vec<Step>,
}

/// A stage with its text.
#[derive(Clone, Debug)]
struct Step {
    name: &'static str,
    argument: RawBson,
    stage: Arc<dyn Stage>,
}

/// The beginning of a pipeline that a planner can do in its place.
#[derive(Debug, Default)]
pub struct Leading<'p> {
    /// The filters of the leading `$match` stages; all must match.
    pub filters: Vec<&'p Filter>,
    /// The `$sort` behind them.
    pub order: Option<&'p SortPattern>,
    /// How many rows to leave out after that.
    pub skip: u64,
    /// How many rows are wanted after that.
    pub limit: Option<u64>,
    /// How many steps of the pipeline this is, for [`Pipeline::open`].
    pub steps: usize,
}

impl Pipeline {
    /// Parses an array of stages.
    ///
    /// # Errors
    /// `Location40323`, `Location40324`, `Location40600` to `Location40602`, and what the stages refuse.
    pub fn parse(stages: &RawArray, context: &mut ParseContext<'_>) -> Result<Pipeline> {
        let mut pipeline = Pipeline::default();
        let mut documents = Vec::new();
        for stage in stages {
            let RawBsonRef::Document(document) = stage? else {
                return Err(match context.place {
                    Place::Facet => {
                        Error::location(40171, "elements of arrays in $facet spec must be non-empty objects")
                    }
                    _ => Error::type_mismatch("Each element of the 'pipeline' array must be an object"),
                });
            };
            documents.push(document);
        }
        if documents.len() > MAX_STAGES {
            return Err(Error::location(
                7749501,
                format!("Pipeline length must be no longer than {MAX_STAGES} stages."),
            ));
        }
        for (at, document) in documents.iter().enumerate() {
            let (name, argument) = single_field(document)?;
            let kind = find(name).ok_or_else(|| unknown(name, context.place, context.in_facet))?;
            let standing = Standing { name: kind.name, position: kind.position, in_facet: kind.in_facet };
            check_place(&standing, at, documents.len(), context)?;
            let is_text = |filter: &RawDocument| crate::document::get(filter, "$text").is_ok_and(|text| text.is_some());
            if at > 0 && name == "$match" && argument.as_document().is_some_and(is_text) {
                return Err(Error::location(17313, "$match with $text is only allowed as the first pipeline stage"));
            }
            let stages = (kind.parse)(argument, context)?;
            check_collection(&standing, at, context)?;
            for stage in stages {
                pipeline.steps.push(Step { name: kind.name, argument: argument.into(), stage });
            }
        }
        pipeline.optimise();
        Ok(pipeline)
    }

    /// The first stage that may not run in a transaction.
    pub fn outside_transactions(&self) -> Option<&'static str> {
        let mut kinds = self.steps.iter().filter_map(|step| find(step.name));
        kinds.find(|kind| !kind.in_transaction).map(|kind| kind.name)
    }

    /// Parses the pipeline of an update, which takes the stages alone that map one document to one.
    ///
    /// # Errors
    /// `InvalidOptions` (72) for any other stage, and as [`Pipeline::parse`].
    pub fn parse_update(stages: &RawArray, parser: &mut Parser) -> Result<Pipeline> {
        const ALLOWED: [&str; 6] = ["$addFields", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"];
        for stage in stages {
            let RawBsonRef::Document(document) = stage? else { continue };
            let (name, _) = single_field(document)?;
            if find(name).is_some() && !ALLOWED.contains(&name) {
                return Err(Error::new(
                    Code::INVALID_OPTIONS,
                    format!("{name} is not allowed to be used within an update"),
                ));
            }
        }
        let namespace = Namespace { database: String::new(), collection: "update".to_owned() };
        Pipeline::parse(
            stages,
            &mut ParseContext { parser, collator: None, namespace, place: Place::Top, depth: 0, in_facet: false },
        )
    }

    /// What a pipeline of row-wise stages makes of one document.
    ///
    /// # Errors
    /// What the stages refuse; `InternalError` (1) when one of them is not row-wise.
    pub fn map(&self, document: &RawDocument, environment: &Environment) -> Result<Option<RawDocumentBuf>> {
        let mut current = None;
        for step in &self.steps {
            match step.stage.map(current.as_deref().unwrap_or(document), environment)? {
                Some(document) => current = Some(document),
                None => return Ok(None),
            }
        }
        Ok(Some(current.unwrap_or_else(|| document.to_owned())))
    }

    /// Both pipelines, one after the other: a view's and the one asked of it.
    pub fn then(&self, next: &Pipeline) -> Pipeline {
        let mut pipeline = self.clone();
        pipeline.steps.extend(next.steps.iter().cloned());
        pipeline.optimise();
        pipeline
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are no stages.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The name of each step.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.steps.iter().map(|step| step.name)
    }

    /// The steps as documents, for `explain` and `currentOp`.
    ///
    /// # Errors
    /// None in practice: names come from the table.
    pub fn documents(&self, from: usize) -> Result<Vec<RawDocumentBuf>> {
        let document = |step: &Step| {
            let mut document = RawDocumentBuf::new();
            crate::document::append(&mut document, step.name, step.argument.as_raw_bson_ref())?;
            Ok(document)
        };
        self.steps[from.min(self.steps.len())..].iter().map(document).collect()
    }

    /// Whether the first stage makes its own rows, so that the collection is not read.
    pub fn has_source(&self) -> bool {
        let first = self.steps.first().and_then(|step| find(step.name));
        first.is_some_and(|kind| matches!(kind.position, Position::First | Position::FirstWithoutCollection))
    }

    /// The other collections that it reads.
    pub fn reads(&self) -> Vec<Namespace> {
        self.steps.iter().flat_map(|step| step.stage.reads()).collect()
    }

    /// The collection that its last stage writes.
    pub fn writes(&self) -> Option<Namespace> {
        self.steps.last().and_then(|step| step.stage.writes())
    }

    /// Whether every stage maps rows one to one or leaves some out, as a change stream or an update by pipeline demands.
    pub fn is_row_wise(&self) -> bool {
        self.steps.iter().all(|step| step.stage.is_row_wise())
    }

    /// The beginning that a planner can take over.
    pub fn leading(&self) -> Leading<'_> {
        let mut leading = Leading::default();
        for step in &self.steps {
            let stage = &*step.stage;
            if let Some(filter) = stage.filter() {
                if leading.order.is_some() || leading.skip > 0 || leading.limit.is_some() {
                    break;
                }
                leading.filters.push(filter);
            } else if let Some(order) = stage.order() {
                if leading.order.is_some() || leading.skip > 0 || leading.limit.is_some() {
                    break;
                }
                leading.order = Some(order);
                leading.limit = stage.limit();
            } else if let Some(skip) = stage.skip() {
                if leading.limit.is_some() {
                    break;
                }
                leading.skip = leading.skip.saturating_add(skip);
            } else if let Some(limit) = stage.limit() {
                leading.limit = Some(leading.limit.map_or(limit, |known| known.min(limit)));
            } else {
                break;
            }
            leading.steps += 1;
        }
        leading
    }

    /// Puts the steps from `from` on behind an input.
    ///
    /// # Errors
    /// What the stages refuse when they open.
    pub fn open(&self, from: usize, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let mut rows = input;
        for step in &self.steps[from.min(self.steps.len())..] {
            rows = Arc::clone(&step.stage).open(rows, context)?;
        }
        Ok(rows)
    }

    /// Opens a pipeline whose first stage makes its own rows.
    ///
    /// # Errors
    /// As [`Pipeline::open`].
    pub fn open_source(&self, context: &Arc<StageContext>) -> Result<Rows> {
        self.open(0, Box::new(NoRows), context)
    }

    /// Puts an `$unwind` into the `$lookup` whose array it takes apart.
    fn fuse(&mut self) {
        let mut at = 0;
        while at + 1 < self.steps.len() {
            let unwound = self.steps[at + 1]
                .stage
                .unwinds()
                .and_then(|(path, preserve)| Some((self.steps[at].stage.with_unwinding(path, preserve)?, preserve)));
            if let Some((stage, preserve)) = unwound {
                self.steps.remove(at + 1);
                let step = &mut self.steps[at];
                step.stage = stage;
                if let RawBson::Document(argument) = &mut step.argument {
                    let unwinding = bson::rawdoc! { "preserveNullAndEmptyArrays": preserve };
                    argument.append(bson::raw::cstr!("unwinding"), unwinding);
                }
            }
            at += 1;
        }
    }

    /// Pulls `$limit` into the `$sort` before it, through stages that keep rows and order.
    fn optimise(&mut self) {
        self.fuse();
        for at in 0..self.steps.len() {
            if self.steps[at].stage.order().is_none() {
                continue;
            }
            let mut skipped = 0_u64;
            for behind in at + 1..self.steps.len() {
                let stage = &self.steps[behind].stage;
                if let Some(skip) = stage.skip() {
                    skipped = skipped.saturating_add(skip);
                } else if let (Some(limit), None) = (stage.limit(), stage.order()) {
                    if let Some(bounded) = self.steps[at].stage.with_limit(limit.saturating_add(skipped)) {
                        self.steps[at].stage = bounded;
                        if skipped == 0 && behind == at + 1 {
                            self.steps.remove(behind);
                            return self.optimise();
                        }
                    }
                    break;
                } else if !(stage.is_row_wise() && stage.filter().is_none() && self.steps[behind].name != "$redact") {
                    break;
                }
            }
        }
    }
}

/// The one field of a stage's document.
fn single_field(document: &RawDocument) -> Result<(&str, RawBsonRef<'_>)> {
    let mut fields = document.iter();
    match (fields.next().transpose()?, fields.next()) {
        (Some((name, argument)), None) => Ok((name.as_str(), argument)),
        _ => Err(Error::location(40323, "A pipeline stage specification object must contain exactly one field.")),
    }
}

/// What the table's row says of a stage.
struct Standing<'k> {
    name: &'k str,
    position: Position,
    in_facet: bool,
}

/// Refuses a stage that may not stand where it stands; what its argument has wrong comes next.
fn check_place(stage: &Standing<'_>, at: usize, count: usize, context: &ParseContext<'_>) -> Result<()> {
    let Standing { name, position, in_facet } = *stage;
    if position == Position::Last {
        let refused = |number: i32, inside: &str| {
            Err(Error::location(number, format!("{name} is not allowed within a {inside}'s sub-pipeline")))
        };
        match context.place {
            Place::Lookup => return refused(51047, "$lookup"),
            Place::Union => return refused(31441, "$unionWith"),
            Place::View => {
                return Err(Error::new(
                    Code::OPTION_NOT_SUPPORTED_ON_VIEW,
                    format!("{name} may not be used in the definition of a view"),
                ));
            }
            Place::Top | Place::Facet => {}
        }
    }
    if context.in_facet && !in_facet {
        return Err(Error::location(40600, format!("{name} is not allowed to be used within a $facet stage")));
    }
    if position == Position::Last && at + 1 < count {
        return Err(Error::location(40601, format!("{name} can only be the final stage in the pipeline")));
    }
    if makes_rows(position) && at > 0 {
        return Err(Error::location(40602, format!("{name} is only valid as the first stage in a pipeline.")));
    }
    if position == Position::FirstWithoutCollection && !context.namespace.collection.is_empty() {
        return Err(Error::new(
            Code::INVALID_NAMESPACE,
            format!("{name} must be run against the database with {{aggregate: 1}}, not a collection"),
        ));
    }
    Ok(())
}

/// Refuses a first stage that needs a collection where there is none.
fn check_collection(stage: &Standing<'_>, at: usize, context: &ParseContext<'_>) -> Result<()> {
    let without = context.namespace.collection.is_empty() && context.place == Place::Top;
    if at == 0 && without && !makes_rows(stage.position) {
        return Err(Error::new(
            Code::INVALID_NAMESPACE,
            format!("{{aggregate: 1}} is not valid for '{}'; a collection is required.", stage.name),
        ));
    }
    Ok(())
}

fn makes_rows(position: Position) -> bool {
    matches!(position, Position::First | Position::FirstWithoutCollection)
}

/// Refuses an argument that is no document.
pub(super) fn object<'a>(value: RawBsonRef<'a>, number: i32, message: &str) -> Result<&'a RawDocument> {
    value.as_document().ok_or_else(|| Error::location(number, format!("{message}; found {}", type_name(value))))
}
