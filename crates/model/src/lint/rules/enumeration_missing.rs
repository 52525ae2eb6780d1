//! `enumeration-missing`: strings of few different values that nothing holds to them.

use super::super::{Facts, Found, Rule, Severity, handle, place};
use crate::observe::sample::plain;

pub(super) static RULE: Rule = Rule {
    name: "enumeration-missing",
    finds: "a string with few values and no enumeration",
    why: "a misspelt state is stored silently and found by nobody",
    check,
};

/// More different values are a set that may still grow.
const MOST_VALUES: usize = 12;
/// A smaller sample tells nothing.
const LEAST_STRINGS: u64 = 100;

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        let schema =
            collection.info.options.get_document("validator").map(bson::Document::to_string).unwrap_or_default();
        for (path, stats) in &collection.sample.paths {
            let strings = stats.of("string");
            let Some(values) = &stats.strings else { continue };
            let is_small = (2..=MOST_VALUES).contains(&values.len()) && strings >= LEAST_STRINGS;
            let is_spread = values.values().filter(|count| **count >= 5).count() == values.len();
            let declared = values.keys().all(|value| schema.contains(&format!("{value:?}")));
            let is_other = collection.sample.is_below_dynamic(path) || stats.date_strings * 2 > strings;
            if !is_small || !is_spread || declared || is_other || stats.hex_strings > 0 {
                continue;
            }
            let listed: Vec<String> = values.keys().map(|value| format!("{value:?}")).collect();
            let field = plain(path);
            found.add(
                Severity::Notice,
                place(database, collection, path),
                format!("{} different values in {strings} strings: {}", values.len(), listed.join(", ")),
                "an enumeration in the validator",
                format!(
                    "declare `enum` in a model, or\ndb.getSiblingDB({:?}).runCommand({{collMod: {:?}, validator: {{$jsonSchema: \
                     {{properties: {{\"{field}\": {{enum: [{}]}}}}}}}}}})  // first look: {}.distinct(\"{field}\")",
                    database.name,
                    collection.info.name,
                    listed.join(", "),
                    handle(&database.name, &collection.info.name)
                ),
            );
        }
    }
}
