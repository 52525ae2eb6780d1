//! Where a storage's files live: a folder, memory, or (in tests) something that fails on purpose.
//!
//! What is assumed of a medium: a write or a change of size is durable once a later `sync` of the same file returned;
//! without it any part of it may or may not be, in pieces and in any order. The creation and the removal of files are
//! durable once a later [`Medium::sync`] returned. Nothing else changes what was durable.

mod folder;
mod memory;

pub use folder::Folder;
pub use memory::Memory;

use crate::error::Result;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A flat set of named files.
pub trait Medium: Debug + Send + Sync {
    /// Claims the medium until the returned guard is dropped.
    ///
    /// Errors: `DBPathInUse` if another storage holds it.
    fn lock(&self) -> Result<Box<dyn Send + Sync>>;

    /// The names of all files.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Opens a file, creating it empty if it doesn't exist.
    fn open(&self, name: &str) -> io::Result<Arc<dyn MediumFile>>;

    /// Removes a file. Those who have it open can go on reading it.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations and removals durable.
    fn sync(&self) -> io::Result<()>;
}

/// One file of a medium.
pub trait MediumFile: Debug + Send + Sync {
    /// The size in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Fills a buffer; an error if the file ends before.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all bytes, extending the file where necessary.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or extends it by zeros.
    fn resize(&self, size: u64) -> io::Result<()>;

    /// Makes all writes and the size durable.
    fn sync(&self) -> io::Result<()>;
}
