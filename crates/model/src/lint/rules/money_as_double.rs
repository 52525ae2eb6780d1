//! `money-as-double`: amounts of money in binary floating point.

use super::super::{Facts, Found, Rule, Severity, handle, percent, place};
use crate::observe::{
    names,
    sample::{last_name, plain},
};

pub(super) static RULE: Rule = Rule {
    name: "money-as-double",
    finds: "money in doubles",
    why: "0.1 + 0.2 is not 0.3 in a double: sums differ from their parts, and balances never quite match",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        for (path, stats) in &collection.sample.paths {
            let doubles = stats.of("double");
            if doubles == 0 || stats.fractions == 0 || !names::is_money(last_name(path)) {
                continue;
            }
            let field = plain(path);
            found.add(
                Severity::Warning,
                place(database, collection, path),
                format!("{doubles} doubles ({}), {} with a fraction", percent(doubles, stats.known()), stats.fractions),
                "whole minor units (long) or decimal",
                format!(
                    "{}.updateMany({{\"{field}\": {{$type: \"double\"}}}}, [{{$set: {{\"{field}\": {{$toLong: {{$round: \
                     {{$multiply: [\"${field}\", 100]}}}}}}}}}}])  // and store the currency beside it",
                    handle(&database.name, &collection.info.name)
                ),
            );
        }
    }
}
