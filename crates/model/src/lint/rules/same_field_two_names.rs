//! `same-field-two-names`: one field under two names.

use super::super::{Facts, Found, Rule, Severity, handle, place};
use crate::observe::names::words;
use crate::observe::sample::{last_name, plain};
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "same-field-two-names",
    finds: "one field under two names",
    why: "each query sees only the documents that use its name, and an index serves half of them",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        let mut known: BTreeMap<(String, String), &str> = BTreeMap::new();
        for path in collection.sample.paths.keys() {
            let name = last_name(path);
            if path.ends_with("[]") || collection.sample.is_below_dynamic(path) || name.starts_with('_') {
                continue;
            }
            let parent = path[..path.len() - name.len()].to_owned();
            let Some(other) = known.insert((parent, words(name).concat()), path) else { continue };
            let (a, b) = (plain(other), plain(path));
            let count = |path: &str| collection.sample.paths.get(path).map_or(0, |stats| stats.documents);
            found.add(
                Severity::Warning,
                place(database, collection, path),
                format!("{a} in {} documents, {b} in {}", count(other), count(path)),
                "one name",
                format!(
                    "{}.updateMany({{\"{b}\": {{$exists: true}}, \"{a}\": {{$exists: false}}}}, {{$rename: {{\"{b}\": \"{a}\"}}}})",
                    handle(&database.name, &collection.info.name)
                ),
            );
        }
    }
}
