//! What a document means to a rollup: its groups, what it adds to them, and what becomes of their extremes.
//!
//! ```text
//!   document before ──rows──> (key, amounts, values) ─┐
//!   document after  ──rows──> (key, amounts, values) ─┴─> one change a group: documents, sums, and of each extreme
//!                                                         what is gone and what came
//! ```
//!
//! A `min` or `max` whose value is gone is looked up among the group's documents: a [`Search`] takes them in the order of
//! the value, so that an index answers it, and says when no later one can be better.

use super::effect::{Effect, Place};
use super::others::{add, number, subtract};
use super::value::{at, document, set, tree};
use super::{Roll, RollExtreme, compile};
use crate::language::rollup::DateUnit;
use bson::{Bson, DateTime, Document, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use engine::document::{Number, append, compare_values};
use engine::{Error, Result};
use jiff::tz::TimeZone;
use std::sync::Arc;

/// How a group of a rollup changes.
#[derive(Clone, Debug)]
pub struct Group {
    /// The key, by its names in the rollup.
    pub key: RawDocumentBuf,
    /// By how many documents (or elements) it grows.
    pub documents: i64,
    /// What is added to each count and sum.
    pub amounts: Vec<(String, Number)>,
    /// What becomes of each extreme, in the rollup's order.
    pub extremes: Vec<Moved>,
}

impl Group {
    /// Takes another change of the same group in.
    ///
    /// # Errors
    /// A sum beyond 64 bits.
    pub(super) fn join(&mut self, roll: &Roll, other: Group) -> Result<()> {
        self.documents += other.documents;
        for ((name, sum), (_, amount)) in self.amounts.iter_mut().zip(other.amounts) {
            *sum = add(*sum, amount, name)?;
        }
        for ((rule, moved), other) in roll.extremes.iter().zip(&mut self.extremes).zip(other.extremes) {
            if let Some(gone) = other.gone {
                rule.keep(&mut moved.gone, gone)?;
            }
            if let Some(came) = other.came {
                rule.keep(&mut moved.came, came)?;
            }
        }
        Ok(())
    }
}

/// What a document means to an extreme of a group: its best value there before and now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moved {
    /// The value that is gone.
    pub gone: Option<RawBson>,
    /// The value that came.
    pub came: Option<RawBson>,
}

/// What a row of a document is to a rollup.
struct Row {
    key: RawDocumentBuf,
    amounts: Vec<(String, Number)>,
    values: Vec<Option<RawBson>>,
}

impl RollExtreme {
    fn is_better(&self, a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Result<bool> {
        let order = compare_values(a, b, None)?;
        Ok(if self.largest { order.is_gt() } else { order.is_lt() })
    }

    /// Keeps the better one of a value and what is held.
    pub(crate) fn keep(&self, held: &mut Option<RawBson>, value: RawBson) -> Result<()> {
        let worse = match held {
            Some(held) => !self.is_better(value.as_raw_bson_ref(), held.as_raw_bson_ref())?,
            None => false,
        };
        if !worse {
            *held = Some(value);
        }
        Ok(())
    }

    /// Whether a value is there and can be compared: nulls don't count.
    fn counts(value: RawBsonRef<'_>) -> bool {
        !matches!(value, RawBsonRef::Null | RawBsonRef::Undefined)
    }
}

/// The changes of a document's groups. What is not counted yet changes extremes only: they follow at any time.
pub(super) fn rolled(
    roll: &Arc<Roll>,
    before: Option<&RawDocument>,
    after: Option<&RawDocument>,
    counted: bool,
    child: &RawBson,
    effects: &mut Vec<Effect>,
) -> Result<()> {
    for mut group in groups(roll, before, after)? {
        if !counted {
            group.documents = 0;
            group.amounts.iter_mut().for_each(|(_, amount)| *amount = Number::Int64(0));
        }
        for moved in &mut group.extremes {
            if moved.gone == moved.came {
                *moved = Moved::default();
            }
        }
        let grows = group.documents != 0 || group.amounts.iter().any(|(_, amount)| !amount.is_zero());
        if grows || group.extremes.iter().any(|moved| *moved != Moved::default()) {
            effects.push(Effect::Roll { roll: roll.clone(), child: child.clone(), group });
        }
    }
    Ok(())
}

/// What one document is to a rollup's groups.
pub(crate) fn groups_of(roll: &Roll, image: &RawDocument) -> Result<Vec<Group>> {
    groups(roll, None, Some(image))
}

fn groups(roll: &Roll, before: Option<&RawDocument>, after: Option<&RawDocument>) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for (image, is_new) in [(before, false), (after, true)] {
        let Some(image) = image else { continue };
        if !roll.filter.holds(image)? {
            continue;
        }
        for row in rows(roll, image)? {
            let row = read(roll, &row)?;
            let group = match groups.iter_mut().position(|group| group.key == row.key) {
                Some(position) => &mut groups[position],
                None => {
                    let zeros = row.amounts.iter().map(|(name, _)| (name.clone(), Number::Int64(0))).collect();
                    let extremes = vec![Moved::default(); roll.extremes.len()];
                    groups.push(Group { key: row.key, documents: 0, amounts: zeros, extremes });
                    groups.last_mut().expect("just pushed")
                }
            };
            group.documents += if is_new { 1 } else { -1 };
            for ((name, sum), (_, amount)) in group.amounts.iter_mut().zip(row.amounts) {
                *sum = if is_new { add(*sum, amount, name)? } else { subtract(*sum, amount, name)? };
            }
            for ((rule, moved), value) in roll.extremes.iter().zip(&mut group.extremes).zip(row.values) {
                if let Some(value) = value {
                    rule.keep(if is_new { &mut moved.came } else { &mut moved.gone }, value)?;
                }
            }
        }
    }
    Ok(groups)
}

/// The rows of a document: itself, or one for each element of the unwound array.
fn rows(roll: &Roll, image: &RawDocument) -> Result<Vec<RawDocumentBuf>> {
    let Some(unwind) = &roll.unwind else { return Ok(vec![image.to_owned()]) };
    let value = at(image, unwind)?;
    let Some(RawBsonRef::Array(array)) = value.get() else { return Ok(Vec::new()) };
    let whole = document(image)?;
    let mut rows = Vec::new();
    for element in array {
        let mut row = whole.clone();
        set(&mut row, &Place::default().path(unwind), Some(tree(RawBson::from(element?))?));
        rows.push(compile::raw(&row)?);
    }
    Ok(rows)
}

fn read(roll: &Roll, row: &RawDocument) -> Result<Row> {
    let mut key = RawDocumentBuf::new();
    for part in &roll.keys {
        let value = at(row, &part.path)?;
        let value = match (value.or_null(), part.unit) {
            (RawBsonRef::DateTime(date), Some(unit)) => RawBson::DateTime(cut(date, unit, &roll.tz)?),
            (value, _) => RawBson::from(value),
        };
        append(&mut key, &part.name, value.as_raw_bson_ref())?;
    }
    let mut amounts: Vec<(String, Number)> = roll.counts.iter().map(|name| (name.clone(), Number::Int64(1))).collect();
    for (name, path) in &roll.sums {
        amounts.push((name.clone(), number(Some(row), path)?));
    }
    let mut values = Vec::with_capacity(roll.extremes.len());
    for rule in &roll.extremes {
        let value = at(row, &rule.path)?;
        values.push(value.get().filter(|value| RollExtreme::counts(*value)).map(RawBson::from));
    }
    Ok(Row { key, amounts, values })
}

/// A filter that all documents of a group pass, and perhaps some others.
pub(crate) fn roll_filter(roll: &Roll, group: &Document) -> Result<Document> {
    let mut all = vec![document(roll.filter())?];
    for part in &roll.keys {
        let value = group.get(&part.name).cloned().unwrap_or(Bson::Null);
        let test = match (&value, part.unit) {
            (Bson::DateTime(start), Some(unit)) => {
                let end = next(*start, unit, &roll.tz)?;
                doc! { part.path.clone(): { "$gte": value.clone(), "$lt": end } }
            }
            _ => doc! { part.path.clone(): value },
        };
        all.push(test);
    }
    all.retain(|test| !test.is_empty());
    Ok(if all.is_empty() {
        Document::new()
    } else {
        doc! { "$and": all }
    })
}

/// When the next hour, day, week, month or year begins after the beginning of one; an hour is taken for two, because a
/// zone's hours may be cut short, and what is too much falls into other groups.
fn next(start: DateTime, unit: DateUnit, tz: &TimeZone) -> Result<DateTime> {
    let longest = match unit {
        DateUnit::Hour => 2,
        DateUnit::Day => 26,
        DateUnit::Week => 8 * 24,
        DateUnit::Month => 32 * 24,
        DateUnit::Year => 367 * 24,
    };
    let within_next = DateTime::from_millis(start.timestamp_millis() + longest * 3_600_000);
    if unit == DateUnit::Hour { Ok(within_next) } else { cut(within_next, unit, tz) }
}

/// The beginning of a date's hour, day, week, month or year in a time zone.
pub(super) fn cut(date: DateTime, unit: DateUnit, tz: &TimeZone) -> Result<DateTime> {
    let bad = |error: jiff::Error| Error::bad_value(format!("a date cannot be cut to its unit: {error}"));
    let time = jiff::Timestamp::from_millisecond(date.timestamp_millis()).map_err(bad)?;
    let zoned = time.to_zoned_datetime(tz.clone());
    let start = match unit {
        DateUnit::Hour => zoned.with().minute(0).second(0).subsec_nanosecond(0).build().map_err(bad)?,
        DateUnit::Day => zoned.start_of_day().map_err(bad)?,
        DateUnit::Week => {
            let back = i64::from(zoned.weekday().to_monday_zero_offset());
            let monday = zoned.date().checked_sub(jiff::Span::new().days(back)).map_err(bad)?;
            monday.to_zoned_datetime(tz.clone()).map_err(bad)?
        }
        DateUnit::Month => zoned.date().first_of_month().to_zoned_datetime(tz.clone()).map_err(bad)?,
        DateUnit::Year => zoned.date().first_of_year().to_zoned_datetime(tz.clone()).map_err(bad)?,
    };
    Ok(DateTime::from_millis(start.timestamp().as_millisecond()))
}

/// The search for an extreme of a group among its documents.
pub(crate) struct Search<'r> {
    roll: &'r Roll,
    rule: usize,
    key: &'r RawDocument,
    best: Option<RawBson>,
}

impl<'r> Search<'r> {
    /// A search for the extreme of that number in the rollup.
    pub(crate) fn new(roll: &'r Roll, rule: usize, key: &'r RawDocument) -> Search<'r> {
        Search { roll, rule, key, best: None }
    }

    /// Which documents to take, and in which order.
    ///
    /// # Errors
    /// A key that is malformed.
    pub(crate) fn query(&self) -> Result<(Document, Document)> {
        let rule = &self.roll.extremes[self.rule];
        let mut filter = roll_filter(self.roll, &document(self.key)?)?;
        if self.roll.unwind.is_none() {
            let there = doc! { rule.path.clone(): { "$ne": Bson::Null } };
            filter = if filter.is_empty() {
                there
            } else {
                doc! { "$and": [filter, there] }
            };
        }
        Ok((filter, doc! { rule.path.clone(): if rule.largest { -1 } else { 1 } }))
    }

    /// Takes the next document in; true if no later one can be better.
    ///
    /// # Errors
    /// A malformed document.
    pub(crate) fn take(&mut self, image: &RawDocument) -> Result<bool> {
        let rule = &self.roll.extremes[self.rule];
        // A document stands at its best element, whatever group that belongs to.
        if let (Some(best), Some(nearest)) = (&self.best, self.nearest(image)?)
            && !rule.is_better(nearest.as_raw_bson_ref(), best.as_raw_bson_ref())?
        {
            return Ok(true);
        }
        for mut group in groups_of(self.roll, image)? {
            if *group.key == *self.key
                && let Some(came) = group.extremes[self.rule].came.take()
            {
                rule.keep(&mut self.best, came)?;
            }
        }
        Ok(self.roll.unwind.is_none() && self.best.is_some())
    }

    /// A value that isn't stored yet.
    ///
    /// # Errors
    /// None in practice.
    pub(crate) fn take_value(&mut self, value: RawBson) -> Result<()> {
        self.roll.extremes[self.rule].keep(&mut self.best, value)
    }

    /// What was found.
    pub(crate) fn found(self) -> Option<RawBson> {
        self.best
    }

    fn nearest(&self, image: &RawDocument) -> Result<Option<RawBson>> {
        let rule = &self.roll.extremes[self.rule];
        let value = at(image, &rule.path)?;
        let mut nearest = None;
        match value.get() {
            Some(RawBsonRef::Array(array)) => {
                for element in array {
                    let element = element?;
                    if RollExtreme::counts(element) {
                        rule.keep(&mut nearest, RawBson::from(element))?;
                    }
                }
            }
            Some(value) if RollExtreme::counts(value) => nearest = Some(RawBson::from(value)),
            _ => {}
        }
        Ok(nearest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_unit_begins_where_the_calendar_says() {
        let zone = TimeZone::get("Europe/Paris").unwrap();
        let at = |text: &str| DateTime::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
        // The day on which the clocks go forward has 23 hours, the one on which they go back 25.
        for (start, unit, end) in [
            ("2026-03-28T23:00:00Z", DateUnit::Day, "2026-03-29T22:00:00Z"),
            ("2026-10-24T22:00:00Z", DateUnit::Day, "2026-10-25T23:00:00Z"),
            ("2026-03-22T23:00:00Z", DateUnit::Week, "2026-03-29T22:00:00Z"),
            ("2026-01-31T23:00:00Z", DateUnit::Month, "2026-02-28T23:00:00Z"),
            ("2027-12-31T23:00:00Z", DateUnit::Year, "2028-12-31T23:00:00Z"),
        ] {
            assert_eq!(cut(at(start), unit, &zone).unwrap(), at(start), "{start} is a beginning");
            assert_eq!(next(at(start), unit, &zone).unwrap(), at(end), "{start}");
        }
    }
}
