//! `document-size`: documents near the limit.

use super::super::{Facts, Found, Rule, Severity, handle, place};
use crate::show::bytes;

pub(super) static RULE: Rule = Rule {
    name: "document-size",
    finds: "documents that are too large",
    why: "a document is read, sent and rewritten whole, and refused beyond 16 MiB",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    let limit = &facts.thresholds.limits.document_bytes;
    for (database, collection) in facts.collections() {
        let Some(largest) = &collection.largest else { continue };
        if largest.bytes <= limit.notice {
            continue;
        }
        let severity = if largest.bytes > limit.limit { Severity::Error } else { Severity::Warning };
        let share = largest.bytes as f64 * 100.0 / crate::size::MAX_DOCUMENT_BYTES as f64;
        let scope =
            if largest.of_all { "of all documents" } else { "of the sample only: looking at all took too long" };
        found.add(
            severity,
            place(database, collection, ""),
            format!(
                "the largest document (_id {}) has {} ({share:.1} % of 16 MiB), {scope}; usual are {}",
                largest.id,
                bytes(largest.bytes),
                bytes(collection.sample.usual_bytes())
            ),
            limit.beside(largest.bytes),
            format!(
                "see which field it is and move it out (a collection of its own, `bucket`, `split` or GridFS):\n{}.aggregate([\
                 {{$match: {{_id: {}}}}}, {{$project: {{fields: {{$map: {{input: {{$objectToArray: \"$$ROOT\"}}, in: {{k: \
                 \"$$this.k\", bytes: {{$bsonSize: {{v: \"$$this.v\"}}}}}}}}}}}}}}])",
                handle(&database.name, &collection.info.name),
                largest.id
            ),
        );
    }
}
