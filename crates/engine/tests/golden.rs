//! Golden scripts: `testdata/<family>/<operator>.golden`.
//!
//! A script is a list of cases separated by blank lines. A case has comment lines (`#`), one statement a line above `---`,
//! and below it one line for what each statement gives. Where we differ from MongoDB on purpose, a comment
//! `# differs: reason` says so. Statements and results:
//!
//! ```text
//! eval EXPRESSION                       the value, `missing`, or `error CODE`
//! eval EXPRESSION over DOCUMENT         the same, with the document's fields in scope
//! match FILTER DOCUMENT                 `true`, `false`, or `error CODE`
//! project SPEC DOCUMENT [FILTER]        the document that comes out of a `find` projection, or `error CODE`
//! set SPEC DOCUMENT                     the document with computed fields, or `error CODE`
//! update DOCUMENT UPDATE [OPTIONS]      the document after, `no change`, or `error CODE`
//! pipeline [DOCUMENT…] [STAGE…] [OPTIONS]   the documents that come out, or `error CODE`
//! accumulate ACCUMULATOR over DOCUMENTS           the value over an array of documents
//! window FUNCTION SORT over DOCUMENTS             the values, one a document, in the order of SORT
//! ```
//!
//! Values are relaxed extended JSON, but an int64 is always `{"$numberLong": "…"}`, so that result types are seen.

#![allow(clippy::unwrap_used, reason = "a failing script shall stop the test")]

mod support;

use bson::{Bson, RawDocumentBuf};
use engine::accumulator::{self, window::Rows};
use engine::document::{Value, order};
use engine::expression::{self, Accumulation, Environment, Parser, Scope, WindowExpression};
use engine::filter::{self, Filter};
use engine::projection::{AddFields, Mode, Projection};
use engine::stage;
use engine::update::{self, Update, UpdateContext};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// One case of a script.
#[derive(Debug, Default)]
struct Case {
    line: usize,
    statements: Vec<String>,
    expected: Vec<String>,
}

#[test]
fn every_script_gives_what_it_says() {
    let mut report = String::new();
    let (mut scripts, mut statements) = (0, 0);
    for path in scripts_below(&testdata()) {
        scripts += 1;
        let name = path.strip_prefix(testdata()).unwrap().display().to_string();
        for case in parse_script(&name, &std::fs::read_to_string(&path).unwrap()) {
            statements += case.statements.len();
            check(&name, &case, &mut report);
        }
    }
    assert!(scripts > 0 && statements > 0, "no scripts found");
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn operator_tables_are_sorted_and_each_operator_has_a_script() {
    let names: Vec<&str> = expression::OPERATORS.iter().map(|operator| operator.name).collect();
    assert_table("expression", &names);
    let names: Vec<&str> = update::OPERATORS.iter().map(|operator| operator.name).collect();
    assert_table("update", &names);
    let names: Vec<&str> = filter::OPERATORS.iter().map(|operator| operator.name).collect();
    assert_table("filter", &names);
    let names: Vec<&str> = stage::STAGES.iter().map(|stage| stage.name).collect();
    assert_table("stage", &names);
    let names: Vec<&str> = accumulator::ACCUMULATORS.iter().map(|kind| kind.name).collect();
    assert_table("accumulator", &names);
    let names = WindowExpression::names();
    let own: Vec<&str> = names.into_iter().filter(|name| accumulator::find(name).is_none()).collect();
    assert_table("window", &own);
}

/// Sorted by name without duplicates, and a golden file for each name.
fn assert_table(family: &str, names: &[&str]) {
    assert!(names.is_sorted_by(|a, b| a < b), "the table of family {family} is not sorted by name");
    let without: Vec<_> = names
        .iter()
        .filter(|name| !testdata().join(family).join(format!("{}.golden", name.trim_start_matches('$'))).exists())
        .collect();
    assert!(without.is_empty(), "no golden file in testdata/{family}/ for {without:?}");
}

/// Runs a case and writes a difference into the report.
fn check(script: &str, case: &Case, report: &mut String) {
    let given: Vec<String> = case.statements.iter().map(|statement| run(statement)).collect();
    let expected: Vec<String> = case.expected.iter().map(|line| normalized(line)).collect();
    if given == expected {
        return;
    }
    writeln!(report, "{script}:{}", case.line).unwrap();
    for (index, statement) in case.statements.iter().enumerate() {
        let expected = expected.get(index).map_or("(no line)", String::as_str);
        let mark = if given[index] == expected { " " } else { "!" };
        writeln!(report, "{mark} {statement}").unwrap();
        if given[index] != expected {
            writeln!(report, "    expected {expected}\n    given    {}", given[index]).unwrap();
        }
    }
    if case.statements.len() != expected.len() {
        writeln!(report, "  {} statements but {} results", case.statements.len(), expected.len()).unwrap();
    }
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

fn scripts_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(scripts_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "golden") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn parse_script(name: &str, text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut case = Case::default();
    let mut below = false;
    for (index, line) in text.lines().chain([""]).enumerate() {
        let line = line.trim_end();
        if line.is_empty() {
            if !case.statements.is_empty() {
                assert!(below, "{name}:{}: a case without ---", case.line);
                cases.push(std::mem::take(&mut case));
            }
            below = false;
        } else if line == "---" {
            below = true;
        } else if line.starts_with('#') {
        } else if below {
            case.expected.push(line.to_owned());
        } else {
            case.line = if case.statements.is_empty() { index + 1 } else { case.line };
            case.statements.push(line.to_owned());
        }
    }
    cases
}

/// Runs one statement and prints what it gives.
fn run(statement: &str) -> String {
    let (verb, rest) = statement.split_once(' ').unwrap_or((statement, ""));
    let arguments = values(rest);
    match (verb, &arguments[..]) {
        ("eval", [expression]) => evaluate(expression, &RawDocumentBuf::new()),
        ("eval", [expression, document]) => evaluate(expression, &raw_document(document)),
        ("accumulate", [accumulator, documents]) => printed(accumulate(&raw_document(accumulator), documents)),
        ("window", [function, sort, documents]) => {
            printed(window(&raw_document(function), &raw_document(sort), documents))
        }
        ("match", [filter, document]) => matches(&raw_document(filter), &raw_document(document)),
        ("project", [specification, document]) => {
            projected(&raw_document(specification), &raw_document(document), &RawDocumentBuf::new())
        }
        ("project", [specification, document, filter]) => {
            projected(&raw_document(specification), &raw_document(document), &raw_document(filter))
        }
        ("set", [specification, document]) => with_fields(&raw_document(specification), &raw_document(document)),
        ("pipeline", [documents, stages]) => piped(documents, stages, &RawDocumentBuf::new()),
        ("pipeline", [documents, stages, options]) => piped(documents, stages, &raw_document(options)),
        ("update", [document, update]) => updated(&raw_document(document), update, None),
        ("update", [document, update, options]) => {
            updated(&raw_document(document), update, Some(&raw_document(options)))
        }
        _ => format!("not a statement: {verb} with {} arguments", arguments.len()),
    }
}

fn evaluate(expression: &Bson, document: &RawDocumentBuf) -> String {
    let wrapped = RawDocumentBuf::try_from(&bson::doc! { "e": expression.clone() }).unwrap();
    let argument = wrapped.get("e").unwrap().unwrap();
    let compiled = match expression::parse(argument, &mut Parser::new()) {
        Ok(compiled) => compiled,
        Err(error) => return format!("error {}", error.code.0),
    };
    let environment = Environment::fixed();
    match compiled.evaluate(&Scope::new(document, &environment)) {
        Ok(Value::Missing) => "missing".to_owned(),
        Ok(value) => json(Bson::try_from(bson::RawBson::from(value.or_null())).unwrap()).to_string(),
        Err(error) => format!("error {}", error.code.0),
    }
}

fn printed(result: engine::Result<bson::RawBson>) -> String {
    match result {
        Ok(value) => json(Bson::try_from(value).unwrap()).to_string(),
        Err(error) => format!("error {}", error.code.0),
    }
}

fn documents_of(documents: &Bson) -> Vec<RawDocumentBuf> {
    documents.as_array().expect("an array of documents").iter().map(raw_document).collect()
}

/// What an accumulator makes of documents in one group.
fn accumulate(accumulator: &RawDocumentBuf, documents: &Bson) -> engine::Result<bson::RawBson> {
    let (name, argument) = accumulator.iter().next().unwrap().unwrap();
    let parsed = Accumulation::parse_in_group(name.as_str(), argument, &mut Parser::new())?;
    let (environment, group) = (Environment::fixed(), bson::rawdoc! { "_id": null });
    let mut state = parsed.start(&Scope::new(&group, &environment))?;
    for document in documents_of(documents) {
        state.add(parsed.operand(&Scope::new(&document, &environment))?)?;
    }
    Ok(state.result()?.or_null().into())
}

/// What a window function gives for each document of one partition.
fn window(function: &RawDocumentBuf, sort: &RawDocumentBuf, documents: &Bson) -> engine::Result<bson::RawBson> {
    let sort_by = if sort.is_empty() { Vec::new() } else { order::parse_pattern(sort)? };
    let parsed = WindowExpression::parse(function, &sort_by, &mut Parser::new())?;
    let environment = Environment::fixed();
    let descending: Vec<bool> = sort_by.iter().map(|field| field.descending).collect();
    let mut keyed = Vec::new();
    for document in documents_of(documents) {
        keyed.push((order::sort_key(&document, &sort_by, None)?, document));
    }
    keyed.sort_by(|(a, _), (b, _)| {
        order::compare_keys(a.iter().map(Value::or_null), b.iter().map(Value::or_null), &descending, None).unwrap()
    });
    let (keys, sorted): (Vec<_>, Vec<_>) = keyed.into_iter().unzip();
    let mut operands = Vec::new();
    for document in &sorted {
        operands.push(parsed.operand(&Scope::new(document, &environment))?.into_owned());
    }
    let rows = Rows { operands: &operands, keys: &keys, descending: &descending, collator: None };
    let mut values = bson::RawArrayBuf::new();
    parsed.compute(&rows, &environment)?.iter().for_each(|value| values.push(value.or_null()));
    Ok(values.into())
}

/// What a filter says of a document.
fn matches(filter: &RawDocumentBuf, document: &RawDocumentBuf) -> String {
    let parsed = Filter::parse(filter, &mut Parser::new(), None);
    match parsed.and_then(|filter| filter.matches(document, &Environment::fixed())) {
        Ok(matches) => matches.to_string(),
        Err(error) => format!("error {}", error.code.0),
    }
}

/// What a `find` projection makes of a document that matched a filter.
fn projected(specification: &RawDocumentBuf, document: &RawDocumentBuf, filter: &RawDocumentBuf) -> String {
    let environment = Environment::fixed();
    let project = || {
        let filter = Filter::parse(filter, &mut Parser::new(), None)?;
        let projection = Projection::parse(specification, Some(&filter), &mut Parser::new(), Mode::Find)?;
        let position = filter.matched_position(document, &environment)?.map(|(_, position)| position);
        projection.apply(document, &environment, position)
    };
    printed(project().map(bson::RawBson::Document))
}

/// What computed fields make of a document.
fn with_fields(specification: &RawDocumentBuf, document: &RawDocumentBuf) -> String {
    let parsed = AddFields::parse(specification, &mut Parser::new());
    printed(parsed.and_then(|fields| fields.apply(document, &Environment::fixed())).map(bson::RawBson::Document))
}

/// What an update makes of a document. Options: `arrayFilters`, `query` (for the positional `$`), `inserting`.
fn updated(document: &RawDocumentBuf, update: &Bson, options: Option<&RawDocumentBuf>) -> String {
    match apply_update(document, update, options) {
        Ok(Some(after)) => json(Bson::try_from(bson::RawBson::Document(after)).unwrap()).to_string(),
        Ok(None) => "no change".to_owned(),
        Err(error) => format!("error {}", error.code.0),
    }
}

fn apply_update(
    document: &RawDocumentBuf,
    update: &Bson,
    options: Option<&RawDocumentBuf>,
) -> engine::Result<Option<RawDocumentBuf>> {
    let empty = RawDocumentBuf::new();
    let options = options.unwrap_or(&empty);
    let wrapped = RawDocumentBuf::try_from(&bson::doc! { "u": update.clone() }).unwrap();
    let filters: Vec<_> = match options.get_array("arrayFilters") {
        Ok(filters) => filters.into_iter().map(|filter| filter.unwrap().as_document().unwrap()).collect(),
        Err(_) => Vec::new(),
    };
    let update = Update::parse(wrapped.get("u").unwrap().unwrap(), &filters, &mut Parser::new(), None)?;
    let environment = Environment::fixed();
    let position = match options.get_document("query") {
        Ok(query) => {
            let filter = Filter::parse(query, &mut Parser::new(), None)?;
            filter.matched_position(document, &environment)?.map(|(_, position)| position)
        }
        Err(_) => None,
    };
    let inserting = options.get_bool("inserting").unwrap_or(false);
    update.apply(document, &UpdateContext { environment: &environment, position, inserting })
}

/// What a pipeline gives. Options: `collections` (name and documents of others), `memory` (bytes), `database` (no collection),
/// `show` (the collection to show afterwards in the place of the results).
fn piped(documents: &Bson, stages: &Bson, options: &RawDocumentBuf) -> String {
    match support::run_pipeline(documents, stages, options) {
        Ok(rows) => {
            let rows = rows.into_iter().map(|row| json(Bson::try_from(bson::RawBson::Document(row)).unwrap()));
            serde_json::Value::Array(rows.collect()).to_string()
        }
        Err(error) => format!("error {}", error.code.0),
    }
}

/// The extended JSON values in a statement; the word `over` between two of them is skipped.
fn values(mut text: &str) -> Vec<Bson> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start();
        text = text.strip_prefix("over ").unwrap_or(text);
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
        match stream.next() {
            None => return found,
            Some(Ok(value)) => {
                found.push(Bson::try_from(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}")));
            }
            Some(Err(error)) => panic!("not JSON: {text}: {error}"),
        }
        let end = stream.byte_offset();
        text = &text[end..];
    }
}

fn raw_document(value: &Bson) -> RawDocumentBuf {
    let document = value.as_document().unwrap_or_else(|| panic!("not a document: {value}"));
    RawDocumentBuf::try_from(document).unwrap()
}

/// An expected line in the form in which results are printed, whatever its spaces.
fn normalized(line: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(line).ok().and_then(|value| Bson::try_from(value).ok()) {
        Some(value) => json(value).to_string(),
        None => line.to_owned(),
    }
}

/// Relaxed extended JSON in which an int64 keeps its type.
fn json(value: Bson) -> serde_json::Value {
    match value {
        Bson::Int64(number) => serde_json::json!({ "$numberLong": number.to_string() }),
        Bson::Array(array) => array.into_iter().map(json).collect(),
        Bson::Document(document) => document.into_iter().map(|(name, value)| (name, json(value))).collect(),
        other => other.into_relaxed_extjson(),
    }
}
