//! `ttl-not-date`: TTL indexes on fields that hold no dates.

use super::super::{Facts, Found, Rule, Severity, handle, percent, place};

pub(super) static RULE: Rule = Rule {
    name: "ttl-not-date",
    finds: "a TTL index that deletes nothing",
    why: "only dates expire: documents with a number or text in the field stay for ever",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        for index in collection.indexes.iter().filter(|index| index.specification.contains_key("expireAfterSeconds")) {
            let Some(path) = index.keys.keys().next() else { continue };
            let Some(stats) = collection.sample.at(path) else { continue };
            let wrong = stats.known() - stats.of("date");
            if wrong == 0 {
                continue;
            }
            let kinds: Vec<&str> = stats.types.keys().copied().filter(|kind| *kind != "date").collect();
            found.add(
                Severity::Error,
                place(database, collection, &index.name),
                format!(
                    "{} of the values of {path} are no dates but {}",
                    percent(wrong, stats.known()),
                    kinds.join(", ")
                ),
                "dates",
                format!(
                    "{}.updateMany({{\"{path}\": {{$not: {{$type: \"date\"}}}}}}, [{{$set: {{\"{path}\": {{$toDate: \
                     \"${path}\"}}}}}}])  // what is over is deleted within a minute",
                    handle(&database.name, &collection.info.name)
                ),
            );
        }
    }
}
