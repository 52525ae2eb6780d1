//! Reports: sales by city, product and SKU over days of a time zone, from the period's first day to its last (exclusive).
//!
//! They are made of `sales`: one line when an order is paid, one when money of it went back, never changed. So an order
//! counts on the day it was paid whatever became of it later, and a refund counts once, on the day the money went. What
//! each figure says:
//!
//! | figure | counts | by which date |
//! |---|---|---|
//! | `orders` | orders that were paid | when the money was captured |
//! | `sales` | what was paid for them: by city with shipping, by product and SKU without | when it was captured |
//! | `units` | units in them, also those that came back later | when it was captured |
//! | `refunds` | refunds and reversals of orders that were paid | when the money went |
//!
//! The same figures come from an aggregation over the lines (any time zone) and from a kept rollup (the shop's zone),
//! which is changed in the transaction that writes the line: the two agree at every moment.

use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::money::Currency;
use crate::shop::Shop;
use crate::time::Time;
use bson::{Document, doc};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::Find;

/// What a report is grouped by, beside the currency.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReportBy {
    /// The city the order goes to.
    City,
    /// The product.
    Product,
    /// The SKU.
    Sku,
}

/// Where the figures come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReportSource {
    /// The rollup where it is kept in the report's zone, else the aggregation.
    #[default]
    Either,
    /// Only the rollup.
    Rollup,
    /// Only the aggregation.
    Aggregation,
}

/// A report to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportRequest {
    /// What it is grouped by.
    pub by: ReportBy,
    /// The first day, as `2026-11-30`.
    pub from: String,
    /// The day after the last.
    pub to: String,
    /// The time zone that days are cut in, as `Europe/Paris`; the shop's unless given.
    #[serde(default)]
    pub zone: Option<String>,
    /// Whether each day has its own rows.
    #[serde(default)]
    pub per_day: bool,
    /// Where the figures come from.
    #[serde(default)]
    pub source: ReportSource,
}

/// A row of a report; amounts in minor units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportRow {
    /// The city, product or SKU.
    pub key: String,
    /// Of what its amounts are.
    pub currency: Currency,
    /// The day, for reports by day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// Orders, by city.
    pub orders: i64,
    /// Units, by product and SKU.
    pub units: i64,
    /// What was paid.
    pub sales: i64,
    /// What went back.
    pub refunds: i64,
}

/// A report: the largest sales first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What was asked for, with the zone.
    pub request: ReportRequest,
    /// Where the figures come from.
    pub source: ReportSource,
    /// What the figures count, and by which date.
    pub counts: String,
    /// The rows.
    pub rows: Vec<ReportRow>,
}

const COUNTS: &str = "orders, units and sales: orders that were paid, on the day of capture, whatever became of them \
later; refunds: refunds and reversals of such orders, on the day the money went";

impl ReportBy {
    /// The rollup's collection and its key's name.
    fn rollup(self) -> (&'static str, &'static str) {
        match self {
            ReportBy::City => ("salesByCity", "city"),
            ReportBy::Product => ("salesByProduct", "productId"),
            ReportBy::Sku => ("salesBySku", "skuId"),
        }
    }
}

/// A period: its days' zone, and the instants where it begins and ends.
struct Period {
    zone: TimeZone,
    from: Time,
    to: Time,
}

impl Period {
    fn of(request: &ReportRequest, zone: &str) -> Result<Period> {
        let tz = TimeZone::get(zone).map_err(|_| {
            Error::invalid("zone", format!("there is no time zone `{zone}`; an example is Europe/Paris"))
        })?;
        let (from, to) = (start(&request.from, "from", &tz)?, start(&request.to, "to", &tz)?);
        if to <= from {
            return Err(Error::invalid("to", "it is the day after the last one, so it is after `from`"));
        }
        Ok(Period { zone: tz, from, to })
    }

    fn day(&self, time: Time) -> String {
        let time = jiff::Timestamp::from_millisecond(time.millis()).unwrap_or_default();
        time.to_zoned_datetime(self.zone.clone()).date().to_string()
    }
}

/// Where a day begins in a zone.
fn start(day: &str, field: &'static str, zone: &TimeZone) -> Result<Time> {
    let wrong = |_| Error::invalid(field, format!("`{day}` is no day; an example is 2026-11-30"));
    let date: Date = day.parse().map_err(wrong)?;
    let zoned = date.to_zoned_datetime(zone.clone()).and_then(|zoned| zoned.start_of_day()).map_err(wrong)?;
    Ok(Time::from_millis(zoned.timestamp().as_millisecond()))
}

impl Shop {
    /// Makes a report.
    ///
    /// # Errors
    /// [`Error::Invalid`] for days or a zone that are none, and for a rollup in another zone than the shop's.
    pub async fn report(&self, request: &ReportRequest) -> Result<Report> {
        let kept = &self.settings().zone;
        let zone = request.zone.clone().unwrap_or_else(|| kept.clone());
        let period = Period::of(request, &zone)?;
        let source = match request.source {
            ReportSource::Either if zone == *kept => ReportSource::Rollup,
            ReportSource::Rollup if zone != *kept => {
                return Err(Error::invalid("source", format!("the rollup is kept in {kept}; ask for the aggregation")));
            }
            ReportSource::Rollup => ReportSource::Rollup,
            _ => ReportSource::Aggregation,
        };
        let mut rows = match source {
            ReportSource::Rollup => self.read_rollup(request, &period).await?,
            _ => self.count_sales(request, &period, &zone).await?,
        };
        rows.retain(|row| (row.orders, row.units, row.sales, row.refunds) != (0, 0, 0, 0));
        rows.sort_by(|a, b| (&a.day, -a.sales, &a.key, a.currency).cmp(&(&b.day, -b.sales, &b.key, b.currency)));
        let request = ReportRequest { zone: Some(zone), ..request.clone() };
        Ok(Report { request, source, counts: COUNTS.to_owned(), rows })
    }

    async fn read_rollup(&self, request: &ReportRequest, period: &Period) -> Result<Vec<ReportRow>> {
        let (collection, key) = request.by.rollup();
        let days = doc! { "day": { "$gte": period.from, "$lt": period.to } };
        let mut groups = self.collection(collection).stream(days, Find::default(), None).await?;
        let mut rows: BTreeMap<(Option<String>, String, String), ReportRow> = BTreeMap::new();
        while let Some(group) = groups.next(None).await? {
            let day = request.per_day.then(|| group.time("day").map(|day| period.day(day)).unwrap_or_default());
            let place = (day, group.text(key).to_owned(), group.text("currency").to_owned());
            match rows.get_mut(&place) {
                Some(row) => {
                    row.orders += group.long("orders");
                    row.units += group.long("units");
                    row.sales += group.long("sales");
                    row.refunds += group.long("refunds");
                }
                None => {
                    let row = row(&group, place.1.clone(), &place.2, place.0.clone())?;
                    rows.insert(place, row);
                }
            }
        }
        Ok(rows.into_values().collect())
    }

    async fn count_sales(&self, request: &ReportRequest, period: &Period, zone: &str) -> Result<Vec<ReportRow>> {
        let mut pipeline = vec![doc! { "$match": { "at": { "$gte": period.from, "$lt": period.to } } }];
        let mut group = doc! { "currency": "$currency" };
        if request.per_day {
            group.insert("day", doc! { "$dateTrunc": { "date": "$at", "unit": "day", "timezone": zone } });
        }
        let sums = match request.by {
            ReportBy::City => {
                group.insert("key", "$city");
                doc! { "orders": { "$sum": "$orders" }, "sales": { "$sum": "$sales" }, "refunds": { "$sum": "$refunds" } }
            }
            by => {
                pipeline.push(doc! { "$unwind": "$lines" });
                group.insert("key", format!("$lines.{}", by.rollup().1));
                doc! {
                    "units": { "$sum": "$lines.units" }, "sales": { "$sum": "$lines.sales" },
                    "refunds": { "$sum": "$lines.refunds" },
                }
            }
        };
        let mut stage = doc! { "_id": group };
        stage.extend(sums);
        pipeline.push(doc! { "$group": stage });
        let mut found = self.collection("sales").aggregate(pipeline, store::Aggregate::default(), None).await?;
        let mut rows = Vec::new();
        while let Some(group) = found.next(None).await? {
            let id = group.part("_id").cloned().unwrap_or_default();
            let day = id.time("day").map(|day| period.day(day));
            rows.push(row(&group, id.text("key").to_owned(), id.text("currency"), day)?);
        }
        Ok(rows)
    }
}

fn row(group: &Document, key: String, currency: &str, day: Option<String>) -> Result<ReportRow> {
    Ok(ReportRow {
        key,
        currency: currency.parse()?,
        day,
        orders: group.long("orders"),
        units: group.long("units"),
        sales: group.long("sales"),
        refunds: group.long("refunds"),
    })
}
