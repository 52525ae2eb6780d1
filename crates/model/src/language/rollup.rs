//! `rollup NAME of=ENTITY [by=FIELD] [unwind=ARRAY] [tz=ZONE] [collection=C] { by FIELD [as=NAME] [unit=day]; where …; count NAME; sum NAME field=F; min …; max … }`
//!
//! Derived values by key, without a parent entity: one document per combination of the `by` fields. `unwind` takes every
//! element of an embedded array for itself (paths then start with the array's name). A date is cut to its `unit` (hour,
//! day, week from Monday, month, year) in the time zone `tz` (UTC unless given). A rollup's document has the key as `_id`
//! and beside it, the values, and `_documents`, the number of documents (or elements) in it; with the last one it goes.

use super::entity::{Entity, check_collection};
use super::filter::{self, Condition};
use super::{Args, Declaration, Place, Reader, Target};
use crate::model::Model;
use crate::problem::{Problem, Span};
use crate::value::Type;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "rollup",
    places: &[Place::Top],
    syntax: "rollup NAME of=ENTITY unwind=ARRAY tz=ZONE { by FIELD unit=day; count NAME; sum|min|max NAME field=FIELD }",
    meaning: "derived values by key, without a parent entity",
    parse,
};

/// Derived values by key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollup {
    /// Its name.
    pub name: String,
    /// The collection its documents are stored in.
    pub collection: String,
    /// The entity whose documents are added up.
    pub of: String,
    /// The embedded array whose elements are added up instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwind: Option<String>,
    /// The time zone in which dates are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// The key.
    pub by: Vec<Key>,
    /// The values.
    pub values: Vec<Value>,
    /// Which documents count.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<Condition>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// One part of a rollup's key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Key {
    /// Its name in the rollup's documents.
    pub name: String,
    /// The field it comes from.
    pub path: String,
    /// What a date is cut to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<DateUnit>,
}

/// What a date is cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DateUnit {
    /// The hour.
    Hour,
    /// The day.
    Day,
    /// The week, from Monday.
    Week,
    /// The month.
    Month,
    /// The year.
    Year,
}

const UNITS: &[(&str, DateUnit)] = &[
    ("hour", DateUnit::Hour),
    ("day", DateUnit::Day),
    ("week", DateUnit::Week),
    ("month", DateUnit::Month),
    ("year", DateUnit::Year),
];

/// One value of a rollup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// Its name in the rollup's documents.
    pub name: String,
    /// How it is derived: `count`, `sum`, `min` or `max`.
    pub kind: super::derived::Kind,
    /// The field that is added up or compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Rollup {
    /// Its documents as an entity that queries can be declared on.
    pub fn as_entity(&self, model: &Model) -> Entity {
        use super::derived::Kind;
        use super::field::Field;
        let mut entity = Entity::new(&self.name, &self.collection, self.span);
        entity.id = Type::Object;
        let source = model.declared(&self.of);
        for key in &self.by {
            let leaf = source.and_then(|source| model.shape(source).leaf(&key.path).cloned());
            let mut field = Field::new(&key.name, leaf.as_ref().map_or(Type::Any, |leaf| leaf.kind), self.span);
            field.distinct = leaf.and_then(|leaf| leaf.distinct).filter(|_| key.unit.is_none());
            field.increasing = key.unit.is_some();
            entity.body.fields.push(field);
        }
        for value in &self.values {
            // A least or greatest value is one of the compared field's.
            let compared = value.field.as_ref().filter(|_| matches!(value.kind, Kind::Min | Kind::Max));
            let leaf = compared.and_then(|path| source.and_then(|source| model.shape(source).leaf(path).cloned()));
            entity.body.fields.push(Field::new(&value.name, leaf.map_or(Type::Long, |leaf| leaf.kind), self.span));
        }
        let fields = self.by.iter().map(|key| key.name.clone()).collect();
        entity.parts.uniques.push(super::unique::Unique { fields, filter: Vec::new(), span: self.span });
        entity
    }
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("a rollup");
    let collection = args.text("collection").unwrap_or_else(|| name.clone());
    check_collection(&mut args, &collection);
    let of = args.required("of");
    let short = args.text("by");
    let by = short.map(|path| Key { name: last_part(&path), path, unit: None }).into_iter().collect();
    let (unwind, tz) = (args.text("unwind"), args.text("tz"));
    if let Some(zone) = &tz
        && jiff::tz::TimeZone::get(zone).is_err()
    {
        let span = args.span_of("tz");
        args.wrong("bad-value", span, format!("there is no time zone `{zone}`; an example is Asia/Shanghai"));
    }
    args.finish();
    let filter = Vec::new();
    let mut rollup = Rollup { name, collection, of, unwind, tz, by, values: Vec::new(), filter, span };
    let path = rollup.name.clone();
    reader.lines(node, &path, &["by", "where", "count", "sum", "min", "max"], |reader, child| {
        line(reader, child, &mut rollup);
    });
    if rollup.by.is_empty() || rollup.values.is_empty() {
        let mut args = Args::new(reader, node, ROW.syntax);
        args.wrong("missing", span, "a rollup needs at least one `by` and one value (`count`, `sum`, …)".into());
    }
    let model = target.model();
    if model.entity_names().contains(&rollup.name.as_str()) {
        let message = format!("rollup `{}` has the name of another declaration", rollup.name);
        reader.problems.push(Problem::new("duplicate", span, message).help("give one of them another name"));
    }
    model.rollups.push(rollup);
}

fn line(reader: &mut Reader, node: &KdlNode, rollup: &mut Rollup) {
    use super::derived::Kind;
    let kind = match node.name().value() {
        "where" => return filter::line(reader, node, &mut rollup.filter),
        "by" => {
            let mut args = Args::new(reader, node, "by FIELD as=NAME unit=day");
            let path = args.name("the field");
            let name = args.text("as").unwrap_or_else(|| last_part(&path));
            let unit = args.choice("unit", UNITS);
            args.finish();
            return rollup.by.push(Key { name, path, unit });
        }
        "count" => Kind::Count,
        "sum" => Kind::Sum,
        "min" => Kind::Min,
        _ => Kind::Max,
    };
    let mut args = Args::new(reader, node, "count NAME, or sum, min or max NAME field=FIELD");
    let name = args.name("the value");
    let field = (kind != Kind::Count).then(|| args.required("field"));
    args.finish();
    rollup.values.push(Value { name, kind, field });
}

fn last_part(path: &str) -> String {
    path.rsplit('.').next().unwrap_or(path).to_owned()
}
