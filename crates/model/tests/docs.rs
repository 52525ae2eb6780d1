//! Every example of docs/model.md is a model that check accepts, and every declaration has its section.

use model::problem::Sources;
use std::path::Path;

fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/model.md");
    std::fs::read_to_string(&path).expect("docs/model.md")
}

#[test]
fn every_example_is_accepted() {
    let text = text();
    let examples: Vec<&str> =
        text.split("```kdl\n").skip(1).map(|rest| rest.split("```").next().expect("an end")).collect();
    assert!(examples.len() >= model::language::TABLE.len(), "only {} examples", examples.len());
    for example in examples {
        if let Err(problems) = model::parse(Sources::single("example.sheaf.kdl", example)) {
            panic!("{example}\n{problems}");
        }
    }
}

#[test]
fn every_declaration_has_a_section_with_an_example_of_it() {
    let text = text();
    for row in model::language::TABLE {
        let section = text.split(&format!("## `{}`\n", row.name)).nth(1);
        let section = section.unwrap_or_else(|| panic!("no section on `{}`", row.name));
        let section = section.split("\n## ").next().expect("a section");
        assert!(section.contains("```kdl"), "no example of `{}`", row.name);
        let example = section.split("```kdl\n").nth(1).expect("an example");
        let words: Vec<&str> = example.split(|c: char| !c.is_alphanumeric()).collect();
        assert!(words.contains(&row.name), "the example of `{}` doesn't show it", row.name);
    }
}
