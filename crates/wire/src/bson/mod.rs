//! What the protocol needs of BSON beyond the `bson` crate: a structural check of a stranger's bytes that bounds depth without
//! recursion, and a writer that builds a reply in place, in the buffer that goes to the socket.

mod check;
mod writer;

pub(crate) use check::{CheckError, check};
pub(crate) use writer::Writer;
