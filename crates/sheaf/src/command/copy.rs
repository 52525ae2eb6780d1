//! `sheaf copy FROM TO`: everything from a folder to a deployment or back, then what changes, until told to stop.
//!
//! ```text
//!   token ── documents, by _id ── indexes ── events since the token ──> compare counts and checksums
//!            └───────────── how far it is stands in the target, in sheaf.copies ──────┘
//! ```
//!
//! The change stream is opened before the first document is read, so nothing that happens meanwhile is missed; what it brings
//! twice does no harm, since events put whole documents in their places. After an interruption the same command goes on where
//! it was. What the model keeps is copied as it is, around the target's hooks, and audited and repaired at the end.
//! Time series have no change streams: they are copied as they are found and not followed.

mod documents;
mod events;
mod state;

use crate::command::{complain, print};
use crate::transfer::summary::{Checksum, Line, show};
use crate::transfer::{self, Result, Selection, Trouble, load};
use bson::Document;
use clap::Args;
use events::Follower;
use state::{Journal, Phase};
use std::process::ExitCode;
use std::time::Duration;
use store::{CollectionInfo, Find, Start, Store, Watch};

/// How long the change stream is waited for before it counts as quiet.
const QUIET: Duration = Duration::from_secs(1);
/// How often what differs is caught up with and compared again.
const COMPARISONS: usize = 5;

/// `sheaf copy …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A folder, or a mongodb:// URL
    from: String,
    /// A folder, created if need be, or a mongodb:// URL
    to: String,
    #[command(flatten)]
    selection: Selection,
    /// Stop once all that happened while copying is copied too, instead of following
    #[arg(long)]
    once: bool,
    /// Begin anew: forget how far an earlier run came, and drop the target's collections
    #[arg(long)]
    drop: bool,
    /// Don't compare at the end
    #[arg(long)]
    no_compare: bool,
    /// What was done as JSON
    #[arg(long)]
    json: bool,
    /// No progress bars
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    transfer::run(copy(arguments))
}

async fn copy(arguments: Arguments) -> Result<()> {
    let done = copy_all(&arguments).await;
    load::then_audit(done, &arguments.to, arguments.json).await
}

async fn copy_all(arguments: &Arguments) -> Result<()> {
    let from = transfer::open_existing(&arguments.from).await?;
    let names: Vec<String> = from.list_databases().await?.into_iter().map(|database| database.name).collect();
    let names: Vec<String> =
        names.into_iter().filter(|name| arguments.selection.db.as_ref().is_none_or(|only| only == name)).collect();
    let to = load::open(&arguments.to, &names).await?;
    let mut journal = Journal::open(&to, &arguments.from, &arguments.selection, arguments.drop).await?;
    let follows = from.capabilities().change_streams;
    if !follows && !arguments.once {
        return Err(Trouble::Usage(
            "the source has no change streams (it is a standalone server): copy with --once while nobody writes"
                .to_owned(),
        ));
    }
    if journal.token().is_none() && follows {
        journal.begin(first_token(&from, &arguments.selection).await?).await?;
    }
    let mut lines = Vec::new();
    if journal.phase() == Phase::Documents {
        for (database, info) in chosen(&from, &arguments.selection).await? {
            lines.push(documents::copy(&from, &to, &database, &info, &mut journal, arguments).await?);
        }
        journal.documents_done().await?;
    }
    show(&lines, arguments.json);
    let mut follower = match journal.token() {
        Some(token) => Some(Follower::open(&from, &to, token, &arguments.selection).await?),
        None => None,
    };
    if let Some(follower) = &mut follower {
        follower.catch_up(&mut journal, QUIET).await?;
        if !arguments.once {
            complain("everything is copied; following what changes until stopped (Ctrl-C)\n");
            follower.follow(&mut journal).await?;
        }
    }
    if !arguments.no_compare {
        compare(&from, &to, arguments, follower.as_mut(), &mut journal).await?;
    }
    if let Some(follower) = follower {
        let _ = print(&follower.report(arguments.json));
    }
    transfer::close(&from)?;
    transfer::close(&to)
}

/// The collections to copy; views last, since they may be on any other.
async fn chosen(from: &Store, selection: &Selection) -> Result<Vec<(String, CollectionInfo)>> {
    let mut all = selection.of(from).await?;
    all.retain(|(database, info)| !state::is_own(database, &info.name));
    all.sort_by_key(|(_, info)| info.kind == "view");
    Ok(all)
}

fn watch(start: Start, max_await: Duration) -> Watch {
    Watch { start, update_lookup: true, show_expanded_events: true, max_await, ..Watch::default() }
}

/// Where the change stream is now.
async fn first_token(from: &Store, selection: &Selection) -> Result<Document> {
    let mut stream = events::open(from, selection, watch(Start::Now, Duration::from_millis(100))).await?;
    for _ in 0..100 {
        if let Some(token) = stream.resume_token() {
            return Ok(token);
        }
        // An event that comes now happened after the stream was opened; its token is as good a beginning as any before it.
        if let Some(event) = stream.next_if_any().await? {
            drop(event);
        }
    }
    Err(Trouble::Usage("the source's change stream gives no token to go on from".to_owned()))
}

/// Compares counts and checksums; what differs because others write is caught up with and compared again.
async fn compare(
    from: &Store,
    to: &Store,
    arguments: &Arguments,
    mut follower: Option<&mut Follower>,
    journal: &mut Journal,
) -> Result<()> {
    let mut left = chosen(from, &arguments.selection).await?;
    left.retain(|(_, info)| info.kind != "view");
    let total = left.len();
    let mut differences = Vec::new();
    for _ in 0..COMPARISONS {
        differences.clear();
        for (database, info) in &left {
            let ours = checksum(from, database, &info.name).await?;
            let theirs = checksum(to, database, &info.name).await?;
            if ours != theirs {
                differences.push((database.clone(), info.clone(), ours.documents, theirs.documents));
            }
        }
        if differences.is_empty() {
            let _ = print(&format!("compared {total} collections: the same documents on both sides\n"));
            return Ok(());
        }
        let Some(follower) = follower.as_deref_mut() else { break };
        follower.catch_up(journal, QUIET).await?;
        left = differences.iter().map(|(database, info, ..)| (database.clone(), info.clone())).collect();
    }
    let named = |(database, info, ours, theirs): &(String, CollectionInfo, u64, u64)| {
        format!("{database}.{}: {ours} documents here, {theirs} there", info.name)
    };
    let all: Vec<String> = differences.iter().map(named).collect();
    Err(Trouble::Differs(format!("these differ (does somebody still write to the source?): {}", all.join("; "))))
}

async fn checksum(store: &Store, database: &str, name: &str) -> Result<Checksum> {
    let mut sum = Checksum::default();
    let mut cursor = store.collection(database, name).stream(Document::new(), Find::default(), None).await?;
    while let Some(document) = cursor.next_raw(None).await? {
        sum.add(&document);
    }
    Ok(sum)
}

/// A line that says nothing was done.
fn skipped(namespace: String) -> Line {
    Line { namespace, what: "was there", ..Line::default() }
}
