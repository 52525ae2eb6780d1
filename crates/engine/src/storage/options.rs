//! How a storage is opened.

/// Sizes and bounds of a storage.
#[derive(Clone, Debug)]
pub struct Options {
    /// The size of a log segment; a larger commit gets a segment of its own size.
    pub segment_bytes: u64,
    /// The overlay's soft limit: at this size folding starts. At twice the size writers wait for the folder.
    pub overlay_bytes: usize,
    /// The table file's page cache.
    pub cache_bytes: usize,
    /// The cache of single values from the table file, by key.
    pub point_bytes: usize,
    /// The log's size up to which folded segments are kept for readers.
    pub retain_bytes: u64,
    /// How long folded segments are kept for readers, in the unit of [`Changes::time`](super::Changes::time), counted
    /// back from the last commit's time.
    pub retain_age: u64,
    /// Whether commits are flushed.
    pub flush: Flush,
}

/// Whether commits are flushed to the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// A ticket completes once its commit survives a power failure.
    Durable,
    /// Nothing is ever flushed; a crash may lose everything. For benchmarks and for media without durability.
    Skip,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_bytes: 32 << 20,
            overlay_bytes: 64 << 20,
            cache_bytes: 192 << 20,
            point_bytes: 128 << 20,
            retain_bytes: 1 << 30,
            retain_age: u64::MAX,
            flush: Flush::Durable,
        }
    }
}
