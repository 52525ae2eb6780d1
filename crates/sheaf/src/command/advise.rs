//! `sheaf advise`: how a model's relations are best stored; with `--ask` a conversation instead of a model.

use super::{complain, load, print};
use ::model::advise::ask::{Conversation, Say};
use ::model::advise::thresholds::Thresholds;
use clap::Args;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;

/// `sheaf advise …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A *.sheaf.kdl file, or a folder of them
    #[arg(required_unless_present_any = ["ask", "show_thresholds"])]
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
    let Some(path) = &arguments.model else { return Ok(converse(table)) };
    let model = load(path)?.model;
    let advice = ::model::advise::advise(&model, &table, ::model::today());
    Ok(print(&if arguments.json { advice.to_json() } else { advice.render() }))
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
