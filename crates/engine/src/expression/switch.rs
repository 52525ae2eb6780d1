//! `{$switch: {branches: [{case, then}, …], default}}`: the `then` of the first branch whose `case` is true, else `default`.
//!
//! Only what is needed is evaluated; no true case without a default is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/switch/>.

use super::{Compiled, Expression, Operator, Parser, Scope, parse};
use crate::document::Value;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$switch", parse: parse_switch };

#[derive(Debug)]
struct Switch {
    branches: Vec<Branch>,
    default: Option<Compiled>,
}

#[derive(Debug)]
struct Branch {
    case: Compiled,
    then: Compiled,
}

fn parse_switch(argument: RawBsonRef<'_>, parser: &mut Parser) -> Result<Compiled> {
    let RawBsonRef::Document(document) = argument else {
        return Err(Error::location(40060, "$switch requires an object as an argument"));
    };
    let (mut parsed, mut default) = (Vec::new(), None);
    for field in document {
        let (name, value) = field?;
        match (name.as_str(), value) {
            ("branches", RawBsonRef::Array(branches)) => {
                for branch in branches {
                    parsed.push(parse_branch(branch?, parser)?);
                }
            }
            ("branches", _) => return Err(Error::location(40061, "$switch expected an array for 'branches'")),
            ("default", value) => default = Some(parse(value, parser)?),
            (other, _) => return Err(Error::location(40067, format!("$switch found an unknown argument: {other}"))),
        }
    }
    if parsed.is_empty() {
        return Err(Error::location(40068, "$switch requires at least one branch"));
    }
    Ok(Box::new(Switch { branches: reachable(parsed), default }))
}

/// The branches that can be taken: none whose case is constantly false, none behind a case that is constantly true.
fn reachable(branches: Vec<Branch>) -> Vec<Branch> {
    let mut kept = Vec::new();
    for branch in branches {
        let truth = branch.case.constant().map(|value| Value::from(value).is_true());
        if truth != Some(false) {
            kept.push(branch);
        }
        if truth == Some(true) {
            break;
        }
    }
    kept
}

fn parse_branch(branch: RawBsonRef<'_>, parser: &mut Parser) -> Result<Branch> {
    let RawBsonRef::Document(document) = branch else {
        return Err(Error::location(40062, "$switch expected each branch to be an object"));
    };
    let (mut case, mut then) = (None, None);
    for field in document {
        let (name, value) = field?;
        match name.as_str() {
            "case" => case = Some(parse(value, parser)?),
            "then" => then = Some(parse(value, parser)?),
            other => {
                return Err(Error::location(40063, format!("$switch found an unknown argument to a branch: {other}")));
            }
        }
    }
    let case =
        case.ok_or_else(|| Error::location(40064, "$switch requires each branch to have a 'case' expression"))?;
    let then =
        then.ok_or_else(|| Error::location(40065, "$switch requires each branch to have a 'then' expression"))?;
    Ok(Branch { case, then })
}

impl Expression for Switch {
    fn evaluate<'a>(&'a self, scope: &Scope<'a>) -> Result<Value<'a>> {
        for branch in &self.branches {
            if branch.case.evaluate(scope)?.is_true() {
                return branch.then.evaluate(scope);
            }
        }
        match &self.default {
            Some(default) => default.evaluate(scope),
            None => Err(Error::location(
                40069,
                "$switch could not find a matching branch for an input, and no default was specified",
            )),
        }
    }

    fn each_operand(&self, visit: &mut dyn FnMut(&dyn Expression)) {
        for branch in &self.branches {
            visit(&*branch.case);
            visit(&*branch.then);
        }
        if let Some(default) = &self.default {
            visit(&**default);
        }
    }
}
