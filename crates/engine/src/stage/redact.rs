//! `{$redact: expression}`: at each level of a document, `$$DESCEND` keeps it and looks at the documents in it, `$$PRUNE`
//! drops it, `$$KEEP` keeps it whole.
//!
//! Fields are read from the level, `$$ROOT` stays the whole document. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/redact/>.

use crate::document::{RawArray, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, Value, type_name};
use crate::error::{Error, Result};
use crate::expression::{self, Compiled, Environment, Scope, VariableId};
use crate::stage::{ParseContext, Rows, Stage, StageContext, StageKind, mapped_by};
use bson::RawArrayBuf;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$redact", parse);

/// The sentinels' values: of a type that documents no longer hold.
const SENTINELS: [(&str, VariableId, &str); 3] = [
    ("DESCEND", VariableId::DESCEND, "$$DESCEND"),
    ("KEEP", VariableId::KEEP, "$$KEEP"),
    ("PRUNE", VariableId::PRUNE, "$$PRUNE"),
];

#[derive(Debug)]
struct Redact {
    expression: Compiled,
    level: VariableId,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let (level, expression) = context.parser.scoped(|parser| {
        for (name, id, _) in SENTINELS {
            parser.define_as(name, id);
        }
        let level = parser.define("CURRENT");
        expression::parse(argument, parser).map(|expression| (level, expression))
    })?;
    Ok(vec![Arc::new(Redact { expression, level })])
}

impl Stage for Redact {
    fn open(self: Arc<Self>, input: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        Ok(mapped_by(self, input, context))
    }

    fn map(&self, document: &RawDocument, environment: &Environment) -> Result<Option<RawDocumentBuf>> {
        let scope = Scope::new(document, environment);
        let sentinel = |name: &str| Value::Owned(RawBson::Symbol(name.to_owned()));
        let descend = scope.bind(SENTINELS[0].1, sentinel(SENTINELS[0].2));
        let scope = scope.with(&descend);
        let keep = scope.bind(SENTINELS[1].1, sentinel(SENTINELS[1].2));
        let scope = scope.with(&keep);
        let prune = scope.bind(SENTINELS[2].1, sentinel(SENTINELS[2].2));
        self.level(document, &scope.with(&prune))
    }

    fn is_row_wise(&self) -> bool {
        true
    }
}

impl Redact {
    fn level(&self, document: &RawDocument, scope: &Scope<'_>) -> Result<Option<RawDocumentBuf>> {
        let level = scope.bind(self.level, Value::Borrowed(RawBsonRef::Document(document)));
        let here = scope.with(&level);
        let value = self.expression.evaluate(&here)?;
        match value.get() {
            Some(RawBsonRef::Symbol("$$DESCEND")) => {}
            Some(RawBsonRef::Symbol("$$KEEP")) => return Ok(Some(document.to_owned())),
            Some(RawBsonRef::Symbol("$$PRUNE")) => return Ok(None),
            other => {
                return Err(Error::location(
                    17053,
                    format!(
                        "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and \
                         $$PRUNE, but returned a value of type {}",
                        other.map_or("missing", type_name)
                    ),
                ));
            }
        }
        let mut kept = RawDocumentBuf::new();
        for field in document {
            let (name, value) = field?;
            match value {
                RawBsonRef::Document(inner) => {
                    if let Some(inner) = self.level(inner, scope)? {
                        kept.append(name, inner);
                    }
                }
                RawBsonRef::Array(inner) => kept.append(name, self.array(inner, scope)?),
                value => kept.append(name, value),
            }
        }
        Ok(Some(kept))
    }

    fn array(&self, array: &RawArray, scope: &Scope<'_>) -> Result<RawArrayBuf> {
        let mut kept = RawArrayBuf::new();
        for value in array {
            match value? {
                RawBsonRef::Document(inner) => {
                    if let Some(inner) = self.level(inner, scope)? {
                        kept.push(inner);
                    }
                }
                RawBsonRef::Array(inner) => kept.push(self.array(inner, scope)?),
                value => kept.push(value),
            }
        }
        Ok(kept)
    }
}
