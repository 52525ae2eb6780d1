//! `dynamic-names`: objects whose field names are data.

use super::super::{Facts, Found, Rule, Severity, handle, place};
use crate::observe::sample::plain;

pub(super) static RULE: Rule = Rule {
    name: "dynamic-names",
    finds: "field names that are data",
    why: "no index serves a field whose name is a value, no schema describes it, and the document grows with each new name",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        for (path, stats) in &collection.sample.paths {
            if !stats.is_dynamic() || collection.sample.is_below_dynamic(path) {
                continue;
            }
            let names: Vec<&str> = stats.keys.keys().take(3).map(String::as_str).collect();
            let field = plain(path);
            found.add(
                Severity::Warning,
                place(database, collection, path),
                format!("{} different names in {} objects: {} …", stats.keys.len(), stats.of("object"), names.join(", ")),
                "names that are known beforehand",
                format!(
                    "store pairs with an index on them (the attribute pattern): {}.updateMany({{}}, [{{$set: {{\"{field}\": \
                     {{$objectToArray: \"${field}\"}}}}}}]) and createIndex({{\"{field}.k\": 1, \"{field}.v\": 1}})",
                    handle(&database.name, &collection.info.name)
                ),
            );
        }
    }
}
