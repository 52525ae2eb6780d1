//! The folder layout of `mongodump`: `DB/COLLECTION.bson` and `DB/COLLECTION.metadata.json`, each perhaps with `.gz`.

use super::{Result, Trouble, at};
use bson::{Bson, Document, RawDocumentBuf, doc};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The largest document in a file.
const MAX_DOCUMENT_BYTES: usize = 48 << 20;
/// Characters that names of files do not have everywhere.
const ESCAPED: &str = "/\\:*?\"<>|%";

/// A file that is written, packed or not. It has its name only once it is whole.
pub(crate) struct Output {
    path: PathBuf,
    part: PathBuf,
    writer: Writer,
}

enum Writer {
    Plain(BufWriter<File>),
    Packed(GzEncoder<BufWriter<File>>),
}

impl Output {
    /// Begins a file; its name gets `.gz` if it is packed.
    pub(crate) fn create(path: &Path, gzip: bool) -> Result<Output> {
        let path = if gzip { with_suffix(path, ".gz") } else { path.to_owned() };
        let part = with_suffix(&path, ".part");
        let file = BufWriter::with_capacity(1 << 20, File::create(&part).map_err(at(&part))?);
        let writer = match gzip {
            true => Writer::Packed(GzEncoder::new(file, Compression::default())),
            false => Writer::Plain(file),
        };
        Ok(Output { path, part, writer })
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.writer {
            Writer::Plain(writer) => writer.write_all(bytes),
            Writer::Packed(writer) => writer.write_all(bytes),
        };
        written.map_err(at(&self.part))
    }

    /// Ends the file and gives it its name.
    pub(crate) fn finish(self) -> Result<()> {
        let failed = |error| Trouble::File(self.part.clone(), error);
        let plain = match self.writer {
            Writer::Plain(writer) => writer,
            Writer::Packed(writer) => writer.finish().map_err(failed)?,
        };
        let failed = |error| Trouble::File(self.part.clone(), error);
        let file = plain.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(|error| Trouble::File(self.part.clone(), error))?;
        std::fs::rename(&self.part, &self.path).map_err(at(&self.path))
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Opens a file to be read; one whose name ends with `.gz` is unpacked.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read + Send>> {
    let file = BufReader::with_capacity(1 << 20, File::open(path).map_err(at(path))?);
    match path.extension().is_some_and(|end| end == "gz") {
        true => Ok(Box::new(BufReader::new(MultiGzDecoder::new(file)))),
        false => Ok(Box::new(file)),
    }
}

/// Reads the documents of a `.bson` file one after the other.
pub(crate) struct BsonFile {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
}

impl BsonFile {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<BsonFile> {
        Ok(BsonFile { path: path.to_owned(), reader: open(path)? })
    }

    /// The next document; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<RawDocumentBuf>> {
        let broken = |what: &str| Trouble::Content(format!("{}: {what}", self.path.display()));
        let mut length = [0; 4];
        if self.reader.read(&mut length[..1]).map_err(at(&self.path))? == 0 {
            return Ok(None);
        }
        self.reader.read_exact(&mut length[1..]).map_err(at(&self.path))?;
        let size = usize::try_from(i32::from_le_bytes(length)).unwrap_or(0);
        if !(5..=MAX_DOCUMENT_BYTES).contains(&size) {
            return Err(broken("this is no file of BSON documents"));
        }
        let mut bytes = vec![0; size];
        bytes[..4].copy_from_slice(&length);
        self.reader.read_exact(&mut bytes[4..]).map_err(at(&self.path))?;
        RawDocumentBuf::from_bytes(bytes).map(Some).map_err(|error| broken(&error.to_string()))
    }
}

/// What stands in a `metadata.json`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metadata {
    /// The options that the collection was created with.
    pub(crate) options: Document,
    /// Its indexes, `_id`'s included, as `listIndexes` shows them.
    pub(crate) indexes: Vec<Document>,
    /// Its UUID, in hexadecimal digits.
    pub(crate) uuid: String,
    /// Its name; file names are escaped.
    pub(crate) name: String,
    /// `collection`, `view` or `timeseries`.
    pub(crate) kind: String,
}

impl Metadata {
    /// As extended JSON, as `mongodump` writes it.
    pub(crate) fn to_json(&self) -> String {
        let indexes: Vec<Bson> = self.indexes.iter().cloned().map(Bson::Document).collect();
        let document = doc! {
            "options": self.options.clone(),
            "indexes": indexes,
            "uuid": &self.uuid,
            "collectionName": &self.name,
            "type": &self.kind,
        };
        format!("{}\n", Bson::Document(document).into_canonical_extjson())
    }

    /// Reads a file. What older releases of `mongodump` left out is filled in.
    pub(crate) fn read(path: &Path) -> Result<Metadata> {
        let broken = |what: String| Trouble::Content(format!("{}: {what}", path.display()));
        let mut text = String::new();
        open(path)?.read_to_string(&mut text).map_err(at(path))?;
        let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        let Bson::Document(document) = Bson::try_from(json).map_err(|error| broken(error.to_string()))? else {
            return Err(broken("it holds no object".to_owned()));
        };
        let text = |name: &str| document.get_str(name).map(str::to_owned);
        let indexes = document.get_array("indexes").into_iter().flatten();
        let options = document.get_document("options").cloned().unwrap_or_default();
        let of_options = match (options.contains_key("viewOn"), options.contains_key("timeseries")) {
            (true, _) => "view",
            (_, true) => "timeseries",
            _ => "collection",
        };
        Ok(Metadata {
            indexes: indexes.filter_map(|index| index.as_document().cloned()).collect(),
            uuid: text("uuid").unwrap_or_default(),
            name: text("collectionName").unwrap_or_default(),
            kind: text("type").ok().filter(|kind| !kind.is_empty()).unwrap_or_else(|| of_options.to_owned()),
            options,
        })
    }
}

/// A collection in a folder of dumps.
#[derive(Clone, Debug)]
pub(crate) struct Dumped {
    /// The database.
    pub(crate) database: String,
    /// The collection.
    pub(crate) collection: String,
    /// The documents; a view has none.
    pub(crate) data: Option<PathBuf>,
    /// Options and indexes.
    pub(crate) metadata: Option<PathBuf>,
}

/// The collections in a folder of dumps, by name.
pub(crate) fn list(folder: &Path) -> Result<Vec<Dumped>> {
    let mut found: Vec<Dumped> = Vec::new();
    for database in sorted(folder)?.into_iter().filter(|path| path.is_dir()) {
        let Some(name) = database.file_name().and_then(|name| name.to_str()).map(unescape) else { continue };
        for file in sorted(&database)? {
            let Some(base) = file.file_name().and_then(|name| name.to_str()) else { continue };
            let base = base.strip_suffix(".gz").unwrap_or(base);
            let (collection, is_data) = match (base.strip_suffix(".bson"), base.strip_suffix(".metadata.json")) {
                (Some(collection), _) => (unescape(collection), true),
                (_, Some(collection)) => (unescape(collection), false),
                (None, None) => continue,
            };
            let known = found.iter().position(|one| one.database == name && one.collection == collection);
            let place = known.unwrap_or_else(|| {
                found.push(Dumped { database: name.clone(), collection, data: None, metadata: None });
                found.len() - 1
            });
            let slot = if is_data { &mut found[place].data } else { &mut found[place].metadata };
            *slot = Some(file);
        }
    }
    Ok(found)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(at(folder))?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(at(folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// A name as a file may have it.
pub(crate) fn escape(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            let escaped = ESCAPED.contains(c) || c.is_control();
            let text = if escaped { format!("%{:02X}", u32::from(c)) } else { c.to_string() };
            text.chars().collect::<Vec<_>>()
        })
        .collect()
}

fn unescape(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let code = (*first == b'%').then(|| others.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &others[2..] } else { others };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_files() {
        for name in ["orders", "a/b", "50%", "x:y*z", "größe"] {
            assert_eq!(unescape(&escape(name)), name);
            assert!(!escape(name).contains('/'));
        }
    }

    #[test]
    fn metadata_comes_back_with_its_types() {
        let metadata = Metadata {
            options: doc! { "capped": true, "size": 4096_i64 },
            indexes: vec![doc! { "v": 2, "key": { "a": 1, "b": -1.0 }, "name": "a_1" }],
            uuid: "00".into(),
            name: "c".into(),
            kind: "collection".into(),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.metadata.json");
        let mut output = Output::create(&path, true).unwrap();
        output.write(metadata.to_json().as_bytes()).unwrap();
        output.finish().unwrap();
        assert_eq!(Metadata::read(&folder.path().join("c.metadata.json.gz")).unwrap(), metadata);
    }
}
