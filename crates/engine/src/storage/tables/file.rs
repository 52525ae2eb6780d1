//! The tables in a file, kept by redb.
//!
//! redb refuses all further reads once any of its writes failed. Ours must go on: a full disk stops folding, not
//! reading. So after opening the file's failures are hidden from redb: from the first failed write on, nothing more
//! goes to the file, what redb writes is kept aside in memory, and the commit is reported as failed by
//! [`FileTables::commit`]. The file then still holds the last good commit, and readers go on with its view.
//!
//! To try again, redb opens the file anew beside the failed instance ([`FileTables::renew`]). The new instance doesn't
//! know the old one's readers and would reuse their pages, so it commits nothing until they are gone.

use super::points::{MAX_VALUE_BYTES, Points, ViewNumber};
use super::{Reached, TableView, Tables};
use crate::error::{Code, Error, Result};
use crate::storage::medium::MediumFile;
use crate::storage::view::{Direction, Range, See};
use crate::storage::{Flush, Options};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use redb::{Database, OwnedAccessGuard, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Keys and values.
const ENTRIES: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("entries");
/// What the storage itself remembers: numbers by name.
const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");
const META_FORMAT: &str = "format";
const META_POSITION: &str = "position";
const META_TIME: &str = "time";
/// The version of the keys' meaning within the file.
const FORMAT: u64 = 1;
/// Values up to this size are copied; larger ones keep the page they lie on.
const COPY_BYTES: usize = MAX_VALUE_BYTES;

pub(in crate::storage) struct FileTables {
    file: Arc<dyn MediumFile>,
    options: Options,
    points: Arc<Points>,
    instances: Mutex<Instances>,
}

struct Instances {
    current: Instance,
    /// Failed ones that still had readers.
    retired: Vec<Instance>,
}

/// redb on the file.
struct Instance {
    database: Database,
    file: Arc<GuardedFile>,
    /// The views of it that may still be read.
    views: Vec<Weak<FileView>>,
}

impl FileTables {
    /// Opens the tables in a file, creating them if it is empty.
    pub(in crate::storage) fn open(file: Arc<dyn MediumFile>, options: &Options) -> Result<FileTables> {
        let current = Instance::open(file.clone(), options)?;
        let instances = Mutex::new(Instances { current, retired: Vec::new() });
        let points = Arc::new(Points::new(options.point_bytes));
        Ok(FileTables { file, options: options.clone(), points, instances })
    }
}

impl Instance {
    fn open(file: Arc<dyn MediumFile>, options: &Options) -> Result<Instance> {
        let file = Arc::new(GuardedFile {
            file,
            skips_sync: options.flush == Flush::Skip,
            hides_failures: AtomicBool::new(false),
            aside: RwLock::new(None),
        });
        let database = redb::Builder::new()
            .set_cache_size(options.cache_bytes)
            .create_with_backend(Backend(file.clone()))
            .map_err(failed)?;
        let instance = Instance { database, file, views: Vec::new() };
        instance.initialise()?;
        instance.file.hides_failures.store(true, Ordering::Release);
        Ok(instance)
    }

    /// How many of its views are in use.
    fn readers(&mut self) -> usize {
        self.views.retain(|view| view.strong_count() > 0);
        self.views.len()
    }

    fn view(&mut self, points: &Arc<Points>) -> Result<Arc<FileView>> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let entries = transaction.open_table(ENTRIES).map_err(failed)?;
        let view = Arc::new(FileView { entries, points: points.clone(), number: points.number() });
        self.readers();
        self.views.push(Arc::downgrade(&view));
        Ok(view)
    }

    fn initialise(&self) -> Result<()> {
        match self.number(META_FORMAT)? {
            Some(FORMAT) => Ok(()),
            Some(other) => Err(Error::new(
                Code::UNSUPPORTED_FORMAT,
                format!(
                    "the tables have format {other}, this release reads format {FORMAT}: use the release that wrote them"
                ),
            )),
            None => self.transact(&mut std::iter::empty(), Reached::default()),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let table = match transaction.open_table(META) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        Ok(ReadableTable::get(&table, name).map_err(failed)?.map(|number| number.value()))
    }

    fn transact(&self, batch: &mut dyn Iterator<Item = (Bytes, Option<Bytes>)>, reached: Reached) -> Result<()> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction.set_quick_repair(true);
        {
            let mut entries = transaction.open_table(ENTRIES).map_err(failed)?;
            for (key, value) in batch {
                match value {
                    Some(value) => entries.insert(&*key, &*value).map_err(failed)?,
                    None => entries.remove(&*key).map_err(failed)?,
                };
            }
            let mut meta = transaction.open_table(META).map_err(failed)?;
            meta.insert(META_FORMAT, FORMAT).map_err(failed)?;
            meta.insert(META_POSITION, reached.position).map_err(failed)?;
            meta.insert(META_TIME, reached.time).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }
}

impl Tables for FileTables {
    fn reached(&self) -> Result<Reached> {
        let instances = self.instances.lock();
        let position = instances.current.number(META_POSITION)?.unwrap_or_default();
        let time = instances.current.number(META_TIME)?.unwrap_or_default();
        Ok(Reached { position, time })
    }

    fn view(&self) -> Result<Arc<dyn TableView>> {
        Ok(self.instances.lock().current.view(&self.points)?)
    }

    fn commit(&self, batch: &mut dyn Iterator<Item = (Bytes, Option<Bytes>)>, reached: Reached) -> Result<()> {
        let mut instances = self.instances.lock();
        instances.current.file.check()?;
        instances.retired.retain_mut(|instance| instance.readers() > 0);
        if let Some(retired) = instances.retired.first() {
            retired.file.check()?;
        }
        self.points.begin();
        let mut batch = batch.inspect(|(key, _)| self.points.forget(key));
        instances.current.transact(&mut batch, reached)?;
        instances.current.file.check()
    }

    fn renew(&self) -> Result<Option<Arc<dyn TableView>>> {
        let mut instances = self.instances.lock();
        // One view is the published one; others may show older commits, which a new instance doesn't preserve.
        if instances.current.file.check().is_ok() || instances.current.readers() > 1 || !instances.retired.is_empty() {
            return Ok(None);
        }
        let mut renewed = Instance::open(self.file.clone(), &self.options)?;
        let view = renewed.view(&self.points)?;
        let failed = std::mem::replace(&mut instances.current, renewed);
        instances.retired.push(failed);
        Ok(Some(view))
    }

    fn size_bytes(&self) -> u64 {
        self.file.size().unwrap_or_default()
    }
}

/// An error of redb's.
fn failed(error: impl Into<redb::Error>) -> Error {
    match error.into() {
        redb::Error::Io(error) => Error::from(error).context("the table file"),
        redb::Error::Corrupted(what) => Error::new(
            Code::MANUAL_INTERVENTION_REQUIRED,
            format!("the table file is damaged ({what}): restore a backup, or the folder's files as they were"),
        ),
        error => Error::internal(format!("the table file: {error}")),
    }
}

struct FileView {
    entries: ReadOnlyTable<&'static [u8], &'static [u8]>,
    points: Arc<Points>,
    number: ViewNumber,
}

impl TableView for FileView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(value) = self.points.get(key, self.number) {
            return Ok(Some(value));
        }
        let guard = ReadableTable::get(&self.entries, key).map_err(failed)?;
        match guard {
            None => Ok(None),
            Some(guard) if guard.value().len() <= COPY_BYTES => {
                self.points.put(key, guard.value(), self.number);
                Ok(Some(Bytes::copy_from_slice(guard.value())))
            }
            Some(_) => {
                let guard = self.entries.get_owned(key).map_err(failed)?;
                Ok(guard.map(|guard| Bytes::from_owner(PageBytes(guard))))
            }
        }
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction) -> Result<Range<'_>> {
        let entries = self.entries.range_owned::<&[u8]>((from, to)).map_err(failed)?.map(entry);
        Ok(match direction {
            Direction::Forward => Box::new(entries),
            Direction::Backward => Box::new(entries.rev()),
        })
    }

    fn scan(&self, from: Bound<&[u8]>, to: Bound<&[u8]>, direction: Direction, see: &mut See<'_>) -> Result<()> {
        let mut entries = self.entries.range::<&[u8]>((from, to)).map_err(failed)?;
        loop {
            let entry = match direction {
                Direction::Forward => entries.next(),
                Direction::Backward => entries.next_back(),
            };
            let Some(entry) = entry else { return Ok(()) };
            let (key, value) = entry.map_err(failed)?;
            if !see(key.value(), value.value())? {
                return Ok(());
            }
        }
    }
}

type Guard = OwnedAccessGuard<&'static [u8]>;

fn entry(entry: redb::Result<(Guard, Guard)>) -> Result<(Bytes, Bytes)> {
    let (key, value) = entry.map_err(failed)?;
    let key = Bytes::copy_from_slice(key.value());
    let value = if value.value().len() <= COPY_BYTES {
        Bytes::copy_from_slice(value.value())
    } else {
        Bytes::from_owner(PageBytes(value))
    };
    Ok((key, value))
}

/// A value where it lies, on its page.
struct PageBytes(Guard);

impl AsRef<[u8]> for PageBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.value()
    }
}

/// The file as redb sees it.
#[derive(Debug)]
struct GuardedFile {
    file: Arc<dyn MediumFile>,
    skips_sync: bool,
    /// Not while opening: then redb shall report them.
    hides_failures: AtomicBool,
    aside: RwLock<Option<Aside>>,
}

/// What was written since the file failed.
#[derive(Debug)]
struct Aside {
    failure: io::Error,
    size: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

/// The size of the blocks kept aside.
const BLOCK_BYTES: u64 = 4096;

impl GuardedFile {
    /// The failure that is being hidden from redb, if any.
    fn check(&self) -> Result<()> {
        match &*self.aside.read() {
            None => Ok(()),
            Some(Aside { failure, .. }) => Err(Error::from(io::Error::new(failure.kind(), failure.to_string()))
                .context(
                    "the table file can't be written and nothing is folded into it; this is tried again every second",
                )),
        }
    }

    /// Runs an operation on the file, or on what is kept aside if the file has failed or fails now.
    fn guarded(
        &self,
        on_file: impl FnOnce(&dyn MediumFile) -> io::Result<()>,
        on_aside: impl FnOnce(&mut Aside, &dyn MediumFile) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut failure = None;
        {
            // Shared, so that readers don't wait for a flush. There is only one writer.
            let aside = self.aside.read();
            if aside.is_none() {
                match on_file(&*self.file) {
                    Err(error) if self.hides_failures.load(Ordering::Acquire) => failure = Some(error),
                    outcome => return outcome,
                }
            }
        }
        let mut aside = self.aside.write();
        if let Some(failure) = failure {
            *aside = Some(Aside { failure, size: self.file.size()?, blocks: BTreeMap::new() });
        }
        on_aside(aside.as_mut().expect("the file has failed"), &*self.file)
    }
}

impl Aside {
    fn write(&mut self, file: &dyn MediumFile, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        self.size = self.size.max(offset + bytes.len() as u64);
        while !bytes.is_empty() {
            let number = offset / BLOCK_BYTES;
            let within = (offset % BLOCK_BYTES) as usize;
            let length = bytes.len().min(BLOCK_BYTES as usize - within);
            let block = match self.blocks.entry(number) {
                std::collections::btree_map::Entry::Occupied(block) => block.into_mut(),
                std::collections::btree_map::Entry::Vacant(place) => {
                    let mut block = vec![0; BLOCK_BYTES as usize].into_boxed_slice();
                    read_padded(file, number * BLOCK_BYTES, &mut block)?;
                    place.insert(block)
                }
            };
            block[within..within + length].copy_from_slice(&bytes[..length]);
            offset += length as u64;
            bytes = &bytes[length..];
        }
        Ok(())
    }

    fn read(&self, file: &dyn MediumFile, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset + buffer.len() as u64;
        if end > self.size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read_padded(file, offset, buffer)?;
        for (number, block) in self.blocks.range(offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)) {
            let start = number * BLOCK_BYTES;
            let from = start.max(offset);
            let to = (start + BLOCK_BYTES).min(end);
            let target = &mut buffer[(from - offset) as usize..(to - offset) as usize];
            target.copy_from_slice(&block[(from - start) as usize..(to - start) as usize]);
        }
        Ok(())
    }
}

/// Reads what the file has of a range, and zeros beyond its end.
fn read_padded(file: &dyn MediumFile, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    let available = file.size()?.saturating_sub(offset).min(buffer.len() as u64) as usize;
    buffer[available..].fill(0);
    file.read(offset, &mut buffer[..available])
}

#[derive(Debug)]
struct Backend(Arc<GuardedFile>);

impl redb::StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        match &*self.0.aside.read() {
            None => self.0.file.size(),
            Some(aside) => Ok(aside.size),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match &*self.0.aside.read() {
            None => self.0.file.read(offset, out),
            Some(aside) => aside.read(&*self.0.file, offset, out),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.guarded(
            |file| file.resize(len),
            |aside, _| {
                aside.size = len;
                aside.blocks.retain(|number, _| number * BLOCK_BYTES < len);
                Ok(())
            },
        )
    }

    fn sync_data(&self) -> io::Result<()> {
        let skips = self.0.skips_sync;
        self.0.guarded(|file| if skips { Ok(()) } else { file.sync() }, |_, _| Ok(()))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.guarded(|file| file.write(offset, data), |aside, file| aside.write(file, offset, data))
    }
}
