//! `date-as-number`: points in time stored as numbers.

use super::super::{Facts, Found, Rule, Severity, handle, percent, place};
use crate::observe::{
    names,
    sample::{last_name, plain},
};

pub(super) static RULE: Rule = Rule {
    name: "date-as-number",
    finds: "a time stored as a number",
    why: "numbers are not compared with dates, TTL indexes pass them over, and time-zone arithmetic needs a conversion first",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        for (path, stats) in &collection.sample.paths {
            let numbers = stats.numbers();
            if !names::is_time(last_name(path)) || numbers < 5 || stats.epoch_numbers * 10 < numbers * 9 {
                continue;
            }
            let field = plain(path);
            found.add(
                Severity::Warning,
                place(database, collection, path),
                format!("{numbers} numbers that are times since 1970 ({})", percent(numbers, stats.known())),
                "BSON dates",
                format!(
                    "{}.updateMany({{\"{field}\": {{$type: \"number\"}}}}, [{{$set: {{\"{field}\": {{$toDate: {{$toLong: \
                     \"${field}\"}}}}}}}}])  // times in seconds: multiply by 1000 first",
                    handle(&database.name, &collection.info.name)
                ),
            );
        }
    }
}
