//! Replies: what every reply ends with, and the shape of an error.

use crate::bson::Writer;
use crate::frame::{HEADER_BYTES, Header, OP_MSG, OP_REPLY};
use crate::message::{FLAG_MORE_TO_COME, Message};
use crate::state::Shared;
use bson::raw::RawBinaryRef;
use bson::spec::BinarySubtype;
use bson::{RawDocument, Timestamp};
use engine::{Code, Error};

/// Room for most replies.
const REPLY_BYTES: usize = 512;
/// Header, flags, section kind.
const MSG_PREFIX_BYTES: usize = HEADER_BYTES + 5;
/// Header, flags, cursor, start, count.
const LEGACY_PREFIX_BYTES: usize = HEADER_BYTES + 20;
/// `responseFlags` bit of a server that can await data.
const LEGACY_AWAIT_CAPABLE: i32 = 8;

/// A writer of the reply to `message`, with room for the frame's head before it.
pub(crate) fn begin(message: &Message) -> Writer {
    let prefix = if message.legacy_database.is_some() { LEGACY_PREFIX_BYTES } else { MSG_PREFIX_BYTES };
    let mut bytes = Vec::with_capacity(REPLY_BYTES);
    bytes.resize(prefix, 0);
    Writer::after(bytes)
}

/// Closes the reply and writes the frame's head.
pub(crate) fn finish(writer: Writer, message: &Message, request_id: i32, response_to: i32, more: bool) -> Vec<u8> {
    let mut frame = writer.finish();
    let legacy = message.legacy_database.is_some();
    let op_code = if legacy { OP_REPLY } else { OP_MSG };
    Header { length_bytes: frame.len(), request_id, response_to, op_code }.write_over(&mut frame);
    if legacy {
        frame[16..20].copy_from_slice(&LEGACY_AWAIT_CAPABLE.to_le_bytes());
        frame[32..36].copy_from_slice(&1_i32.to_le_bytes());
    } else if more {
        frame[16..20].copy_from_slice(&FLAG_MORE_TO_COME.to_le_bytes());
    }
    frame
}

/// The document of a finished reply.
pub(crate) fn document<'f>(frame: &'f [u8], message: &Message) -> &'f RawDocument {
    let prefix = if message.legacy_database.is_some() { LEGACY_PREFIX_BYTES } else { MSG_PREFIX_BYTES };
    RawDocument::from_bytes(&frame[prefix..]).expect("the writer writes documents")
}

/// The end of a reply that succeeded.
pub(crate) fn write_ok(writer: &mut Writer, shared: &Shared) {
    writer.put("ok", 1.0);
    write_times(writer, shared.cluster_time());
}

/// A reply that failed, in place of what was written before.
pub(crate) fn write_error(writer: &mut Writer, error: &Error, shared: &Shared) {
    writer.clear();
    if !error.labels().is_empty() {
        writer.put_strings("errorLabels", error.labels().iter().copied());
    }
    writer.put("ok", 0.0);
    write_error_fields(writer, error);
    write_times(writer, shared.cluster_time());
}

/// `errmsg`, `code`, `codeName` and what the error says beyond.
pub(crate) fn write_error_fields(writer: &mut Writer, error: &Error) {
    writer.put("errmsg", error.message.replace('\0', "\\0").as_str());
    writer.put("code", error.code.0);
    writer.put("codeName", error.code.name().as_str());
    if let Some(details) = &error.details {
        writer.put_some("errInfo", details.info.as_ref());
        if let Some(extra) = &details.extra {
            writer.put_all(extra);
        }
    }
}

/// `$clusterTime` and `operationTime`, which drivers gossip back; unsigned, since only we issue them.
fn write_times(writer: &mut Writer, time: Timestamp) {
    writer.begin("$clusterTime");
    writer.put("clusterTime", time);
    writer.begin("signature");
    writer.put("hash", RawBinaryRef { subtype: BinarySubtype::Generic, bytes: &[0; 20] });
    writer.put("keyId", 0_i64);
    writer.end();
    writer.end();
    writer.put("operationTime", time);
}

/// The refusal of a request whose documents are no BSON.
pub(crate) fn invalid_bson(error: &crate::bson::CheckError) -> Error {
    match error {
        crate::bson::CheckError::TooDeep => Error::new(
            Code::OVERFLOW,
            format!("BSONObj exceeded maximum nested object depth: {}", crate::message::MAX_COMMAND_DEPTH),
        ),
        malformed => Error::new(Code::INVALID_BSON, format!("invalid BSON in the request: {malformed}")),
    }
}
