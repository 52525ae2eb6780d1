//! `two-way-links`: arrays of ids that mirror a reference back.

use super::super::{Facts, Found, Rule, Severity, handle, place};
use crate::observe::path::PathStats;
use crate::observe::sample::plain;

pub(super) static RULE: Rule = Rule {
    name: "two-way-links",
    finds: "a link that is stored twice",
    why: "two ends written apart disagree after the first crash between them, and the array grows with every child",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for database in &facts.observed.databases {
        for link in &database.links {
            let (Some(back), Some(parent)) = (&link.mirror, database.collection(&link.collection)) else { continue };
            let lengths = parent.sample.paths.get(link.path.trim_end_matches("[]"));
            let longest = lengths.map_or(0, PathStats::longest);
            found.add(
                Severity::Warning,
                place(database, parent, &link.path),
                format!("holds ids of {}, whose {back} holds the id back; {longest} ids at most", link.target),
                "one end of the link",
                format!(
                    "keep the reference in {}: {}.createIndex({{\"{back}\": 1}}); then {}.updateMany({{}}, {{$unset: {{\"{}\": \
                     1}}}})",
                    link.target,
                    handle(&database.name, &link.target),
                    handle(&database.name, &link.collection),
                    plain(&link.path)
                ),
            );
        }
    }
}
