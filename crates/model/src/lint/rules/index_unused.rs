//! `index-unused`: indexes that no query used.

use super::super::{Facts, Found, Rule, Severity, handle, place};
use crate::observe::path::DAY_MS;

pub(super) static RULE: Rule = Rule {
    name: "index-unused",
    finds: "an index that no query used",
    why: "an unused index costs every write and memory",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        for index in collection.indexes.iter().filter(|index| index.name != "_id_") {
            let Some((0, since_ms)) = index.uses else { continue };
            let days = (facts.observed.now_ms - since_ms) as f64 / DAY_MS;
            let works_unused = index.specification.get_bool("unique").unwrap_or(false)
                || index.specification.contains_key("expireAfterSeconds");
            if works_unused || days < facts.options.unused_days {
                continue;
            }
            found.add(
                Severity::Warning,
                place(database, collection, &index.name),
                format!("not used for {days:.0} days, since its server was started"),
                format!("used within {} days", facts.options.unused_days),
                format!(
                    "{0}.hideIndex({1:?})  // and after a while {0}.dropIndex({1:?})",
                    handle(&database.name, &collection.info.name),
                    index.name
                ),
            );
        }
    }
}
