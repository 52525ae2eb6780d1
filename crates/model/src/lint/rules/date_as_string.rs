//! `date-as-string`: points in time stored as texts.

use super::super::{Facts, Found, Rule};
use super::Texts;

pub(super) static RULE: Rule = Rule {
    name: "date-as-string",
    finds: "a date stored as a string",
    why: "a text is never inside a date range, TTL indexes pass it over, and texts with different zones do not sort by time",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    let texts =
        Texts { count: |stats| stats.date_strings, measured: "that are dates", limit: "BSON dates", by: "$toDate" };
    texts.check(facts, found);
}
