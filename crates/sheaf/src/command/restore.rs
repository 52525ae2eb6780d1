//! `sheaf restore`: collections from a folder that `sheaf dump` or `mongodump` wrote.
//!
//! What the model keeps is restored as it was, around the model's hooks, and audited and repaired afterwards.
//! Documents first, then indexes. A document whose `_id` is there already is left as it is and counted, so that an interrupted
//! restore can be run again. At the end the count of each collection that was empty before is compared with the file's.

use crate::transfer::batch::Inserter;
use crate::transfer::files::{BsonFile, Dumped, Metadata, list};
use crate::transfer::progress::Progress;
use crate::transfer::summary::{Line, show};
use crate::transfer::{self, Result, Selection, Trouble, at, load};
use bson::{Bson, Document};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use store::{Collection, Index, Store};

/// The code of a duplicate key.
const DUPLICATE_KEY: i32 = 11000;
/// The code of a collection that exists with other options.
const NAMESPACE_EXISTS: i32 = 48;

/// `sheaf restore …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// The folder with the dump
    from: PathBuf,
    /// A folder, created if need be, or a mongodb:// URL
    #[arg(long, value_name = "PLACE")]
    to: String,
    #[command(flatten)]
    selection: Selection,
    /// Restore the selected database under this name
    #[arg(long, value_name = "NAME", requires = "db")]
    to_db: Option<String>,
    /// Drop each collection before it is restored
    #[arg(long)]
    drop: bool,
    /// Create no indexes
    #[arg(long)]
    no_index_restore: bool,
    /// Stop at the first document that is refused
    #[arg(long)]
    stop_on_error: bool,
    /// Pass validators by
    #[arg(long)]
    bypass_document_validation: bool,
    /// What was done as JSON
    #[arg(long)]
    json: bool,
    /// No progress bars
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    transfer::run(restore(arguments))
}

async fn restore(arguments: Arguments) -> Result<()> {
    let done = restore_all(&arguments).await;
    load::then_audit(done, &arguments.to, arguments.json).await
}

async fn restore_all(arguments: &Arguments) -> Result<()> {
    let all = list(&arguments.from)?;
    if let Some(buckets) = all.iter().find(|dumped| dumped.collection.starts_with("system.buckets.")) {
        return Err(Trouble::Usage(format!(
            "{}.{} holds packed buckets of a time series, which only MongoDB unpacks: dump its measurements with `sheaf dump`",
            buckets.database, buckets.collection
        )));
    }
    let store = load::open(&arguments.to, &databases(&all, arguments)).await?;
    let mut lines = Vec::new();
    let mut views = Vec::new();
    for dumped in all.iter().filter(|dumped| arguments.selection.holds(&dumped.database, &dumped.collection)) {
        let metadata = dumped.metadata.as_deref().map(Metadata::read).transpose()?;
        if metadata.as_ref().is_some_and(|metadata| metadata.kind == "view") {
            views.push((dumped, metadata));
            continue;
        }
        lines.push(restore_collection(&store, dumped, metadata, arguments).await?);
    }
    // A view may be on any collection, and on another view.
    for (dumped, metadata) in views {
        lines.push(restore_collection(&store, dumped, metadata, arguments).await?);
    }
    transfer::close(&store)?;
    show(&lines, arguments.json);
    let failed: u64 = lines.iter().map(|line| line.failed).sum();
    if failed > 0 {
        return Err(Trouble::Differs(format!("{failed} documents were not restored")));
    }
    Ok(())
}

/// The databases that are restored.
fn databases(all: &[Dumped], arguments: &Arguments) -> Vec<String> {
    let chosen = all.iter().filter(|dumped| arguments.selection.holds(&dumped.database, &dumped.collection));
    let mut names: Vec<String> =
        chosen.map(|dumped| arguments.to_db.clone().unwrap_or_else(|| dumped.database.clone())).collect();
    names.dedup();
    names
}

async fn restore_collection(
    store: &Store,
    dumped: &Dumped,
    metadata: Option<Metadata>,
    arguments: &Arguments,
) -> Result<Line> {
    let database = arguments.to_db.as_deref().unwrap_or(&dumped.database);
    let collection = store.collection(database, &dumped.collection);
    if arguments.drop {
        collection.drop().await?;
    }
    if let Some(metadata) = &metadata {
        create(&collection, metadata).await?;
    }
    let mut line = Line { namespace: format!("{database}.{}", dumped.collection), what: "restored", ..Line::default() };
    if let Some(path) = &dumped.data {
        let was_empty = collection.estimated_count().await? == 0;
        let size = std::fs::metadata(path).map_err(at(path))?.len();
        let progress = match path.extension().is_some_and(|end| end == "gz") {
            true => Progress::documents(&line.namespace, None, arguments.quiet),
            false => Progress::bytes(&line.namespace, size, arguments.quiet),
        };
        let is_packed = path.extension().is_some_and(|end| end == "gz");
        let mut inserter =
            Inserter::new(collection.clone(), arguments.stop_on_error, arguments.bypass_document_validation);
        let mut file = BsonFile::open(path)?;
        let mut read = 0;
        while let Some(document) = file.next()? {
            read += 1;
            line.bytes += document.as_bytes().len() as u64;
            progress.add(if is_packed { 1 } else { document.as_bytes().len() as u64 });
            inserter.push(document).await?;
        }
        inserter.finish().await?;
        line.took = progress.finish();
        line.documents = inserter.inserted;
        let is_known = inserter.first_failure.as_ref().is_none_or(|error| error.code == Some(DUPLICATE_KEY));
        line.failed = if is_known && !was_empty { 0 } else { inserter.failed };
        if was_empty && inserter.failed == 0 {
            let count = collection.estimated_count().await?;
            if count < read {
                return Err(Trouble::Differs(format!(
                    "{}: {read} documents were restored, and {count} are there",
                    line.namespace
                )));
            }
        }
    }
    if let Some(metadata) = metadata.filter(|_| !arguments.no_index_restore) {
        collection.create_indexes(indexes(&metadata)).await?;
    }
    Ok(line)
}

async fn create(collection: &Collection, metadata: &Metadata) -> Result<()> {
    let mut options = metadata.options.clone();
    for own in ["uuid", "idIndex", "flags", "autoIndexId"] {
        options.remove(own);
    }
    match collection.create(options).await {
        Err(error) if error.code == Some(NAMESPACE_EXISTS) => Ok(()),
        done => Ok(done?),
    }
}

/// The indexes to create: all but `_id`'s, a clustered collection's own, and the one a time series has by itself.
fn indexes(metadata: &Metadata) -> Vec<Index> {
    let series = metadata.options.get_document("timeseries").ok();
    let own = series.and_then(|series| {
        let (meta, time) = (series.get_str("metaField").ok()?, series.get_str("timeField").ok()?);
        Some(format!("{meta}_1_{time}_1"))
    });
    let mut found = Vec::new();
    for index in &metadata.indexes {
        let name = index.get_str("name").unwrap_or_default();
        let is_clustered = index.get("clustered").is_some_and(|value| *value == Bson::Boolean(true));
        if name == "_id_" || is_clustered || own.as_deref() == Some(name) {
            continue;
        }
        let Ok(keys) = index.get_document("key") else { continue };
        let options: Document =
            index.iter().filter(|(name, _)| !["key", "ns"].contains(&name.as_str())).map(own_pair).collect();
        found.push(Index { keys: keys.clone(), options });
    }
    found
}

fn own_pair((name, value): (&String, &Bson)) -> (String, Bson) {
    (name.clone(), value.clone())
}
