//! `sheaf model check|show|diff`: read a model, say what it is, say what a change of it means.

use super::{complain, load, print};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// `sheaf model …`
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Check a model; the exit status tells whether it can be used
    Check {
        /// A *.sheaf.kdl file, or a folder of them
        model: PathBuf,
        /// Treat warnings as errors
        #[arg(long)]
        strict: bool,
    },
    /// Show a model: a summary, or with --json its canonical form
    Show {
        /// A *.sheaf.kdl file, or a folder of them
        model: PathBuf,
        /// Canonical JSON, versioned and in a stable order
        #[arg(long)]
        json: bool,
    },
    /// Say what a change of a model means for a live database
    Diff {
        /// The old model
        old: PathBuf,
        /// The new model
        new: PathBuf,
        /// The steps as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the declarations of the language
    Language,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    outcome(arguments).unwrap_or_else(|code| code)
}

fn outcome(arguments: Arguments) -> Result<ExitCode, ExitCode> {
    match arguments.action {
        Action::Check { model, strict } => {
            let checked = load(&model)?;
            if strict && !checked.warnings.is_empty() {
                return Err(ExitCode::FAILURE);
            }
            let model = checked.model;
            let (entities, edges, queries) = (model.entities.len(), model.edges.len(), model.queries.len());
            complain(&format!("the model holds: {entities} entities, {edges} edges, {queries} queries\n"));
            Ok(ExitCode::SUCCESS)
        }
        Action::Show { model, json } => {
            let model = load(&model)?.model;
            Ok(print(&if json { model.to_json() } else { ::model::show::show(&model) }))
        }
        Action::Diff { old, new, json } => {
            let steps = ::model::diff::diff(&load(&old)?.model, &load(&new)?.model);
            Ok(print(&if json { ::model::diff::to_json(&steps) } else { ::model::diff::render(&steps) }))
        }
        Action::Language => {
            let rows = ::model::language::TABLE.iter();
            let text: String =
                rows.map(|row| format!("{:10} {}\n           {}\n", row.name, row.meaning, row.syntax)).collect();
            Ok(print(&text))
        }
    }
}
