//! `duplicate-keys`: a key that stands twice in one document or update.

use super::super::{Facts, Found, Rule, Severity, place};

pub(super) static RULE: Rule = Rule {
    name: "duplicate-keys",
    finds: "a key that stands twice",
    why: "of two equal keys in one literal only the last survives in most languages, and readers disagree on which of two stored ones counts",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        if let Some((key, documents)) = &collection.sample.duplicate_keys {
            found.add(
                Severity::Error,
                place(database, collection, key),
                format!("{documents} documents of the sample hold a key twice"),
                "each key once",
                "find the writer that builds these documents; put the values under different names",
            );
        }
    }
    for database in &facts.observed.databases {
        for shape in &database.profile {
            let Some(key) = &shape.duplicate_key else { continue };
            found.add(
                Severity::Error,
                format!("{}.{} {}", database.name, shape.collection, shape.text()),
                format!("{} updates name {key} twice", shape.count),
                "each operator and field once",
                format!("write one {key} with all its fields: {{$inc: {{a: 1, b: 1}}}}, not {{$inc: {{a: 1}}, $inc: {{b: 1}}}}"),
            );
        }
    }
}
