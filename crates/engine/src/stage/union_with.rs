//! `{$unionWith: "collection"}` or `{$unionWith: {coll, pipeline}}`: the rows, then those of another collection.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/unionWith/>.

use crate::document::Row;
use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::stage::lookup::other_collection;
use crate::stage::options::Options;
use crate::stage::{ParseContext, Pipeline, Place, RowSource, Rows, Stage, StageContext, StageKind};
use bson::{RawArray, RawBsonRef};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$unionWith", parse).not_in_transaction();

#[derive(Debug)]
struct UnionWith {
    from: Option<Namespace>,
    pipeline: Arc<Pipeline>,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let (collection, stages) = match argument {
        RawBsonRef::String(collection) => (Some(collection), None),
        RawBsonRef::Document(document) => {
            let mut options = Options::of("$unionWith", document)?;
            let collection = options.string("coll")?;
            let stages = options.pipeline("pipeline")?;
            if options.has("db") {
                return Err(Error::failed_to_parse("$unionWith reads a collection of the same database only"));
            }
            options.finish()?;
            (collection, stages)
        }
        _ => {
            return Err(Error::failed_to_parse(
                "the $unionWith stage specification must be an object or string, but found another type",
            ));
        }
    };
    let database = context.namespace.database.clone();
    let from = match collection {
        Some(collection) => Some(other_collection(&database, collection)?),
        None => {
            starts_with_documents(stages)?;
            None
        }
    };
    let inner = from.clone().unwrap_or(Namespace { database, collection: String::new() });
    let pipeline = match stages {
        Some(stages) => context.sub_pipeline(stages, Place::Union, inner)?,
        None => Pipeline::default(),
    };
    Ok(vec![Arc::new(UnionWith { from, pipeline: Arc::new(pipeline) })])
}

/// Refuses a pipeline without a collection that does not make its own rows.
fn starts_with_documents(stages: Option<&RawArray>) -> Result<()> {
    let first = stages.and_then(|stages| stages.into_iter().next()).transpose()?;
    let first = first.and_then(|stage| stage.as_document()).and_then(|stage| stage.iter().next()).transpose()?;
    if first.is_some_and(|(name, _)| name.as_str() == "$documents") {
        return Ok(());
    }
    Err(Error::failed_to_parse(
        "$unionWith stage without explicit collection must have a pipeline with $documents as first stage",
    ))
}

struct Union {
    stage: Arc<UnionWith>,
    context: Arc<StageContext>,
    input: Option<Rows>,
    other: Option<Rows>,
}

impl RowSource for Union {
    fn next(&mut self) -> Result<Option<Row>> {
        if let Some(input) = &mut self.input {
            if let Some(row) = input.next()? {
                return Ok(Some(row));
            }
            self.input = None;
            self.other = Some(match &self.stage.from {
                Some(from) => {
                    let context = Arc::new(self.context.on(from.clone()));
                    self.context.collections.aggregate(from, &self.stage.pipeline, &context)?
                }
                None => self.stage.pipeline.open_source(&self.context)?,
            });
        }
        self.other.as_mut().map_or(Ok(None), |other| other.next())
    }
}

impl Stage for UnionWith {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        Ok(Box::new(Union { stage: self, context: Arc::clone(context), input: Some(input), other: None }))
    }

    fn reads(&self) -> Vec<Namespace> {
        self.from.iter().cloned().chain(self.pipeline.reads()).collect()
    }
}
