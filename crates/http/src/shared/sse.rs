//! Server-Sent Events: what all live streams have in common.

use crate::shared::problem::{INVALID_HEADER, Problem, Result};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt};
use std::convert::Infallible;
use std::time::Duration;

/// How often a silent stream shows that it is alive.
const KEEP_ALIVE_PERIOD: Duration = Duration::from_secs(15);
/// The longest `Last-Event-ID`.
const MAX_ID_BYTES: usize = 512;

/// Where the reader's last stream ended.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let invalid = || Problem::new(&INVALID_HEADER, "Last-Event-ID is not the id of an event that was sent");
    let id = id.to_str().map_err(|_| invalid())?;
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte));
    match id {
        "" => Ok(None),
        id if plain && id.len() <= MAX_ID_BYTES => Ok(Some(id)),
        _ => Err(invalid()),
    }
}

/// A stream of events as an answer.
pub(crate) fn answer(
    events: impl Stream<Item = Event> + Send + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    Sse::new(events.map(Ok)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_PERIOD))
}
