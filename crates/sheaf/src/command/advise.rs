//! `sheaf advise`: how a model's relations are best stored; with `--ask` a conversation instead of a model.

use super::{block_on, complain, load, print};
use ::model::advise::ask::{Conversation, Say};
use ::model::advise::calibrate::calibrate as calibrate_store;
use ::model::advise::measure::measure as measure_relation;
use ::model::advise::thresholds::Thresholds;
use clap::Args;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::Store;

/// `sheaf advise …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A *.sheaf.kdl file, or a folder of them
    #[arg(required_unless_present_any = ["ask", "show_thresholds", "calibrate"])]
    model: Option<PathBuf>,
    /// Answer a few questions instead, and get a declaration to paste
    #[arg(long, conflicts_with = "model")]
    ask: bool,
    /// A file that changes limits, rules or costs
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
    /// Print the table of limits, rules and costs
    #[arg(long)]
    show_thresholds: bool,
    /// Measure what things cost on this machine and write the table to a file for --thresholds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "ask"])]
    calibrate: Option<PathBuf>,
    /// Build the candidate designs with generated data and print what they cost beside what was predicted
    #[arg(long)]
    measure: bool,
    /// The advice as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    outcome(arguments).unwrap_or_else(|code| code)
}

fn outcome(arguments: Arguments) -> Result<ExitCode, ExitCode> {
    let failed = |error: &dyn std::fmt::Display| {
        complain(&format!("sheaf: {error}\n"));
        ExitCode::FAILURE
    };
    let table = match &arguments.thresholds {
        None => Thresholds::default(),
        Some(path) => {
            let text =
                std::fs::read_to_string(path).map_err(|error| failed(&format!("{}: {error}", path.display())))?;
            Thresholds::with(&text).map_err(|error| failed(&error))?
        }
    };
    if arguments.show_thresholds {
        return Ok(print(&table.to_toml()));
    }
    if let Some(file) = &arguments.calibrate {
        return calibrate(table, file).map_err(|message| failed(&message));
    }
    let Some(path) = &arguments.model else { return Ok(converse(table)) };
    let model = load(path)?.model;
    if arguments.measure {
        return measure(&model, &table, arguments.json).map_err(|message| failed(&message));
    }
    let advice = ::model::advise::advise(&model, &table, ::model::today());
    Ok(print(&if arguments.json { advice.to_json() } else { advice.render() }))
}

/// A store in a folder that goes away with the process's work.
fn temporary() -> Result<(Store, PathBuf), String> {
    let folder = std::env::temp_dir().join(format!("sheaf-advise-{}", std::process::id()));
    let store = Store::open(&folder).map_err(|error| error.to_string())?;
    Ok((store, folder))
}

fn calibrate(mut table: Thresholds, file: &Path) -> Result<ExitCode, String> {
    let (store, folder) = temporary()?;
    let costs = block_on(async { calibrate_store(&store).await.map_err(|error| error.to_string()) });
    drop(store);
    // What is left behind is in the system's folder for temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    table.costs = costs?;
    let text = table.to_toml();
    std::fs::write(file, &text).map_err(|error| format!("can't write {}: {error}", file.display()))?;
    Ok(print(&text))
}

fn measure(model: &::model::Model, table: &Thresholds, json: bool) -> Result<ExitCode, String> {
    let (store, folder) = temporary()?;
    let measured = block_on(async {
        let mut all = Vec::new();
        for relation in ::model::advise::collect::relations(model).iter().filter(|relation| !relation.many_to_many) {
            all.push(measure_relation(&store, relation, table).await.map_err(|error| error.to_string())?);
        }
        Ok(all)
    });
    drop(store);
    let _ = std::fs::remove_dir_all(&folder);
    let measured = measured?;
    if json {
        let text = serde_json::to_string_pretty(&measured).map_err(|error| error.to_string())?;
        return Ok(print(&format!("{text}\n")));
    }
    let mut text = String::new();
    for measurement in &measured {
        text.push_str(&format!("{}: Kendall's tau {:.2}\n", measurement.name, measurement.tau));
        for (design, predicted, measured) in &measurement.designs {
            let design = design.to_string();
            text.push_str(&format!(
                "    {design:24} predicted {predicted:9.2}, measured {measured:9.2} ms of work a second\n"
            ));
        }
    }
    let mean = measured.iter().map(|measurement| measurement.tau).sum::<f64>() / measured.len().max(1) as f64;
    text.push_str(&format!("{} relations, mean Kendall's tau {mean:.2}\n", measured.len()));
    Ok(print(&text))
}

/// Asks at the terminal until the declaration is there or the input ends.
fn converse(table: Thresholds) -> ExitCode {
    let mut conversation = Conversation::new(table);
    let mut lines = std::io::stdin().lock().lines();
    loop {
        match conversation.say() {
            Say::Done { design, reason, declaration } => {
                return print(&format!("\n// {design}: {reason}\n{declaration}"));
            }
            Say::Ask { question, expected } => complain(&format!("{question} ({expected}) ")),
        }
        let Some(Ok(line)) = lines.next() else { return ExitCode::FAILURE };
        if let Err(expected) = conversation.answer(&line) {
            complain(&format!("please answer with {expected}\n"));
        }
    }
}
