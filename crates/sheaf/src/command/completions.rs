//! `sheaf completions SHELL`: the script that completes `sheaf`'s commands and flags in a shell.
//!
//! `sheaf completions bash > /etc/bash_completion.d/sheaf`, `sheaf completions zsh > "${fpath[1]}/_sheaf"`,
//! `sheaf completions fish > ~/.config/fish/completions/sheaf.fish`.

use clap::{Args, Command};
use clap_complete::Shell;
use std::process::ExitCode;

/// The flags.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

/// Prints the script for the command line `tree`.
pub(crate) fn run(arguments: &Arguments, mut tree: Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut tree, "sheaf", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}
