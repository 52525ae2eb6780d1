//! What the house asks of the code and no compiler checks: see ARCHITECTURE.md, "House rules".

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file stops before this many lines, its tests apart.
const MAX_FILE_LINES: usize = 800;

/// A function fits a screen; what goes beyond this is refused.
const MAX_FUNCTION_LINES: usize = 100;

/// Which of our packages each package may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("engine", &[]),
    ("wire", &["engine"]),
    ("store", &["engine"]),
    ("model", &["store", "engine"]),
    ("commerce", &["model", "store"]),
    ("social", &["model", "store"]),
    ("http", &["commerce", "social", "model", "store"]),
];

/// Licences that our dependencies may have.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "CC0-1.0",
    "0BSD",
    "BSL-1.0",
    "MIT-0",
    "OpenSSL",
    "CDLA-Permissive-2.0",
    "MPL-2.0",
    "ICU",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace").to_owned()
}

/// All Rust sources below a folder, with their text.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "target" && name != "node_modules") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no sources below {}", folder.display());
    found
}

fn is_test(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.contains("/tests/") || text.ends_with("/tests.rs") || text.contains("/benches/") || text.ends_with("_tests.rs")
}

/// The part of a file before its unit tests.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests").map_or(text, |end| &text[..end])
}

fn report(problems: &[String]) {
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn files_have_a_module_doc_and_stop_before_800_lines() {
    let mut problems = Vec::new();
    for (path, text) in sources(&root().join("crates")) {
        if !text.starts_with("//!") {
            problems.push(format!("{}: begins without a module doc (//!)", path.display()));
        }
        let lines = without_tests(&text).lines().count();
        if lines > MAX_FILE_LINES && !is_test(&path) {
            problems.push(format!("{}: {lines} lines, more than {MAX_FILE_LINES}; split it", path.display()));
        }
    }
    report(&problems);
}

#[test]
fn functions_fit_a_screen() {
    let mut problems = Vec::new();
    for (path, text) in sources(&root().join("crates")).iter().filter(|source| !is_test(&source.0)) {
        let lines: Vec<&str> = without_tests(text).lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let head = line
                .trim_start()
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ")
                .trim_start_matches("pub(super) ");
            let head = head.trim_start_matches("async ").trim_start_matches("const ");
            if !head.starts_with("fn ") || line.trim_end().ends_with(';') {
                continue;
            }
            let close = format!("{}}}", " ".repeat(indent));
            let length = lines[start..].iter().position(|line| *line == close).unwrap_or(0);
            if length > MAX_FUNCTION_LINES {
                problems.push(format!("{}:{}: {length} lines; split it: {}", path.display(), start + 1, line.trim()));
            }
        }
    }
    report(&problems);
}

#[test]
fn nothing_is_left_half_done() {
    let mut problems = Vec::new();
    for (path, text) in sources(&root().join("crates")).iter().filter(|source| !is_test(&source.0)) {
        let in_binary = path.starts_with(root().join("crates/sheaf"));
        for (number, line) in without_tests(text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let mut forbidden = vec!["dbg!(", "todo!(", "unimplemented!("];
            if !in_binary {
                forbidden.extend(["println!(", "print!("]);
            }
            for word in forbidden.iter().filter(|word| code.contains(**word)) {
                if !(*word == "print!(" && code.contains("eprint!(")) {
                    problems.push(format!("{}:{}: {word}", path.display(), number + 1));
                }
            }
        }
    }
    report(&problems);
}

#[test]
fn tests_are_ignored_only_for_a_reason_in_compat() {
    let compat = std::fs::read_to_string(root().join("COMPAT.md")).unwrap_or_default();
    let mut problems = Vec::new();
    for (path, text) in sources(&root().join("crates")) {
        let lines: Vec<&str> = text.lines().collect();
        for (number, _) in lines.iter().enumerate().filter(|(_, line)| line.trim_start().starts_with("#[ignore")) {
            let name = lines[number..].iter().find_map(|line| line.trim_start().strip_prefix("fn ")?.split('(').next());
            if !name.is_some_and(|name| compat.contains(name)) {
                problems.push(format!("{}:{}: ignored without a reason in COMPAT.md", path.display(), number + 1));
            }
        }
    }
    report(&problems);
}

#[test]
fn layers_point_down_only() {
    let mut problems = Vec::new();
    for (layer, allowed) in LAYERS {
        let manifest = std::fs::read_to_string(root().join("crates").join(layer).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("[dev-dependencies]").next().unwrap_or_default();
        for (other, _) in LAYERS {
            let depends = dependencies
                .lines()
                .any(|line| line.starts_with(&format!("{other}.")) || line.starts_with(&format!("{other} ")));
            if depends && !allowed.contains(other) {
                problems.push(format!("{layer} may not depend on {other}"));
            }
        }
    }
    report(&problems);
}

#[test]
fn operator_families_import_from_their_left_only() {
    let families = ["document", "accumulator", "expression", "filter", "projection", "update", "stage", "plan"];
    let engine = root().join("crates/engine/src");
    let mut problems = Vec::new();
    for (rank, family) in families.iter().enumerate().take(7) {
        let folder = engine.join(family);
        if !folder.exists() {
            continue;
        }
        for (path, text) in sources(&folder).iter().filter(|source| !is_test(&source.0)) {
            for (right, other) in families.iter().enumerate().skip(rank + 1) {
                let imports = without_tests(text).contains(&format!("crate::{other}::"));
                let allowed = right == rank || (*family == "stage" && *other == "plan");
                if imports && !allowed {
                    problems.push(format!("{}: {family} imports from {other}", path.display()));
                }
            }
        }
    }
    report(&problems);
}

#[test]
fn storage_knows_no_documents() {
    let mut problems = Vec::new();
    for (path, text) in sources(&root().join("crates/engine/src/storage")) {
        for word in ["bson::", "crate::document", "crate::catalog", "crate::filter"] {
            if text.contains(word) {
                problems.push(format!("{}: mentions {word}", path.display()));
            }
        }
    }
    report(&problems);
}

/// What `cargo metadata` says about all packages that we build with.
fn metadata() -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn dependencies_are_licensed_permissively() {
    let mut problems = BTreeMap::new();
    for package in metadata()["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or("none").replace('/', " OR ");
        let fine = licence
            .split(" OR ")
            .any(|choice| choice.split(" AND ").all(|part| LICENCES.contains(&part.trim().trim_matches(['(', ')']))));
        let fine = fine
            || licence
                .split(" AND ")
                .all(|part| part.split(" OR ").any(|c| LICENCES.contains(&c.trim().trim_matches(['(', ')']))));
        if !fine {
            problems.insert(name.to_owned(), licence);
        }
    }
    assert!(problems.is_empty(), "licences to look at: {problems:?}");
}

#[test]
fn dependencies_are_used() {
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let names: BTreeSet<String> = manifest
            .split("dependencies]")
            .skip(1)
            .flat_map(|section| section.split("\n[").next().unwrap_or_default().lines())
            .filter_map(|line| line.split(['.', ' ', '=']).next().map(str::trim))
            .filter(|name| !name.is_empty() && !name.starts_with(['#', '[']))
            // The one package whose library has another name.
            .map(|name| if name == "md-5" { "md5".to_owned() } else { name.replace('-', "_") })
            .collect();
        let text: String = sources(&folder).into_iter().map(|source| source.1).collect();
        for name in names {
            let used = [format!("{name}::"), format!("use {name};"), format!("extern crate {name}")];
            if !used.iter().any(|used| text.contains(used.as_str())) {
                problems.push(format!("{}: {name} is not used", folder.display()));
            }
        }
    }
    report(&problems);
}
