//! `system.profile`, folded into shapes: operations that differ only in their values.

use bson::raw::RawBsonRef;
use bson::{Document, RawDocument};
use std::collections::BTreeMap;

/// Shapes that are told apart.
const MAX_SHAPES: usize = 2_000;

/// Operations of one shape.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// The collection.
    pub collection: String,
    /// `find`, `aggregate`, `update`, `delete`, `count`, `distinct`, `findAndModify`.
    pub command: String,
    /// What the filter asks of its fields, in its order.
    pub filter: Vec<(String, Test)>,
    /// The sort: path and direction.
    pub sort: Vec<(String, i32)>,
    /// The fields of the answer, if not all.
    pub fields: Vec<String>,
    /// The limit that was given most recently.
    pub limit: Option<u64>,
    /// The stages of a pipeline.
    pub stages: Vec<String>,
    /// What `$lookup` stages read: collection and its field.
    pub lookups: Vec<(String, String)>,
    /// Whether it inserts when nothing matches.
    pub upsert: bool,
    /// A key that stands twice in its update.
    pub duplicate_key: Option<String>,
    /// How many operations.
    pub count: u64,
    /// Their time together, in milliseconds.
    pub millis: u64,
    /// Documents looked at.
    pub docs_examined: u64,
    /// Index keys looked at.
    pub keys_examined: u64,
    /// Documents given or changed.
    pub returned: u64,
    /// How many read the whole collection.
    pub collection_scans: u64,
    /// How many sorted in memory.
    pub sorts: u64,
    /// The plan of the last one.
    pub plan: String,
}

/// What a filter asks of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// It equals a value.
    Equal,
    /// It equals one of several.
    In,
    /// It lies in a range, matches a pattern, exists …
    Range,
}

impl Shape {
    /// Fields asked for by equality.
    pub fn equal(&self) -> impl Iterator<Item = &str> {
        self.filter.iter().filter(|(_, test)| *test == Test::Equal).map(|(path, _)| path.as_str())
    }

    /// A line for a person.
    pub fn text(&self) -> String {
        let filter: Vec<String> = self
            .filter
            .iter()
            .map(|(path, test)| match test {
                Test::Equal => format!("{path}: ?"),
                Test::In => format!("{path}: {{$in: ?}}"),
                Test::Range => format!("{path}: {{range}}"),
            })
            .collect();
        let mut text = format!("{} {{{}}}", self.command, filter.join(", "));
        if !self.sort.is_empty() {
            let sort: Vec<String> = self.sort.iter().map(|(path, direction)| format!("{path}: {direction}")).collect();
            text.push_str(&format!(" sort {{{}}}", sort.join(", ")));
        }
        text
    }

    /// The index that serves it: equality, sort, range.
    pub fn index(&self) -> Document {
        let mut keys = Document::new();
        for path in self.equal() {
            keys.insert(path, 1);
        }
        for (path, direction) in &self.sort {
            if !keys.contains_key(path) {
                keys.insert(path, *direction);
            }
        }
        for (path, test) in &self.filter {
            if *test != Test::Equal && !keys.contains_key(path) {
                keys.insert(path, 1);
            }
        }
        keys.remove("_id");
        keys
    }
}

/// Folds entries.
pub(super) struct Profile {
    prefix: String,
    shapes: BTreeMap<String, Shape>,
    times: Option<(i64, i64)>,
}

impl Profile {
    pub(super) fn new(database: &str) -> Profile {
        Profile { prefix: format!("{database}."), shapes: BTreeMap::new(), times: None }
    }

    pub(super) fn add(&mut self, entry: &RawDocument) {
        if let Ok(time) = entry.get_datetime("ts") {
            let time = time.timestamp_millis();
            self.times = Some(self.times.map_or((time, time), |(from, to)| (from.min(time), to.max(time))));
        }
        let Ok(namespace) = entry.get_str("ns") else { return };
        let Some(collection) = namespace.strip_prefix(&self.prefix) else { return };
        if collection.starts_with("system.") || collection.starts_with("sheaf.") || collection == "$cmd" {
            return;
        }
        let (Ok(op), Ok(command)) = (entry.get_str("op"), entry.get_document("command")) else { return };
        let Some(mut shape) = shape(op, command) else { return };
        collection.clone_into(&mut shape.collection);
        let key = format!(
            "{} {} {:?} {:?} {:?} {:?} {}",
            shape.collection, shape.command, shape.filter, shape.sort, shape.stages, shape.lookups, shape.upsert
        );
        if self.shapes.len() >= MAX_SHAPES && !self.shapes.contains_key(&key) {
            return;
        }
        let known = self.shapes.entry(key).or_insert(shape);
        known.count += 1;
        known.millis += number(entry, "millis");
        known.docs_examined += number(entry, "docsExamined");
        known.keys_examined += number(entry, "keysExamined");
        known.returned += number(entry, "nreturned") + number(entry, "nMatched") + number(entry, "ndeleted");
        known.sorts += u64::from(entry.get_bool("hasSortStage").unwrap_or(false));
        let plan = entry.get_str("planSummary").unwrap_or_default();
        known.collection_scans += u64::from(plan.starts_with("COLLSCAN"));
        plan.clone_into(&mut known.plan);
    }

    pub(super) fn finish(self) -> (Vec<Shape>, f64) {
        let seconds = self.times.map_or(0.0, |(from, to)| (to - from) as f64 / 1000.0);
        (self.shapes.into_values().collect(), seconds)
    }
}

fn number(document: &RawDocument, name: &str) -> u64 {
    match document.get(name) {
        Ok(Some(RawBsonRef::Int32(number))) => number.max(0) as u64,
        Ok(Some(RawBsonRef::Int64(number))) => number.max(0) as u64,
        Ok(Some(RawBsonRef::Double(number))) => number.max(0.0) as u64,
        _ => 0,
    }
}

/// The shape of a command; `None` for those that search nothing.
fn shape(op: &str, command: &RawDocument) -> Option<Shape> {
    let name = command.iter().next()?.ok()?.0.as_str();
    let mut shape = Shape::default();
    let document = |name: &str| command.get_document(name).ok();
    match (op, name) {
        ("update", _) => {
            "update".clone_into(&mut shape.command);
            shape.filter = filter(document("q")?);
            shape.upsert = command.get_bool("upsert").unwrap_or(false);
            shape.duplicate_key = document("u").and_then(super::path::duplicate_keys);
        }
        ("remove" | "delete", _) => {
            "delete".clone_into(&mut shape.command);
            shape.filter = filter(document("q")?);
        }
        ("query" | "command", "find") => {
            "find".clone_into(&mut shape.command);
            shape.filter = document("filter").map(filter).unwrap_or_default();
            shape.sort = document("sort").map(sort).unwrap_or_default();
            shape.fields = document("projection").map(included).unwrap_or_default();
            shape.limit = Some(number(command, "limit")).filter(|limit| *limit > 0);
        }
        ("command", "aggregate") => {
            "aggregate".clone_into(&mut shape.command);
            pipeline(&mut shape, command);
        }
        ("command", "count" | "distinct") => {
            name.clone_into(&mut shape.command);
            shape.filter = document("query").map(filter).unwrap_or_default();
        }
        ("command", "findAndModify" | "findandmodify") => {
            "findAndModify".clone_into(&mut shape.command);
            shape.filter = document("query").map(filter).unwrap_or_default();
            shape.sort = document("sort").map(sort).unwrap_or_default();
            shape.upsert = command.get_bool("upsert").unwrap_or(false);
            shape.duplicate_key = document("update").and_then(super::path::duplicate_keys);
        }
        _ => return None,
    }
    Some(shape)
}

fn pipeline(shape: &mut Shape, command: &RawDocument) {
    let stages = command.get_array("pipeline").into_iter().flatten().flatten();
    for (position, stage) in stages.enumerate() {
        let Some((name, argument)) = stage.as_document().and_then(|stage| stage.iter().next()).and_then(Result::ok)
        else {
            continue;
        };
        shape.stages.push(name.as_str().to_owned());
        match (name.as_str(), argument) {
            ("$match", RawBsonRef::Document(query)) if position == 0 => shape.filter = filter(query),
            ("$sort", RawBsonRef::Document(order)) if position <= 1 => shape.sort = sort(order),
            ("$lookup", RawBsonRef::Document(lookup)) => {
                if let (Ok(from), Ok(field)) = (lookup.get_str("from"), lookup.get_str("foreignField")) {
                    shape.lookups.push((from.to_owned(), field.to_owned()));
                }
            }
            ("$limit", limit) => shape.limit = limit.as_i32().map(|limit| limit.max(0) as u64),
            _ => {}
        }
    }
}

/// What a filter asks of its fields; `$and` is followed, `$or` and the like are left out.
fn filter(query: &RawDocument) -> Vec<(String, Test)> {
    let mut tests: Vec<(String, Test)> = Vec::new();
    for (key, value) in query.iter().flatten() {
        let key = key.as_str();
        if key == "$and" {
            for part in value.as_array().into_iter().flatten().flatten() {
                tests.extend(part.as_document().map(filter).unwrap_or_default());
            }
        } else if !key.starts_with('$') {
            let test = match value {
                RawBsonRef::Document(operators) => match operators.iter().next().and_then(Result::ok) {
                    Some((name, _)) if name.as_str() == "$eq" => Test::Equal,
                    Some((name, _)) if name.as_str() == "$in" => Test::In,
                    Some((name, _)) if name.as_str().starts_with('$') => Test::Range,
                    _ => Test::Equal,
                },
                RawBsonRef::RegularExpression(_) => Test::Range,
                _ => Test::Equal,
            };
            tests.push((key.to_owned(), test));
        }
    }
    tests
}

fn sort(order: &RawDocument) -> Vec<(String, i32)> {
    let direction = |value: RawBsonRef<'_>| match value {
        RawBsonRef::Int32(number) => number,
        RawBsonRef::Int64(number) => number.signum() as i32,
        RawBsonRef::Double(number) => number.signum() as i32,
        _ => 1,
    };
    order.iter().flatten().map(|(path, value)| (path.as_str().to_owned(), direction(value))).collect()
}

fn included(projection: &RawDocument) -> Vec<String> {
    let is_set = |value: &RawBsonRef<'_>| {
        !matches!(value, RawBsonRef::Int32(0) | RawBsonRef::Int64(0) | RawBsonRef::Boolean(false))
            && !matches!(value, RawBsonRef::Double(number) if *number == 0.0)
    };
    let fields = projection.iter().flatten().filter(|(name, value)| is_set(value) && name.as_str() != "_id");
    fields.map(|(name, _)| name.as_str().to_owned()).collect()
}
