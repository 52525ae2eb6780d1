//! `sheaf plan`: the indexes and shard keys for a model's queries.

use super::{load, print};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// `sheaf plan …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A *.sheaf.kdl file, or a folder of them
    model: PathBuf,
    /// Choose shard keys too, for so many shards
    #[arg(long, value_name = "N")]
    shards: Option<usize>,
    /// The plan as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let model = match load(&arguments.model) {
        Ok(checked) => checked.model,
        Err(code) => return code,
    };
    let plan = ::model::plan::plan(&model, arguments.shards);
    print(&if arguments.json { plan.to_json() } else { plan.render() })
}
