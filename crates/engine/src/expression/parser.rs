//! What parsing an expression needs to know: the variables in scope and the depth reached.

use crate::error::{Error, Result};
use crate::expression::{Compiled, parse};
use bson::RawBsonRef;
use std::ops::RangeInclusive;

/// The deepest nesting of expressions.
pub const MAX_EXPRESSION_DEPTH: usize = 200;

/// A variable, numbered by the parser.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VariableId(pub u32);

impl VariableId {
    /// `$$ROOT`, and `$$CURRENT` unless it was bound anew.
    pub const ROOT: VariableId = VariableId(0);
    /// `$$NOW`.
    pub const NOW: VariableId = VariableId(1);
    /// `$$CLUSTER_TIME`.
    pub const CLUSTER_TIME: VariableId = VariableId(2);
    /// `$$REMOVE`.
    pub const REMOVE: VariableId = VariableId(3);
    /// `$$DESCEND`, `$$PRUNE` and `$$KEEP` of `$redact`.
    pub const DESCEND: VariableId = VariableId(4);
    /// See [`VariableId::DESCEND`].
    pub const PRUNE: VariableId = VariableId(5);
    /// See [`VariableId::DESCEND`].
    pub const KEEP: VariableId = VariableId(6);
    /// `$$USER_ROLES`.
    pub const USER_ROLES: VariableId = VariableId(7);
    const FIRST_FREE: u32 = 16;
}

/// The state of parsing.
#[derive(Clone, Debug)]
pub struct Parser {
    variables: Vec<(String, VariableId)>,
    next: u32,
    depth: usize,
}

impl Default for Parser {
    fn default() -> Parser {
        Parser::new()
    }
}

impl Parser {
    /// A parser that knows the system variables only.
    pub fn new() -> Parser {
        let system = [
            ("ROOT", VariableId::ROOT),
            ("CURRENT", VariableId::ROOT),
            ("NOW", VariableId::NOW),
            ("CLUSTER_TIME", VariableId::CLUSTER_TIME),
            ("REMOVE", VariableId::REMOVE),
            ("USER_ROLES", VariableId::USER_ROLES),
        ];
        let variables = system.into_iter().map(|(name, id)| (name.to_owned(), id)).collect();
        Parser { variables, next: VariableId::FIRST_FREE, depth: 0 }
    }

    /// Makes a variable known from here on, or until the enclosing [`Parser::scoped`] ends.
    pub fn define(&mut self, name: &str) -> VariableId {
        let id = VariableId(self.next);
        self.next += 1;
        self.define_as(name, id);
        id
    }

    /// Makes a variable with a fixed id known.
    pub fn define_as(&mut self, name: &str, id: VariableId) {
        self.variables.push((name.to_owned(), id));
    }

    /// Runs `body`; variables defined in it are forgotten afterwards.
    pub fn scoped<T>(&mut self, body: impl FnOnce(&mut Parser) -> T) -> T {
        let known = self.variables.len();
        let result = body(self);
        self.variables.truncate(known);
        result
    }

    /// The variable of that name.
    ///
    /// # Errors
    /// `Location17276` when it is not in scope.
    pub fn lookup(&self, name: &str) -> Result<VariableId> {
        let found = self.variables.iter().rev().find(|(known, _)| known == name);
        found.map(|found| found.1).ok_or_else(|| Error::location(17276, format!("Use of undefined variable: {name}")))
    }

    /// Whether no operator or object is being parsed around this place.
    pub(super) fn is_outermost(&self) -> bool {
        self.depth == 0
    }

    /// Runs `body` one level deeper.
    ///
    /// # Errors
    /// `Overflow`-like refusal when the nesting is too deep.
    pub fn nested<T>(&mut self, body: impl FnOnce(&mut Parser) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_EXPRESSION_DEPTH {
            return Err(Error::new(
                crate::Code::OVERFLOW,
                "the expression is nested too deeply (more than 200 levels)",
            ));
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }
}

/// Parses the usual argument of an operator: an array of operands, or one operand standing alone.
///
/// # Errors
/// `Location16020` or `Location28667` when there are too few or too many.
pub fn arguments(
    name: &str,
    argument: RawBsonRef<'_>,
    count: RangeInclusive<usize>,
    parser: &mut Parser,
) -> Result<Vec<Compiled>> {
    let operands = match argument {
        RawBsonRef::Array(array) => {
            array.into_iter().map(|operand| parse(operand?, parser)).collect::<Result<Vec<_>>>()?
        }
        single => vec![parse(single, parser)?],
    };
    if count.contains(&operands.len()) {
        return Ok(operands);
    }
    let (least, most, given) = (*count.start(), *count.end(), operands.len());
    Err(if least == most {
        Error::location(16020, format!("Expression {name} takes exactly {least} arguments. {given} were passed in."))
    } else {
        Error::location(
            28667,
            format!(
                "Expression {name} takes at least {least} arguments, and at most {most}, but {given} were passed in."
            ),
        )
    })
}

/// Parses exactly `N` operands.
///
/// # Errors
/// As [`arguments`].
pub fn exactly<const N: usize>(name: &str, argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<[Compiled; N]> {
    let operands = arguments(name, argument, N..=N, parser)?;
    Ok(operands.try_into().expect("the count is checked above"))
}
