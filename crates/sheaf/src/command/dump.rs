//! `sheaf dump`: collections as BSON files, in `mongodump`'s folder layout.
//!
//! Each collection is read through one cursor, in `_id` order where there is one; it is not one moment of all of them: that is
//! `sheaf backup`. Views are dumped as their definition. Time series are dumped as measurements, not as buckets.

use crate::transfer::files::{Metadata, Output, escape};
use crate::transfer::progress::Progress;
use crate::transfer::summary::{Line, show};
use crate::transfer::{self, Result, Selection, at};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::{CollectionInfo, Find, Store};

/// `sheaf dump …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A folder, or a mongodb:// URL
    from: String,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "dump")]
    out: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Pack the files
    #[arg(long)]
    gzip: bool,
    /// What was done as JSON
    #[arg(long)]
    json: bool,
    /// No progress bars
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    transfer::run(dump(arguments))
}

async fn dump(arguments: Arguments) -> Result<()> {
    let store = transfer::open_existing(&arguments.from).await?;
    let mut lines = Vec::new();
    for (database, info) in arguments.selection.of(&store).await? {
        let folder = arguments.out.join(escape(&database));
        std::fs::create_dir_all(&folder).map_err(at(&folder))?;
        lines.push(dump_collection(&store, &database, &info, &folder, &arguments).await?);
    }
    transfer::close(&store)?;
    show(&lines, arguments.json);
    Ok(())
}

async fn dump_collection(
    store: &Store,
    database: &str,
    info: &CollectionInfo,
    folder: &Path,
    arguments: &Arguments,
) -> Result<Line> {
    let collection = store.collection(database, &info.name);
    let is_view = info.kind == "view";
    let metadata = Metadata {
        options: info.options.clone(),
        indexes: if is_view { Vec::new() } else { collection.list_indexes().await? },
        uuid: info.uuid.map(|uuid| uuid.to_string().replace('-', "")).unwrap_or_default(),
        name: info.name.clone(),
        kind: info.kind.clone(),
    };
    let mut line = Line { namespace: format!("{database}.{}", info.name), what: "dumped", ..Line::default() };
    if !is_view {
        let total = collection.estimated_count().await.ok();
        let progress = Progress::documents(&line.namespace, total, arguments.quiet);
        let mut output = Output::create(&folder.join(format!("{}.bson", escape(&info.name))), arguments.gzip)?;
        let mut cursor = collection.stream(bson::Document::new(), Find::default(), None).await?;
        while let Some(document) = cursor.next_raw(None).await? {
            output.write(document.as_bytes())?;
            line.documents += 1;
            line.bytes += document.as_bytes().len() as u64;
            progress.add(1);
        }
        output.finish()?;
        line.took = progress.finish();
    }
    let path = folder.join(format!("{}.metadata.json", escape(&info.name)));
    let mut output = Output::create(&path, arguments.gzip)?;
    output.write(metadata.to_json().as_bytes())?;
    output.finish()?;
    Ok(line)
}
