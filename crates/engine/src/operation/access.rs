//! What a pipeline reads and writes, for whoever must decide whether it may run.

use crate::database::Engine;
use crate::document::get;
use crate::error::Result;
use crate::expression::Parser;
use crate::namespace::Namespace;
use crate::stage::{ParseContext, Pipeline, Place};
use bson::{RawArray, RawArrayBuf, RawDocument};

/// What a pipeline reads and writes beyond the collection it runs on.
#[derive(Clone, Debug, Default)]
pub struct PipelineAccess {
    /// The collections that its stages read.
    pub reads: Vec<Namespace>,
    /// The collection that its last stage writes.
    pub writes: Option<Namespace>,
    /// Whether it watches for changes.
    pub watches: bool,
}

impl Engine {
    /// What a pipeline reads and writes.
    ///
    /// # Errors
    /// An invalid pipeline.
    pub fn pipeline_access(
        &self,
        namespace: &Namespace,
        pipeline: &RawArray,
        variables: Option<&RawDocument>,
    ) -> Result<PipelineAccess> {
        let mut parser = Parser::new();
        let mut environment = self.inner.environment();
        super::bind_variables(variables, &mut parser, &mut environment)?;
        let mut stages = RawArrayBuf::new();
        let mut watches = false;
        for stage in pipeline {
            let stage = stage?;
            let is_watch =
                stage.as_document().map(|stage| get(stage, "$changeStream")).transpose()?.flatten().is_some();
            if is_watch {
                watches = true;
            } else {
                stages.push(stage);
            }
        }
        let namespace = namespace.clone();
        let mut context = ParseContext {
            parser: &mut parser,
            collator: None,
            namespace,
            place: Place::Top,
            depth: 0,
            in_facet: false,
        };
        let parsed = Pipeline::parse(&stages, &mut context)?;
        Ok(PipelineAccess { reads: parsed.reads(), writes: parsed.writes(), watches })
    }
}
