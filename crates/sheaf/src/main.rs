//! The `sheaf` binary: command line, configuration, wiring.

mod command;
mod log;
mod memory;
mod metrics;
mod serve;
mod transfer;
mod web;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// It gives freed memory back to the system, also after a storm of large messages, where the C library's would keep it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Sheaf: a document database with the data model built in.
#[derive(Parser)]
#[command(name = "sheaf", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a folder over MongoDB's wire protocol
    Serve(Box<serve::Arguments>),
    /// Play a shop and a social scene, print what happened, and serve it
    Demo(command::demo::Arguments),
    /// Check, show and compare models
    Model(command::model::Arguments),
    /// Advise how a model's relations are best stored, with costs and forecasts
    Advise(command::advise::Arguments),
    /// Make a database what a model says, and let the model take effect
    Apply(command::apply::Arguments),
    /// Compare whatever a model keeps with its source, and put it right
    Audit(command::audit::Arguments),
    /// Plan the indexes and shard keys of a model
    Plan(command::plan::Arguments),
    /// Find what hurts in a live database, or will
    Lint(Box<command::lint::Arguments>),
    /// Write a model of what a live database holds and is asked
    Infer(command::infer::Arguments),
    /// Keep a model true on a deployment that others write to
    Keep(command::keep::Arguments),
    /// Make and take back bearer tokens of the HTTP API
    Token(command::token::Arguments),
    /// Write collections to a folder of BSON files, as mongodump does
    Dump(command::dump::Arguments),
    /// Read collections from a folder of BSON files
    Restore(command::restore::Arguments),
    /// Write documents of a collection as JSON or CSV
    Export(command::export::Arguments),
    /// Read documents from JSON or CSV
    Import(Box<command::import::Arguments>),
    /// Copy everything between a folder and a deployment, and follow what changes
    Copy(command::copy::Arguments),
    /// Back up while everything goes on, restore to a moment, and rehearse it
    Backup(command::backup::Arguments),
    /// A line each second of what a server does
    Top(command::top::Arguments),
    /// Print the script that completes commands and flags in a shell
    Completions(command::completions::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(arguments) => serve::run(*arguments),
        Command::Demo(arguments) => command::demo::run(arguments),
        Command::Token(arguments) => command::token::run(arguments),
        Command::Model(arguments) => return command::model::run(arguments),
        Command::Advise(arguments) => return command::advise::run(arguments),
        Command::Apply(arguments) => return command::apply::run(&arguments),
        Command::Audit(arguments) => return command::audit::run(&arguments),
        Command::Plan(arguments) => return command::plan::run(arguments),
        Command::Dump(arguments) => return command::dump::run(arguments),
        Command::Restore(arguments) => return command::restore::run(arguments),
        Command::Export(arguments) => return command::export::run(arguments),
        Command::Import(arguments) => return command::import::run(*arguments),
        Command::Copy(arguments) => return command::copy::run(arguments),
        Command::Backup(arguments) => return command::backup::run(arguments),
        Command::Top(arguments) => return command::top::run(arguments),
        Command::Lint(arguments) => return command::lint::run(*arguments),
        Command::Infer(arguments) => return command::infer::run(arguments),
        Command::Keep(arguments) => return command::keep::run(arguments),
        Command::Completions(arguments) => return command::completions::run(&arguments, Cli::command()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln_error(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "the binary's last word, when there may be no log")]
fn eprintln_error(error: &serve::Failure) {
    eprintln!("sheaf: {error}");
}
