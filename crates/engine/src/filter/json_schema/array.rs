//! The keywords of arrays: `minItems`, `maxItems`, `uniqueItems`, `items`, `additionalItems`.

use super::parser::{Source, schema};
use super::{Keyword, Schema, failure, in_field_order, specified};
use crate::document::{append, compare_values};
use crate::error::{Error, Result};
use bson::{RawArray, RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf, rawdoc};
use std::cmp::Ordering;

pub(super) fn parse(source: &Source<'_>, keywords: &mut Vec<Box<dyn Keyword>>) -> Result<()> {
    for (name, most) in [("minItems", false), ("maxItems", true)] {
        if let Some(count) = source.count(name)? {
            let specified = specified(name, source.get(name)?.unwrap_or(RawBsonRef::Null));
            keywords.push(Box::new(Count { name, specified, count, most }));
        }
    }
    if source.boolean("uniqueItems")? == Some(true) {
        keywords.push(Box::new(Unique));
    }
    let additional = match source.get("additionalItems")? {
        None | Some(RawBsonRef::Boolean(true)) => None,
        Some(RawBsonRef::Boolean(false)) => Some(None),
        Some(RawBsonRef::Document(document)) => Some(Some(Schema::parse(document)?)),
        Some(_) => {
            return Err(Error::type_mismatch(
                "$jsonSchema keyword 'additionalItems' must be either an object or a boolean",
            ));
        }
    };
    match source.get("items")? {
        None => {}
        Some(RawBsonRef::Document(document)) => {
            keywords.push(Box::new(Items { schema: Schema::parse(document)?, from: 0, additional: false }));
        }
        Some(RawBsonRef::Array(array)) => {
            let schemas = array.into_iter().map(|item| schema("items", item?)).collect::<Result<Vec<_>>>()?;
            let from = schemas.len();
            keywords.push(Box::new(Tuple { schemas }));
            match additional {
                None => {}
                Some(None) => keywords.push(Box::new(NoMore { from })),
                Some(Some(schema)) => keywords.push(Box::new(Items { schema, from, additional: true })),
            }
        }
        Some(_) => {
            return Err(Error::type_mismatch("$jsonSchema keyword 'items' must be an array or an object"));
        }
    }
    Ok(())
}

#[derive(Debug)]
struct Count {
    name: &'static str,
    specified: RawDocumentBuf,
    count: u64,
    most: bool,
}

impl Keyword for Count {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let RawBsonRef::Array(array) = value else { return Ok(true) };
        let count = array.iter_elements().count() as u64;
        Ok(if self.most { count <= self.count } else { count >= self.count })
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        Ok(failure(self.name, &self.specified, "array did not match specified length", value))
    }
}

#[derive(Debug)]
struct Unique;

/// The first element that repeats an earlier one.
fn duplicate(array: &RawArray) -> Result<Option<RawBson>> {
    let mut elements = Vec::new();
    for (position, element) in array.into_iter().enumerate() {
        elements.push((in_field_order(element?)?, position));
    }
    let mut failure = None;
    let mut compare = |a: &(RawBson, usize), b: &(RawBson, usize)| {
        compare_values(a.0.as_raw_bson_ref(), b.0.as_raw_bson_ref(), None).unwrap_or_else(|error| {
            failure = Some(error);
            Ordering::Equal
        })
    };
    elements.sort_by(|a, b| compare(a, b).then(a.1.cmp(&b.1)));
    let repeated = elements.windows(2).filter(|pair| compare(&pair[0], &pair[1]) == Ordering::Equal);
    let first = repeated.map(|pair| pair[1].1).min();
    if let Some(error) = failure {
        return Err(error);
    }
    match first.and_then(|position| array.into_iter().nth(position)) {
        Some(element) => Ok(Some(element?.into())),
        None => Ok(None),
    }
}

impl Keyword for Unique {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        match value {
            RawBsonRef::Array(array) => Ok(duplicate(array)?.is_none()),
            _ => Ok(true),
        }
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let mut details = failure("uniqueItems", &rawdoc! { "uniqueItems": true }, "found a duplicate item", value);
        if let RawBsonRef::Array(array) = value
            && let Some(duplicate) = duplicate(array)?
        {
            append(&mut details, "duplicatedValue", duplicate.as_raw_bson_ref())?;
        }
        Ok(details)
    }
}

/// One schema for all elements, or for those beyond the tuple.
#[derive(Debug)]
struct Items {
    schema: Schema,
    from: usize,
    additional: bool,
}

impl Items {
    fn first_failing<'a>(&self, value: RawBsonRef<'a>) -> Result<Option<(usize, RawBsonRef<'a>)>> {
        let RawBsonRef::Array(array) = value else { return Ok(None) };
        for (position, element) in array.into_iter().enumerate().skip(self.from) {
            let element = element?;
            if !self.schema.holds(element)? {
                return Ok(Some((position, element)));
            }
        }
        Ok(None)
    }
}

impl Keyword for Items {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        Ok(self.first_failing(value)?.is_none())
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let (name, reason) = if self.additional {
            ("additionalItems", "At least one additional item did not match the sub-schema")
        } else {
            ("items", "At least one item did not match the sub-schema")
        };
        let mut details = rawdoc! { "operatorName": name, "reason": reason };
        if let Some((position, element)) = self.first_failing(value)? {
            details.append(bson::raw::cstr!("itemIndex"), index(position));
            details.append(bson::raw::cstr!("details"), self.schema.failures(element)?);
        }
        Ok(details)
    }
}

fn index(position: usize) -> i32 {
    i32::try_from(position).expect("an array has fewer than 2^31 elements")
}

/// A schema for each of the first elements.
#[derive(Debug)]
struct Tuple {
    schemas: Vec<Schema>,
}

impl Keyword for Tuple {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let RawBsonRef::Array(array) = value else { return Ok(true) };
        for (schema, element) in self.schemas.iter().zip(array) {
            if !schema.holds(element?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let mut items = RawArrayBuf::new();
        if let RawBsonRef::Array(array) = value {
            for (position, (schema, element)) in self.schemas.iter().zip(array).enumerate() {
                let element = element?;
                if !schema.holds(element)? {
                    items.push(rawdoc! { "itemIndex": index(position), "details": schema.failures(element)? });
                }
            }
        }
        Ok(rawdoc! { "operatorName": "items", "details": items })
    }
}

/// No elements beyond the tuple.
#[derive(Debug)]
struct NoMore {
    from: usize,
}

impl Keyword for NoMore {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let RawBsonRef::Array(array) = value else { return Ok(true) };
        Ok(array.iter_elements().nth(self.from).is_none())
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let mut additional = RawArrayBuf::new();
        if let RawBsonRef::Array(array) = value {
            for element in array.into_iter().skip(self.from) {
                additional.push(element?);
            }
        }
        Ok(rawdoc! {
            "operatorName": "additionalItems",
            "specifiedAs": { "additionalItems": false },
            "reason": "found additional items",
            "additionalItems": additional
        })
    }
}
