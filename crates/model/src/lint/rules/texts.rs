//! What the rules on typed values that are stored as texts have in common.

use super::super::{Facts, Found, Severity, handle, percent, place};
use crate::observe::path::PathStats;
use crate::observe::sample::plain;

/// The fewest texts that say something.
const FEWEST: u64 = 5;

/// Texts that are something else.
pub(super) struct Texts {
    /// How many of a field's texts are.
    pub(super) count: fn(&PathStats) -> u64,
    /// What they are, after "strings".
    pub(super) measured: &'static str,
    /// What they should be.
    pub(super) limit: &'static str,
    /// The operator that makes them so.
    pub(super) by: &'static str,
}

impl Texts {
    /// Finds the fields of which nine in ten texts are.
    pub(super) fn check(&self, facts: &Facts<'_>, found: &mut Found) {
        for (database, collection) in facts.collections() {
            for (path, stats) in &collection.sample.paths {
                let (strings, count) = (stats.of("string"), (self.count)(stats));
                if strings < FEWEST || count * 10 < strings * 9 {
                    continue;
                }
                let field = plain(path);
                let (handle, by) = (handle(&database.name, &collection.info.name), self.by);
                found.add(
                    Severity::Warning,
                    place(database, collection, path),
                    format!("{count} strings {} ({})", self.measured, percent(count, stats.known())),
                    self.limit,
                    format!(
                        "{handle}.updateMany({{\"{field}\": {{$type: \"string\"}}}}, [{{$set: {{\"{field}\": {{{by}: \
                         \"${field}\"}}}}}}])"
                    ),
                );
            }
        }
    }
}
