//! `array-growing`: an array that gets longer and longer, with the date at which its document is full.

use super::super::{Facts, Found, Rule, Severity, growth, handle, place};
use crate::observe::sample::{last_name, plain};

pub(super) static RULE: Rule = Rule {
    name: "array-growing",
    finds: "an array that grows without bound",
    why: "a document with an array that grows is rewritten whole with every element, and refused at 16 MiB",
    check,
};

/// Shorter arrays may still stop by themselves.
const SHORTEST: u64 = 50;

fn check(facts: &Facts<'_>, found: &mut Found) {
    for (database, collection) in facts.collections() {
        for (path, stats) in &collection.sample.paths {
            if stats.longest() < SHORTEST || collection.sample.is_below_dynamic(path) {
                continue;
            }
            let key = format!("{}.{} {path}", database.name, collection.info.name);
            let previous = facts.options.previous.as_ref();
            let previous = previous.and_then(|run| Some((*run.arrays.get(&key)?, run.at_ms)));
            let Some(growth) = growth::of(stats, previous, facts.observed.now_ms) else { continue };
            let element = growth::element_bytes(collection, path).max(1);
            let room = crate::size::MAX_DOCUMENT_BYTES.saturating_sub(growth.length * element);
            let days = room as f64 / element as f64 / growth.elements_per_day;
            let most = facts.thresholds.limits.array_elements.limit;
            let days_to_most = most.saturating_sub(growth.length) as f64 / growth.elements_per_day;
            if days.min(days_to_most) > facts.thresholds.rules.forecast_years as f64 * 365.0 {
                continue;
            }
            let date = |days| {
                growth::date_after(facts.observed.now_ms, days)
                    .map_or("in centuries".to_owned(), |date| format!("on {date}"))
            };
            let severity = if days < 365.0 { Severity::Error } else { Severity::Warning };
            let name = last_name(path);
            found.add(
                severity,
                place(database, collection, path),
                format!(
                    "{} elements of about {element} bytes, {:.1} more a day {}: {most} elements {}, 16 MiB {}",
                    growth.length,
                    growth.elements_per_day,
                    growth.by,
                    date(days_to_most),
                    date(days)
                ),
                format!("fits for {} years", facts.thresholds.rules.forecast_years),
                format!(
                    "keep the newest in the document and the rest apart: a `recent` or `bucket` declaration, or\n{}.updateOne(\
                     {{_id: …}}, {{$push: {{\"{}\": {{$each: [{name}], $slice: -100}}}}}})",
                    handle(&database.name, &collection.info.name),
                    plain(path)
                ),
            );
        }
    }
}
