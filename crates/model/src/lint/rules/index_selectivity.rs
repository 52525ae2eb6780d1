//! `index-selectivity`: indexes on a field of few values alone.

use super::super::{Facts, Found, Rule, Severity, handle, place};

pub(super) static RULE: Rule = Rule {
    name: "index-selectivity",
    finds: "an index that hardly narrows",
    why: "an index on few different values makes a query read a good part of the collection, in random order",
    check,
};

/// On a small collection any index is cheap.
const LEAST_DOCUMENTS: u64 = 1_000;
/// An index is selective from so many different values on.
const LEAST_VALUES: u64 = 10;

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        if collection.stats.count < LEAST_DOCUMENTS {
            continue;
        }
        for index in collection.indexes.iter().filter(|index| index.keys.len() == 1 && index.name != "_id_") {
            let is_special = ["partialFilterExpression", "expireAfterSeconds", "unique", "sparse"]
                .iter()
                .any(|option| index.specification.contains_key(option));
            let Some((path, direction)) = index.keys.iter().next() else { continue };
            if is_special || matches!(direction, bson::Bson::String(_)) || path.contains("$**") {
                continue;
            }
            let Some(stats) = collection.sample.at(path) else { continue };
            let Some(distinct) = stats.distinct().filter(|distinct| *distinct > 0 && *distinct < LEAST_VALUES) else {
                continue;
            };
            found.add(
                Severity::Warning,
                place(database, collection, &index.name),
                format!(
                    "{distinct} different values of {path} in {} documents; the most frequent in {:.0} %",
                    stats.documents,
                    stats.top() * 100.0
                ),
                format!("at least {LEAST_VALUES} different values, or a compound or partial index"),
                format!(
                    "put a selective field first, e.g. {{userId: 1, {path}: 1}}, or index the rare values only \
                     (partialFilterExpression); then {}.dropIndex({:?})",
                    handle(&database.name, &collection.info.name),
                    index.name
                ),
            );
        }
    }
}
