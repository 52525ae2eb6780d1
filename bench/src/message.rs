//! Prepared `OP_MSG` requests: built once, then only copied and numbered.

use bson::RawDocument;

/// A number that a template replaces each time it is sent.
pub const SLOT: i64 = 0x5eaf_5eaf_5eaf_5eaf;

const OP_MSG: u32 = 2013;

/// A request with places for numbers.
pub struct Template {
    bytes: Vec<u8>,
    slots: Vec<usize>,
}

impl Template {
    /// A command; every [`SLOT`] in it becomes a place for a number.
    pub fn new(command: &RawDocument) -> Template {
        Template::with_documents(command, "", &[])
    }

    /// A command with a document sequence, as drivers send inserts.
    pub fn with_documents(command: &RawDocument, field: &str, documents: &[&RawDocument]) -> Template {
        let mut bytes = vec![0; 16];
        bytes.extend(0_u32.to_le_bytes());
        bytes.push(0);
        bytes.extend(command.as_bytes());
        if !documents.is_empty() {
            let size = 4 + field.len() + 1 + documents.iter().map(|document| document.as_bytes().len()).sum::<usize>();
            bytes.push(1);
            bytes.extend((size as u32).to_le_bytes());
            bytes.extend(field.as_bytes());
            bytes.push(0);
            documents.iter().for_each(|document| bytes.extend(document.as_bytes()));
        }
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[12..16].copy_from_slice(&OP_MSG.to_le_bytes());
        let mark = SLOT.to_le_bytes();
        let slots = (0..bytes.len() - 7).filter(|at| bytes[*at..*at + 8] == mark).collect();
        Template { bytes, slots }
    }

    /// How many places it has.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Puts the request into `out`, with numbers in its places.
    pub fn write(&self, out: &mut Vec<u8>, mut number: impl FnMut(usize) -> i64) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for (index, at) in self.slots.iter().enumerate() {
            out[start + at..start + at + 8].copy_from_slice(&number(index).to_le_bytes());
        }
    }
}

/// The document of a reply frame.
pub fn body(frame: &[u8]) -> &RawDocument {
    RawDocument::from_bytes(&frame[21..]).expect("a reply's body is a document")
}

/// Whether a reply says that all went well.
pub fn is_ok(frame: &[u8]) -> bool {
    let body = body(frame);
    body.get_f64("ok").is_ok_and(|ok| ok == 1.0) && body.get("writeErrors").is_ok_and(|errors| errors.is_none())
}
