//! `id-as-string`: ObjectIds stored as their hexadecimal text.

use super::super::{Facts, Found, Rule, Severity, handle, percent, place};
use crate::observe::sample::plain;

pub(super) static RULE: Rule = Rule {
    name: "id-as-string",
    finds: "an ObjectId stored as a string",
    why: "an ObjectId never equals its text: lookups between the two find nothing, and the text takes twice the space",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        for (path, stats) in &collection.sample.paths {
            let strings = stats.of("string");
            if strings < 5 || stats.hex_strings * 10 < strings * 9 {
                continue;
            }
            let field = plain(path);
            found.add(
                Severity::Warning,
                place(database, collection, path),
                format!(
                    "{} strings of 24 hexadecimal digits ({})",
                    stats.hex_strings,
                    percent(stats.hex_strings, stats.known())
                ),
                "ObjectIds",
                format!(
                    "{}.updateMany({{\"{field}\": {{$type: \"string\"}}}}, [{{$set: {{\"{field}\": {{$toObjectId: \
                     \"${field}\"}}}}}}])",
                    handle(&database.name, &collection.info.name)
                ),
            );
        }
    }
}
