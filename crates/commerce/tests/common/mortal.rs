//! A folder under an engine that dies: from one input or output on, nothing of this engine reaches the disk any more, as
//! when its process is killed at that point.

use engine::storage::{Folder, Medium, MediumFile};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// A folder that can be taken away from an engine. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Mortal {
    folder: Arc<Folder>,
    life: Arc<Life>,
}

#[derive(Debug)]
struct Life {
    /// How many writes, syncs and the like are left.
    left: AtomicI64,
    dead: AtomicBool,
}

impl Life {
    /// Takes one step, or fails for good.
    fn step(&self) -> io::Result<()> {
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            self.dead.store(true, Ordering::SeqCst);
            return Err(io::Error::other("the process was killed"));
        }
        Ok(())
    }
}

impl Mortal {
    pub(crate) fn open(path: &Path) -> Mortal {
        let life = Life { left: AtomicI64::new(i64::MAX / 2), dead: AtomicBool::new(false) };
        Mortal { folder: Arc::new(Folder::open(path).unwrap()), life: Arc::new(life) }
    }

    /// It dies after so many steps more.
    pub(crate) fn dies_after(&self, steps: i64) {
        self.life.left.store(steps, Ordering::SeqCst);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.life.dead.load(Ordering::SeqCst)
    }
}

impl Medium for Mortal {
    /// Whoever comes next does not wait until the dead one has let go: it can't write any more.
    fn lock(&self) -> engine::Result<Box<dyn Send + Sync>> {
        Ok(Box::new(()))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.folder.names()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn MediumFile>> {
        self.life.step()?;
        Ok(Arc::new(MortalFile { file: self.folder.open(name)?, life: self.life.clone() }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.life.step()?;
        self.folder.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.life.step()?;
        self.folder.sync()
    }
}

#[derive(Debug)]
struct MortalFile {
    file: Arc<dyn MediumFile>,
    life: Arc<Life>,
}

impl MediumFile for MortalFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, buffer)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.life.step()?;
        self.file.write(offset, bytes)
    }

    fn resize(&self, size: u64) -> io::Result<()> {
        self.life.step()?;
        self.file.resize(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.life.step()?;
        self.file.sync()
    }
}
