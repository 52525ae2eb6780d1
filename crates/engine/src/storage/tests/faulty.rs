//! A medium that fails on purpose: it loses and tears what wasn't synced, fails a sync, or is full.
//!
//! Every operation is counted, so that a fault can be placed at any of them; what a power cut leaves is drawn from a
//! seed.

use crate::error::Result;
use crate::storage::{Medium, MediumFile};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is written in one piece or not at all.
const SECTOR_BYTES: usize = 512;

/// A stream of pseudo-random numbers.
#[derive(Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// When and how the medium fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Never,
    /// The power is cut at an operation; what survives is drawn from the seed.
    Cut {
        operation: u64,
        seed: u64,
    },
    /// The process is killed at an operation: what it wrote before stays readable, synced or not.
    Kill {
        operation: u64,
    },
    /// The first sync from an operation on, of a file whose name begins so, fails; what it should have made durable
    /// never will be.
    Sync {
        operation: u64,
        prefix: &'static str,
    },
}

/// The medium. Clones share it.
#[derive(Clone)]
pub(crate) struct Faulty {
    world: Arc<Mutex<World>>,
    /// The last position that the test knows to be acknowledged.
    pub(crate) acknowledged: Arc<AtomicU64>,
}

/// What a power cut left.
pub(crate) struct Wreck {
    pub(crate) medium: Faulty,
    /// What was acknowledged before the cut.
    pub(crate) acknowledged: u64,
}

struct World {
    files: Vec<FileState>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    operations: u64,
    fault: Fault,
    capacity_bytes: u64,
    wreck: Option<Wreck>,
    held: bool,
}

#[derive(Clone, Default)]
struct FileState {
    durable: Vec<u8>,
    current: Vec<u8>,
    pending: Vec<Operation>,
}

#[derive(Clone)]
enum Operation {
    Write(usize, Vec<u8>),
    Resize(usize),
}

impl Operation {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Operation::Write(offset, bytes) => write_into(content, *offset, bytes),
            Operation::Resize(size) => content.resize(*size, 0),
        }
    }
}

fn write_into(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if content.len() < offset + bytes.len() {
        content.resize(offset + bytes.len(), 0);
    }
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl Faulty {
    pub(crate) fn new(fault: Fault) -> Faulty {
        Faulty::with(Vec::new(), BTreeMap::new(), fault)
    }

    fn with(files: Vec<FileState>, names: BTreeMap<String, usize>, fault: Fault) -> Faulty {
        let world = World {
            files,
            durable_names: names.clone(),
            names,
            operations: 0,
            fault,
            capacity_bytes: u64::MAX,
            wreck: None,
            held: false,
        };
        Faulty { world: Arc::new(Mutex::new(world)), acknowledged: Arc::default() }
    }

    pub(crate) fn set_fault(&self, fault: Fault) {
        self.world.lock().fault = fault;
    }

    pub(crate) fn set_capacity(&self, bytes: u64) {
        self.world.lock().capacity_bytes = bytes;
    }

    /// Leaves room for so many bytes more than are used at this moment, whoever is writing.
    pub(crate) fn leave_room(&self, bytes: u64) {
        let mut world = self.world.lock();
        world.capacity_bytes = world.used_bytes() + bytes;
    }

    pub(crate) fn operations(&self) -> u64 {
        self.world.lock().operations
    }

    /// What the cut left, if it has happened.
    pub(crate) fn take_wreck(&self) -> Option<Wreck> {
        self.world.lock().wreck.take()
    }

    /// Cuts the power now.
    pub(crate) fn cut(&self, seed: u64) -> Wreck {
        let mut world = self.world.lock();
        world.cut(seed, self.acknowledged.load(Ordering::SeqCst));
        world.wreck.take().unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.world.lock().names.keys().cloned().collect()
    }

    /// Changes a file behind the storage's back.
    pub(crate) fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut world = self.world.lock();
        let index = world.names[name];
        let file = &mut world.files[index];
        change(&mut file.current);
        file.durable = file.current.clone();
        file.pending.clear();
    }

    pub(crate) fn delete(&self, name: &str) {
        let mut world = self.world.lock();
        world.names.remove(name);
        world.durable_names = world.names.clone();
    }
}

impl World {
    fn used_bytes(&self) -> u64 {
        self.names.values().map(|index| self.files[*index].current.len() as u64).sum()
    }

    /// Counts an operation, and cuts the power if its time has come.
    fn step(&mut self, acknowledged: &AtomicU64) -> io::Result<()> {
        self.operations += 1;
        if let Fault::Cut { operation, seed } = self.fault
            && self.operations >= operation
        {
            if self.operations == operation {
                self.cut(seed, acknowledged.load(Ordering::SeqCst));
            }
            return Err(io::Error::other("the power is off"));
        }
        if let Fault::Kill { operation } = self.fault
            && self.operations >= operation
        {
            return Err(io::Error::other("the process is gone"));
        }
        Ok(())
    }

    fn cut(&mut self, seed: u64, acknowledged: u64) {
        let mut dice = Dice::new(seed);
        let mut names = BTreeMap::new();
        for (name, index) in self.names.iter().chain(&self.durable_names) {
            let is_certain = self.names.get(name) == self.durable_names.get(name);
            if is_certain || dice.roll(2) == 0 {
                names.insert(name.clone(), *index);
            }
        }
        let files = self.files.iter().map(|file| file.survivor(&mut dice)).collect();
        self.wreck = Some(Wreck { medium: Faulty::with(files, names, Fault::Never), acknowledged });
    }
}

impl FileState {
    /// The durable content with some sectors of what wasn't synced.
    fn survivor(&self, dice: &mut Dice) -> FileState {
        let mut content = self.durable.clone();
        // Mostly lost, mostly kept, kept up to some operation, or anything.
        let mode = dice.roll(5);
        let kept = dice.roll(self.pending.len() as u64 + 1) as usize;
        for (number, operation) in self.pending.iter().enumerate() {
            match (mode, operation) {
                (0, _) => {}
                (1, operation) => operation.apply(&mut content),
                (2, operation) if number < kept => operation.apply(&mut content),
                (2, Operation::Write(offset, bytes)) if number == kept => {
                    let length = dice.roll(bytes.len() as u64 + 1) as usize;
                    write_into(&mut content, *offset, &bytes[..length - length % SECTOR_BYTES]);
                }
                (2, _) => {}
                (_, Operation::Write(offset, bytes)) => {
                    let odds = if mode == 3 { 2 } else { 20 };
                    for (sector, piece) in bytes.chunks(SECTOR_BYTES).enumerate() {
                        if dice.roll(odds) != 0 {
                            write_into(&mut content, offset + sector * SECTOR_BYTES, piece);
                        }
                    }
                }
                (_, operation) => {
                    if dice.roll(2) == 0 {
                        operation.apply(&mut content);
                    }
                }
            }
        }
        FileState { durable: content.clone(), current: content, pending: Vec::new() }
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

struct Held(Faulty);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.world.lock().held = false;
    }
}

impl Medium for Faulty {
    fn lock(&self) -> Result<Box<dyn Send + Sync>> {
        let mut world = self.world.lock();
        assert!(!world.held, "the test opens one storage at a time");
        world.held = true;
        Ok(Box::new(Held(self.clone())))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(Faulty::names(self))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn MediumFile>> {
        let mut world = self.world.lock();
        let index = match world.names.get(name) {
            Some(index) => *index,
            None => {
                world.step(&self.acknowledged)?;
                world.files.push(FileState::default());
                let index = world.files.len() - 1;
                world.names.insert(name.to_owned(), index);
                index
            }
        };
        Ok(Arc::new(FaultyFile { medium: self.clone(), index, name: name.to_owned() }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.world.lock();
        world.step(&self.acknowledged)?;
        world.names.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.world.lock();
        world.step(&self.acknowledged)?;
        world.durable_names = world.names.clone();
        Ok(())
    }
}

#[derive(Debug)]
struct FaultyFile {
    medium: Faulty,
    index: usize,
    name: String,
}

impl FaultyFile {
    fn change(&self, operation: Operation) -> io::Result<()> {
        let mut world = self.medium.world.lock();
        world.step(&self.medium.acknowledged)?;
        let used = world.used_bytes();
        let capacity = world.capacity_bytes;
        let file = &mut world.files[self.index];
        let size = match &operation {
            Operation::Write(offset, bytes) => file.current.len().max(offset + bytes.len()),
            // Without blocks of its own until it is written to, as in a file system.
            Operation::Resize(size) => *size,
        };
        // What lies within the file has its blocks already, however full the disk is.
        let growth = size.saturating_sub(file.current.len()) as u64;
        if growth > 0 && used + growth > capacity {
            if let Operation::Write(offset, bytes) = &operation {
                let part = Operation::Write(*offset, bytes[..bytes.len() / 2].to_vec());
                part.apply(&mut file.current);
                file.pending.push(part);
            }
            return Err(io::ErrorKind::StorageFull.into());
        }
        operation.apply(&mut file.current);
        file.pending.push(operation);
        Ok(())
    }
}

impl MediumFile for FaultyFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.medium.world.lock().files[self.index].current.len() as u64)
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let world = self.medium.world.lock();
        let content = &world.files[self.index].current;
        let offset = offset as usize;
        buffer.copy_from_slice(content.get(offset..offset + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(Operation::Write(offset as usize, bytes.to_vec()))
    }

    fn resize(&self, size: u64) -> io::Result<()> {
        self.change(Operation::Resize(size as usize))
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.medium.world.lock();
        world.step(&self.medium.acknowledged)?;
        let reached = world.operations;
        if let Fault::Sync { operation, prefix } = world.fault
            && reached >= operation
            && self.name.starts_with(prefix)
        {
            world.fault = Fault::Never;
            world.files[self.index].pending.clear();
            return Err(io::Error::other("the disk reports a write error"));
        }
        let file = &mut world.files[self.index];
        for operation in file.pending.drain(..) {
            operation.apply(&mut file.durable);
        }
        Ok(())
    }
}
