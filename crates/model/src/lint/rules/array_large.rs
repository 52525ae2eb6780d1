//! `array-large`: an array with many elements, whether it grows or not.

use super::super::{Facts, Found, Rule, Severity, growth, place};

pub(super) static RULE: Rule = Rule {
    name: "array-large",
    finds: "an array with too many elements",
    why: "every change of a long array rewrites its document, and each element is an entry in every index on it",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    let limit = &facts.thresholds.limits.array_elements;
    for (database, collection) in facts.collections() {
        for (path, stats) in &collection.sample.paths {
            let longest = stats.longest();
            // What grows is told by `array-growing`, with the date.
            let grows = growth::of(stats, None, facts.observed.now_ms).is_some();
            if longest <= limit.notice || grows {
                continue;
            }
            let severity = if longest > limit.limit { Severity::Warning } else { Severity::Notice };
            found.add(
                severity,
                place(database, collection, path),
                format!("{longest} elements at most, {} in 99 % of the arrays", stats.length_at(0.99)),
                limit.beside(longest),
                "move the elements into a collection of their own with a reference back (an index on it), or bound the \
                 array with $push and $slice",
            );
        }
    }
}
