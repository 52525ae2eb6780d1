//! `id-as-string`: ObjectIds stored as their hexadecimal text.

use super::super::{Facts, Found, Rule};
use super::Texts;

pub(super) static RULE: Rule = Rule {
    name: "id-as-string",
    finds: "an ObjectId stored as a string",
    why: "an ObjectId never equals its text: lookups between the two find nothing, and the text takes twice the space",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    let measured = "of 24 hexadecimal digits";
    let texts = Texts { count: |stats| stats.hex_strings, measured, limit: "ObjectIds", by: "$toObjectId" };
    texts.check(facts, found);
}
