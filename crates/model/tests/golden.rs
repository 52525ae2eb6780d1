//! Golden scripts of the language: a model above `---`, below it its canonical JSON or the rendered report.
//!
//! `UPDATE_GOLDEN=1` writes what came back; read the difference before you commit it.

use model::problem::Sources;
use std::fs;
use std::path::Path;

#[test]
fn every_golden_script_gives_what_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut failures = Vec::new();
    let mut scripts = 0;
    let mut paths: Vec<_> =
        fs::read_dir(&folder).expect("testdata").map(|entry| entry.expect("entry").path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "golden")) {
        scripts += 1;
        let text = fs::read_to_string(path).expect("a golden script");
        let (input, expected) = text.split_once("\n---\n").map(|(a, b)| (format!("{a}\n"), b)).expect("a line ---");
        let got = run(&input);
        if got != expected {
            failures.push(format!("{}:\n--- expected\n{expected}\n--- got\n{got}", path.display()));
            if update {
                fs::write(path, format!("{}---\n{got}", input)).expect("written");
            }
        }
    }
    assert!(scripts > 30, "only {scripts} golden scripts were found");
    assert!(failures.is_empty(), "{} of {scripts} scripts differ\n{}", failures.len(), failures.join("\n"));
}

fn run(input: &str) -> String {
    match model::parse(Sources::single("model.sheaf.kdl", input)) {
        Ok(checked) => {
            let json = checked.model.to_json();
            let again = model::Model::from_json(&json).expect("reads back");
            assert_eq!(again, checked.model, "the JSON reads back as another model");
            if checked.warnings.is_empty() { json } else { format!("{json}\n{}", checked.warnings) }
        }
        Err(problems) => problems.to_string(),
    }
}

#[test]
fn every_declaration_of_the_table_has_a_golden_script() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    for row in model::language::TABLE {
        let path = folder.join(format!("{}.golden", row.name));
        assert!(path.exists(), "{} is missing", path.display());
    }
}

#[test]
fn the_table_is_in_order() {
    let names: Vec<&str> = model::language::TABLE.iter().map(|row| row.name).collect();
    assert!(names.is_sorted(), "{names:?}");
}
