//! `unique-missing`: upserts that race because no unique index holds their key.

use super::super::{Facts, Found, Rule, Severity, handle};
use std::collections::BTreeSet;

pub(super) static RULE: Rule = Rule {
    name: "unique-missing",
    finds: "an upsert without a unique index",
    why: "two upserts of the same key at once both find nothing and both insert: the key is there twice",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for database in &facts.observed.databases {
        for shape in database.profile.iter().filter(|shape| shape.upsert) {
            let asked: BTreeSet<&str> = shape.equal().collect();
            let Some(collection) = database.collection(&shape.collection).filter(|_| !asked.is_empty()) else {
                continue;
            };
            let is_held = asked.contains("_id")
                || collection.indexes.iter().any(|index| {
                    index.specification.get_bool("unique").unwrap_or(false)
                        && index.keys.keys().all(|key| asked.contains(key.as_str()))
                });
            if is_held {
                continue;
            }
            let keys: Vec<String> = asked.iter().map(|path| format!("\"{path}\": 1")).collect();
            found.add(
                Severity::Error,
                format!("{}.{} {}", database.name, shape.collection, shape.text()),
                format!(
                    "{} upserts by {} in the profile",
                    shape.count,
                    asked.into_iter().collect::<Vec<_>>().join(", ")
                ),
                "a unique index on what the upsert asks for",
                format!(
                    "{}.createIndex({{{}}}, {{unique: true}})  // merge the duplicates first",
                    handle(&database.name, &shape.collection),
                    keys.join(", ")
                ),
            );
        }
    }
}
