//! A part of a backup: a zstd stream of entries.
//!
//! An entry of keys is: length of the key, key, length of the value, value. An entry of the log is: position, time, length of
//! the note, note, count of writes, and for each its key (length, bytes) and its value (0 for a delete, else length + 1 and the
//! bytes). Numbers are of variable length, seven bits a byte, the least first.

use super::failed;
use super::manifest::Part;
use crate::error::{Code, Error, Result};
use crate::storage::Record;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// How hard zstd tries.
const ZSTD_LEVEL: i32 = 1;
/// The most bytes of one key, value or note.
const MAX_BYTES: u64 = 256 << 20;

/// A file whose checksum is taken on the way.
struct Summed<F> {
    file: F,
    checksum: u32,
    bytes: u64,
}

impl<F: Write> Write for Summed<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<F: Read> Read for Summed<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// A part that is being written.
pub(super) struct PartWriter {
    path: PathBuf,
    name: String,
    stream: zstd::stream::write::Encoder<'static, Summed<BufWriter<File>>>,
    entries: u64,
    bytes: u64,
}

impl PartWriter {
    pub(super) fn create(folder: &Path, name: &str) -> Result<PartWriter> {
        let path = folder.join(name);
        let open = || {
            let file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
            zstd::stream::write::Encoder::new(Summed { file, checksum: 0, bytes: 0 }, ZSTD_LEVEL)
        };
        let stream = open().map_err(|error| failed(&path, error))?;
        Ok(PartWriter { name: name.to_owned(), stream, entries: 0, bytes: 0, path })
    }

    /// The bytes of keys, values and notes so far, before they are packed.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn entry(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_bytes(key)?;
        self.put_bytes(value)?;
        self.entries += 1;
        Ok(())
    }

    pub(super) fn commit(&mut self, record: &Record) -> Result<()> {
        self.put_number(record.position)?;
        self.put_number(record.time)?;
        self.put_bytes(&record.note)?;
        self.put_number(record.writes.len() as u64)?;
        for (key, value) in &record.writes {
            self.put_bytes(key)?;
            match value {
                None => self.put_number(0)?,
                Some(value) => {
                    self.put_number(value.len() as u64 + 1)?;
                    self.put(value)?;
                }
            }
        }
        self.entries += 1;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        self.stream.write_all(bytes).map_err(|error| failed(&self.path, error))
    }

    fn put_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.put_number(bytes.len() as u64)?;
        self.put(bytes)
    }

    fn put_number(&mut self, mut number: u64) -> Result<()> {
        let (mut bytes, mut length) = ([0; 10], 0);
        while number >= 0x80 {
            bytes[length] = number as u8 | 0x80;
            number >>= 7;
            length += 1;
        }
        bytes[length] = number as u8;
        self.put(&bytes[..=length])
    }

    /// Ends the part, durably.
    pub(super) fn finish(self) -> Result<Part> {
        let finish = || -> io::Result<(u32, u64)> {
            let summed = self.stream.finish()?;
            let file = summed.file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            Ok((summed.checksum, summed.bytes))
        };
        let (checksum, bytes) = finish().map_err(|error| failed(&self.path, error))?;
        Ok(Part { name: self.name, entries: self.entries, bytes, checksum })
    }
}

/// A part that is being read.
pub(super) struct PartReader {
    path: PathBuf,
    part: Part,
    stream: zstd::stream::read::Decoder<'static, BufReader<Summed<File>>>,
    left: u64,
}

impl PartReader {
    pub(super) fn open(folder: &Path, part: &Part) -> Result<PartReader> {
        let path = folder.join(&part.name);
        let open = || {
            let summed = Summed { file: File::open(&path)?, checksum: 0, bytes: 0 };
            zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(1 << 20, summed))
        };
        let stream = open().map_err(|error| failed(&path, error))?;
        Ok(PartReader { path, part: part.clone(), stream, left: part.entries })
    }

    fn damaged(&self, what: &str) -> Error {
        Error::new(Code::MANUAL_INTERVENTION_REQUIRED, format!("{} is damaged: {what}", self.path.display()))
    }

    /// The next key with its value; `None` at the end, once the file's checksum was compared.
    pub(super) fn entry(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        if self.is_over()? {
            return Ok(None);
        }
        Ok(Some((self.take_bytes()?, self.take_bytes()?)))
    }

    /// The next commit; `None` at the end, once the file's checksum was compared.
    pub(super) fn commit(&mut self) -> Result<Option<Record>> {
        if self.is_over()? {
            return Ok(None);
        }
        let (position, time, note) = (self.number()?, self.number()?, self.take_bytes()?);
        let count = self.number()?;
        let mut writes = Vec::new();
        for _ in 0..count {
            let key = self.take_bytes()?;
            let value = match self.number()? {
                0 => None,
                length => Some(self.take(length - 1)?),
            };
            writes.push((key, value));
        }
        Ok(Some(Record { position, time, note, writes }))
    }

    fn is_over(&mut self) -> Result<bool> {
        if self.left > 0 {
            self.left -= 1;
            return Ok(false);
        }
        let mut beyond = [0];
        let read = self.stream.read(&mut beyond).map_err(|error| failed(&self.path, error))?;
        if read > 0 {
            return Err(self.damaged("it holds more than the manifest says"));
        }
        let summed = self.stream.get_ref().get_ref();
        if summed.bytes != self.part.bytes || summed.checksum != self.part.checksum {
            return Err(self.damaged("its checksum differs"));
        }
        Ok(true)
    }

    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).map_err(|_| self.damaged("it ends early"))?;
            number |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(number);
            }
        }
        Err(self.damaged("a number has too many bytes"))
    }

    fn take_bytes(&mut self) -> Result<Bytes> {
        let length = self.number()?;
        self.take(length)
    }

    fn take(&mut self, length: u64) -> Result<Bytes> {
        if length > MAX_BYTES {
            return Err(self.damaged("a length is out of bounds"));
        }
        let mut bytes = vec![0; length as usize];
        self.stream.read_exact(&mut bytes).map_err(|_| self.damaged("it ends early"))?;
        Ok(bytes.into())
    }
}
