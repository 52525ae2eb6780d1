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
//! The same figures come from an aggregation over the lines and from kept rollups, which are changed in the transaction
//! that writes the line: the two agree at every moment. One rollup is by the days of the shop's own zone, one by hours: the
//! days of other zones are cut out of that, unless they begin between two hours (as in India).

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
    /// A rollup where one has the days of the report's zone, else the aggregation.
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
    /// The key's name, and the collections of the rollups by days and by hours.
    fn rollup(self) -> (&'static str, [&'static str; 2]) {
        match self {
            ReportBy::City => ("city", ["salesByCity", "salesByCityHour"]),
            ReportBy::Product => ("productId", ["salesByProduct", "salesByProductHour"]),
            ReportBy::Sku => ("skuId", ["salesBySku", "salesBySkuHour"]),
        }
    }
}

/// What a rollup is by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grain {
    /// The days of the shop's zone.
    Day,
    /// Hours.
    Hour,
}

const HOUR_MS: i64 = 3_600_000;

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

    /// Whether the days that a report tells apart are made of whole hours.
    fn has_whole_hours(&self, request: &ReportRequest) -> Result<bool> {
        let whole = |time: Time| time.millis().rem_euclid(HOUR_MS) == 0;
        if !request.per_day || !whole(self.from) || !whole(self.to) {
            return Ok(whole(self.from) && whole(self.to));
        }
        let mut day: Date = request.from.parse().map_err(|_| Error::invalid("from", "it is no day"))?;
        loop {
            let begins = start(&day.to_string(), "to", &self.zone)?;
            if begins >= self.to || !whole(begins) {
                return Ok(whole(begins));
            }
            day = day.tomorrow().map_err(|_| Error::invalid("to", "it is too far away"))?;
        }
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
    /// [`Error::Invalid`] for days or a zone that are none, and for a rollup in a zone whose days begin between two hours.
    pub async fn report(&self, request: &ReportRequest) -> Result<Report> {
        let kept = &self.settings().zone;
        let zone = request.zone.clone().unwrap_or_else(|| kept.clone());
        let period = Period::of(request, &zone)?;
        let grain = match zone == *kept {
            true => Some(Grain::Day),
            false => period.has_whole_hours(request)?.then_some(Grain::Hour),
        };
        let (source, mut rows) = match (request.source, grain) {
            (ReportSource::Rollup, None) => {
                let why = format!("the days of {zone} begin between two hours; ask for the aggregation");
                return Err(Error::invalid("source", why));
            }
            (ReportSource::Aggregation, _) | (_, None) => {
                (ReportSource::Aggregation, self.count_sales(request, &period, &zone).await?)
            }
            (_, Some(grain)) => (ReportSource::Rollup, self.read_rollup(request, &period, grain).await?),
        };
        rows.retain(|row| (row.orders, row.units, row.sales, row.refunds) != (0, 0, 0, 0));
        rows.sort_by(|a, b| (&a.day, -a.sales, &a.key, a.currency).cmp(&(&b.day, -b.sales, &b.key, b.currency)));
        let request = ReportRequest { zone: Some(zone), ..request.clone() };
        Ok(Report { request, source, counts: COUNTS.to_owned(), rows })
    }

    async fn read_rollup(&self, request: &ReportRequest, period: &Period, grain: Grain) -> Result<Vec<ReportRow>> {
        let (key, [by_day, by_hour]) = request.by.rollup();
        let (collection, time) = if grain == Grain::Day { (by_day, "day") } else { (by_hour, "hour") };
        let range = doc! { time: { "$gte": period.from, "$lt": period.to } };
        let mut groups = self.collection(collection).stream(range, Find::default(), None).await?;
        let mut rows: BTreeMap<(Option<String>, String, String), ReportRow> = BTreeMap::new();
        while let Some(group) = groups.next(None).await? {
            let day = request.per_day.then(|| group.time(time).map(|begins| period.day(begins)).unwrap_or_default());
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
                group.insert("key", format!("$lines.{}", by.rollup().0));
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
