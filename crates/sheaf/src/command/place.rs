//! What the subcommands that work on a database have in common: where it is, how it is called, how far the work is.

use super::complain;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a bar is drawn.
const REDRAW: Duration = Duration::from_millis(200);

/// The bar's length.
const WIDTH: u64 = 24;

/// The database that a model is for: what is given, what the URL names, what the model's file or folder is called.
pub(crate) fn database(given: Option<&str>, store: &store::Store, model: Option<&Path>) -> Option<String> {
    let named = || store.default_database().filter(|name| *name != "test").map(str::to_owned);
    given.map(str::to_owned).or_else(named).or_else(|| model.and_then(stem))
}

/// What a model's file or folder is called.
pub(crate) fn stem(model: &Path) -> Option<String> {
    let name = model.canonicalize().ok()?.file_name()?.to_str()?.to_owned();
    let name = name.strip_suffix(".sheaf.kdl").unwrap_or(&name).to_owned();
    (!name.is_empty()).then_some(name)
}

/// A progress bar on standard error, if that is a terminal.
pub(crate) struct Bar {
    shown: bool,
    drawn: Option<Instant>,
}

impl Bar {
    pub(crate) fn new() -> Bar {
        Bar { shown: std::io::stderr().is_terminal(), drawn: None }
    }

    /// Draws it, but not too often.
    pub(crate) fn at(&mut self, what: &str, done: u64, total: u64) {
        if !self.shown || self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        self.drawn = Some(Instant::now());
        let filled = (done.min(total) * WIDTH).checked_div(total).unwrap_or(WIDTH) as usize;
        let bar = format!("{}{}", "#".repeat(filled), "-".repeat(WIDTH as usize - filled));
        complain(&format!("\r[{bar}] {done} of about {total}  {what:<40}"));
    }

    /// Takes it away.
    pub(crate) fn clear(&mut self) {
        if self.shown && self.drawn.take().is_some() {
            complain(&format!("\r{:100}\r", ""));
        }
    }
}

/// Asks a question on the terminal; true for yes.
pub(crate) fn ask(question: &str) -> bool {
    let mut out = std::io::stdout().lock();
    if write!(out, "{question} [y/N] ").and_then(|()| out.flush()).is_err() {
        return false;
    }
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
