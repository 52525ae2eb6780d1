//! `where FIELD VALUE…` and `where FIELD not=… gt=… gte=… lt=… lte=… exists=#true`: which children count.
//!
//! Several values mean "one of them"; several lines must all hold. A filter depends on the fields of the one document
//! it is asked about and on nothing else, so that a change of that document is enough to keep what is derived.

use super::{Args, Reader};
use crate::problem::Span;
use crate::value::Literal;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// One condition on a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The field's path.
    pub path: String,
    /// What must hold.
    #[serde(flatten)]
    pub test: Test,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// What must hold of a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// It equals one of these.
    In(Vec<Literal>),
    /// It equals none of these.
    NotIn(Vec<Literal>),
    /// It is larger.
    Gt(Literal),
    /// It is larger or equal.
    Gte(Literal),
    /// It is smaller.
    Lt(Literal),
    /// It is smaller or equal.
    Lte(Literal),
    /// The field is there, or not.
    Exists(bool),
}

const SYNTAX: &str = "where FIELD VALUE … or where FIELD gte=VALUE lt=VALUE";

/// Reads a `where` line; a line with several comparisons gives several conditions.
pub(super) fn line(reader: &mut Reader, node: &KdlNode, filter: &mut Vec<Condition>) {
    let mut args = Args::new(reader, node, SYNTAX);
    let span = args.span();
    let path = args.name("the field");
    let mut tests = Vec::new();
    for (key, make) in [
        ("not", (|value| Test::NotIn(vec![value])) as fn(Literal) -> Test),
        ("gt", Test::Gt),
        ("gte", Test::Gte),
        ("lt", Test::Lt),
        ("lte", Test::Lte),
    ] {
        if let Some(value) = args.literal(key) {
            tests.push(make(value));
        }
    }
    if let Some(value) = args.literal("exists") {
        match value {
            Literal::Bool(exists) => tests.push(Test::Exists(exists)),
            _ => args.wrong("bad-value", span, "`exists` takes #true or #false".into()),
        }
    }
    let values = args.literals();
    if !values.is_empty() {
        tests.push(Test::In(values));
    }
    if tests.is_empty() {
        args.wrong("missing", span, "what must hold of the field?".into());
    }
    args.finish();
    filter.extend(tests.into_iter().map(|test| Condition { path: path.clone(), test, span }));
}
