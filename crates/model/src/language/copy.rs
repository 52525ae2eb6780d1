//! What `snapshot`, `live`, `latest`, `recent`, `bucket` and `timeline` share: the list of fields they copy.
//!
//! In a block: `fields a b c` copies fields under their own names, `field NEW from=OLD` under another one.

use super::{Args, Reader};
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// One copied field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Copied {
    /// The field's name in the copy.
    pub name: String,
    /// Its path in the source, if it has another name there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl Copied {
    /// A field copied under its own name.
    pub fn same(name: impl Into<String>) -> Copied {
        Copied { name: name.into(), from: None }
    }

    /// Its path in the source.
    pub fn source(&self) -> &str {
        self.from.as_deref().unwrap_or(&self.name)
    }
}

/// The words of a block that lists copied fields.
pub(super) const LINES: [&str; 2] = ["fields", "field"];

/// Reads a `fields …` or `field NEW from=OLD` line.
pub(super) fn line(reader: &mut Reader, node: &KdlNode, fields: &mut Vec<Copied>) {
    if node.name().value() == "fields" {
        let mut args = Args::new(reader, node, "fields FIELD FIELD …");
        let words = args.words();
        if words.is_empty() {
            let span = args.span();
            args.wrong("missing", span, "name the fields to copy".into());
        }
        for word in words {
            let last = word.rsplit('.').next().unwrap_or(&word).to_owned();
            let from = (last != word).then_some(word);
            fields.push(Copied { name: last, from });
        }
        args.finish();
    } else {
        let mut args = Args::new(reader, node, "field NAME from=FIELD");
        let name = args.name("the copied field");
        let from = args.text("from").filter(|from| *from != name);
        fields.push(Copied { name, from });
        args.finish();
    }
}

/// Reads a block that holds nothing else, and sorts it.
pub(super) fn block(reader: &mut Reader, node: &KdlNode, name: &str) -> Vec<Copied> {
    let mut fields = Vec::new();
    reader.lines(node, name, &LINES, |reader, child| line(reader, child, &mut fields));
    fields.sort();
    fields
}
