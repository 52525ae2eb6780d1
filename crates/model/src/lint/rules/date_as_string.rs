//! `date-as-string`: points in time stored as texts.

use super::super::{Facts, Found, Rule, Severity, handle, percent, place};
use crate::observe::sample::plain;

pub(super) static RULE: Rule = Rule {
    name: "date-as-string",
    finds: "a date stored as a string",
    why: "a text is never inside a date range, TTL indexes pass it over, and texts with different zones do not sort by time",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        for (path, stats) in &collection.sample.paths {
            let strings = stats.of("string");
            if strings < 5 || stats.date_strings * 10 < strings * 9 {
                continue;
            }
            let field = plain(path);
            found.add(
                Severity::Warning,
                place(database, collection, path),
                format!(
                    "{} strings that are dates ({})",
                    stats.date_strings,
                    percent(stats.date_strings, stats.known())
                ),
                "BSON dates",
                format!(
                    "{}.updateMany({{\"{field}\": {{$type: \"string\"}}}}, [{{$set: {{\"{field}\": {{$toDate: \
                     \"${field}\"}}}}}}])",
                    handle(&database.name, &collection.info.name)
                ),
            );
        }
    }
}
