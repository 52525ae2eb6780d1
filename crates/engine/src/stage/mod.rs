//! Aggregation stages: rows in, rows out.

use crate::document::Row;
use crate::error::Result;

/// Rows, pulled one at a time.
pub trait RowSource: Send {
    /// The next row; `None` at the end (a tailing source may give more later).
    ///
    /// # Errors
    /// What reading or computing the row refuses.
    fn next(&mut self) -> Result<Option<Row>>;

    /// Whether all of it is a point read, so that no other work need make room for it.
    fn is_quick(&self) -> bool {
        false
    }
}

/// A boxed source.
pub type Rows = Box<dyn RowSource>;
