//! Change streams whose pipelines must not lose the place to resume at.

use crate::changestream::Reached;
use crate::document::{Row, get};
use crate::error::{Code, Error, Result};
use crate::stage::{RowSource, Rows};
use bson::RawBsonRef;

/// The rows of a stream's pipeline, which must leave each event's resume token as it is.
pub(crate) struct Resumable {
    rows: Rows,
    reached: Reached,
}

impl Resumable {
    /// Rows of a pipeline over the stream that has reached so far.
    pub(crate) fn new(rows: Rows, reached: Reached) -> Resumable {
        Resumable { rows, reached }
    }
}

impl RowSource for Resumable {
    fn next(&mut self) -> Result<Option<Row>> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        let token = self.reached.document();
        if get(row.document(), "_id")? == Some(RawBsonRef::Document(&token)) {
            return Ok(Some(row));
        }
        Err(Error::new(
            Code::CHANGE_STREAM_FATAL_ERROR,
            "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. \
             Modifying the _id field of an event makes it impossible to resume the stream from that point: leave it",
        ))
    }
}
