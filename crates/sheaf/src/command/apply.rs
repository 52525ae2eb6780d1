//! `sheaf apply`: makes a database what a model says, and lets the model take effect.

use super::place::{self, Bar};
use super::{complain, load, print};
use ::model::apply::{self, Actions, Event, Writers};
use clap::Args;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

/// `sheaf apply …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A *.sheaf.kdl file, or a folder of them
    model: PathBuf,
    /// A folder with data, or the mongodb:// URL of a deployment
    place: String,
    /// The database (default: the one that the URL names, or what the model is called)
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Don't ask
    #[arg(long)]
    yes: bool,
    /// Drop the indexes that the model doesn't ask for, and build anew those with other options
    #[arg(long)]
    drop: bool,
    /// On a deployment: nobody writes to these collections but Sheaf's services, which carry the model themselves
    #[arg(long)]
    services_only: bool,
    /// On a deployment without change streams: how often it is audited and repaired, which is how late copies may be
    #[arg(long, value_name = "TIME", default_value = "1h")]
    audit_every: String,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let model = match load(&arguments.model) {
        Ok(checked) => checked.model,
        Err(code) => return code,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("sheaf: {error}\n"));
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(apply_to(arguments, &model)) {
        Ok(code) => code,
        Err(error) => {
            complain(&format!("sheaf: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

async fn apply_to(arguments: &Arguments, model: &::model::Model) -> ::model::Result<ExitCode> {
    let store = ::model::store_at(&arguments.place).await?;
    let Some(database) = place::database(arguments.database.as_deref(), &store, Some(&arguments.model)) else {
        complain("sheaf: name the database with --database\n");
        return Ok(ExitCode::FAILURE);
    };
    let Some(audit_every) = ::model::value::Duration::parse(&arguments.audit_every) else {
        complain("sheaf: --audit-every takes a time such as 30m or 1h\n");
        return Ok(ExitCode::FAILURE);
    };
    let writers = if arguments.services_only { Writers::ServicesOnly } else { Writers::Any };
    let refusals = apply::refusals(model, &store.capabilities(), writers, audit_every);
    if !refusals.is_empty() {
        complain(&format!("sheaf: this can't be kept there:\n  {}\n", refusals.join("\n  ")));
        return Ok(ExitCode::FAILURE);
    }
    let actions = apply::plan(&store, &database, model, arguments.drop).await?;
    print(&shown(&database, &actions));
    let code = if actions.list.is_empty() || arguments.dry_run {
        ExitCode::SUCCESS
    } else if arguments.yes || (std::io::stdin().is_terminal() && place::ask("Do this?")) {
        let mut bar = Bar::new();
        apply::run(&store, &database, model, &actions.list, &mut |event| match event {
            Event::Begun(_) => {}
            Event::Filling { declaration, phase, checked, total } => {
                bar.at(&format!("{phase} {declaration}"), checked, total);
            }
            Event::Done(action) => {
                bar.clear();
                print(&format!("done: {action}\n"));
            }
        })
        .await?;
        ExitCode::SUCCESS
    } else {
        complain("sheaf: nothing was done; --yes does it without asking\n");
        ExitCode::FAILURE
    };
    if let Some(engine) = store.engine() {
        engine.clone().close()?;
    }
    Ok(code)
}

fn shown(database: &str, actions: &Actions) -> String {
    let mut text = String::new();
    if actions.list.is_empty() {
        let _ = writeln!(text, "{database} is what the model says; there is nothing to do");
    } else {
        let _ = writeln!(text, "In {database}:");
    }
    for (number, action) in actions.list.iter().enumerate() {
        let _ = writeln!(text, "{:>3}. {action}", number + 1);
    }
    for note in &actions.notes {
        let _ = writeln!(text, "  -  {note}");
    }
    text
}
