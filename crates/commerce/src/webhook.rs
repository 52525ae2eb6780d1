//! Webhooks to others: what happens to orders, told to endpoints by signed calls (Standard Webhooks).
//!
//! ```text
//!   change log of the orders ──> note: a delivery for each endpoint, and the place in the log, in one transaction
//!   deliveries that are due ──> claim ──> somebody makes the call ──> answered: delivered, or due again later
//! ```
//!
//! Whoever changes an order, by whatever way, it is in the change log, so nothing is told that did not happen, and what
//! happened is told at least once: the place in the log moves with the deliveries. A repetition has the same
//! `webhook-id`. Calls may overtake each other; an event says the order's version. Where the log no longer reaches back,
//! endpoints get `orders.missed` and should read what they care about anew.

use crate::error::{Error, Result};
use crate::fields::{Fields, from_document};
use crate::payment::Signed;
use crate::shop::Shop;
use crate::time::Time;
use crate::unit::Unit;
use bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use store::{ChangeStream, Find, Start, Watch};

/// The events that endpoints can ask for.
pub const WEBHOOK_EVENTS: [&str; 8] = [
    "order.created",
    "order.paid",
    "order.shipped",
    "order.signed",
    "order.cancelled",
    "order.expired",
    "order.refunded",
    "orders.missed",
];

/// The most endpoints.
pub const MAX_ENDPOINTS: usize = 50;

/// How long after a call that failed the next one is due; after the last one it is given up.
pub const WEBHOOK_RETRIES: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3_600),
    Duration::from_secs(5 * 3_600),
    Duration::from_secs(10 * 3_600),
    Duration::from_secs(14 * 3_600),
    Duration::from_secs(20 * 3_600),
    Duration::from_secs(24 * 3_600),
];

/// How long somebody who took a delivery has to say what became of it.
const CLAIM: Duration = Duration::from_secs(60);

/// How long a delivery is remembered after it is over.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The most events that are noted together.
const MAX_NOTED: usize = 256;

/// How long to listen for another event before those that are there are noted.
const LISTEN: Duration = Duration::from_millis(200);

/// How long to wait for the first endpoint.
const NO_ENDPOINTS: Duration = Duration::from_secs(1);

/// The id of the place in the change log.
const PLACE: &str = "webhooks";

/// Who is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookEndpoint {
    /// Its id.
    #[serde(rename(deserialize = "_id"))]
    pub id: String,
    /// Where the calls go.
    pub url: String,
    /// What it is told; everything when empty.
    pub events: Vec<String>,
    /// `active`, or `gone` after it answered that it is.
    pub status: String,
    /// Since when.
    pub created_at: Time,
}

/// A delivery to an endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookDelivery {
    /// Its id.
    #[serde(rename(deserialize = "_id"))]
    pub id: String,
    /// What is told.
    pub event: String,
    /// `pending`, `delivered` or `failed`.
    pub status: String,
    /// How often it was tried.
    pub attempts: i64,
    /// What went wrong the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it is tried next, while it is pending.
    pub due: Time,
    /// When it happened.
    pub created_at: Time,
}

/// A call to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookCall {
    /// The delivery.
    pub delivery: String,
    /// Where it goes.
    pub url: String,
    /// Its three headers and its body.
    pub signed: Signed,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAnswer {
    /// It was taken: a 2xx.
    Taken,
    /// It was not, or nobody knows: it is tried again.
    Failed(String),
    /// The endpoint is gone for good: a 410.
    Gone,
}

impl Shop {
    /// Begins to tell an endpoint; calls are signed with the secret. It may be told of changes shortly before.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Full`].
    pub async fn add_webhook_endpoint(&self, url: &str, events: &[String], secret: &[u8]) -> Result<WebhookEndpoint> {
        if let Some(unknown) = events.iter().find(|event| !WEBHOOK_EVENTS.contains(&event.as_str())) {
            return Err(Error::invalid(
                "events",
                format!("`{unknown}` is none; there are {}", WEBHOOK_EVENTS.join(", ")),
            ));
        }
        if secret.len() < 24 || secret.len() > 64 {
            return Err(Error::invalid("secret", "it has 24 to 64 bytes"));
        }
        let place = watch(self, Start::Now).await?.resume_token().unwrap_or_default();
        let (url, events, secret) = (url.to_owned(), events.to_vec(), secret.to_vec());
        let done = self.run_alone(move |unit| {
            let secret = Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: secret.clone() });
            let (url, events, place) = (url.clone(), events.clone(), place.clone());
            Box::pin(async move {
                let count = doc! { "$count": "endpoints" };
                let known = unit.aggregate("webhookEndpoints", vec![count]).await?;
                if known.first().is_some_and(|known| known.long("endpoints") >= MAX_ENDPOINTS as i64) {
                    return Err(Error::Full { what: "webhook endpoints", max: MAX_ENDPOINTS });
                }
                let endpoint = doc! {
                    "_id": crate::id::fresh(), "url": url, "events": events, "secret": secret, "status": "active",
                    "createdAt": unit.now,
                };
                unit.insert("webhookEndpoints", "webhook endpoint", endpoint.clone()).await?;
                if unit.get("shopState", PLACE).await?.is_none() {
                    unit.note_state(PLACE, "place", place).await?;
                }
                from_document(&endpoint)
            })
        });
        done.await
    }

    /// The endpoints.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn webhook_endpoints(&self) -> Result<Vec<WebhookEndpoint>> {
        let options = Find { sort: Some(doc! { "_id": 1 }), limit: MAX_ENDPOINTS as i64, ..Find::default() };
        let found = self.collection("webhookEndpoints").find(Document::new(), options, None).await?;
        found.iter().map(from_document).collect()
    }

    /// Tells an endpoint no more; what is on its way to it is given up.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn remove_webhook_endpoint(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        let done = self.run(move |unit| {
            let id = id.clone();
            Box::pin(async move {
                let gone = unit.remove("webhookEndpoints", &id).await?;
                gone.map(|_| ()).ok_or_else(|| Error::missing("webhook endpoint", &id))
            })
        });
        done.await
    }

    /// The newest deliveries to an endpoint.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn webhook_deliveries(&self, endpoint: &str, limit: usize) -> Result<Vec<WebhookDelivery>> {
        self.by_id("webhookEndpoints", "webhook endpoint", endpoint).await?;
        let sort = doc! { "createdAt": -1, "_id": -1 };
        let options = Find { sort: Some(sort), limit: limit.clamp(1, crate::MAX_PAGE) as i64, ..Find::default() };
        let found = self.collection("webhookDeliveries").find(doc! { "endpointId": endpoint }, options, None).await?;
        found.iter().map(from_document).collect()
    }

    /// Follows the orders' change log and notes what endpoints are to be told. It ends only with an error; whoever calls
    /// it calls it again. Any number of processes may.
    ///
    /// # Errors
    /// A store without change streams, a connection that breaks.
    pub async fn note_webhooks(&self) -> Result<()> {
        let mut stream = loop {
            let state = self.collection("shopState").find_one(doc! { "_id": PLACE }, None).await?;
            let Some(state) = state else {
                tokio::time::sleep(NO_ENDPOINTS).await;
                continue;
            };
            let place = state.part("place").cloned().unwrap_or_default();
            match watch(self, Start::ResumeAfter(place)).await {
                Ok(stream) => break stream,
                Err(error) if error.is_history_lost() => {
                    let stream = watch(self, Start::Now).await?;
                    let place = stream.resume_token().unwrap_or_default();
                    self.note(vec![missed(&place, self.now())], place).await?;
                    break stream;
                }
                Err(error) => return Err(error.into()),
            }
        };
        loop {
            let mut events = vec![stream.next().await?];
            while events.len() < MAX_NOTED
                && let Some(event) = stream.next_if_any().await?
            {
                events.push(event);
            }
            let Some(place) = stream.resume_token() else { continue };
            self.note(events.iter().filter_map(told).collect(), place).await?;
        }
    }

    /// Notes what endpoints are to be told, with the place in the log up to which this was.
    async fn note(&self, told: Vec<Told>, place: Document) -> Result<()> {
        let endpoints = self.collection("webhookEndpoints");
        let active = endpoints.find(doc! { "status": "active" }, Find::default(), None).await?;
        let done = self.run(move |unit| {
            let (told, active, place) = (told.clone(), active.clone(), place.clone());
            Box::pin(async move {
                for event in &told {
                    for endpoint in active.iter().filter(|endpoint| wants(endpoint, event.event)) {
                        note_one(unit, endpoint.text("_id"), event).await?;
                    }
                }
                unit.note_state(PLACE, "place", place).await
            })
        });
        done.await
    }

    /// Takes deliveries that are due, up to so many: who takes one has a minute to make the call and say what became of it.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn claim_webhooks(&self, limit: usize) -> Result<Vec<WebhookCall>> {
        let due = doc! { "status": "pending", "due": { "$lte": self.now() } };
        let options = Find {
            sort: Some(doc! { "due": 1 }),
            projection: Some(doc! { "_id": 1 }),
            limit: limit.clamp(1, crate::MAX_PAGE) as i64,
            ..Find::default()
        };
        let mut calls = Vec::new();
        // Those of endpoints that are gone end here and make room for others.
        while calls.is_empty() {
            let found = self.collection("webhookDeliveries").find(due.clone(), options.clone(), None).await?;
            if found.is_empty() {
                break;
            }
            for delivery in found {
                let id = delivery.text("_id").to_owned();
                let done = self.run(move |unit| {
                    let id = id.clone();
                    Box::pin(async move { claim(unit, &id).await })
                });
                calls.extend(done.await?);
            }
        }
        Ok(calls)
    }

    /// Says what became of a call.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn webhook_answered(&self, delivery: &str, answer: WebhookAnswer) -> Result<()> {
        let id = delivery.to_owned();
        let done = self.run(move |unit| {
            let (id, answer) = (id.clone(), answer.clone());
            Box::pin(async move { answered(unit, &id, &answer).await })
        });
        done.await
    }

    /// Makes the calls of a delivery that was given up anew, from the first one on; it has the same `webhook-id`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::IllegalMove`] for a delivery that was not given up, and for an endpoint that is gone.
    pub async fn resend_webhook(&self, endpoint: &str, delivery: &str) -> Result<WebhookDelivery> {
        let (endpoint, id) = (endpoint.to_owned(), delivery.to_owned());
        let done = self.run(move |unit| {
            let (endpoint, id) = (endpoint.clone(), id.clone());
            Box::pin(async move { resend(unit, &endpoint, &id).await })
        });
        done.await
    }

    /// Forgets deliveries that were over a week ago; to be called every hour or so.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn forget_webhooks(&self) -> Result<u64> {
        let over = doc! { "doneAt": { "$lt": self.now().minus(REMEMBERED) } };
        Ok(self.collection("webhookDeliveries").delete_many(over, None).await?)
    }
}

async fn watch(shop: &Shop, start: Start) -> store::Result<ChangeStream> {
    let options = Watch { start, max_await: LISTEN, ..Watch::default() };
    shop.collection("orders").watch(options).await
}

/// Something to tell.
#[derive(Clone)]
struct Told {
    event: &'static str,
    /// The same for whoever sees it in the log.
    id: String,
    at: Time,
    data: serde_json::Value,
}

/// What an event of the change log tells, if anything: a new order, or one with a new state.
fn told(event: &Document) -> Option<Told> {
    let new = event.part("fullDocument");
    let changed = event.part("updateDescription").and_then(|change| change.part("updatedFields"));
    let fields = match event.text("operationType") {
        "insert" | "replace" => new?,
        "update" => changed?,
        _ => return None,
    };
    let name = format!("order.{}", fields.text("status"));
    let event_name = *WEBHOOK_EVENTS.iter().find(|known| **known == name)?;
    let token = event.part("_id")?.text("_data");
    let at = event.time("wallTime").unwrap_or_default();
    let data = json!({ "orderId": event.part("documentKey")?.text("_id"), "version": fields.long("version") });
    Some(Told { event: event_name, id: crate::id::derived(&["webhook", token]), at, data })
}

fn missed(place: &Document, at: Time) -> Told {
    let id = crate::id::derived(&["webhook", "missed", place.text("_data")]);
    Told { event: "orders.missed", id, at, data: json!({}) }
}

fn wants(endpoint: &Document, event: &str) -> bool {
    let Ok(events) = endpoint.get_array("events") else { return true };
    events.is_empty() || events.iter().any(|wanted| wanted.as_str() == Some(event))
}

async fn note_one(unit: &mut Unit<'_>, endpoint: &str, told: &Told) -> Result<()> {
    let id = crate::id::derived(&[endpoint, &told.id]);
    if unit.get("webhookDeliveries", &id).await?.is_some() {
        return Ok(()); // another process was faster
    }
    let body = json!({ "type": told.event, "timestamp": told.at, "data": told.data }).to_string();
    let delivery = doc! {
        "_id": id, "endpointId": endpoint, "event": told.event, "message": &told.id, "body": body, "status": "pending",
        "attempts": 0_i64, "due": unit.now, "createdAt": unit.now,
    };
    unit.insert("webhookDeliveries", "delivery", delivery).await
}

async fn claim(unit: &mut Unit<'_>, id: &str) -> Result<Option<WebhookCall>> {
    let now = unit.now;
    let Some(delivery) = unit.get("webhookDeliveries", id).await?.cloned() else { return Ok(None) };
    if delivery.text("status") != "pending" || delivery.time("due").is_none_or(|due| due > now) {
        return Ok(None); // somebody else has it
    }
    let endpoint = unit.get("webhookEndpoints", delivery.text("endpointId")).await?.cloned().unwrap_or_default();
    let edited = unit.edit("webhookDeliveries", "delivery", id).await?;
    if endpoint.text("status") != "active" {
        over(edited, "failed", now);
        edited.insert("why", "the endpoint is gone");
        return Ok(None);
    }
    let Some(secret) = endpoint.get_binary_generic("secret").ok().filter(|secret| !secret.is_empty()) else {
        over(edited, "failed", now);
        edited.insert("why", "the endpoint has no secret to sign with; add it anew");
        return Ok(None);
    };
    edited.insert("due", now.plus(CLAIM));
    edited.insert("attempts", delivery.long("attempts") + 1);
    let body = delivery.text("body").as_bytes().to_vec();
    let signed = Signed::sign(secret, delivery.text("message"), now, body);
    Ok(Some(WebhookCall { delivery: id.to_owned(), url: endpoint.text("url").to_owned(), signed }))
}

fn over(delivery: &mut Document, status: &str, now: Time) {
    delivery.insert("status", status);
    delivery.insert("doneAt", now);
}

async fn resend(unit: &mut Unit<'_>, endpoint: &str, id: &str) -> Result<WebhookDelivery> {
    let to = unit.need("webhookEndpoints", "webhook endpoint", endpoint).await?;
    let known = unit.get("webhookDeliveries", id).await?.filter(|known| known.text("endpointId") == endpoint);
    let from = known.ok_or_else(|| Error::missing("delivery", id))?.text("status").to_owned();
    let illegal = |what, id: &str, from: &str| {
        Err(Error::IllegalMove { what, id: id.to_owned(), from: from.to_owned(), to: "pending".to_owned() })
    };
    if to.text("status") != "active" {
        return illegal("webhook endpoint", endpoint, to.text("status"));
    }
    if from != "failed" {
        return illegal("delivery", id, &from);
    }
    let now = unit.now;
    let delivery = unit.edit("webhookDeliveries", "delivery", id).await?;
    delivery.insert("status", "pending");
    delivery.insert("attempts", 0_i64);
    delivery.insert("due", now);
    delivery.remove("doneAt");
    delivery.remove("why");
    from_document(delivery)
}

async fn answered(unit: &mut Unit<'_>, id: &str, answer: &WebhookAnswer) -> Result<()> {
    let now = unit.now;
    match unit.get("webhookDeliveries", id).await? {
        Some(delivery) if delivery.text("status") == "pending" => {}
        _ => return Ok(()),
    }
    let delivery = unit.edit("webhookDeliveries", "delivery", id).await?;
    match answer {
        WebhookAnswer::Taken => {
            delivery.remove("why");
            over(delivery, "delivered", now);
        }
        WebhookAnswer::Failed(why) => {
            delivery.insert("why", why.chars().take(200).collect::<String>());
            let tried = usize::try_from(delivery.long("attempts")).unwrap_or(0).max(1);
            match WEBHOOK_RETRIES.get(tried - 1) {
                Some(pause) => drop(delivery.insert("due", now.plus(*pause))),
                None => over(delivery, "failed", now),
            }
        }
        WebhookAnswer::Gone => {
            delivery.insert("why", "the endpoint is gone");
            over(delivery, "failed", now);
            let endpoint = delivery.text("endpointId").to_owned();
            if unit.get("webhookEndpoints", &endpoint).await?.is_some() {
                unit.edit("webhookEndpoints", "webhook endpoint", &endpoint).await?.insert("status", "gone");
            }
        }
    }
    Ok(())
}
