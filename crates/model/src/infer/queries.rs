//! The queries that a profile shows, with their rates.

use super::{Names, word};
use crate::observe::profile::{Shape, Test};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The profile may span less: rates are then from this many seconds.
const LEAST_SECONDS: f64 = 1.0;

/// Writes the queries.
pub(super) fn queries(names: &Names<'_>) -> String {
    let mut text = String::new();
    let mut used = BTreeSet::new();
    let seconds = names.database.profile_seconds.max(LEAST_SECONDS);
    for shape in &names.database.profile {
        let reads = matches!(shape.command.as_str(), "find" | "aggregate" | "count");
        let Some(entity) = names.entities.get(&shape.collection).filter(|_| reads) else { continue };
        let Some(collection) = names.database.collection(&shape.collection) else { continue };
        let is_known = |path: &str| path == "_id" || collection.sample.at(path).is_some();
        let paths = shape.filter.iter().map(|test| &test.0).chain(shape.sort.iter().map(|key| &key.0));
        let is_empty = shape.filter.is_empty() && shape.sort.is_empty();
        if is_empty || !paths.clone().all(|path| is_known(path)) {
            continue;
        }
        let name = unused(&mut used, named(entity, shape));
        let rate = shape.count as f64 / seconds;
        let _ = write!(text, "query {name:?} on={} rate=\"{}\" {{ ", word(entity), rate_text(rate));
        text.push_str(&lines(shape, &is_known).join("; "));
        text.push_str(" }\n");
    }
    text
}

fn rate_text(per_second: f64) -> String {
    match per_second {
        rate if rate >= 1.0 => format!("{}/s", rate.round()),
        rate if rate * 60.0 >= 1.0 => format!("{}/min", (rate * 60.0).round()),
        rate => format!("{}/h", (rate * 3600.0).round().max(1.0)),
    }
}

fn lines(shape: &Shape, is_known: &dyn Fn(&str) -> bool) -> Vec<String> {
    let of = |wanted: Test| -> Vec<String> {
        shape.filter.iter().filter(|(_, test)| *test == wanted).map(|(path, _)| quoted(path)).collect()
    };
    let mut lines = Vec::new();
    let (equal, range) = (of(Test::Equal), of(Test::Range));
    if !equal.is_empty() {
        lines.push(format!("equal {}", equal.join(" ")));
    }
    lines.extend(of(Test::In).into_iter().map(|path| format!("in {path}")));
    if !range.is_empty() {
        lines.push(format!("range {}", range.join(" ")));
    }
    if !shape.sort.is_empty() {
        let keys = shape.sort.iter().map(|(path, direction)| match direction {
            ..0 => format!("\"-{path}\""),
            _ => quoted(path),
        });
        lines.push(format!("sort {}", keys.collect::<Vec<_>>().join(" ")));
    }
    if let Some(limit) = shape.limit {
        lines.push(format!("limit {limit}"));
    }
    let fields: Vec<String> = shape.fields.iter().filter(|path| is_known(path)).map(|path| quoted(path)).collect();
    if !fields.is_empty() && fields.len() == shape.fields.len() {
        lines.push(format!("fields {}", fields.join(" ")));
    }
    lines
}

fn quoted(path: &str) -> String {
    word(path)
}

/// What a query is called: what it gives by what, in which order.
fn named(entity: &str, shape: &Shape) -> String {
    let by: Vec<&str> = shape.filter.iter().map(|(path, _)| path.as_str()).collect();
    let mut name = entity.to_owned();
    if shape.command == "count" {
        name.push_str(" count");
    }
    if !by.is_empty() {
        name.push_str(&format!(" by {}", by.join(" and ")));
    }
    if let Some((path, _)) = shape.sort.first() {
        name.push_str(&format!(" sorted by {path}"));
    }
    name
}

fn unused(used: &mut BTreeSet<String>, name: String) -> String {
    let free = (1..).map(|turn| if turn == 1 { name.clone() } else { format!("{name} ({turn})") });
    let found = free.into_iter().find(|name| !used.contains(name)).expect("some number is free");
    used.insert(found.clone());
    found
}
