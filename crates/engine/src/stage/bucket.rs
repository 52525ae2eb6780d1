//! `{$bucket: {groupBy, boundaries, default, output}}`: rows grouped by the boundaries that a value lies between.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/bucket/>.

use crate::document::compare::canonical_rank;
use crate::document::{RawBson, RawBsonRef, RawDocumentBuf, Value, compare_values};
use crate::error::{Error, Result};
use crate::expression::{self, Accumulation, Compiled, Environment, Expression, Parser, Scope};
use crate::stage::accumulation::parse_field;
use crate::stage::pipeline::object;
use crate::stage::{ParseContext, SortPattern, Stage, StageKind, group, sort};
use bson::rawdoc;
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const STAGE: StageKind = StageKind::new("$bucket", parse);

/// The lower boundary of the bucket that a value falls into.
#[derive(Debug)]
struct Boundary {
    operand: Compiled,
    boundaries: Vec<RawBson>,
    default: Option<RawBson>,
}

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    let specification = object(argument, 40201, "Argument to $bucket stage must be an object")?;
    let (mut operand, mut boundaries, mut default, mut output) = (None, None, None, None);
    for field in specification {
        let (name, value) = field?;
        match name.as_str() {
            "groupBy" => operand = Some(parse_operand(value, 40202, "$bucket", context.parser)?),
            "boundaries" => boundaries = Some(parse_boundaries(value, context)?),
            "default" => {
                default =
                    Some(constant(value, 40195, "The $bucket 'default' field must be a constant", context.parser)?)
            }
            "output" => output = Some(parse_output(value, 40196, "$bucket", context.parser)?),
            other => return Err(Error::location(40197, format!("Unrecognized option to $bucket: {other}."))),
        }
    }
    let (Some(operand), Some(boundaries)) = (operand, boundaries) else {
        return Err(Error::location(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified."));
    };
    if let Some(default) = &default {
        check_default(default, &boundaries, context)?;
    }
    let fields = match output {
        Some(fields) => fields,
        None => count_output(context.parser)?,
    };
    let id = Box::new(Boundary { operand, boundaries, default });
    Ok(vec![group::of(id, fields), sort::of(SortPattern::by("_id", false))])
}

/// A `groupBy`: a path or an expression.
pub(super) fn parse_operand(value: RawBsonRef<'_>, number: i32, stage: &str, parser: &mut Parser) -> Result<Compiled> {
    let allowed = match value {
        RawBsonRef::String(path) => path.starts_with('$'),
        RawBsonRef::Document(_) => true,
        _ => false,
    };
    if !allowed {
        return Err(Error::location(
            number,
            format!("The {stage} 'groupBy' field must be defined as a $-prefixed path or an expression"),
        ));
    }
    expression::parse(value, parser)
}

/// The fields of `output`.
pub(super) fn parse_output(
    value: RawBsonRef<'_>,
    number: i32,
    stage: &str,
    parser: &mut Parser,
) -> Result<Vec<(String, Accumulation)>> {
    let document = object(value, number, &format!("The {stage} 'output' field must be an object"))?;
    let mut fields = Vec::new();
    for field in document {
        let (name, value) = field?;
        let name = name.as_str();
        if name == "_id" {
            return Err(Error::location(15948, "a group's _id may only be specified once"));
        }
        fields.push((name.to_owned(), parse_field(name, value, parser)?));
    }
    Ok(fields)
}

/// `{count: {$sum: 1}}`.
pub(super) fn count_output(parser: &mut Parser) -> Result<Vec<(String, Accumulation)>> {
    let sum = rawdoc! { "$sum": 1 };
    Ok(vec![("count".to_owned(), parse_field("count", RawBsonRef::Document(&sum), parser)?)])
}

/// The value of an expression that depends on nothing.
fn constant(value: RawBsonRef<'_>, number: i32, message: &str, parser: &mut Parser) -> Result<RawBson> {
    let expression = expression::parse(value, parser)?;
    if !is_constant(&*expression) {
        return Err(Error::location(number, message));
    }
    let (root, environment) = (RawDocumentBuf::new(), Environment::fixed());
    Ok(RawBson::from(expression.evaluate(&Scope::new(&root, &environment))?.or_null()))
}

fn is_constant(expression: &dyn Expression) -> bool {
    let mut constant = expression.reads().is_none() && expression.is_deterministic();
    expression.each_operand(&mut |operand| constant &= is_constant(operand));
    constant
}

fn parse_boundaries(value: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<RawBson>> {
    let RawBsonRef::Array(array) = value else {
        return Err(Error::location(40200, "The $bucket 'boundaries' field must be an array"));
    };
    let mut boundaries = Vec::new();
    for boundary in array {
        let message = "The $bucket 'boundaries' field must be an array of constant values";
        boundaries.push(constant(boundary?, 40191, message, context.parser)?);
    }
    if boundaries.len() < 2 {
        return Err(Error::location(40192, "The $bucket 'boundaries' field must have at least 2 values"));
    }
    for pair in boundaries.windows(2) {
        let (low, high) = (pair[0].as_raw_bson_ref(), pair[1].as_raw_bson_ref());
        if canonical_rank(low) != canonical_rank(high) {
            return Err(Error::location(
                40193,
                "All values in the 'boundaries' option to $bucket must have the same type",
            ));
        }
        if compare_values(low, high, context.collator.as_deref())? != Ordering::Less {
            return Err(Error::location(
                40194,
                "The 'boundaries' option to $bucket must be sorted, without duplicates",
            ));
        }
    }
    Ok(boundaries)
}

fn check_default(default: &RawBson, boundaries: &[RawBson], context: &ParseContext<'_>) -> Result<()> {
    let (default, collator) = (default.as_raw_bson_ref(), context.collator.as_deref());
    let (Some(low), Some(high)) = (boundaries.first(), boundaries.last()) else { return Ok(()) };
    let outside = compare_values(default, low.as_raw_bson_ref(), collator)? == Ordering::Less
        || compare_values(default, high.as_raw_bson_ref(), collator)? != Ordering::Less;
    if outside {
        return Ok(());
    }
    Err(Error::location(
        40199,
        "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary",
    ))
}

impl Expression for Boundary {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        let value = self.operand.evaluate(scope)?;
        let collator = scope.environment.collator();
        let mut below = 0;
        for boundary in &self.boundaries {
            if compare_values(boundary.as_raw_bson_ref(), value.or_null(), collator)? == Ordering::Greater {
                break;
            }
            below += 1;
        }
        if below > 0 && below < self.boundaries.len() {
            return Ok(Value::Borrowed(self.boundaries[below - 1].as_raw_bson_ref()));
        }
        match &self.default {
            Some(default) => Ok(Value::Borrowed(default.as_raw_bson_ref())),
            None => {
                Err(Error::location(40069, "$bucket found no boundaries for a value, and no default was specified"))
            }
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        visit(&*self.operand);
    }
}
