//! The subcommands, one file each.

pub(crate) mod advise;
pub(crate) mod apply;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod completions;
pub(crate) mod copy;
pub(crate) mod demo;
pub(crate) mod dump;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod infer;
pub(crate) mod keep;
pub(crate) mod lint;
pub(crate) mod model;
pub(crate) mod place;
pub(crate) mod plan;
pub(crate) mod restore;
pub(crate) mod token;
pub(crate) mod top;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// Reads and checks a model; what is wrong goes to standard error.
pub(crate) fn load(path: &Path) -> Result<::model::Checked, ExitCode> {
    match ::model::load(path) {
        Ok(checked) => {
            if !checked.warnings.is_empty() {
                complain(&checked.warnings.render(width(), std::io::stderr().is_terminal()));
            }
            Ok(checked)
        }
        Err(::model::Error::Refused(problems)) => {
            complain(&problems.render(width(), std::io::stderr().is_terminal()));
            Err(ExitCode::FAILURE)
        }
        Err(error) => {
            complain(&format!("sheaf: {error}\n"));
            Err(ExitCode::FAILURE)
        }
    }
}

/// The terminal's width, as far as the environment tells.
fn width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(100).clamp(40, 200)
}

/// Runs a subcommand that waits for a database.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("can't start: {error}"))?;
    runtime.block_on(work)
}

/// Writes to standard output; a reader that has gone away ends the program quietly.
pub(crate) fn print(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Writes to standard error.
pub(crate) fn complain(text: &str) {
    // Nothing can be done if standard error is gone.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
