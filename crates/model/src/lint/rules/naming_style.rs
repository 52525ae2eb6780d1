//! `naming-style`: names written in several ways.

use super::super::{Facts, Found, Rule, Severity};
use crate::observe::names::Style;
use crate::observe::sample::last_name;
use std::collections::BTreeMap;

pub(super) static RULE: Rule = Rule {
    name: "naming-style",
    finds: "names of several styles",
    why: "whoever writes a query has to guess between user_id and userId; a wrong guess finds nothing and says nothing",
    check,
};

fn check(facts: &Facts<'_>, found: &mut Found) {
    for database in &facts.observed.databases {
        let mut styles: BTreeMap<Style, Vec<String>> = BTreeMap::new();
        for collection in &database.collections {
            for path in collection.sample.paths.keys() {
                let is_name = !path.ends_with("[]") && !collection.sample.is_below_dynamic(path);
                if let Some(style) = Style::of(last_name(path)).filter(|_| is_name) {
                    styles.entry(style).or_default().push(format!("{}.{path}", collection.info.name));
                }
            }
        }
        let Some(most) = styles.iter().max_by_key(|known| known.1.len()).map(|known| *known.0) else { continue };
        for (style, paths) in styles.iter().filter(|(style, _)| **style != most) {
            let shown: Vec<String> = paths.iter().take(5).map(|path| crate::observe::sample::plain(path)).collect();
            let more = if paths.len() > shown.len() { " …" } else { "" };
            found.add(
                Severity::Notice,
                format!("{} {}", database.name, style.name()),
                format!("{} names in {}: {}{more}", paths.len(), style.name(), shown.join(", ")),
                format!("{} as in the {} others", most.name(), styles[&most].len()),
                "rename with $rename, collection by collection, readers first taught both names",
            );
        }
    }
}
