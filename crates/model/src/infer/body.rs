//! The fields, embeds and references of a document or an embedded document.

use super::{Names, is_reference, word};
use crate::observe::Collection;
use crate::observe::path::PathStats;
use crate::observe::sample::last_name;
use std::fmt::Write;

/// A string with at most so many different values is an enumeration.
const ENUM_VALUES: usize = 12;
/// A sample must be so large to tell an enumeration.
const ENUM_STRINGS: u64 = 100;
/// Nesting that is written; deeper objects stay open.
const MAX_DEPTH: usize = 6;
/// Room above the longest array seen, as a bound nobody reaches tomorrow.
const HEADROOM: u64 = 2;

/// The type of an `_id`.
pub(super) fn id_type(stats: &PathStats) -> &'static str {
    match usual_type(stats) {
        kind @ ("objectId" | "string" | "int" | "long") => kind,
        "binary" => "uuid",
        "object" => "object",
        _ => "any",
    }
}

/// The type that nearly all values have, as the language calls it.
fn usual_type(stats: &PathStats) -> &'static str {
    let known = stats.known();
    let most = stats.types.iter().filter(|(kind, _)| **kind != "null").max_by_key(|(_, count)| **count);
    let Some((kind, count)) = most else { return "any" };
    if count * 100 < known * 95 {
        return match stats.numbers() {
            // Whole numbers of two sizes are one kind of number.
            numbers if numbers == known && stats.of("double") + stats.of("decimal") == 0 => "long",
            numbers if numbers == known && stats.of("decimal") == 0 => "double",
            _ => "any",
        };
    }
    match *kind {
        "binData" => "binary",
        "timestamp" | "other" | "array" => "any",
        kind => kind,
    }
}

/// Writes what stands below `prefix` (`""`, `items[]`, `address`).
pub(super) fn body(text: &mut String, names: &Names<'_>, collection: &Collection, prefix: &str, depth: usize) {
    let sample = &collection.sample;
    let parents = match prefix {
        "" => sample.documents,
        prefix => sample.paths.get(prefix).map_or(0, |stats| stats.of("object")),
    };
    let children = sample.paths.iter().filter(|(path, _)| {
        let rest = if prefix.is_empty() {
            Some(path.as_str())
        } else {
            path.strip_prefix(prefix).and_then(|r| r.strip_prefix('.'))
        };
        rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['.', '[']))
    });
    for (path, stats) in children {
        if path == "_id" {
            continue;
        }
        let required = stats.known() >= parents && parents > 0;
        child(text, names, collection, path, stats, required, depth);
    }
}

fn child(
    text: &mut String,
    names: &Names<'_>,
    collection: &Collection,
    path: &str,
    stats: &PathStats,
    required: bool,
    depth: usize,
) {
    let indent = "  ".repeat(depth);
    let name = word(last_name(path));
    let required = if required { " required" } else { "" };
    let elements = collection.sample.paths.get(&format!("{path}[]"));
    let is_array = stats.of("array") * 20 >= stats.known() * 19 && stats.known() > 0;
    let max = (stats.longest() * HEADROOM).max(1);
    if let Some(target) = target(names, collection, if is_array { format!("{path}[]") } else { path.to_owned() }) {
        let many = if is_array { format!(" many max={max}") } else { String::new() };
        let _ = write!(text, "{indent}ref {name} to={}{required}{many}", word(target));
        let key = (collection.info.name.clone(), path.to_owned());
        match names.cardinalities.get(&key) {
            Some(found) => {
                let _ = writeln!(text, " {{ expect typical={} max={} }}", found.typical, found.max);
            }
            None => text.push('\n'),
        }
    } else if is_array {
        let has_fields = elements.is_some_and(|elements| is_object(elements) && !elements.is_dynamic());
        if has_fields && depth < MAX_DEPTH {
            let _ = writeln!(text, "{indent}embed {name} many max={max} {{");
            let typical = stats.length_at(0.5);
            let _ = writeln!(text, "{indent}  expect typical={typical} max={}", stats.longest().max(1));
            body(text, names, collection, &format!("{path}[]"), depth + 1);
            let _ = writeln!(text, "{indent}}}");
        } else {
            let kind = elements.map_or("any", usual_type);
            let kind = if elements.is_some_and(is_object) { "object" } else { kind };
            let _ = writeln!(text, "{indent}field {name} {kind} list max={max}{required}");
        }
    } else if is_object(stats) && !stats.is_dynamic() && depth < MAX_DEPTH {
        let _ = writeln!(text, "{indent}embed {name} one {{");
        body(text, names, collection, path, depth + 1);
        let _ = writeln!(text, "{indent}}}");
    } else {
        scalar(text, collection, path, stats, required, &indent);
    }
}

fn is_object(stats: &PathStats) -> bool {
    stats.of("object") * 20 >= stats.known() * 19 && stats.of("object") > 0 && !stats.keys.is_empty()
}

fn scalar(text: &mut String, collection: &Collection, path: &str, stats: &PathStats, required: &str, indent: &str) {
    let name = word(last_name(path));
    let kind = usual_type(stats);
    let values = stats.strings.as_ref().filter(|values| {
        kind == "string"
            && (2..=ENUM_VALUES).contains(&values.len())
            && stats.of("string") >= ENUM_STRINGS
            && values.values().all(|count| *count >= 5)
            && values.keys().all(|value| !value.is_empty())
            && stats.date_strings == 0
    });
    if let Some(values) = values {
        let values: Vec<String> = values.keys().map(|value| word(value)).collect();
        let _ = writeln!(text, "{indent}enum {name} {}{required}", values.join(" "));
        return;
    }
    let _ = write!(text, "{indent}field {name} {kind}{required}");
    let is_unique = collection.indexes.iter().any(|index| {
        index.keys.len() == 1
            && index.keys.contains_key(path)
            && index.specification.get_bool("unique").unwrap_or(false)
            && !index.specification.contains_key("partialFilterExpression")
    });
    if is_unique {
        text.push_str(" unique");
    }
    if matches!(kind, "string" | "binary") && stats.usual_bytes() > 0 {
        let _ = write!(text, " size={}", stats.usual_bytes());
    }
    if let Some(distinct) = stats.distinct().filter(|distinct| *distinct > 1 && *distinct * 4 < stats.values) {
        let _ = write!(text, " distinct={distinct}");
    }
    if kind == "date" && stats.rises.0 > 20 && stats.rises.0 >= stats.rises.1 * 19 {
        text.push_str(" increasing");
    }
    text.push('\n');
}

/// The entity that a field refers to.
fn target<'n>(names: &'n Names<'_>, collection: &Collection, path: String) -> Option<&'n str> {
    let link = names
        .database
        .links
        .iter()
        .find(|link| link.collection == collection.info.name && link.path == path && is_reference(link))?;
    names.entities.get(&link.target).map(String::as_str)
}
