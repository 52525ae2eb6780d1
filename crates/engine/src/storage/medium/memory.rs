//! Memory as the medium: files that live as long as it does.

use super::{Medium, MediumFile};
use crate::error::{Code, Error, Result};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Files in memory. Opening a storage on the same `Memory` again finds what the last one left.
#[derive(Debug, Default)]
pub struct Memory {
    files: Mutex<BTreeMap<String, Arc<MemoryFile>>>,
    holder: Mutex<std::sync::Weak<()>>,
}

#[derive(Debug, Default)]
struct MemoryFile(RwLock<Vec<u8>>);

impl Medium for Memory {
    fn lock(&self) -> Result<Box<dyn Send + Sync>> {
        let mut holder = self.holder.lock();
        if holder.strong_count() > 0 {
            return Err(Error::new(Code::DB_PATH_IN_USE, "another storage is open on this memory: close it first"));
        }
        let guard = Arc::new(());
        *holder = Arc::downgrade(&guard);
        Ok(Box::new(guard))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.files.lock().keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn MediumFile>> {
        Ok(self.files.lock().entry(name.to_owned()).or_default().clone())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.lock().remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl MediumFile for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.read().len() as u64)
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.read();
        let range = span(offset, buffer.len())?;
        buffer.copy_from_slice(bytes.get(range).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut content = self.0.write();
        let range = span(offset, bytes.len())?;
        if content.len() < range.end {
            content.resize(range.end, 0);
        }
        content[range].copy_from_slice(bytes);
        Ok(())
    }

    fn resize(&self, size: u64) -> io::Result<()> {
        let size = span(size, 0)?.end;
        self.0.write().resize(size, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn span(offset: u64, length: usize) -> io::Result<std::ops::Range<usize>> {
    let start = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let end = start.checked_add(length).ok_or(io::ErrorKind::FileTooLarge)?;
    Ok(start..end)
}
