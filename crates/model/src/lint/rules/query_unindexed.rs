//! `query-unindexed`: operations that read the whole collection, or far more than they give.

use super::super::{Facts, Found, Rule, Severity, handle};

pub(super) static RULE: Rule = Rule {
    name: "query-unindexed",
    finds: "an operation without an index",
    why: "the whole collection is read for a few documents, and everything else waits for the disk",
    check,
};

/// So many documents may be read for nothing.
const FEW_DOCUMENTS: u64 = 100;
/// So many may be read for each one given.
const MOST_PER_RESULT: u64 = 10;

fn check(facts: &Facts<'_>, found: &mut Found) {
    for database in &facts.observed.databases {
        for shape in &database.profile {
            let examined = shape.docs_examined / shape.count.max(1);
            let returned = shape.returned / shape.count.max(1);
            let wasteful = examined > FEW_DOCUMENTS && examined > MOST_PER_RESULT * returned.max(1);
            // What joins read is told by `lookup-heavy`.
            if shape.filter.is_empty() || !shape.lookups.is_empty() || !wasteful {
                continue;
            }
            let scans = shape.collection_scans > 0;
            let index = shape.index();
            let action = match index.is_empty() {
                true => "give the filter a field that can be indexed".to_owned(),
                false => format!("{}.createIndex({index})", handle(&database.name, &shape.collection)),
            };
            found.add(
                if scans { Severity::Error } else { Severity::Warning },
                format!("{}.{} {}", database.name, shape.collection, shape.text()),
                format!(
                    "{examined} documents read for {returned}, {} times in the profile, {} ms each, plan {}",
                    shape.count,
                    shape.millis / shape.count.max(1),
                    shape.plan
                ),
                format!("at most {MOST_PER_RESULT} documents read for each one given"),
                action,
            );
        }
    }
}
