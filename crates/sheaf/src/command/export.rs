//! `sheaf export`: documents of one collection as JSON lines, a JSON array or CSV.
//!
//! JSON is extended JSON: relaxed (numbers and dates as people write them) or canonical (every type kept). CSV has one column
//! for each field asked for; a dotted name leads into documents and, by position, into arrays. What is neither text, number,
//! date, truth value nor ObjectId stands in its cell as relaxed extended JSON.

use crate::transfer::files::Output;
use crate::transfer::progress::Progress;
use crate::transfer::{self, Result, Trouble};
use bson::{Bson, Document};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use store::Find;

/// `sheaf export …`
#[derive(Args)]
pub(crate) struct Arguments {
    /// A folder, or a mongodb:// URL
    from: String,
    /// The database
    #[arg(long, value_name = "NAME")]
    db: String,
    /// The collection or view
    #[arg(long, value_name = "NAME")]
    collection: String,
    /// The file to write (default: standard output)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Json)]
    r#type: Format,
    /// How JSON shows types
    #[arg(long, value_enum, default_value_t = Flavour::Relaxed)]
    json_format: Flavour,
    /// One JSON array instead of a line for each document
    #[arg(long)]
    json_array: bool,
    /// The fields, with commas between; required for CSV
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    fields: Vec<String>,
    /// No line with the fields' names in CSV
    #[arg(long)]
    no_header_line: bool,
    /// Which documents, as extended JSON
    #[arg(long, value_name = "JSON")]
    query: Option<String>,
    /// Their order, as JSON
    #[arg(long, value_name = "JSON")]
    sort: Option<String>,
    /// How many to pass over
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// The most to write; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: i64,
    /// No progress bar
    #[arg(long)]
    quiet: bool,
}

/// Formats of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Extended JSON.
    Json,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
}

impl Format {
    /// What stands between the values of a line.
    pub(crate) fn delimiter(self) -> u8 {
        if self == Format::Tsv { b'\t' } else { b',' }
    }
}

/// Flavours of extended JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Flavour {
    /// Types are left out where people expect it.
    Relaxed,
    /// Every type is kept.
    Canonical,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    transfer::run(export(arguments))
}

/// An argument that is a document in extended JSON.
pub(crate) fn parse_document(argument: &str, text: Option<&str>) -> Result<Document> {
    let Some(text) = text else { return Ok(Document::new()) };
    let wrong = |what: String| Trouble::Usage(format!("--{argument} is no document in extended JSON: {what}"));
    let json: serde_json::Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    match Bson::try_from(json) {
        Ok(Bson::Document(document)) => Ok(document),
        Ok(other) => Err(wrong(other.to_string())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Where the text goes.
enum Sink {
    File(Output),
    Standard,
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Sink::File(output) => output.write(bytes),
            Sink::Standard => std::io::stdout().write_all(bytes).map_err(transfer::at("standard output".as_ref())),
        }
    }
}

async fn export(arguments: Arguments) -> Result<()> {
    if arguments.r#type != Format::Json && arguments.fields.is_empty() {
        return Err(Trouble::Usage("CSV needs --fields: which fields become columns".to_owned()));
    }
    let query = parse_document("query", arguments.query.as_deref())?;
    let sort = arguments.sort.as_deref().map(|sort| parse_document("sort", Some(sort))).transpose()?;
    let store = transfer::open_existing(&arguments.from).await?;
    let collection = store.collection(&arguments.db, &arguments.collection);
    if collection.info().await?.is_none() {
        return Err(Trouble::Usage(format!("there is no collection {}.{}", arguments.db, arguments.collection)));
    }
    let projection = (!arguments.fields.is_empty()).then(|| projection(&arguments.fields));
    let find = Find { sort, projection, skip: arguments.skip, limit: arguments.limit, ..Find::default() };
    let mut sink = match &arguments.out {
        Some(path) => Sink::File(Output::create(path, false)?),
        None => Sink::Standard,
    };
    let quiet = arguments.quiet || arguments.out.is_none();
    let progress = Progress::documents(&arguments.collection, None, quiet);
    let mut cursor = collection.stream(query, find, None).await?;
    let mut count = 0_u64;
    begin(&mut sink, &arguments)?;
    while let Some(document) = cursor.next(None).await? {
        let text = match arguments.r#type {
            Format::Json => json_line(document, count, &arguments),
            kind => csv_line(&document, &arguments.fields, kind.delimiter())?,
        };
        sink.write(text.as_bytes())?;
        count += 1;
        progress.add(1);
    }
    if arguments.json_array && arguments.r#type == Format::Json {
        sink.write(if count == 0 { b"]\n" } else { b"\n]\n" })?;
    }
    if let Sink::File(output) = sink {
        output.finish()?;
    }
    progress.finish();
    if arguments.out.is_some() {
        crate::command::complain(&format!("{count} documents\n"));
    }
    transfer::close(&store)
}

fn begin(sink: &mut Sink, arguments: &Arguments) -> Result<()> {
    match arguments.r#type {
        Format::Json if arguments.json_array => sink.write(b"["),
        Format::Json => Ok(()),
        _ if arguments.no_header_line => Ok(()),
        kind => sink.write(record(arguments.fields.iter().map(String::as_str), kind.delimiter())?.as_bytes()),
    }
}

/// A projection of fields that may lie within each other, and that lead into arrays by positions.
fn projection(fields: &[String]) -> Document {
    let mut tops: Vec<&str> = fields.iter().map(|field| field.split('.').next().unwrap_or(field)).collect();
    tops.sort_unstable();
    tops.dedup();
    let mut projection: Document = tops.iter().map(|top| ((*top).to_owned(), Bson::Int32(1))).collect();
    if !tops.contains(&"_id") {
        projection.insert("_id", 0);
    }
    projection
}

fn json_line(document: Document, number: u64, arguments: &Arguments) -> String {
    let value = Bson::Document(document);
    let json = match arguments.json_format {
        Flavour::Relaxed => value.into_relaxed_extjson(),
        Flavour::Canonical => value.into_canonical_extjson(),
    };
    match (arguments.json_array, number) {
        (false, _) => format!("{json}\n"),
        (true, 0) => format!("\n{json}"),
        (true, _) => format!(",\n{json}"),
    }
}

fn csv_line(document: &Document, fields: &[String], delimiter: u8) -> Result<String> {
    let cells: Vec<String> =
        fields.iter().map(|field| lookup(document, field).map_or_else(String::new, cell)).collect();
    record(cells.iter().map(String::as_str), delimiter)
}

fn record<'c>(cells: impl Iterator<Item = &'c str>, delimiter: u8) -> Result<String> {
    let failed = |error: String| Trouble::Content(error);
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    writer.write_record(cells).map_err(|error| failed(error.to_string()))?;
    let bytes = writer.into_inner().map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
}

/// The value at a dotted path.
fn lookup<'d>(document: &'d Document, path: &str) -> Option<&'d Bson> {
    let mut parts = path.split('.');
    let mut value = document.get(parts.next()?)?;
    for part in parts {
        value = match value {
            Bson::Document(inner) => inner.get(part)?,
            Bson::Array(elements) => elements.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}

fn cell(value: &Bson) -> String {
    match value {
        Bson::Null | Bson::Undefined => String::new(),
        Bson::String(text) | Bson::Symbol(text) => text.clone(),
        Bson::Int32(number) => number.to_string(),
        Bson::Int64(number) => number.to_string(),
        Bson::Double(number) => number.to_string(),
        Bson::Decimal128(number) => number.to_string(),
        Bson::Boolean(value) => value.to_string(),
        Bson::ObjectId(id) => id.to_hex(),
        Bson::DateTime(time) => time.try_to_rfc3339_string().unwrap_or_else(|_| time.timestamp_millis().to_string()),
        other => other.clone().into_relaxed_extjson().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn cells_follow_dotted_paths_and_are_quoted_where_needed() {
        let document = doc! { "a": { "b": [1, { "c": "x, \"y\"" }] }, "d": 1.5, "e": true };
        let fields = ["a.b.1.c", "a.b.0", "d", "e", "f", "a.b"].map(str::to_owned);
        let line = csv_line(&document, &fields, b',').unwrap();
        assert_eq!(line, "\"x, \"\"y\"\"\",1,1.5,true,,\"[1,{\"\"c\"\":\"\"x, \\\"\"y\\\"\"\"\"}]\"\n");
    }
}
