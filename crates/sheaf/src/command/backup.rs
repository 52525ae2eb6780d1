//! `sheaf backup`: backups while everything goes on, restored to a moment, and the restore drill.
//!
//! `create` and `append` work on a folder that nobody serves, or on a running server by its URL: then the server writes the
//! backup on its own disk. `restore` and `verify` need the backup's folder only.

use crate::command::print;
use crate::transfer::progress::Progress;
use crate::transfer::summary::size;
use crate::transfer::{self, Result, Trouble, at, parse_time};
use bson::{Document, doc};
use clap::{Args, Subcommand};
use engine::Context;
use engine::backup::{self, Manifest};
use model::keep::active;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::Store;

/// `sheaf backup …`
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Back up into an empty folder
    Create(Source),
    /// Add to a backup what came since, so that it can be restored to any moment up to now
    Append {
        #[command(flatten)]
        source: Source,
        /// Go on every so many seconds, until stopped
        #[arg(long, value_name = "SECONDS")]
        every: Option<u64>,
    },
    /// Make a data folder of a backup
    Restore {
        /// The backup
        backup: PathBuf,
        /// The folder to make
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// The moment: an RFC 3339 time or seconds since 1970 (default: the latest there is)
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        to: Option<i64>,
        #[command(flatten)]
        shown: Shown,
    },
    /// Restore drill: restore into a temporary folder, open it, compare every document with its indexes, and say how it went
    Verify {
        /// The backup
        backup: PathBuf,
        /// The moment to restore to (default: the latest there is)
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        to: Option<i64>,
        /// Where there is room for the temporary folder (default: the system's)
        #[arg(long, value_name = "DIR")]
        scratch: Option<PathBuf>,
        /// Only compare the files with their checksums
        #[arg(long)]
        checksums_only: bool,
        #[command(flatten)]
        shown: Shown,
    },
}

#[derive(Args, Clone)]
struct Source {
    /// A folder that nobody serves, or the mongodb:// URL of a running server
    from: String,
    /// The backup's folder; of a running server, on its own disk
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Args, Clone, Copy)]
struct Shown {
    /// What was done as JSON
    #[arg(long)]
    json: bool,
    /// No progress bar
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    transfer::run(act(arguments.action))
}

async fn act(action: Action) -> Result<()> {
    match action {
        Action::Create(source) => make(&source, false).await,
        Action::Append { source, every } => loop {
            make(&source, true).await?;
            let Some(seconds) = every else { return Ok(()) };
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
                _ = tokio::signal::ctrl_c() => return Ok(()),
            }
        },
        Action::Restore { backup, data, to, shown } => restore(&backup, &data, to, shown),
        Action::Verify { backup, to, scratch, checksums_only, shown } => {
            verify(&backup, to, scratch.as_deref(), checksums_only, shown)
        }
    }
}

async fn make(source: &Source, append: bool) -> Result<()> {
    let begun = Instant::now();
    let reply = if store::is_url(&source.from) {
        by_server(source, append).await?
    } else {
        let store = transfer::open_existing(&source.from).await?;
        let Some(engine) = store.engine() else { return Err(Trouble::Usage("the folder can't be opened".to_owned())) };
        let progress = Progress::documents("keys", None, source.shown.quiet);
        let mut seen = 0;
        let mut report = |now: backup::Progress| {
            progress.add(now.keys + now.commits - seen);
            seen = now.keys + now.commits;
            Ok(())
        };
        let manifest = match append {
            true => backup::append(engine.storage(), &source.to, &mut report)?,
            false => backup::create(engine.storage(), &source.to, &mut report)?,
        };
        progress.finish();
        transfer::close(&store)?;
        described(&manifest)
    };
    show(&reply, if append { "appended" } else { "backed up" }, begun.elapsed(), source.shown.json);
    Ok(())
}

async fn by_server(source: &Source, append: bool) -> Result<Document> {
    let store = Store::connect(&source.from).await?;
    if !store.capabilities().sheaf {
        return Err(Trouble::Usage(
            "this deployment is not Sheaf: use its own backup, or `sheaf dump` or `sheaf copy`".to_owned(),
        ));
    }
    let folder = std::path::absolute(&source.to).map_err(at(&source.to))?;
    let folder = folder.to_str().ok_or_else(|| Trouble::Usage("the folder's name is not UTF-8".to_owned()))?;
    Ok(store.run_command("admin", doc! { "sheafBackup": folder, "append": append }).await?)
}

fn described(manifest: &Manifest) -> Document {
    doc! {
        "keys": manifest.key_count() as i64,
        "sizeBytes": manifest.size_bytes() as i64,
        "earliest": bson::DateTime::from_millis(manifest.earliest_ms()),
        "latest": bson::DateTime::from_millis(manifest.latest_ms()),
        "position": manifest.last as i64,
    }
}

fn show(reply: &Document, done: &str, took: Duration, json: bool) {
    let time = |name: &str| {
        reply.get_datetime(name).ok().and_then(|time| time.try_to_rfc3339_string().ok()).unwrap_or_default()
    };
    let number = |name: &str| reply.get_i64(name).unwrap_or_default();
    let text = if json {
        let value = serde_json::json!({
            "done": done, "keys": number("keys"), "sizeBytes": number("sizeBytes"), "earliest": time("earliest"),
            "latest": time("latest"), "position": number("position"), "seconds": took.as_secs_f64(),
        });
        format!("{value}\n")
    } else {
        format!(
            "{done}: {} keys, {} in {:.1} s; can be restored to any moment from {} to {}\n",
            number("keys"),
            size(number("sizeBytes").max(0) as u64),
            took.as_secs_f64(),
            time("earliest"),
            time("latest"),
        )
    };
    let _ = print(&text);
}

fn restored(backup: &Path, data: &Path, to: Option<i64>, quiet: bool) -> Result<backup::Restored> {
    let progress = Progress::documents("keys", Some(Manifest::read(backup)?.key_count()), quiet);
    let mut seen = 0;
    let mut report = |now: backup::Progress| {
        progress.add(now.keys - seen);
        seen = now.keys;
        Ok(())
    };
    let done = backup::restore(backup, data, to, engine::storage::Options::default(), &mut report)?;
    progress.finish();
    Ok(done)
}

fn time_text(ms: i64) -> String {
    bson::DateTime::from_millis(ms).try_to_rfc3339_string().unwrap_or_default()
}

fn restore(backup: &Path, data: &Path, to: Option<i64>, shown: Shown) -> Result<()> {
    let begun = Instant::now();
    let done = restored(backup, data, to, shown.quiet)?;
    let seconds = begun.elapsed().as_secs_f64();
    let text = if shown.json {
        let value = serde_json::json!({
            "done": "restored", "keys": done.keys, "commits": done.commits, "time": time_text(done.time_ms),
            "position": done.position, "seconds": seconds,
        });
        format!("{value}\n")
    } else {
        format!(
            "restored to {}: {} keys and {} commits in {seconds:.1} s; change streams begin anew\n",
            time_text(done.time_ms),
            done.keys,
            done.commits
        )
    };
    let _ = print(&text);
    Ok(())
}

/// A temporary folder that goes when it is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn verify(backup: &Path, to: Option<i64>, scratch: Option<&Path>, checksums_only: bool, shown: Shown) -> Result<()> {
    let begun = Instant::now();
    let manifest = backup::check(backup)?;
    if checksums_only {
        let _ = print(&format!("{} parts are whole\n", manifest.keys.len() + manifest.log.len()));
        return Ok(());
    }
    let parent = scratch.map_or_else(std::env::temp_dir, Path::to_owned);
    let folder = Scratch(parent.join(format!("sheaf-verify-{}", std::process::id())));
    let done = restored(backup, &folder.0, to, shown.quiet)?;
    let restored_in = begun.elapsed();
    let (engine, _) = active::open(&folder.0, engine::Options::system())?;
    let (mut lines, mut wrong, mut documents) = (Vec::new(), 0, 0);
    for collection in engine.state().catalog.all().filter(|collection| !collection.is_view()) {
        let found = engine.validate(&Context::default(), &collection.namespace)?;
        documents += found.records;
        wrong += u64::from(!found.is_valid());
        lines.push((collection.namespace.to_string(), found));
    }
    engine.close()?;
    let _ = print(&report(&lines, &done, documents, restored_in, begun.elapsed(), shown.json));
    if wrong > 0 {
        return Err(Trouble::Differs(format!("{wrong} collections of the backup are not what they should be")));
    }
    Ok(())
}

fn report(
    lines: &[(String, engine::operation::Validation)],
    done: &backup::Restored,
    documents: u64,
    restored_in: Duration,
    took: Duration,
    json: bool,
) -> String {
    if json {
        let collections: Vec<_> = lines
            .iter()
            .map(|(name, found)| {
                serde_json::json!({
                    "namespace": name, "documents": found.records, "indexes": found.indexes.len(),
                    "valid": found.is_valid(), "errors": found.errors,
                })
            })
            .collect();
        let value = serde_json::json!({
            "valid": lines.iter().all(|(_, found)| found.is_valid()), "time": time_text(done.time_ms),
            "documents": documents, "restoreSeconds": restored_in.as_secs_f64(), "seconds": took.as_secs_f64(),
            "collections": collections,
        });
        return format!("{value}\n");
    }
    let mut text = String::new();
    for (name, found) in lines {
        let verdict = if found.is_valid() { "valid".to_owned() } else { format!("WRONG: {:?}", found.errors) };
        text.push_str(&format!(
            "{name:40} {:>12} documents, {} indexes: {verdict}\n",
            found.records,
            found.indexes.len()
        ));
    }
    text.push_str(&format!(
        "restored to {} in {:.1} s, compared in {:.1} s: {documents} documents\n",
        time_text(done.time_ms),
        restored_in.as_secs_f64(),
        (took - restored_in).as_secs_f64()
    ));
    text
}
