//! `sheaf token`: bearer tokens of the HTTP API, made beside the server or before its first start.

use crate::serve::Failure;
use clap::{Args, Subcommand};
use http::{DEFAULT_DATABASE, NewToken, Role, Tokens};
use std::time::Duration;

const SECONDS_A_DAY: u64 = 24 * 60 * 60;

/// What to do.
#[derive(Args, Debug, Clone)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug, Clone)]
enum Action {
    /// Make a token and print it; only its hash is stored
    Issue(Issue),
    /// Take a token back
    Revoke(Revoke),
}

#[derive(Args, Debug, Clone)]
struct Issue {
    #[command(flatten)]
    place: Place,
    /// On whose behalf it calls: a user's id
    #[arg(long)]
    subject: String,
    /// What it may do, with commas between: buyer, merchant, operator, user, moderator, author,
    /// collector
    #[arg(long, value_name = "ROLE", value_delimiter = ',', required = true, value_parser = role)]
    role: Vec<Role>,
    /// After how many days it ends (default: never)
    #[arg(long, value_name = "DAYS")]
    days: Option<u64>,
    /// What it is for
    #[arg(long, default_value = "")]
    label: String,
}

#[derive(Args, Debug, Clone)]
struct Revoke {
    #[command(flatten)]
    place: Place,
    /// The token's id: the 16 digits after shf_
    id: String,
}

#[derive(Args, Debug, Clone)]
struct Place {
    /// Folder of a server that is not running, or the URL of one that is (mongodb://…)
    #[arg(long, value_name = "DIR|URL", env = "SHEAF_STORE", default_value = "data")]
    store: String,
}

fn role(name: &str) -> Result<Role, String> {
    Role::of(name).ok_or_else(|| format!("there is no role '{name}'"))
}

/// Does it.
#[expect(clippy::print_stdout, reason = "the command's purpose")]
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let failed = |error: String| Failure::Http(error);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let place = match &arguments.action {
            Action::Issue(issue) => &issue.place,
            Action::Revoke(revoke) => &revoke.place,
        };
        let store = ::model::store_at(&place.store).await.map_err(|error| failed(error.to_string()))?;
        let tokens = Tokens::new(&store, DEFAULT_DATABASE);
        match arguments.action {
            Action::Issue(issue) => {
                let lives = issue.days.map(|days| Duration::from_secs(days.saturating_mul(SECONDS_A_DAY)));
                let new = NewToken { subject: issue.subject, roles: issue.role, lives, label: issue.label };
                let issued = tokens.issue(&new).await.map_err(|error| failed(error.to_string()))?;
                println!("{}", issued.secret);
            }
            Action::Revoke(revoke) => {
                if !tokens.revoke(&revoke.id).await.map_err(|error| failed(error.to_string()))? {
                    return Err(failed(format!("there is no token {}", revoke.id)));
                }
            }
        }
        match store.engine() {
            Some(engine) => engine.clone().close().map_err(Failure::Close),
            None => Ok(()),
        }
    })
}
