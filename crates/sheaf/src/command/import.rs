//! `sheaf import`: documents from JSON lines, a JSON array, CSV or TSV, as `mongoimport` reads them.
//!
//! Dotted column names make documents within documents. With `--columns-have-types` each name says its type: `price.double()`,
//! `when.date()`, `sku.string()`; without, a cell becomes a number or a truth value if it looks like one.

mod columns;

use super::export::Format;
use crate::transfer::batch::Inserter;
use crate::transfer::progress::Progress;
use crate::transfer::summary::{Line, show};
use crate::transfer::{self, Result, Trouble, at, files};
use bson::{Bson, Document, RawDocumentBuf, doc};
use clap::{Args, ValueEnum};
use columns::{Columns, Parsing};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::{BulkWrite, Collection, Store, WriteModel};

/// The writes of one bulk.
const BULK_WRITES: usize = 500;

/// `sheaf import …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// The file; `-` for standard input. One that ends with .gz is unpacked
    file: PathBuf,
    /// A folder, created if need be, or a mongodb:// URL
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// The database
    #[arg(long, value_name = "NAME")]
    db: String,
    /// The collection
    #[arg(long, value_name = "NAME")]
    collection: String,
    /// What the file holds
    #[arg(long, value_enum, default_value_t = Format::Json)]
    r#type: Format,
    /// The file is one JSON array
    #[arg(long)]
    json_array: bool,
    /// The first line of a CSV file names the columns
    #[arg(long, conflicts_with = "fields")]
    headerline: bool,
    /// The columns' names, with commas between
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    fields: Vec<String>,
    /// Columns' names say their types: name.int32()
    #[arg(long)]
    columns_have_types: bool,
    /// What becomes of a cell that is not of its column's type
    #[arg(long, value_enum, default_value_t = Grace::Stop)]
    parse_grace: Grace,
    /// Leave out empty cells
    #[arg(long)]
    ignore_blanks: bool,
    /// What to do with each document
    #[arg(long, value_enum, default_value_t = Mode::Insert)]
    mode: Mode,
    /// The fields by which a document is found that is there already
    #[arg(long, value_name = "PATHS", value_delimiter = ',', default_value = "_id")]
    upsert_fields: Vec<String>,
    /// Drop the collection first
    #[arg(long)]
    drop: bool,
    /// Stop at the first document that is refused
    #[arg(long)]
    stop_on_error: bool,
    /// Pass validators by
    #[arg(long)]
    bypass_document_validation: bool,
    /// What was done as JSON
    #[arg(long)]
    json: bool,
    /// No progress bar
    #[arg(long)]
    quiet: bool,
}

/// What is done with each document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Mode {
    /// Insert it.
    Insert,
    /// Put it in the place of the one that is there, or insert it.
    Upsert,
    /// Set its fields on the one that is there, or insert it.
    Merge,
    /// Delete the one that is there.
    Delete,
}

/// What becomes of a cell that is not of its column's type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Grace {
    /// The import stops.
    Stop,
    /// The type is guessed.
    AutoCast,
    /// The field is left out.
    SkipField,
    /// The row is left out.
    SkipRow,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    transfer::run(import(arguments))
}

async fn import(arguments: Arguments) -> Result<()> {
    let reader = open(&arguments.file)?;
    let documents = documents(reader, &arguments)?;
    let store = ::model::store_at(&arguments.to).await?;
    let collection = store.collection(&arguments.db, &arguments.collection);
    if arguments.drop {
        collection.drop().await?;
    }
    let progress = Progress::documents(&arguments.collection, None, arguments.quiet);
    let mut line =
        Line { namespace: format!("{}.{}", arguments.db, arguments.collection), what: "imported", ..Line::default() };
    let first_failure = match arguments.mode {
        Mode::Insert => insert(&collection, documents, &arguments, &progress, &mut line).await?,
        _ => write(&store, &collection, documents, &arguments, &progress, &mut line).await?,
    };
    line.took = progress.finish();
    transfer::close(&store)?;
    show(&[line.clone()], arguments.json);
    match first_failure {
        Some(error) => Err(Trouble::Differs(format!("{} documents were refused; the first: {error}", line.failed))),
        None => Ok(()),
    }
}

fn open(path: &Path) -> Result<Box<dyn Read + Send>> {
    if path.as_os_str() == "-" { Ok(Box::new(std::io::stdin())) } else { files::open(path) }
}

type Documents = Box<dyn Iterator<Item = Result<Document>> + Send>;

fn documents(reader: Box<dyn Read + Send>, arguments: &Arguments) -> Result<Documents> {
    if arguments.r#type == Format::Json {
        return Ok(if arguments.json_array { json_array(reader, &arguments.file)? } else { json_values(reader) });
    }
    let mut csv = csv::ReaderBuilder::new()
        .delimiter(arguments.r#type.delimiter())
        .has_headers(false)
        .flexible(true)
        .from_reader(reader);
    let wrong = |error: csv::Error| Trouble::Content(error.to_string());
    let names: Vec<String> = if arguments.headerline {
        let mut first = csv::StringRecord::new();
        csv.read_record(&mut first).map_err(wrong)?;
        first.iter().map(|name| name.trim_start_matches('\u{feff}').to_owned()).collect()
    } else if arguments.fields.is_empty() {
        return Err(Trouble::Usage("say which columns there are: --headerline or --fields".to_owned()));
    } else {
        arguments.fields.clone()
    };
    let parsing = Parsing { grace: arguments.parse_grace, ignore_blanks: arguments.ignore_blanks };
    let columns = Columns::parse(&names, arguments.columns_have_types, parsing).map_err(Trouble::Usage)?;
    let rows = csv.into_records().enumerate().filter_map(move |(number, row)| {
        let row = match row {
            Ok(row) => row,
            Err(error) => return Some(Err(Trouble::Content(error.to_string()))),
        };
        match columns.document(row.iter()) {
            Ok(document) => document.map(Ok),
            Err(what) => Some(Err(Trouble::Content(format!("row {}: {what}", number + 1)))),
        }
    });
    Ok(Box::new(rows))
}

fn as_document(json: serde_json::Value) -> Result<Document> {
    match Bson::try_from(json) {
        Ok(Bson::Document(document)) => Ok(document),
        Ok(other) => Err(Trouble::Content(format!("{other} is no document"))),
        Err(error) => Err(Trouble::Content(error.to_string())),
    }
}

fn json_values(reader: Box<dyn Read + Send>) -> Documents {
    let values = serde_json::Deserializer::from_reader(reader).into_iter::<serde_json::Value>();
    Box::new(values.map(|value| value.map_err(|error| Trouble::Content(error.to_string())).and_then(as_document)))
}

/// A JSON array is read as a whole: its bounds are the memory's, so lines are the better format for much.
fn json_array(mut reader: Box<dyn Read + Send>, path: &Path) -> Result<Documents> {
    let mut text = String::new();
    reader.read_to_string(&mut text).map_err(at(path))?;
    let values: Vec<serde_json::Value> =
        serde_json::from_str(&text).map_err(|error| Trouble::Content(error.to_string()))?;
    Ok(Box::new(values.into_iter().map(as_document)))
}

async fn insert(
    collection: &Collection,
    documents: Documents,
    arguments: &Arguments,
    progress: &Progress,
    line: &mut Line,
) -> Result<Option<store::Error>> {
    let mut inserter = Inserter::new(collection.clone(), arguments.stop_on_error, arguments.bypass_document_validation);
    for document in documents {
        let raw = RawDocumentBuf::try_from(&document?)?;
        line.bytes += raw.as_bytes().len() as u64;
        progress.add(1);
        inserter.push(raw).await?;
    }
    inserter.finish().await?;
    line.documents = inserter.inserted;
    line.failed = inserter.failed;
    Ok(inserter.first_failure)
}

async fn write(
    store: &Store,
    collection: &Collection,
    documents: Documents,
    arguments: &Arguments,
    progress: &Progress,
    line: &mut Line,
) -> Result<Option<store::Error>> {
    let options = BulkWrite {
        ordered: arguments.stop_on_error,
        bypass_document_validation: arguments.bypass_document_validation,
    };
    let mut first_failure = None;
    let mut bulk = Vec::new();
    let mut documents = documents.peekable();
    while documents.peek().is_some() || !bulk.is_empty() {
        if let Some(document) = documents.next() {
            bulk.push((collection.clone(), model(document?, arguments)));
            if bulk.len() < BULK_WRITES {
                continue;
            }
        }
        let writes = std::mem::take(&mut bulk);
        let count = writes.len() as u64;
        let done = store.bulk_write(writes, options, None).await?;
        progress.add(count);
        line.failed += done.errors.len() as u64;
        line.documents += match arguments.mode {
            Mode::Delete => done.deleted,
            _ => count - done.errors.len() as u64,
        };
        if let Some(failed) = done.errors.into_iter().next() {
            if arguments.stop_on_error {
                return Err(failed.error.into());
            }
            first_failure.get_or_insert(failed.error);
        }
    }
    Ok(first_failure)
}

/// The write that a document stands for. One that lacks an upsert field is inserted.
fn model(document: Document, arguments: &Arguments) -> WriteModel {
    let mut filter = Document::new();
    for path in &arguments.upsert_fields {
        if let Some(value) = value_at(&document, path) {
            filter.insert(path, value.clone());
        }
    }
    let is_whole = filter.len() == arguments.upsert_fields.len();
    match arguments.mode {
        Mode::Delete => WriteModel::Delete { filter, many: false },
        _ if !is_whole => WriteModel::Insert(document),
        Mode::Merge => {
            let mut fields = document;
            if !filter.contains_key("_id") {
                fields.remove("_id");
            }
            // `_id` can't be set, and stands in the filter.
            fields.remove("_id");
            let update = if fields.is_empty() {
                doc! { "$setOnInsert": filter.clone() }
            } else {
                doc! { "$set": fields }
            };
            WriteModel::upsert_one(filter, update)
        }
        _ => WriteModel::Replace { filter, replacement: document, upsert: true },
    }
}

fn value_at<'d>(document: &'d Document, path: &str) -> Option<&'d Bson> {
    match path.split_once('.') {
        None => document.get(path),
        Some((first, rest)) => value_at(document.get(first)?.as_document()?, rest),
    }
}
