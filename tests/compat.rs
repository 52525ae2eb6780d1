//! COMPAT.md is made from the tables that drive parsing. `UPDATE_COMPAT=1 cargo test -p sheafdb-tests --test compat` writes it.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use std::fmt::Write;
use std::path::Path;

/// Where we differ from MongoDB, and why.
const DIFFERENCES: &str = include_str!("compat_differences.md");

fn list(text: &mut String, title: &str, names: impl Iterator<Item = String>) {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    writeln!(text, "\n### {title} ({})\n\n{}", names.len(), names.join(", ")).unwrap();
}

fn compat() -> String {
    let mut text = String::from(
        "# Compatibility with MongoDB\n\nMade from the tables that drive parsing (`tests/compat.rs`); do not edit. What is not \
         listed as supported is refused by name, never ignored.\n\n## Supported\n",
    );
    let names = |names: Vec<&'static str>| names.into_iter().map(str::to_owned);
    list(&mut text, "Commands", names(wire::command::TABLE.iter().map(|command| command.name).collect()));
    list(&mut text, "Query operators", names(engine::filter::OPERATORS.iter().map(|operator| operator.name).collect()));
    list(
        &mut text,
        "Update operators",
        names(engine::update::OPERATORS.iter().map(|operator| operator.name).collect()),
    );
    list(&mut text, "Aggregation stages", names(engine::stage::STAGES.iter().map(|stage| stage.name).collect()));
    list(&mut text, "Expressions", names(engine::expression::OPERATORS.iter().map(|operator| operator.name).collect()));
    list(&mut text, "Accumulators", names(engine::accumulator::ACCUMULATORS.iter().map(|kind| kind.name).collect()));
    text.push_str("\n## Refused by name\n");
    list(&mut text, "Commands", names(wire::command::unsupported::names().collect()));
    list(&mut text, "Query operators", names(engine::filter::UNSUPPORTED.iter().map(|entry| entry.0).collect()));
    list(&mut text, "Aggregation stages", names(engine::stage::UNSUPPORTED.to_vec()));
    list(&mut text, "Expressions", names(engine::expression::UNSUPPORTED.to_vec()));
    text.push('\n');
    text.push_str(DIFFERENCES);
    text
}

#[test]
fn compat_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("COMPAT.md");
    let made = compat();
    if std::env::var_os("UPDATE_COMPAT").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == made, "COMPAT.md is out of date: UPDATE_COMPAT=1 cargo test -p sheafdb-tests --test compat");
}
