//! What a tool did, a line for each collection, for people or as JSON; and checksums to compare copies by.

use crate::command::print;
use bson::RawDocument;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

/// What was done with a collection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// `database.collection`.
    pub(crate) namespace: String,
    /// What was done, in a word.
    pub(crate) what: &'static str,
    /// How many documents.
    pub(crate) documents: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Documents that failed.
    pub(crate) failed: u64,
    /// How long it took.
    pub(crate) took: Duration,
}

/// Shows what was done.
pub(crate) fn show(lines: &[Line], json: bool) {
    let mut text = String::new();
    if json {
        for line in lines {
            let value = serde_json::json!({
                "namespace": line.namespace, "done": line.what, "documents": line.documents, "bytes": line.bytes,
                "failed": line.failed, "seconds": line.took.as_secs_f64(),
            });
            text.push_str(&format!("{value}\n"));
        }
    } else {
        for line in lines {
            let seconds = line.took.as_secs_f64().max(1e-9);
            let failed = if line.failed > 0 { format!(", {} failed", line.failed) } else { String::new() };
            text.push_str(&format!(
                "{:40} {} {} documents, {} in {:.1} s ({:.0} documents/s){failed}\n",
                line.namespace,
                line.what,
                line.documents,
                size(line.bytes),
                line.took.as_secs_f64(),
                line.documents as f64 / seconds,
            ));
        }
    }
    let _ = print(&text);
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// A count and a sum over documents that does not depend on their order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Checksum {
    /// How many documents.
    pub(crate) documents: u64,
    sum: u64,
}

impl Checksum {
    /// Takes a document in.
    pub(crate) fn add(&mut self, document: &RawDocument) {
        let mut hasher = DefaultHasher::new();
        hasher.write(document.as_bytes());
        self.documents += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn a_checksum_tells_documents_apart_and_not_their_order() {
        let sum = |documents: &[&RawDocument]| {
            let mut sum = Checksum::default();
            documents.iter().for_each(|document| sum.add(document));
            sum
        };
        let (a, b) = (rawdoc! { "_id": 1 }, rawdoc! { "_id": 1_i64 });
        assert_eq!(sum(&[&a, &b]), sum(&[&b, &a]));
        assert_ne!(sum(&[&a, &a]), sum(&[&b, &b]));
        assert_ne!(sum(&[&a]), sum(&[&a, &a]));
    }
}
