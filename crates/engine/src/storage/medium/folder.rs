//! A folder of a file system as the medium.

use super::{Medium, MediumFile};
use crate::error::{Code, Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the file whose lock says that the folder is in use.
const LOCK_NAME: &str = "lock";

/// A folder; it is created, with its parents, if it doesn't exist.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens or creates a folder.
    pub fn open(path: &Path) -> Result<Folder> {
        std::fs::create_dir_all(path).map_err(|error| located(error, path))?;
        Ok(Folder { path: path.to_owned() })
    }
}

fn located(error: io::Error, path: &Path) -> Error {
    Error::from(error).context(format!("{} can't be opened", path.display()))
}

impl Medium for Folder {
    fn lock(&self) -> Result<Box<dyn Send + Sync>> {
        let path = self.path.join(LOCK_NAME);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(|error| located(error, &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                Code::DB_PATH_IN_USE,
                format!(
                    "the folder {} is in use by another process (or another storage of this process): stop that one \
                     first, or choose another folder",
                    self.path.display()
                ),
            )),
            Err(TryLockError::Error(error)) => Err(located(error, &path)),
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn MediumFile>> {
        let path = self.path.join(name);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Arc::new(file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

impl MediumFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn resize(&self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
