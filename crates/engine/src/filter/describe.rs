//! A filter's tree as a document again, normalised: `parsedQuery` and `filter` in `explain`.

use super::Node;
use crate::document::append;
use bson::{RawArrayBuf, RawBsonRef, RawDocumentBuf, rawdoc};

impl Node {
    /// The tree as a filter document.
    pub fn describe(&self) -> RawDocumentBuf {
        match self {
            Node::And(nodes) => list("$and", nodes),
            Node::Or(nodes) => list("$or", nodes),
            Node::Nor(nodes) => list("$nor", nodes),
            Node::Not { node, .. } => negation(node),
            Node::Path { path, test } => field(path.as_str(), RawBsonRef::Document(&test.describe())),
            Node::Expr(condition) => field("$expr", condition.written()),
            Node::Schema(schema) => field("$jsonSchema", RawBsonRef::Document(schema.written())),
            Node::Sample(rate) => rawdoc! { "$sampleRate": *rate },
            Node::Always(true) => RawDocumentBuf::new(),
            Node::Always(false) => rawdoc! { "$alwaysFalse": 1 },
        }
    }
}

fn field(name: &str, value: RawBsonRef<'_>) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    append(&mut document, name, value).expect("names come from a document");
    document
}

fn list(name: &str, nodes: &[Node]) -> RawDocumentBuf {
    let mut array = RawArrayBuf::new();
    for node in nodes {
        array.push(node.describe());
    }
    field(name, RawBsonRef::Array(&array))
}

fn negation(node: &Node) -> RawDocumentBuf {
    match node {
        Node::Path { path, test } => {
            let inner = field("$not", RawBsonRef::Document(&test.describe()));
            field(path.as_str(), RawBsonRef::Document(&inner))
        }
        other => list("$nor", std::slice::from_ref(other)),
    }
}
