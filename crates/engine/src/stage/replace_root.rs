//! `{$replaceRoot: {newRoot: expression}}`: a computed document in each row's place.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/replaceRoot/>.

use crate::document::{MAX_DOCUMENT_BYTES, RawBsonRef, Value, type_name};
use crate::error::{Code, Error, Result};
use crate::expression::{self, Compiled, Environment, Scope};
use crate::stage::options::Options;
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, Rows, Stage, StageContext, StageKind, mapped_by};
use bson::{RawBson, RawDocument, RawDocumentBuf};
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$replaceRoot", parse);

/// The largest document inside a pipeline: a little more than one that may be stored.
const MAX_ROW_BYTES: usize = MAX_DOCUMENT_BYTES + 16 * 1024;

#[derive(Debug)]
struct ReplaceRoot {
    root: Compiled,
    name: &'static str,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 40229, "expected an object as specification for $replaceRoot stage")?;
    let mut options = Options::of("$replaceRoot", specification)?;
    let root = options.take_any("newRoot");
    options.finish()?;
    let root = root
        .ok_or_else(|| Error::location(40414, "BSON field '$replaceRoot.newRoot' is missing but a required field"))?;
    of(root, "newRoot", context)
}

/// The stage for an expression.
pub(super) fn of(
    root: RawBsonRef<'_>,
    name: &'static str,
    context: &mut ParseContext<'_>,
) -> Result<Vec<Arc<dyn Stage>>> {
    let root = expression::parse(root, context.parser)?;
    Ok(vec![Arc::new(ReplaceRoot { root, name })])
}

impl Stage for ReplaceRoot {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        Ok(mapped_by(self, input, context))
    }

    fn map(&self, document: &RawDocument, environment: &Environment) -> Result<Option<RawDocumentBuf>> {
        let root = match self.root.evaluate(&Scope::new(document, environment))? {
            Value::Owned(RawBson::Document(document)) => document,
            Value::Borrowed(RawBsonRef::Document(document)) => document.to_owned(),
            other => return Err(self.refused(&other)),
        };
        if root.as_bytes().len() > MAX_ROW_BYTES {
            return Err(Error::new(
                Code::BSON_OBJECT_TOO_LARGE,
                format!("BSONObj size: {} is invalid. Size must be between 0 and 16793600", root.as_bytes().len()),
            ));
        }
        Ok(Some(root))
    }

    fn is_row_wise(&self) -> bool {
        true
    }
}

impl ReplaceRoot {
    fn refused(&self, value: &Value<'_>) -> Error {
        Error::location(
            40228,
            format!(
                "'{}' expression must evaluate to an object, but resulting value was of type: '{}'",
                self.name,
                value.get().map_or("missing", type_name)
            ),
        )
    }
}
