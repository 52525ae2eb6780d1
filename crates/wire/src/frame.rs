//! Frames: the 16-byte header, its limits, and compression (`OP_COMPRESSED`).
//!
//! ```text
//! int32 messageLength | int32 requestID | int32 responseTo | int32 opCode | body …
//! ```
//!
//! Everything that a stranger could send is checked here before a byte of it is allocated or trusted. What can't be right is a
//! [`Fault`]: the connection is closed with it as the logged reason, since the position of the next frame is then unknown.

use bytes::{Buf, Bytes};
use std::fmt;
use std::io::Read;

/// The size of a frame's header.
pub const HEADER_BYTES: usize = 16;
/// The largest frame, header included (`maxMessageSizeBytes`).
pub const MAX_MESSAGE_BYTES: usize = 48_000_000;
/// The largest document (`maxBsonObjectSize`).
pub const MAX_BSON_BYTES: usize = 16_777_216;
/// What a command may take beyond the largest document it carries.
pub const COMMAND_OVERHEAD_BYTES: usize = 16 * 1024;
/// The most statements of a write command (`maxWriteBatchSize`).
pub const MAX_WRITE_BATCH: usize = 100_000;

/// `opCode` of a reply to `OP_QUERY`.
pub const OP_REPLY: i32 = 1;
/// `opCode` of the legacy query, accepted for `hello` only.
pub const OP_QUERY: i32 = 2004;
/// `opCode` of a compressed frame.
pub const OP_COMPRESSED: i32 = 2012;
/// `opCode` of a message.
pub const OP_MSG: i32 = 2013;

/// Opcodes that servers no longer answer; named so that the log says what an old client wanted.
const REMOVED_OPCODES: &[(i32, &str)] = &[
    (1000, "OP_MSG (legacy)"),
    (2001, "OP_UPDATE"),
    (2002, "OP_INSERT"),
    (2005, "OP_GET_MORE"),
    (2006, "OP_DELETE"),
    (2007, "OP_KILL_CURSORS"),
    (2010, "OP_COMMAND"),
    (2011, "OP_COMMANDREPLY"),
];

/// The size of an `OP_COMPRESSED` body before its compressed bytes: original opcode, uncompressed size, compressor.
const COMPRESSED_PREFIX_BYTES: usize = 9;
/// Snappy turns at most this many bytes into one: more is a lie about the size.
const SNAPPY_MAX_RATIO: usize = 64;

/// Why a peer's bytes can't be understood; the connection is closed with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// `messageLength` below the header's size or beyond the limit.
    Length(i32),
    /// An opcode that is not spoken.
    OpCode(i32),
    /// A part reaches beyond the end of its frame; says which.
    Truncated(&'static str),
    /// Bytes after the end of the last part.
    Trailing,
    /// The checksum does not match.
    Checksum {
        /// What the frame said.
        stated: u32,
        /// What it should have said.
        computed: u32,
    },
    /// A required flag bit that is not known.
    Flags(u32),
    /// A section kind that is not known.
    SectionKind(u8),
    /// No body section, or more than one.
    Bodies(usize),
    /// A field that occurs as a document sequence twice, or in the body as well.
    DuplicateSequence(String),
    /// A string that is no UTF-8 or not ended.
    Text(&'static str),
    /// A compressor that is not known.
    Compressor(u8),
    /// Compressed bytes that can't be undone.
    Compression(String),
    /// A document that is no BSON.
    Bson(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Length(length) => {
                write!(f, "message length {length} is not within {HEADER_BYTES} and {MAX_MESSAGE_BYTES}")
            }
            Fault::OpCode(code) => match REMOVED_OPCODES.iter().find(|known| known.0 == *code) {
                Some((_, name)) => write!(f, "opcode {code} ({name}) is no longer supported; the client is too old"),
                None => write!(f, "unknown opcode {code}"),
            },
            Fault::Truncated(part) => write!(f, "{part} reaches beyond the end of the message"),
            Fault::Trailing => write!(f, "bytes after the end of the message's last section"),
            Fault::Checksum { stated, computed } => {
                write!(f, "checksum {stated:#010x} does not match the message ({computed:#010x})")
            }
            Fault::Flags(flags) => write!(f, "unknown required flag bits {flags:#06x}"),
            Fault::SectionKind(kind) => write!(f, "unknown section kind {kind}"),
            Fault::Bodies(count) => write!(f, "a message has one body section, this one has {count}"),
            Fault::DuplicateSequence(name) => write!(f, "document sequence '{name}' occurs more than once"),
            Fault::Text(part) => write!(f, "{part} is not a terminated UTF-8 string"),
            Fault::Compressor(id) => write!(f, "unknown compressor {id}"),
            Fault::Compression(reason) => write!(f, "compressed message can't be undone: {reason}"),
            Fault::Bson(reason) => write!(f, "invalid BSON: {reason}"),
        }
    }
}

impl std::error::Error for Fault {}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Size of the frame, header included.
    pub length_bytes: usize,
    /// The sender's number of this message.
    pub request_id: i32,
    /// The number of the message this one answers.
    pub response_to: i32,
    /// What the body is.
    pub op_code: i32,
}

impl Header {
    /// Reads a header from the start of `bytes`; none if too few of them have arrived.
    pub fn parse(bytes: &[u8]) -> Result<Option<Header>, Fault> {
        let Some(mut bytes) = bytes.get(..HEADER_BYTES) else { return Ok(None) };
        let length = bytes.get_i32_le();
        let header = Header {
            length_bytes: length as usize,
            request_id: bytes.get_i32_le(),
            response_to: bytes.get_i32_le(),
            op_code: bytes.get_i32_le(),
        };
        if length < HEADER_BYTES as i32 || length as usize > MAX_MESSAGE_BYTES {
            return Err(Fault::Length(length));
        }
        match header.op_code {
            OP_QUERY | OP_COMPRESSED | OP_MSG => Ok(Some(header)),
            other => Err(Fault::OpCode(other)),
        }
    }

    /// Writes the header over the first 16 bytes of `frame`.
    pub fn write_over(&self, frame: &mut [u8]) {
        frame[0..4].copy_from_slice(&(self.length_bytes as i32).to_le_bytes());
        frame[4..8].copy_from_slice(&self.request_id.to_le_bytes());
        frame[8..12].copy_from_slice(&self.response_to.to_le_bytes());
        frame[12..16].copy_from_slice(&self.op_code.to_le_bytes());
    }
}

/// A way to compress frames, negotiated in `hello`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressor {
    /// Stored as it is.
    Noop = 0,
    /// Snappy.
    Snappy = 1,
    /// zlib.
    Zlib = 2,
    /// Zstandard.
    Zstd = 3,
}

impl Compressor {
    /// The compressor of a name in `hello`'s `compression`.
    pub fn by_name(name: &str) -> Option<Compressor> {
        match name {
            "snappy" => Some(Compressor::Snappy),
            "zlib" => Some(Compressor::Zlib),
            "zstd" => Some(Compressor::Zstd),
            _ => None,
        }
    }

    /// Its name in `hello`.
    pub fn name(self) -> &'static str {
        match self {
            Compressor::Noop => "noop",
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }

    fn by_id(id: u8) -> Result<Compressor, Fault> {
        match id {
            0 => Ok(Compressor::Noop),
            1 => Ok(Compressor::Snappy),
            2 => Ok(Compressor::Zlib),
            3 => Ok(Compressor::Zstd),
            other => Err(Fault::Compressor(other)),
        }
    }
}

/// The body of an `OP_COMPRESSED` frame, checked but not yet undone.
pub struct Compressed {
    /// The opcode of the frame inside.
    pub op_code: i32,
    /// The size of the body inside, as claimed.
    pub size_bytes: usize,
    /// How it is compressed.
    pub compressor: Compressor,
    bytes: Bytes,
}

impl Compressed {
    /// Reads the parts before the compressed bytes and checks the claimed size.
    pub fn parse(mut body: Bytes) -> Result<Compressed, Fault> {
        if body.len() < COMPRESSED_PREFIX_BYTES {
            return Err(Fault::Truncated("the compression header"));
        }
        let op_code = body.get_i32_le();
        let size = body.get_i32_le();
        let compressor = Compressor::by_id(body.get_u8())?;
        if size < 0 || size as usize > MAX_MESSAGE_BYTES - HEADER_BYTES {
            return Err(Fault::Length(size));
        }
        if op_code != OP_MSG && op_code != OP_QUERY {
            return Err(Fault::OpCode(op_code));
        }
        Ok(Compressed { op_code, size_bytes: size as usize, compressor, bytes: body })
    }

    /// The body inside.
    pub fn decompress(self) -> Result<Bytes, Fault> {
        let size = self.size_bytes;
        let failed = |error: &dyn fmt::Display| Fault::Compression(error.to_string());
        let out: Bytes = match self.compressor {
            Compressor::Noop => self.bytes,
            Compressor::Snappy => {
                let inside = snap::raw::decompress_len(&self.bytes).map_err(|error| failed(&error))?;
                if inside != size || size > self.bytes.len().saturating_mul(SNAPPY_MAX_RATIO) {
                    return Err(Fault::Compression(format!("{size} bytes claimed, {inside} inside")));
                }
                snap::raw::Decoder::new().decompress_vec(&self.bytes).map_err(|error| failed(&error))?.into()
            }
            Compressor::Zlib => read_bounded(flate2::read::ZlibDecoder::new(&self.bytes[..]), size)?.into(),
            Compressor::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(&self.bytes[..]).map_err(|e| failed(&e))?;
                read_bounded(decoder, size)?.into()
            }
        };
        if out.len() != size {
            return Err(Fault::Compression(format!("{size} bytes claimed, {} inside", out.len())));
        }
        Ok(out)
    }
}

/// Reads at most one byte more than `size`, growing as the bytes come, so that a claim alone allocates nothing.
fn read_bounded(reader: impl Read, size: usize) -> Result<Vec<u8>, Fault> {
    const FIRST_BYTES: usize = 64 * 1024;
    let mut out = Vec::with_capacity(size.min(FIRST_BYTES));
    match reader.take(size as u64 + 1).read_to_end(&mut out) {
        Ok(_) => Ok(out),
        Err(error) => Err(Fault::Compression(error.to_string())),
    }
}

/// Compresses a whole frame (header included) into an `OP_COMPRESSED` frame with the same ids.
pub fn compress(frame: &[u8], compressor: Compressor) -> Vec<u8> {
    let body = &frame[HEADER_BYTES..];
    let header = Header::parse_ours(frame);
    let mut out = vec![0; HEADER_BYTES];
    out.extend_from_slice(&header.op_code.to_le_bytes());
    out.extend_from_slice(&(body.len() as i32).to_le_bytes());
    out.push(compressor as u8);
    match compressor {
        Compressor::Noop => out.extend_from_slice(body),
        Compressor::Snappy => {
            let compressed = snap::raw::Encoder::new().compress_vec(body);
            out.extend_from_slice(&compressed.expect("a frame is smaller than Snappy's limit of 4 GiB"));
        }
        Compressor::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(out, flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, body).expect("writing into memory does not fail");
            out = encoder.finish().expect("writing into memory does not fail");
        }
        Compressor::Zstd => {
            let compressed = zstd::bulk::compress(body, 1).expect("compressing in memory does not fail");
            out.extend_from_slice(&compressed);
        }
    }
    Header { length_bytes: out.len(), op_code: OP_COMPRESSED, ..header }.write_over(&mut out);
    out
}

impl Header {
    /// Reads back a header that we wrote.
    fn parse_ours(mut frame: &[u8]) -> Header {
        Header {
            length_bytes: frame.get_i32_le() as usize,
            request_id: frame.get_i32_le(),
            response_to: frame.get_i32_le(),
            op_code: frame.get_i32_le(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(op_code: i32, body: &[u8]) -> Vec<u8> {
        let mut out = vec![0; HEADER_BYTES];
        out.extend_from_slice(body);
        Header { length_bytes: out.len(), request_id: 7, response_to: 3, op_code }.write_over(&mut out);
        out
    }

    #[test]
    fn a_header_is_read_once_all_of_it_arrived() {
        let bytes = frame(OP_MSG, b"abc");
        assert_eq!(Header::parse(&bytes[..15]), Ok(None));
        let header = Header { length_bytes: 19, request_id: 7, response_to: 3, op_code: OP_MSG };
        assert_eq!(Header::parse(&bytes), Ok(Some(header)));
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        for length in [i32::MIN, -1, 0, 15, MAX_MESSAGE_BYTES as i32 + 1, i32::MAX] {
            let mut bytes = frame(OP_MSG, b"");
            bytes[0..4].copy_from_slice(&length.to_le_bytes());
            assert_eq!(Header::parse(&bytes), Err(Fault::Length(length)));
        }
    }

    #[test]
    fn removed_and_unknown_opcodes_are_refused_by_name() {
        assert_eq!(Header::parse(&frame(2002, b"")), Err(Fault::OpCode(2002)));
        assert!(Fault::OpCode(2002).to_string().contains("OP_INSERT"));
        assert_eq!(Header::parse(&frame(9, b"")), Err(Fault::OpCode(9)));
    }

    #[test]
    fn a_bomb_stops_at_its_claimed_size() {
        let bomb = frame(OP_MSG, &vec![0; 1_000_000]);
        for compressor in [Compressor::Snappy, Compressor::Zlib, Compressor::Zstd] {
            let mut small = compress(&bomb, compressor)[HEADER_BYTES..].to_vec();
            small[4..8].copy_from_slice(&10_i32.to_le_bytes());
            let refused = Compressed::parse(small.into()).and_then(Compressed::decompress);
            assert!(matches!(refused, Err(Fault::Compression(_))), "{compressor:?}");
        }
    }

    proptest! {
        #[test]
        fn compression_comes_back(body in proptest::collection::vec(any::<u8>(), 0..2000), which in 0_u8..4) {
            let compressor = Compressor::by_id(which).expect("0 to 3 are known");
            let bytes = compress(&frame(OP_MSG, &body), compressor);
            let header = Header::parse(&bytes).expect("well formed").expect("whole");
            prop_assert_eq!((header.op_code, header.request_id, header.response_to), (OP_COMPRESSED, 7, 3));
            prop_assert_eq!(header.length_bytes, bytes.len());
            let compressed = Compressed::parse(Bytes::from(bytes).slice(HEADER_BYTES..)).expect("well formed");
            prop_assert_eq!(compressed.op_code, OP_MSG);
            prop_assert_eq!(&compressed.decompress().expect("comes back")[..], &body[..]);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Header::parse(&bytes);
            if let Ok(compressed) = Compressed::parse(bytes.into()) {
                let _ = compressed.decompress();
            }
        }
    }
}
