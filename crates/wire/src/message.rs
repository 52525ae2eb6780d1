//! Messages: `OP_MSG` with its sections, and the legacy `OP_QUERY` that opens some drivers' connections.
//!
//! ```text
//! OP_MSG:   uint32 flags | section … | uint32 CRC-32C, if flag bit 0 is set
//! section:  0 document                          the command
//!           1 int32 size | cstring field | document …   a document sequence, part of the command's array field
//! OP_QUERY: int32 flags | cstring "<db>.$cmd" | int32 skip | int32 return | document | (document)
//! ```
//!
//! Nothing is copied: the body and the sequences are slices of the frame.

use crate::bson::{CheckError, check};
use crate::frame::{
    Compressed, Compressor, Fault, HEADER_BYTES, Header, MAX_BSON_BYTES, MAX_WRITE_BATCH, OP_COMPRESSED, OP_MSG,
    OP_QUERY,
};
use bson::RawDocument;
use bytes::{Buf, Bytes};

/// The message ends with a checksum.
pub(crate) const FLAG_CHECKSUM: u32 = 1;
/// No reply is wanted (in a request), or another reply follows without a request (in a reply).
pub(crate) const FLAG_MORE_TO_COME: u32 = 1 << 1;
/// The client takes several replies to this request.
pub(crate) const FLAG_EXHAUST_ALLOWED: u32 = 1 << 16;
/// Flags that must be understood; those above may be ignored.
const REQUIRED_FLAGS: u32 = 0xFFFF;
/// How deep a command may nest: 200 levels below the command itself, as in MongoDB.
pub(crate) const MAX_COMMAND_DEPTH: usize = 201;

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Message {
    /// The client's number of it.
    pub(crate) request_id: i32,
    /// The database of a legacy query; `None` for `OP_MSG`, whose body says `$db`.
    pub(crate) legacy_database: Option<String>,
    /// No reply is wanted.
    pub(crate) more_to_come: bool,
    /// Several replies may be sent.
    pub(crate) exhaust_allowed: bool,
    /// How it was compressed; the reply may be too.
    pub(crate) compressor: Option<Compressor>,
    /// What is wrong with the documents inside, if anything: the frame is sound, so a reply can say it.
    pub(crate) invalid: Option<CheckError>,
    /// The document sequences.
    pub(crate) sequences: Vec<Sequence>,
    body: Bytes,
}

/// A document sequence: part of a command's array field, outside of its body.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    /// The field.
    pub(crate) field: String,
    /// How many documents.
    pub(crate) count: usize,
    documents: Bytes,
}

impl Sequence {
    /// The documents, in order.
    pub(crate) fn iter(&self) -> SequenceIter<'_> {
        SequenceIter { rest: &self.documents }
    }
}

/// Walks a sequence's documents.
#[derive(Clone)]
pub(crate) struct SequenceIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for SequenceIter<'a> {
    type Item = &'a RawDocument;

    fn next(&mut self) -> Option<&'a RawDocument> {
        if self.rest.is_empty() {
            return None;
        }
        let (document, rest) = self.rest.split_at((&self.rest[..4]).get_i32_le() as usize);
        self.rest = rest;
        Some(RawDocument::from_bytes(document).expect("lengths were checked when the message came"))
    }
}

impl Message {
    /// The command.
    pub(crate) fn body(&self) -> &RawDocument {
        RawDocument::from_bytes(&self.body).expect("the length was checked when the message came")
    }

    /// The command's bytes, shared with the frame.
    pub(crate) fn body_bytes(&self) -> Bytes {
        self.body.clone()
    }

    /// The sequence of a field.
    pub(crate) fn sequence(&self, field: &str) -> Option<&Sequence> {
        self.sequences.iter().find(|sequence| sequence.field == field)
    }

    /// Reads a message from its header and the rest of its (uncompressed) frame.
    pub(crate) fn parse(header: &Header, rest: Bytes, compressor: Option<Compressor>) -> Result<Message, Fault> {
        let mut message = match header.op_code {
            OP_MSG => parse_msg(header, rest)?,
            OP_QUERY => parse_query(header, rest)?,
            other => return Err(Fault::OpCode(other)),
        };
        message.compressor = compressor;
        Ok(message)
    }
}

/// Reads one frame as a connection does, and all that is in it; for whoever wants to know what the server thinks of some bytes.
///
/// # Errors
/// What the server would close the connection for.
pub fn check_frame(bytes: &[u8]) -> Result<(), Fault> {
    let Some(header) = Header::parse(bytes)? else { return Err(Fault::Truncated("the header")) };
    let rest = Bytes::copy_from_slice(bytes.get(HEADER_BYTES..header.length_bytes).unwrap_or_default());
    let (header, rest, compressor) = match header.op_code {
        OP_COMPRESSED => {
            let compressed = Compressed::parse(rest)?;
            let compressor = compressed.compressor;
            let length_bytes = HEADER_BYTES + compressed.size_bytes;
            (Header { op_code: compressed.op_code, length_bytes, ..header }, compressed.decompress()?, Some(compressor))
        }
        _ => (header, rest, None),
    };
    let message = Message::parse(&header, rest, compressor)?;
    for document in message.sequences.iter().flat_map(Sequence::iter).chain([message.body()]) {
        let _ = document.iter_elements().count();
    }
    Ok(())
}

fn parse_msg(header: &Header, mut rest: Bytes) -> Result<Message, Fault> {
    if rest.len() < 4 {
        return Err(Fault::Truncated("the flags"));
    }
    let flags = (&rest[..4]).get_u32_le();
    if flags & REQUIRED_FLAGS & !(FLAG_CHECKSUM | FLAG_MORE_TO_COME) != 0 {
        return Err(Fault::Flags(flags & REQUIRED_FLAGS));
    }
    if flags & FLAG_CHECKSUM != 0 {
        verify_checksum(header, &rest)?;
        rest.truncate(rest.len() - 4);
    }
    rest.advance(4);
    let mut message = Message {
        request_id: header.request_id,
        legacy_database: None,
        more_to_come: flags & FLAG_MORE_TO_COME != 0,
        exhaust_allowed: flags & FLAG_EXHAUST_ALLOWED != 0,
        compressor: None,
        invalid: None,
        sequences: Vec::new(),
        body: Bytes::new(),
    };
    let mut bodies = 0;
    while rest.has_remaining() {
        match rest.get_u8() {
            0 => {
                bodies += 1;
                message.body = take_document(&mut rest, "the body section")?;
            }
            1 => {
                let sequence = take_sequence(&mut rest, &mut message.invalid)?;
                if message.sequence(&sequence.field).is_some() {
                    return Err(Fault::DuplicateSequence(sequence.field));
                }
                message.sequences.push(sequence);
            }
            kind => return Err(Fault::SectionKind(kind)),
        }
    }
    if bodies != 1 {
        return Err(Fault::Bodies(bodies));
    }
    if let Err(error) = check(&message.body, MAX_COMMAND_DEPTH) {
        message.invalid = Some(error);
    }
    Ok(message)
}

fn verify_checksum(header: &Header, rest: &[u8]) -> Result<(), Fault> {
    if rest.len() < 8 {
        return Err(Fault::Truncated("the checksum"));
    }
    let (content, mut stated) = rest.split_at(rest.len() - 4);
    let mut first = [0; HEADER_BYTES];
    header.write_over(&mut first);
    let computed = crc32c::crc32c_append(crc32c::crc32c(&first), content);
    let stated = stated.get_u32_le();
    if stated == computed { Ok(()) } else { Err(Fault::Checksum { stated, computed }) }
}

/// Takes one document off the front: its length is checked, its inside is not.
fn take_document(rest: &mut Bytes, part: &'static str) -> Result<Bytes, Fault> {
    if rest.len() < 5 {
        return Err(Fault::Truncated(part));
    }
    let length = (&rest[..4]).get_i32_le();
    if length < 5 {
        return Err(Fault::Bson(format!("a document of {length} bytes")));
    }
    if length as usize > rest.len() {
        return Err(Fault::Truncated(part));
    }
    let document = rest.split_to(length as usize);
    if document[document.len() - 1] != 0 {
        return Err(Fault::Bson("a document without its terminator".to_owned()));
    }
    Ok(document)
}

fn take_sequence(rest: &mut Bytes, invalid: &mut Option<CheckError>) -> Result<Sequence, Fault> {
    const PART: &str = "the document sequence";
    if rest.len() < 4 {
        return Err(Fault::Truncated(PART));
    }
    let size = (&rest[..4]).get_i32_le();
    if size < 5 || size as usize > rest.len() {
        return Err(Fault::Truncated(PART));
    }
    let mut section = rest.split_to(size as usize);
    section.advance(4);
    let field = take_cstring(&mut section, "the sequence's field")?;
    let documents = section.clone();
    let mut count = 0;
    while section.has_remaining() {
        let document = take_document(&mut section, "a document of the sequence")?;
        count += 1;
        // Larger documents and longer batches than allowed are the command's to refuse; they need no second walk here.
        if document.len() > MAX_BSON_BYTES * 2 || count > MAX_WRITE_BATCH * 2 {
            return Err(Fault::Truncated(PART));
        }
        if let Err(error) = check(&document, MAX_COMMAND_DEPTH) {
            *invalid = Some(error);
        }
    }
    Ok(Sequence { field, count, documents })
}

fn take_cstring(rest: &mut Bytes, part: &'static str) -> Result<String, Fault> {
    let Some(length) = rest.iter().position(|byte| *byte == 0) else { return Err(Fault::Text(part)) };
    let text = rest.split_to(length);
    rest.advance(1);
    String::from_utf8(text.to_vec()).map_err(|_| Fault::Text(part))
}

fn parse_query(header: &Header, mut rest: Bytes) -> Result<Message, Fault> {
    if rest.len() < 4 {
        return Err(Fault::Truncated("the flags"));
    }
    rest.advance(4);
    let namespace = take_cstring(&mut rest, "the query's namespace")?;
    if rest.len() < 8 {
        return Err(Fault::Truncated("the query"));
    }
    rest.advance(8);
    let mut body = take_document(&mut rest, "the query's document")?;
    if rest.has_remaining() {
        take_document(&mut rest, "the query's projection")?;
    }
    if rest.has_remaining() {
        return Err(Fault::Trailing);
    }
    let invalid = check(&body, MAX_COMMAND_DEPTH).err();
    if invalid.is_none() {
        body = unwrap_query(body);
    }
    // Not a command: the name stays as it is, and the refusal names it.
    let database = namespace.strip_suffix(".$cmd").unwrap_or(&namespace).to_owned();
    Ok(Message {
        request_id: header.request_id,
        legacy_database: Some(database),
        more_to_come: false,
        exhaust_allowed: false,
        compressor: None,
        invalid,
        sequences: Vec::new(),
        body,
    })
}

/// Old drivers wrap the command: `{$query: {…}, $readPreference: {…}}`.
fn unwrap_query(body: Bytes) -> Bytes {
    let inner = RawDocument::from_bytes(&body)
        .ok()
        .and_then(|document| document.get_document("$query").or_else(|_| document.get_document("query")).ok())
        .map(|inner| body.slice_ref(inner.as_bytes()));
    inner.unwrap_or(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, doc};
    use proptest::prelude::*;

    fn bytes(document: &Document) -> Vec<u8> {
        bson::RawDocumentBuf::try_from(document).expect("serializes").into_bytes()
    }

    fn section(field: &str, documents: &[Document]) -> Vec<u8> {
        let mut inside = field.as_bytes().to_vec();
        inside.push(0);
        documents.iter().for_each(|document| inside.extend(bytes(document)));
        let mut out = vec![1];
        out.extend((inside.len() as i32 + 4).to_le_bytes());
        out.extend(inside);
        out
    }

    fn body(document: &Document) -> Vec<u8> {
        let mut out = vec![0];
        out.extend(bytes(document));
        out
    }

    fn parse(flags: u32, sections: &[Vec<u8>], checksum: Option<u32>) -> Result<Message, Fault> {
        let mut rest = flags.to_le_bytes().to_vec();
        rest.extend(sections.concat());
        let end = if flags & FLAG_CHECKSUM == 0 { 0 } else { 4 };
        let header =
            Header { length_bytes: HEADER_BYTES + rest.len() + end, request_id: 1, response_to: 0, op_code: OP_MSG };
        if flags & FLAG_CHECKSUM != 0 {
            let mut whole = vec![0; HEADER_BYTES];
            header.write_over(&mut whole);
            whole.extend(&rest);
            rest.extend(checksum.unwrap_or_else(|| crc32c::crc32c(&whole)).to_le_bytes());
        }
        Message::parse(&header, rest.into(), None)
    }

    #[test]
    fn a_body_and_two_sequences_in_any_order() {
        let sections = [
            section("deletes", &[doc! { "q": 1 }]),
            body(&doc! { "x": 1 }),
            section("documents", &[doc! {}, doc! { "a": 1 }]),
        ];
        let message = parse(FLAG_EXHAUST_ALLOWED | FLAG_MORE_TO_COME, &sections, None).expect("well formed");
        assert!(message.exhaust_allowed && message.more_to_come);
        assert_eq!(message.body().get_i32("x").ok(), Some(1));
        let documents = message.sequence("documents").expect("there");
        assert_eq!(documents.count, 2);
        let second = documents.iter().nth(1).expect("two");
        assert_eq!(second.get_i32("a").ok(), Some(1));
    }

    #[test]
    fn the_checksum_is_verified() {
        let sections = [body(&doc! { "ping": 1 })];
        assert!(parse(FLAG_CHECKSUM, &sections, None).is_ok());
        assert!(matches!(parse(FLAG_CHECKSUM, &sections, Some(0)), Err(Fault::Checksum { .. })));
    }

    #[test]
    fn sections_that_make_no_message_are_refused() {
        let ping = || body(&doc! { "ping": 1 });
        assert!(matches!(parse(0, &[], None), Err(Fault::Bodies(0))));
        assert!(matches!(parse(0, &[ping(), ping()], None), Err(Fault::Bodies(2))));
        assert!(matches!(parse(0, &[ping(), vec![2]], None), Err(Fault::SectionKind(2))));
        assert!(matches!(parse(4, &[ping()], None), Err(Fault::Flags(4))));
        let twice = [ping(), section("d", &[]), section("d", &[])];
        assert!(matches!(parse(0, &twice, None), Err(Fault::DuplicateSequence(_))));
        assert!(parse(1 << 20, &[ping()], None).is_ok(), "optional flags are ignored");
    }

    #[test]
    fn a_document_that_is_no_bson_inside_leaves_the_frame_sound() {
        let mut broken = body(&doc! { "ping": 1 });
        broken[5] = 0x99;
        let message = parse(0, &[broken], None).expect("the frame is sound");
        assert!(matches!(message.invalid, Some(CheckError::Malformed(..))));
    }

    #[test]
    fn a_legacy_query_is_unwrapped() {
        let mut rest = 0_i32.to_le_bytes().to_vec();
        rest.extend(b"admin.$cmd\0");
        rest.extend([0; 8]);
        rest.extend(bytes(&doc! { "$query": { "isMaster": 1 }, "$readPreference": {} }));
        let header =
            Header { length_bytes: HEADER_BYTES + rest.len(), request_id: 1, response_to: 0, op_code: OP_QUERY };
        let message = Message::parse(&header, rest.into(), None).expect("well formed");
        assert_eq!(message.legacy_database.as_deref(), Some("admin"));
        assert_eq!(message.body().get_i32("isMaster").ok(), Some(1));
    }

    proptest! {
        #[test]
        fn damaged_messages_never_panic(at in 0_usize..200, value in any::<u8>(), flags in 0_u32..4) {
            let mut rest = flags.to_le_bytes().to_vec();
            rest.extend(body(&doc! { "insert": "c", "x": { "y": [1, "z"] } }));
            rest.extend(section("documents", &[doc! {}, doc! { "a": { "b": 1 } }]));
            let at = at % rest.len();
            rest[at] = value;
            let length_bytes = HEADER_BYTES + rest.len();
            for op_code in [OP_MSG, OP_QUERY] {
                let header = Header { length_bytes, request_id: 1, response_to: 0, op_code };
                if let Ok(message) = Message::parse(&header, rest.clone().into(), None) {
                    let _ = message.body().iter_elements().count();
                    let _: usize = message.sequences.iter().map(|s| s.iter().count()).sum();
                }
            }
        }

        #[test]
        fn no_bytes_panic(rest in proptest::collection::vec(any::<u8>(), 0..120)) {
            for op_code in [OP_MSG, OP_QUERY] {
                let header = Header { length_bytes: HEADER_BYTES + rest.len(), request_id: 1, response_to: 0, op_code };
                let _ = Message::parse(&header, rest.clone().into(), None);
            }
        }
    }
}
