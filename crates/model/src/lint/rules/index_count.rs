//! `index-count`: collections with many indexes.

use super::super::{Facts, Found, Rule, Severity, place};

pub(super) static RULE: Rule = Rule {
    name: "index-count",
    finds: "too many indexes",
    why: "each index is written with every insert and with every change of its fields, and wants memory",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    let limit = &facts.thresholds.limits.indexes;
    for (database, collection) in facts.collections() {
        let count = collection.indexes.len() as u64;
        if count <= limit.notice {
            continue;
        }
        let severity =
            if limit.warning.is_some_and(|warning| count > warning) { Severity::Warning } else { Severity::Notice };
        found.add(
            severity,
            place(database, collection, ""),
            format!("{count} indexes"),
            limit.beside(count),
            "drop the redundant and unused ones (see index-redundant, index-unused); `sheaf plan` merges what queries need",
        );
    }
}
