//! `{$facet: {name: [stage, …], …}}`: several pipelines over the same rows; one row with all their results.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/facet/>.

use crate::document::{MAX_DOCUMENT_BYTES, Row, append};
use crate::error::{Code, Error, Result};
use crate::namespace::Namespace;
use crate::stage::{ParseContext, Pipeline, Place, Ready, RowSource, Rows, Stage, StageContext, StageKind, deferred};
use bson::{RawArrayBuf, RawBsonRef, RawDocumentBuf};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$facet", parse).not_in_facet();

#[derive(Debug)]
struct Facet {
    facets: Vec<(String, Pipeline)>,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = argument.as_document().filter(|document| !document.is_empty());
    let specification =
        specification.ok_or_else(|| Error::location(40169, "the $facet specification must be a non-empty object"))?;
    let mut facets = Vec::new();
    for field in specification {
        let (name, value) = field?;
        let name = name.as_str();
        check_name(name)?;
        let RawBsonRef::Array(stages) = value else {
            return Err(Error::location(40170, format!("arguments to $facet must be arrays, {name} is not")));
        };
        let namespace = context.namespace.clone();
        facets.push((name.to_owned(), context.sub_pipeline(stages, Place::Facet, namespace)?));
    }
    Ok(vec![Arc::new(Facet { facets })])
}

fn check_name(name: &str) -> Result<()> {
    let problem = if name.is_empty() {
        (15998, "FieldPath field names may not be empty strings.".to_owned())
    } else if name.starts_with('$') {
        (
            16410,
            format!(
                "FieldPath field names may not start with '$'. Consider using $getField or $setField. Found '{name}'."
            ),
        )
    } else if name.contains('.') {
        (16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.".to_owned())
    } else {
        return Ok(());
    };
    Err(Error::location(problem.0, problem.1))
}

/// Rows that several readers share.
struct Shared {
    rows: Arc<Vec<Row>>,
    next: usize,
}

impl RowSource for Shared {
    fn next(&mut self) -> Result<Option<Row>> {
        let row = self.rows.get(self.next).cloned();
        self.next += 1;
        Ok(row)
    }
}

impl Facet {
    fn run(&self, mut input: Rows, context: &Arc<StageContext>) -> Result<Row> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        while let Some(row) = input.next()? {
            bytes += row.bytes().len();
            if bytes > context.memory_bytes {
                return Err(crate::stage::spill::too_much("$facet", context.memory_bytes));
            }
            rows.push(row);
        }
        let rows = Arc::new(rows);
        let mut document = RawDocumentBuf::new();
        for (name, pipeline) in &self.facets {
            let input = Box::new(Shared { rows: Arc::clone(&rows), next: 0 });
            let mut results = pipeline.open(0, input, context)?;
            let mut array = RawArrayBuf::new();
            let mut size = document.as_bytes().len();
            while let Some(row) = results.next()? {
                size += row.bytes().len();
                if size > MAX_DOCUMENT_BYTES {
                    return Err(too_large(size));
                }
                array.push(row.document());
            }
            append(&mut document, name, RawBsonRef::Array(&array))?;
        }
        Ok(Row::from(document))
    }
}

fn too_large(size: usize) -> Error {
    Error::new(
        Code::BSON_OBJECT_TOO_LARGE,
        format!(
            "BSONObj size: {size} is invalid. Size must be between 0 and 16793600: the result of $facet is one document"
        ),
    )
}

impl Stage for Facet {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let context = Arc::clone(context);
        Ok(deferred(move || Ok(Box::new(Ready::new(vec![self.run(input, &context)?])))))
    }

    fn reads(&self) -> Vec<Namespace> {
        self.facets.iter().flat_map(|(_, pipeline)| pipeline.reads()).collect()
    }
}
