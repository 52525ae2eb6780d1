//! `no-validator`: collections that take any document.

use super::super::{Facts, Found, Rule, Severity, place};

pub(super) static RULE: Rule = Rule {
    name: "no-validator",
    finds: "a collection without a validator",
    why: "whatever a faulty client sends is stored, and found months later",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        let is_plain = collection.info.kind == "collection" && !collection.info.name.contains(".files");
        if !is_plain || collection.info.options.contains_key("validator") || collection.sample.documents == 0 {
            continue;
        }
        found.add(
            Severity::Notice,
            place(database, collection, ""),
            "no validator",
            "a validator with the fields' types",
            format!(
                "`sheaf infer` writes a model of what is there and `sheaf apply` its validators; or\ndb.getSiblingDB({:?})\
                 .runCommand({{collMod: {:?}, validator: {{$jsonSchema: {{…}}}}, validationLevel: \"moderate\"}})",
                database.name, collection.info.name
            ),
        );
    }
}
