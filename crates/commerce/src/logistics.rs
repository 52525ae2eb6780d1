//! Logistics: parcels, and what carriers report of them: late, twice, out of order.
//!
//! A parcel's events stand in buckets, one for each day, found by their id `parcel:day:n`. An event belongs to the day it
//! happened, so a late one goes to its place and a repeated one meets itself there; a full bucket continues in the
//! next `n`. Nothing disappears. Each bucket says what its last event was, and the order keeps the last of those
//! (`latestLogistics`), which therefore never moves backwards.

use crate::error::{Error, Result};
use crate::fields::{Fields, element, from_document};
use crate::order::Order;
use crate::shop::Shop;
use crate::time::Time;
use crate::unit::Unit;
use bson::{Bson, Document, doc};
use serde::{Deserialize, Serialize};
use store::Find;

/// The most parcels of an order.
pub const MAX_PARCELS: usize = 50;

/// The most events of a bucket.
pub const MAX_EVENTS: usize = 100;

/// The most buckets of a parcel and day; carriers that report more are refused.
const MAX_BUCKETS: usize = 20;

const DAY_MS: i64 = 86_400_000;

/// A parcel to send.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NewParcel {
    /// The idempotency key: the same one is the same parcel.
    pub key: String,
    /// Who carries it.
    pub carrier: String,
    /// The carrier's number.
    pub tracking_number: String,
}

/// A parcel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parcel {
    /// Its id.
    #[serde(rename(deserialize = "_id"), alias = "id")]
    pub id: String,
    /// The order.
    pub order_id: String,
    /// Who carries it.
    pub carrier: String,
    /// The carrier's number.
    pub tracking_number: String,
    /// When it was sent.
    pub created_at: Time,
}

/// What a carrier reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrackEvent {
    /// The carrier's id for it; a repetition has the same.
    pub id: String,
    /// When it happened.
    pub time: Time,
    /// What happened.
    pub status: String,
    /// Where.
    #[serde(default)]
    pub location: String,
}

impl Shop {
    /// Sends a parcel of an order; the first one makes the order shipped.
    ///
    /// # Errors
    /// [`Error::IllegalMove`] unless the order is paid or shipped, [`Error::RefundInProgress`], [`Error::Full`],
    /// [`Error::VersionConflict`], [`Error::NotFound`].
    pub async fn ship(&self, order: &str, parcel: &NewParcel, by: &str, expected: Option<i64>) -> Result<Parcel> {
        if parcel.key.is_empty() || parcel.tracking_number.is_empty() {
            return Err(Error::invalid("parcel", "it needs a key and a tracking number"));
        }
        let (order, parcel, by) = (order.to_owned(), parcel.clone(), by.to_owned());
        let done = self.run(move |unit| {
            let (order, parcel, by) = (order.clone(), parcel.clone(), by.clone());
            Box::pin(async move { ship(unit, &order, &parcel, &by, expected).await })
        });
        done.await
    }

    /// Notes what a carrier reports of a parcel; gives how many of the events were new.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`], [`Error::Full`] for more events of a day than any carrier has.
    pub async fn track(&self, parcel: &str, events: &[TrackEvent]) -> Result<usize> {
        if events.iter().any(|event| event.id.is_empty() || event.status.is_empty()) {
            return Err(Error::invalid("events", "each needs an id and a status"));
        }
        if events.len() > MAX_EVENTS {
            return Err(Error::Full { what: "a report", max: MAX_EVENTS });
        }
        let (parcel, events) = (parcel.to_owned(), events.to_vec());
        let done = self.run(move |unit| {
            let (parcel, events) = (parcel.clone(), events.clone());
            Box::pin(async move {
                let order = unit.need("parcels", "parcel", &parcel).await?.text("orderId").to_owned();
                let mut new = 0;
                for event in &events {
                    new += usize::from(note(unit, &order, &parcel, event).await?);
                }
                Ok(new)
            })
        });
        done.await
    }

    /// A parcel.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn parcel(&self, id: &str) -> Result<Parcel> {
        from_document(&self.by_id("parcels", "parcel", id).await?)
    }

    /// The parcels with a carrier's number.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn parcels_by_number(&self, tracking_number: &str) -> Result<Vec<Parcel>> {
        let options = Find { limit: 5, ..Find::default() };
        let found = self.collection("parcels").find(doc! { "trackingNumber": tracking_number }, options, None).await?;
        found.iter().map(from_document).collect()
    }

    /// The parcels of an order.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn parcels_of(&self, order: &str) -> Result<Vec<Parcel>> {
        let options = Find { limit: MAX_PARCELS as i64, ..Find::default() };
        let found = self.collection("parcels").find(doc! { "orderId": order }, options, None).await?;
        found.iter().map(from_document).collect()
    }

    /// The track of a parcel, the latest event first: those of the latest `buckets` days with events.
    ///
    /// # Errors
    /// A store that fails.
    pub async fn track_of(&self, parcel: &str, buckets: usize) -> Result<Vec<TrackEvent>> {
        let options = Find {
            sort: Some(doc! { "time": -1, "_id": -1 }),
            limit: buckets.clamp(1, crate::MAX_PAGE) as i64,
            ..Find::default()
        };
        let found = self.collection("logistics").find(doc! { "parcelId": parcel }, options, None).await?;
        let mut events: Vec<TrackEvent> = Vec::new();
        for bucket in &found {
            for event in bucket.parts("events") {
                events.push(from_document(event)?);
            }
        }
        events.sort_by(|a, b| (b.time, &b.id).cmp(&(a.time, &a.id)));
        Ok(events)
    }
}

async fn ship(
    unit: &mut Unit<'_>,
    order_id: &str,
    parcel: &NewParcel,
    by: &str,
    expected: Option<i64>,
) -> Result<Parcel> {
    let id = crate::id::derived(&["parcel", order_id, &parcel.key]);
    if let Some(known) = unit.get("parcels", &id).await? {
        return from_document(known);
    }
    unit.expect_version("orders", "order", order_id, expected).await?;
    let order = Order::of(&unit.need("orders", "order", order_id).await?)?;
    if order.payment.refunding > 0 {
        return Err(Error::RefundInProgress { order: order.id });
    }
    if order.parcels.len() >= MAX_PARCELS {
        return Err(Error::Full { what: "parcels", max: MAX_PARCELS });
    }
    if order.status != "shipped" {
        crate::order::advance(unit, order_id, "shipped", by, &parcel.tracking_number).await?;
    }
    let document = unit.edit("orders", "order", order_id).await?;
    match document.get_array_mut("parcels") {
        Ok(parcels) => parcels.push(Bson::String(id.clone())),
        Err(_) => drop(document.insert("parcels", vec![id.clone()])),
    }
    let new = doc! {
        "_id": &id, "orderId": order_id, "carrier": &parcel.carrier, "trackingNumber": &parcel.tracking_number,
        "createdAt": unit.now,
    };
    unit.insert("parcels", "parcel", new.clone()).await?;
    from_document(&new)
}

/// Puts an event into its bucket; false if it was there.
async fn note(unit: &mut Unit<'_>, order: &str, parcel: &str, event: &TrackEvent) -> Result<bool> {
    let day = event.time.millis().div_euclid(DAY_MS);
    for number in 0..MAX_BUCKETS {
        let id = format!("{parcel}:{day}:{number}");
        let Some(bucket) = unit.get("logistics", &id).await? else {
            let mut bucket = doc! { "_id": id, "orderId": order, "parcelId": parcel, "events": [] };
            put(&mut bucket, event);
            unit.insert("logistics", "bucket", bucket).await?;
            return Ok(true);
        };
        if element(bucket, "events", "id", &event.id).is_some() {
            return Ok(false);
        }
        if bucket.parts("events").len() < MAX_EVENTS {
            put(unit.edit("logistics", "bucket", &id).await?, event);
            return Ok(true);
        }
    }
    Err(Error::Full { what: "a parcel's events of a day", max: MAX_BUCKETS * MAX_EVENTS })
}

/// Adds an event to a bucket, whose head is its last event.
fn put(bucket: &mut Document, event: &TrackEvent) {
    let element = doc! {
        "id": &event.id, "time": event.time, "status": &event.status, "location": &event.location,
    };
    let last = bucket.time("time").map(|time| (time, bucket.text("last").to_owned()));
    crate::fields::push(bucket, "events", element, MAX_EVENTS);
    if last.is_none_or(|last| (event.time, event.id.clone()) > last) {
        bucket.insert("time", event.time);
        bucket.insert("last", &event.id);
        bucket.insert("status", &event.status);
        bucket.insert("location", &event.location);
    }
}
