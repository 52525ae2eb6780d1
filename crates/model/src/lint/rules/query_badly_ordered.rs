//! `query-badly-ordered`: queries that sort in memory though an index could give the order.

use super::super::{Facts, Found, Rule, Severity, handle};

pub(super) static RULE: Rule = Rule {
    name: "query-badly-ordered",
    finds: "a sort in memory",
    why: "a range before the sort key in an index, or no index for the order, makes the server sort every answer, and fail beyond 100 MB without disk",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for database in &facts.observed.databases {
        for shape in &database.profile {
            let uses_index = shape.collection_scans == 0 && shape.command == "find";
            if !uses_index || shape.sorts == 0 || shape.sort.is_empty() {
                continue;
            }
            found.add(
                Severity::Warning,
                format!("{}.{} {}", database.name, shape.collection, shape.text()),
                format!("{} of {} sorted in memory, plan {}", shape.sorts, shape.count, shape.plan),
                "an index in the order equality, sort, range",
                format!("{}.createIndex({})", handle(&database.name, &shape.collection), shape.index()),
            );
        }
    }
}
