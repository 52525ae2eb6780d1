//! `sheaf audit`: compares whatever the model keeps with its source, and puts it right where that is asked for.

use super::place::{self, Bar};
use super::{complain, load, print};
use crate::metrics::{self, Pages, Text};
use ::model::audit::{Auditor, Finding, State};
use ::model::{Model, apply, value};
use bson::{Bson, Document, doc};
use clap::Args;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// `sheaf audit …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A folder with data, or the mongodb:// URL of a deployment
    place: String,
    /// A *.sheaf.kdl file, or a folder of them (default: the model that is active there)
    model: Option<PathBuf>,
    /// The database (default: the one that the URL names, or what the model is called)
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Put right what drifted
    #[arg(long)]
    repair: bool,
    /// Again and again, with so much time in between, e.g. 1h
    #[arg(long, value_name = "TIME")]
    every: Option<String>,
    /// With --every: port for Prometheus (/metrics) and health (/health) on 127.0.0.1 (0 takes any free one)
    #[arg(long, value_name = "N", requires = "every")]
    metrics_port: Option<u16>,
    /// Only these declarations, e.g. user.orderCount
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// At most so many documents a second
    #[arg(long, value_name = "N")]
    rate: Option<u64>,
    /// Keep in this file how far it is, and go on from there
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// The report as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command; it fails when something drifted and was not put right.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let model = match arguments.model.as_deref().map(load).transpose() {
        Ok(checked) => checked.map(|checked| checked.model),
        Err(code) => return code,
    };
    let every = match arguments.every.as_deref().map(value::Duration::parse) {
        Some(None) => {
            complain("sheaf: --every takes a time such as 30m or 1h\n");
            return ExitCode::FAILURE;
        }
        Some(Some(every)) => Some(Duration::from_millis(every.ms)),
        None => None,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("sheaf: {error}\n"));
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(audit(arguments, model, every)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain(&format!("sheaf: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

async fn audit(arguments: &Arguments, model: Option<Model>, every: Option<Duration>) -> ::model::Result<bool> {
    let store = ::model::store_at(&arguments.place).await?;
    let Some(database) = place::database(arguments.database.as_deref(), &store, arguments.model.as_deref()) else {
        complain("sheaf: name the database with --database\n");
        return Ok(false);
    };
    let model = match model {
        Some(model) => model,
        None => match apply::active_model(&store, &database).await?.1 {
            Some(model) => model,
            None => {
                complain(&format!("sheaf: no model is active for {database}; give one\n"));
                return Ok(false);
            }
        },
    };
    let known: Arc<Mutex<Vec<Finding>>> = Arc::default();
    if let Some(port) = arguments.metrics_port {
        match metrics::start("127.0.0.1", port, pages(known.clone())).await {
            Ok(address) => complain(&format!("sheaf audit: metrics: http://{address}/metrics\n")),
            Err(error) => {
                complain(&format!("sheaf: the metrics' port {port}: {error}\n"));
                return Ok(false);
            }
        }
    }
    loop {
        let findings = once(arguments, &store, &database, &model).await?;
        let true_to_it = findings.iter().all(|finding| finding.drifted == finding.repaired);
        *known.lock().unwrap_or_else(PoisonError::into_inner) = findings;
        match every {
            Some(every) => tokio::time::sleep(every).await,
            None => return Ok(true_to_it),
        }
    }
}

async fn once(
    arguments: &Arguments,
    store: &store::Store,
    database: &str,
    model: &Model,
) -> ::model::Result<Vec<Finding>> {
    let mut auditor = Auditor::new(store, database, model)?;
    auditor.options.repair = arguments.repair;
    auditor.options.rate = arguments.rate;
    auditor.options.only = (!arguments.only.is_empty()).then(|| arguments.only.clone());
    auditor.resume(arguments.state.as_deref().and_then(read_state));
    let mut bar = Bar::new();
    let mut total = (String::new(), 0);
    while auditor.step().await? {
        let current = auditor.current();
        if total.0 != current.declaration {
            total =
                (current.declaration.clone(), store.collection(database, &current.collection).estimated_count().await?);
        }
        bar.at(&current.declaration, current.checked, total.1);
        if let Some(file) = &arguments.state {
            write_state(file, auditor.state());
        }
    }
    bar.clear();
    if let Some(file) = &arguments.state {
        // It is complete; the next run begins anew.
        let _ = std::fs::remove_file(file);
    }
    let findings = auditor.findings();
    print(&if arguments.json { json(database, findings) } else { report(findings) });
    Ok(findings.to_vec())
}

/// A number of a finding.
type Number = fn(&Finding) -> u64;

/// The last audit's findings as metrics, by declaration.
fn pages(known: Arc<Mutex<Vec<Finding>>>) -> Pages {
    let health = known.clone();
    let page = move || {
        let findings = known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Text::default();
        let families: [(&str, &str, Number); 5] = [
            ("audit_checked", "Documents that the last audit compared.", |one| one.checked),
            ("audit_drifted", "Documents that differed from their source.", |one| one.drifted),
            ("audit_repaired", "Those that were put right.", |one| one.repaired),
            ("audit_orphans", "Documents that refer to nothing.", |one| one.orphans),
            ("audit_lagging", "Copies that are noted to follow.", |one| one.lagging),
        ];
        for (name, help, value) in families {
            text.family(name, "gauge", help);
            for finding in findings.iter() {
                text.value(name, &[("declaration", &finding.declaration)], value(finding) as f64);
            }
        }
        text.0
    };
    let health = move || {
        let findings = health.lock().unwrap_or_else(PoisonError::into_inner);
        let left = findings.iter().filter(|one| one.drifted > one.repaired);
        let reasons: Vec<String> =
            left.map(|one| format!("{}: {} drifted", one.declaration, one.drifted - one.repaired)).collect();
        let word = if reasons.is_empty() { "ok" } else { "degraded" };
        ("200 OK", metrics::state(word, &reasons))
    };
    Pages::new(page, health)
}

fn read_state(file: &Path) -> Option<State> {
    let text = std::fs::read_to_string(file).ok()?;
    let value: Bson = serde_json::from_str::<serde_json::Value>(&text).ok()?.try_into().ok()?;
    State::from_bson(&value)
}

fn write_state(file: &Path, state: &State) {
    let text = state.to_bson().into_canonical_extjson().to_string();
    let temporary = file.with_extension("tmp");
    let written = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, file));
    if let Err(error) = written {
        complain(&format!("sheaf: {} can't be written: {error}\n", file.display()));
    }
}

fn json(database: &str, findings: &[Finding]) -> String {
    let list: Vec<Bson> = findings.iter().map(|finding| finding.to_document().into()).collect();
    let document: Document = doc! { "version": 1, "database": database, "declarations": list };
    let mut text = serde_json::to_string_pretty(&Bson::Document(document).into_relaxed_extjson()).unwrap_or_default();
    text.push('\n');
    text
}

fn report(findings: &[Finding]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header(["declaration", "kind", "checked", "drifted", "repaired", "orphans", "lagging"]);
    for one in findings {
        let numbers =
            [one.checked, one.drifted, one.repaired, one.orphans, one.lagging].map(|number| number.to_string());
        let mut row = vec![one.declaration.clone(), one.kind.clone()];
        row.extend(numbers);
        table.add_row(row);
    }
    let mut text = format!("{table}\n");
    for one in findings {
        if let Some(reason) = &one.skipped {
            let _ = writeln!(text, "{} was not compared: {reason}", one.declaration);
        }
        for example in &one.examples {
            let _ = writeln!(
                text,
                "{} {}: {} is stored, {} expected",
                one.declaration, example.id, example.stored, example.expected
            );
        }
    }
    text
}
