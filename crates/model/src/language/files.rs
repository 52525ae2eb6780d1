//! `files NAME [chunk=BYTES]`: a GridFS bucket.
//!
//! Files are stored in `NAME.files` and `NAME.chunks`, in chunks of 261,120 bytes unless `chunk` says otherwise. Content
//! type and other facts belong in a file's `metadata`.

use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::Span;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "files",
    places: &[Place::Top],
    syntax: "files NAME chunk=261120",
    meaning: "a GridFS bucket",
    parse,
};

/// The bytes of a chunk unless the model says otherwise.
pub const CHUNK_BYTES: u64 = 255 * 1024;

/// A GridFS bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// Its name, with which its two collections start.
    pub name: String,
    /// Bytes per chunk.
    pub chunk: u64,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

impl Files {
    /// How many chunks a file of so many bytes has, and the bytes of the last one.
    pub fn chunks(&self, bytes: u64) -> (u64, u64) {
        let chunks = bytes.div_ceil(self.chunk);
        (chunks, bytes - chunks.saturating_sub(1) * self.chunk)
    }
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("the bucket");
    let chunk = args.positive_integer("chunk").unwrap_or(CHUNK_BYTES);
    if chunk > 16_000_000 {
        let span = args.span_of("chunk");
        args.wrong("bad-value", span, "a chunk is one document: at most 16000000 bytes".into());
    }
    args.finish();
    reader.no_children(node);
    target.model().files.push(Files { name, chunk, span });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_megabytes_are_21_chunks_the_last_of_20480_bytes() {
        let files = Files { name: "images".into(), chunk: CHUNK_BYTES, span: Span::default() };
        assert_eq!(files.chunks(5_242_880), (21, 20_480));
        assert_eq!(files.chunks(0), (0, 0));
    }
}
