//! `field NAME TYPE [required] [unique] [list] [max=N] [size=BYTES] [distinct=N] [top=SHARE] [increasing] [changes=RATE] { … }`
//!
//! A typed field. `list` makes it an array of at most `max` values. A field of type `object` may declare its own fields
//! in a block. The other properties are expectations for the planner: `size` is the usual number of bytes of a value,
//! `distinct` the number of different values, `top` the share of the most frequent one, `increasing` says that new
//! values are larger than old ones, `changes` how often it changes over the whole collection.

use super::{Args, Declaration, Place, Reader, Target};
use crate::model::Body;
use crate::problem::{Problem, Span, suggest};
use crate::value::{Rate, Type};
use kdl::KdlNode;
use serde::{Deserialize, Serialize};
use std::ops::Not;

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "field",
    places: &[Place::Entity, Place::Embed, Place::Edge],
    syntax: "field NAME TYPE required unique list max=N size=BYTES distinct=N top=SHARE increasing changes=RATE",
    meaning: "a typed field",
    parse,
};

/// A typed field, or an enumeration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: Type,
    /// Whether it must be there.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub required: bool,
    /// Whether no two documents may have the same value.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub unique: bool,
    /// Whether it is an array of such values.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub list: bool,
    /// The longest list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// The values of an enumeration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The usual bytes of a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How many different values there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct: Option<u64>,
    /// The share of the most frequent value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<f64>,
    /// Whether new values are larger than old ones.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub increasing: bool,
    /// How often it changes, over all documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Rate>,
    /// The fields of an object.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub body: Body,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

fn is_empty(body: &Body) -> bool {
    *body == Body::default()
}

impl Field {
    /// A plain field.
    pub fn new(name: impl Into<String>, kind: Type, span: Span) -> Field {
        Field {
            name: name.into(),
            kind,
            required: false,
            unique: false,
            list: false,
            max: None,
            values: Vec::new(),
            size: None,
            distinct: None,
            top: None,
            increasing: false,
            changes: None,
            body: Body::default(),
            span,
        }
    }
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("a field");
    let kind_name = args.name("the field's type");
    let kind = Type::ALL.iter().find(|(known, _)| *known == kind_name).map(|(_, kind)| *kind);
    if kind.is_none() && !kind_name.is_empty() {
        let help = match kind_name.as_str() {
            "integer" | "number" => "did you mean `int` or `long`?".into(),
            "float" => "did you mean `double`? For money write `long` (minor units) or `decimal`".into(),
            "datetime" | "time" | "timestamp" => "did you mean `date`?".into(),
            "boolean" => "did you mean `bool`?".into(),
            "array" => "write the element's type and the word `list`".into(),
            _ => suggest(&kind_name, "types", Type::ALL.iter().map(|(name, _)| *name)),
        };
        let message = format!("{}: there is no type `{kind_name}`", args.reader.here(node));
        args.reader.problems.push(Problem::new("unknown-type", span, message).help(help));
    }
    let mut field = Field::new(name, kind.unwrap_or(Type::Any), span);
    field.required = args.flag("required");
    field.unique = args.flag("unique");
    field.list = args.flag("list");
    field.max = args.positive_integer("max");
    field.size = args.integer("size");
    field.distinct = args.positive_integer("distinct");
    field.top = args.share("top");
    field.increasing = args.flag("increasing");
    field.changes = args.rate("changes");
    if field.max.is_some() && !field.list {
        args.wrong("bad-value", span, "`max` bounds a `list`; this is one value".into());
    }
    args.finish();
    if field.kind == Type::Object {
        let path = field.name.clone();
        let mut expect = None;
        reader.children(node, &path, Target::Embed(&mut field.body, &mut expect));
        if let Some(expect) = expect {
            let message = format!("field `{path}`: `expect` belongs in an embed or an entity");
            reader.problems.push(Problem::new("misplaced-declaration", expect.span, message));
        }
    } else {
        reader.no_children(node);
    }
    target.body().fields.push(field);
}
