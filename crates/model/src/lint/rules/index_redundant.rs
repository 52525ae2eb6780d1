//! `index-redundant`: indexes that another one begins with.

use super::super::{Facts, Found, Rule, Severity, handle, place};
use crate::observe::Index;

pub(super) static RULE: Rule = Rule {
    name: "index-redundant",
    finds: "an index that is the beginning of another",
    why: "the longer index answers everything the shorter does; the shorter costs writes and memory for nothing",
    check,
};

/// What makes an index more than its keys.
const OPTIONS: &[&str] = &["unique", "sparse", "partialFilterExpression", "collation", "expireAfterSeconds", "hidden"];

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        for index in collection.indexes.iter().filter(|index| index.name != "_id_" && is_plain(index)) {
            let longer = collection
                .indexes
                .iter()
                .find(|other| other.name != index.name && other.keys.len() > index.keys.len() && covers(other, index));
            let Some(longer) = longer else { continue };
            found.add(
                Severity::Warning,
                place(database, collection, &index.name),
                format!("{} is the beginning of {} ({})", index.keys, longer.name, longer.keys),
                "no index that another begins with",
                format!("{}.dropIndex({:?})", handle(&database.name, &collection.info.name), index.name),
            );
        }
    }
}

fn is_plain(index: &Index) -> bool {
    !index
        .specification
        .iter()
        .any(|(name, value)| OPTIONS.contains(&name.as_str()) && *value != bson::Bson::Boolean(false))
}

/// Whether one index begins with the keys of another and holds the same documents.
fn covers(longer: &Index, shorter: &Index) -> bool {
    let holds_less = ["sparse", "partialFilterExpression", "collation", "hidden"]
        .iter()
        .any(|option| longer.specification.contains_key(option));
    !holds_less && shorter.keys.iter().zip(&longer.keys).all(|(a, b)| a.0 == b.0 && number(a.1) == number(b.1))
}

fn number(value: &bson::Bson) -> Option<i64> {
    match value {
        bson::Bson::Int32(number) => Some(i64::from(*number)),
        bson::Bson::Int64(number) => Some(*number),
        bson::Bson::Double(number) => Some(*number as i64),
        _ => None,
    }
}
