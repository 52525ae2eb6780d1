//! `{$expr: expression}`: an aggregation expression is true for the document.
//!
//! `{$eq: ["$field", value]}` and the like, alone or within `$and`, also say where the keys of an index on the field lie,
//! as far as the aggregation order (no brackets between types, arrays compared whole, missing below null) allows it.
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/query/expr/>.

use super::{Bounds, IndexTraits, Interval, Node, Operator, Parse, Parser};
use crate::document::compare::canonical_rank;
use crate::error::Result;
use crate::expression::{self, Compiled, Environment, Expression, Scope, VariableId};
use bson::{RawBson, RawBsonRef, RawDocument};
use std::ops::Bound;
use std::sync::Arc;

pub(super) const OPERATOR: Operator = Operator { name: "$expr", parse: Parse::Top(parse) };

/// The condition of an `$expr`.
#[derive(Debug)]
pub struct ExprCondition {
    expression: Compiled,
    written: RawBson,
    comparisons: Vec<Comparison>,
}

/// What an expression demands of one field.
#[derive(Debug)]
struct Comparison {
    path: String,
    operator: Relation,
    value: Operand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

#[derive(Debug)]
enum Operand {
    Constant(RawBson),
    Variable(VariableId),
}

fn parse(argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Node> {
    parser.whole_document_only("$expr")?;
    let expression = expression::parse(argument, parser.expressions)?;
    let mut comparisons = Vec::new();
    find_comparisons(argument, parser.expressions, &mut comparisons)?;
    Ok(Node::Expr(Arc::new(ExprCondition { expression, written: argument.into(), comparisons })))
}

fn find_comparisons(value: RawBsonRef<'_>, parser: &expression::Parser, found: &mut Vec<Comparison>) -> Result<()> {
    let RawBsonRef::Document(document) = value else { return Ok(()) };
    let Some(first) = document.iter().next() else { return Ok(()) };
    let (name, argument) = first?;
    let RawBsonRef::Array(operands) = argument else { return Ok(()) };
    let relation = match name.as_str() {
        "$and" => return operands.into_iter().try_for_each(|operand| find_comparisons(operand?, parser, found)),
        "$eq" => Relation::Equal,
        "$gt" => Relation::Greater,
        "$gte" => Relation::GreaterOrEqual,
        "$lt" => Relation::Less,
        "$lte" => Relation::LessOrEqual,
        _ => return Ok(()),
    };
    let operands = operands.into_iter().collect::<Result<Vec<_>, _>>()?;
    let [left, right] = operands[..] else { return Ok(()) };
    for (field, other, operator) in [(left, right, relation), (right, left, relation.mirrored())] {
        if let (Some(path), Some(value)) = (field_path(field), operand(other, parser)) {
            found.push(Comparison { path: path.to_owned(), operator, value });
            break;
        }
    }
    Ok(())
}

fn field_path(value: RawBsonRef<'_>) -> Option<&str> {
    match value {
        RawBsonRef::String(text) => text.strip_prefix('$').filter(|path| !path.starts_with('$')),
        _ => None,
    }
}

fn operand(value: RawBsonRef<'_>, parser: &expression::Parser) -> Option<Operand> {
    match value {
        RawBsonRef::String(text) if text.starts_with("$$") => {
            let id = parser.lookup(&text[2..]).ok()?;
            (id != VariableId::ROOT).then_some(Operand::Variable(id))
        }
        RawBsonRef::String(text) if text.starts_with('$') => None,
        RawBsonRef::Document(_) | RawBsonRef::Array(_) => None,
        other => Some(Operand::Constant(other.into())),
    }
}

impl Relation {
    fn mirrored(self) -> Relation {
        match self {
            Relation::Equal => Relation::Equal,
            Relation::Greater => Relation::Less,
            Relation::GreaterOrEqual => Relation::LessOrEqual,
            Relation::Less => Relation::Greater,
            Relation::LessOrEqual => Relation::GreaterOrEqual,
        }
    }
}

impl ExprCondition {
    pub(super) fn matches(&self, document: &RawDocument, environment: &Environment) -> Result<bool> {
        Ok(self.expression.evaluate(&Scope::new(document, environment))?.is_true())
    }

    /// The expression.
    pub fn expression(&self) -> &dyn Expression {
        &*self.expression
    }

    /// The expression as written.
    pub fn written(&self) -> RawBsonRef<'_> {
        self.written.as_raw_bson_ref()
    }

    /// Between which keys the documents lie whose field compares as the expression demands; never exact.
    pub(super) fn bounds_on(&self, path: &str, index: IndexTraits, environment: &Environment) -> Option<Bounds> {
        let mut all = self.comparisons.iter().filter(|comparison| comparison.path == path);
        all.find_map(|comparison| comparison.bounds(index, environment))
    }
}

impl Comparison {
    fn bounds(&self, index: IndexTraits, environment: &Environment) -> Option<Bounds> {
        let value: RawBson = match &self.value {
            Operand::Constant(value) => value.clone(),
            Operand::Variable(id) => environment.variables.iter().find(|(known, _)| known == id)?.1.get()?.into(),
        };
        let rank = canonical_rank(value.as_raw_bson_ref());
        let null = canonical_rank(RawBsonRef::Null);
        let (lowest, highest) = (Bound::Included(RawBson::MinKey), Bound::Included(RawBson::MaxKey));
        let interval = match self.operator {
            Relation::Equal if index.multikey && matches!(value, RawBson::Array(_)) => return None,
            Relation::Equal if rank < null => return None,
            Relation::Equal => Interval::point(value),
            _ if index.multikey => return None,
            Relation::Greater => Interval { low: Bound::Excluded(value), high: highest },
            Relation::GreaterOrEqual => Interval { low: Bound::Included(value), high: highest },
            // A missing field is below everything, and null in an index.
            _ if rank <= null => return None,
            Relation::Less => Interval { low: lowest, high: Bound::Excluded(value) },
            Relation::LessOrEqual => Interval { low: lowest, high: Bound::Included(value) },
        };
        Some(Bounds::inexact(vec![interval]))
    }
}
