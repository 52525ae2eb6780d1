//! An order's changes as Server-Sent Events.
//!
//! ```text
//!   change stream of orders ──> Changes (one for all readers) ──> the readers of that order ──> the order as it is now
//! ```
//!
//! An event's id is the change stream's resume token. A reader that comes back with `Last-Event-ID` first gets what it
//! missed, from a change stream of its own that begins there, and then goes on with the others. Changes that follow each
//! other faster than they are read are seen as one; the version never goes back, and the last one is never missed.

use super::orders::visible;
use super::{Commerce, schema};
use crate::shared::auth::Caller;
use crate::shared::extract::Path;
use crate::shared::problem::{INVALID_HEADER, Problem, Result};
use crate::shared::sse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use bson::{Document, doc};
use commerce::{Order, Shop};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::{ChangeStream, Start, Watch};
use tokio::sync::broadcast::{self, error::RecvError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many changes a slow reader may fall behind before it reads its order anew.
const MAX_BEHIND: usize = 4_096;
/// How long to wait before a change stream that broke is opened again.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);
/// The most changes of other orders that a reader who comes back is led through before it just gets the order.
const MAX_CATCH_UP: usize = 100_000;

pub(super) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default().routes(routes!(order_events))
}

/// An order changed, or nobody knows which.
#[derive(Clone, Debug)]
struct Change {
    /// `None` when changes may have been missed.
    order: Option<String>,
    token: Option<String>,
}

/// The changes of all orders, for all readers.
pub(crate) struct Changes {
    sender: broadcast::Sender<Change>,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes { sender: broadcast::channel(MAX_BEHIND).0 }
    }
}

impl Changes {
    /// Follows the orders' change stream for ever.
    pub(super) async fn follow(&self, shop: &Shop) {
        loop {
            if let Err(error) = self.read(shop).await {
                tracing::warn!(%error, "the orders' change stream broke; it is opened again");
            }
            tokio::time::sleep(REOPEN_PAUSE).await;
        }
    }

    async fn read(&self, shop: &Shop) -> store::Result<()> {
        let mut stream = watch(shop, Start::Now).await?;
        // What happened since the last stream broke was seen by nobody.
        let _ = self.sender.send(Change { order: None, token: None });
        loop {
            let event = stream.next().await?;
            // Without readers there is nobody to tell.
            let _ = self.sender.send(change(&event));
        }
    }
}

async fn watch(shop: &Shop, start: Start) -> store::Result<ChangeStream> {
    let orders = shop.store().collection(shop.database(), "orders");
    let project = doc! { "$project": { "documentKey": 1, "operationType": 1 } };
    orders.watch(Watch { pipeline: vec![project], start, ..Watch::default() }).await
}

fn change(event: &Document) -> Change {
    let key = event.get_document("documentKey").ok();
    let order = key.and_then(|key| key.get_str("_id").ok()).map(str::to_owned);
    let token = event.get_document("_id").ok().and_then(|token| token.get_str("_data").ok()).map(str::to_owned);
    Change { order, token }
}

/// Follow an order: what it is now, then what it becomes
///
/// Each event is called `order`, holds the whole order and has an id; send the last one as `Last-Event-ID` to go on there.
#[utoipa::path(
    get, path = "/v1/orders/{id}/events", tag = "orders", security(("bearer" = ["buyer", "merchant", "operator"])),
    params(("id" = String, Path), ("Last-Event-ID" = Option<String>, Header, description = "The last event that was seen")),
    extensions(("x-stream" = json!(true)), ("x-problems" = json!(["invalid-header"]))),
    responses((status = 200, description = "The stream", body = schema::Order, content_type = "text/event-stream")),
)]
async fn order_events(
    State(commerce): State<Arc<Commerce>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    // First to listen, then to read: nothing falls between the two.
    let receiver = commerce.changes.sender.subscribe();
    let order = visible(&commerce, &caller, &id).await?;
    let mut reader = Reader { commerce: commerce.clone(), id, receiver, seen: -1, ready: VecDeque::new() };
    match sse::last_event_id(&headers)? {
        Some(token) => reader.catch_up(token).await?,
        None => reader.push(order, None)?,
    }
    let stream = futures_util::stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((event, reader))
    });
    Ok(sse::answer(stream).into_response())
}

/// A reader of one order.
struct Reader {
    commerce: Arc<Commerce>,
    id: String,
    receiver: broadcast::Receiver<Change>,
    /// The version that was sent last.
    seen: i64,
    ready: VecDeque<Event>,
}

impl Reader {
    /// Takes an order to be sent, unless it was.
    fn push(&mut self, order: Order, token: Option<&str>) -> Result<()> {
        if order.version <= self.seen {
            return Ok(());
        }
        self.seen = order.version;
        let event = Event::default().event("order").json_data(order).expect("an order is plain data");
        self.ready.push_back(match token {
            Some(token) => event.id(token),
            None => event,
        });
        Ok(())
    }

    /// Gives what was missed since an event.
    async fn catch_up(&mut self, token: &str) -> Result<()> {
        let shop = self.commerce.shop.clone();
        let start = Start::ResumeAfter(doc! { "_data": token });
        let mut stream = match watch(&shop, start).await {
            Ok(stream) => stream,
            // So much has happened since that the log does not reach back: what counts is what the order is now.
            Err(error) if error.is_history_lost() => return self.refresh(None).await,
            Err(error) if error.is_invalid_resume_token() => {
                return Err(Problem::new(&INVALID_HEADER, "Last-Event-ID is not the id of an event that was sent"));
            }
            Err(error) => return Err(error.into()),
        };
        for _ in 0..MAX_CATCH_UP {
            let Some(event) = stream.next_if_any().await? else { return Ok(()) };
            let change = change(&event);
            if change.order.as_ref() == Some(&self.id) {
                self.refresh(change.token.as_deref()).await?;
                // It is sent as it is now, which is all that was missed.
                return Ok(());
            }
        }
        self.refresh(None).await
    }

    /// Reads the order and takes it to be sent.
    async fn refresh(&mut self, token: Option<&str>) -> Result<()> {
        let order = self.commerce.shop.order(&self.id).await?;
        self.push(order, token)
    }

    /// The next event; `None` when the order is gone.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let change = match self.receiver.recv().await {
                Ok(change) => change,
                Err(RecvError::Lagged(_)) => Change { order: None, token: None },
                Err(RecvError::Closed) => return None,
            };
            if change.order.as_ref().is_some_and(|order| *order != self.id) {
                continue;
            }
            self.refresh(change.token.as_deref()).await.ok()?;
        }
    }
}
