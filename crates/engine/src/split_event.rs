//! `{$changeStreamSplitLargeEvent: {}}`: the last stage of a change stream, which gives an event of more than 16 MiB in
//! fragments.
//!
//! Fields are not taken apart: each fragment holds as many of the event's top-level fields as fit, the smallest first, so
//! that what says where and what happened comes at once. Each has a resume token of its own. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/changeStreamSplitLargeEvent/>.

use crate::changestream::fragment_token;
use crate::document::{MAX_DOCUMENT_BYTES, Row, append, get};
use crate::error::{Code, Error, Result};
use crate::stage::{RowSource, Rows};
use bson::{RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use std::collections::VecDeque;

/// The stage's name.
pub(crate) const NAME: &str = "$changeStreamSplitLargeEvent";

/// What a fragment takes beside the fields that it holds: its token, `splitEvent`, and a document's frame.
const FRAME_BYTES: usize = 1024;

/// Takes the stage off the end of a change stream's stages; whether it was there.
///
/// # Errors
/// `Location7182800` for an argument, `Location7182802` where it is not the last stage.
pub(crate) fn take_stage(stages: &RawArrayBuf) -> Result<(RawArrayBuf, bool)> {
    let (mut rest, mut found) = (RawArrayBuf::new(), false);
    for stage in stages {
        let stage = stage?;
        if found {
            return Err(Error::location(7_182_802, format!("{NAME} must be the last stage in the pipeline")));
        }
        let argument = stage.as_document().map(|stage| get(stage, NAME)).transpose()?.flatten();
        match argument {
            None => rest.push(stage),
            Some(RawBsonRef::Document(argument)) if argument.is_empty() => found = true,
            Some(_) => return Err(Error::location(7_182_800, format!("{NAME} spec should be an empty object"))),
        }
    }
    Ok((rest, found))
}

/// Gives large events in fragments.
pub(crate) struct Splitter {
    rows: Rows,
    pending: VecDeque<RawDocumentBuf>,
    /// How many fragments of the first event were seen before.
    seen: usize,
    most_bytes: usize,
}

impl Splitter {
    /// Splits the events of a source; of the first, so many fragments were seen before.
    pub(crate) fn new(rows: Rows, seen: usize) -> Splitter {
        Splitter { rows, pending: VecDeque::new(), seen, most_bytes: MAX_DOCUMENT_BYTES }
    }

    fn split(&mut self, event: &RawDocument) -> Result<()> {
        let token = event.get_document("_id").map_err(|_| Error::internal("a change event has no resume token"))?;
        let mut fields = Vec::new();
        for field in event.iter_elements() {
            let field = field?;
            if field.key().as_str() != "_id" {
                fields.push((field.size() + field.key().len() + 2, field.key().as_str(), field.value()?));
            }
        }
        fields.sort_by_key(|field| field.0);
        let mut parts: Vec<(usize, Vec<(&str, RawBsonRef<'_>)>)> = Vec::new();
        for (bytes, name, value) in fields {
            if bytes + FRAME_BYTES > self.most_bytes {
                return Err(Error::new(
                    Code::BSON_OBJECT_TOO_LARGE,
                    format!("the field '{name}' of a change event takes {bytes} bytes alone: leave it out by $project"),
                ));
            }
            match parts.last_mut().filter(|part| part.0 + bytes + FRAME_BYTES <= self.most_bytes) {
                Some(part) => {
                    part.0 += bytes;
                    part.1.push((name, value));
                }
                None => parts.push((bytes, vec![(name, value)])),
            }
        }
        let count = parts.len() as i32;
        for (number, (_, fields)) in parts.into_iter().enumerate() {
            let mut fragment = rawdoc! { "_id": fragment_token(token, number as u32 + 1)? };
            append(
                &mut fragment,
                "splitEvent",
                RawBsonRef::Document(&rawdoc! { "fragment": number as i32 + 1, "of": count }),
            )?;
            for (name, value) in fields {
                append(&mut fragment, name, value)?;
            }
            self.pending.push_back(fragment);
        }
        Ok(())
    }
}

impl RowSource for Splitter {
    fn next(&mut self) -> Result<Option<Row>> {
        loop {
            if let Some(fragment) = self.pending.pop_front() {
                return Ok(Some(Row::from(fragment)));
            }
            let Some(row) = self.rows.next()? else { return Ok(None) };
            let seen = std::mem::take(&mut self.seen);
            if row.bytes().len() <= self.most_bytes && seen == 0 {
                return Ok(Some(row));
            }
            self.split(row.document())?;
            self.pending.drain(..seen.min(self.pending.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Events(Vec<RawDocumentBuf>);

    impl RowSource for Events {
        fn next(&mut self) -> Result<Option<Row>> {
            Ok(if self.0.is_empty() { None } else { Some(Row::from(self.0.remove(0))) })
        }
    }

    fn event(large: usize) -> RawDocumentBuf {
        rawdoc! {
            "_id": { "_data": "53".to_owned() + &"00".repeat(21) }, "operationType": "update",
            "fullDocument": { "text": "a".repeat(large) }, "fullDocumentBeforeChange": { "text": "b".repeat(large / 2) },
            "ns": { "db": "d", "coll": "c" },
        }
    }

    fn fragments(seen: usize) -> Vec<Vec<String>> {
        let mut splitter = Splitter::new(Box::new(Events(vec![event(9_000), event(10)])), seen);
        splitter.most_bytes = 12_000;
        let mut found = Vec::new();
        while let Some(row) = splitter.next().unwrap() {
            found.push(row.document().iter().map(|field| field.unwrap().0.as_str().to_owned()).collect());
        }
        found
    }

    #[test]
    fn small_fields_come_first_and_each_fragment_says_which_it_is() {
        let found = fragments(0);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], ["_id", "splitEvent", "operationType", "ns", "fullDocumentBeforeChange"]);
        assert_eq!(found[1], ["_id", "splitEvent", "fullDocument"]);
        assert_eq!(found[2].len(), 5, "a small event stays whole");
        assert_eq!(fragments(1), &found[1..]);
        assert_eq!(fragments(2), &found[2..]);
    }

    #[test]
    fn a_field_that_is_too_large_alone_is_refused() {
        let mut splitter = Splitter::new(Box::new(Events(vec![event(20_000)])), 0);
        splitter.most_bytes = 12_000;
        assert_eq!(splitter.next().unwrap_err().code, Code::BSON_OBJECT_TOO_LARGE);
    }

    #[test]
    fn the_stage_stands_last_and_takes_nothing() {
        let stages = |stages: Vec<RawDocumentBuf>| take_stage(&stages.into_iter().collect());
        let split = || rawdoc! { "$changeStreamSplitLargeEvent": {} };
        let (rest, found) = stages(vec![rawdoc! { "$match": {} }, split()]).unwrap();
        assert!(found && rest.into_iter().count() == 1);
        assert_eq!(stages(vec![split(), rawdoc! { "$match": {} }]).unwrap_err().code.0, 7_182_802);
        assert_eq!(stages(vec![rawdoc! { "$changeStreamSplitLargeEvent": { "a": 1 } }]).unwrap_err().code.0, 7_182_800);
    }
}
