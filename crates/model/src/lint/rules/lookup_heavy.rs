//! `lookup-heavy`: pipelines that join at every read, and joins without an index.

use super::super::{Facts, Found, Rule, Severity, handle};

pub(super) static RULE: Rule = Rule {
    name: "lookup-heavy",
    finds: "joins in the hot path",
    why: "a $lookup reads another collection for every row; without an index on its foreignField it scans it for every row",
    check,
};

/// A pipeline may join so many collections.
const MOST_LOOKUPS: usize = 2;

fn check(facts: &Facts<'_>, found: &mut Found) {
    for database in &facts.observed.databases {
        for shape in database.profile.iter().filter(|shape| !shape.lookups.is_empty()) {
            let place = format!("{}.{} aggregate [{}]", database.name, shape.collection, shape.stages.join(", "));
            for (from, field) in &shape.lookups {
                let Some(collection) = database.collection(from) else { continue };
                let is_indexed = field == "_id"
                    || collection
                        .indexes
                        .iter()
                        .any(|index| index.keys.keys().next().is_some_and(|first| first == field));
                if !is_indexed {
                    found.add(
                        Severity::Error,
                        place.clone(),
                        format!("joins {from} by {field} without an index, {} times in the profile", shape.count),
                        "an index on the foreignField",
                        format!("{}.createIndex({{\"{field}\": 1}})", handle(&database.name, from)),
                    );
                }
            }
            if shape.lookups.len() > MOST_LOOKUPS {
                found.add(
                    Severity::Warning,
                    place,
                    format!("{} joins, {} times in the profile, {} ms each", shape.lookups.len(), shape.count, shape.millis / shape.count.max(1)),
                    format!("at most {MOST_LOOKUPS} joins"),
                    "store what is read together together: a `snapshot` of facts that must not change, a `live` copy of those \
                     that must, an `embed` of what belongs to the document",
                );
            }
        }
    }
}
