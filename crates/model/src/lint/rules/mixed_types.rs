//! `mixed-types`: fields that hold values of different types.

use super::super::{Facts, Found, Rule, Severity, handle, percent, place};
use crate::observe::sample::plain;

pub(super) static RULE: Rule = Rule {
    name: "mixed-types",
    finds: "a field with values of several types",
    why: "values of different types are never equal and sort apart: queries miss documents silently",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        for (path, stats) in &collection.sample.paths {
            if collection.sample.is_below_dynamic(path) {
                continue;
            }
            // Numbers compare with each other, whatever their type.
            let is_number = |kind: &str| matches!(kind, "int" | "long" | "double" | "decimal");
            let others = stats.types.iter().filter(|(kind, _)| **kind != "null" && !is_number(kind));
            let mut groups: Vec<(&str, u64)> = others.map(|(kind, count)| (*kind, *count)).collect();
            if stats.numbers() > 0 {
                groups.push(("number", stats.numbers()));
            }
            if groups.len() < 2 {
                continue;
            }
            groups.sort_by_key(|group| std::cmp::Reverse(group.1));
            let listed: Vec<String> =
                groups.iter().map(|(kind, count)| format!("{kind} {}", percent(*count, stats.known()))).collect();
            let field = plain(path);
            let rare = groups.last().map_or("string", |group| group.0);
            found.add(
                Severity::Warning,
                place(database, collection, path),
                listed.join(", "),
                "one type",
                format!(
                    "see the rare ones and convert them: {}.find({{\"{field}\": {{$type: \"{rare}\"}}}}); then hold the field to \
                     one type with a validator",
                    handle(&database.name, &collection.info.name)
                ),
            );
        }
    }
}
