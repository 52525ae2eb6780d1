//! The shape of a pipeline: its stages without the constants, by which `explain` tells alike pipelines.

use crate::error::Result;
use crate::namespace::Namespace;
use crate::plan;
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};

/// The hash of a pipeline's shape on a collection.
///
/// # Errors
/// `InvalidBSON` (22) when the stages' bytes are malformed.
pub(super) fn query_shape_hash(namespace: &Namespace, stages: &[RawDocumentBuf]) -> Result<String> {
    let mut shape = namespace.to_string();
    for stage in stages {
        write_document(stage, &mut shape)?;
    }
    Ok(plan::shape_hash(&shape))
}

fn write_document(document: &RawDocument, shape: &mut String) -> Result<()> {
    shape.push('{');
    for field in document {
        let (name, value) = field?;
        shape.push_str(name.as_str());
        shape.push(':');
        write_value(value, shape)?;
        shape.push(',');
    }
    shape.push('}');
    Ok(())
}

/// Names and paths are part of the shape, constants only by their type.
fn write_value(value: RawBsonRef<'_>, shape: &mut String) -> Result<()> {
    match value {
        RawBsonRef::Document(document) => write_document(document, shape)?,
        RawBsonRef::Array(array) => {
            shape.push('[');
            for element in array {
                write_value(element?, shape)?;
                shape.push(',');
            }
            shape.push(']');
        }
        RawBsonRef::String(path) if path.starts_with('$') => shape.push_str(path),
        other => {
            shape.push('?');
            shape.push_str(crate::document::type_name(other));
        }
    }
    Ok(())
}
