//! The keywords of numbers and strings: `minimum`, `maximum`, `multipleOf`, `minLength`, `maxLength`, `pattern`.

use super::parser::Source;
use super::{Keyword, failure, specified};
use crate::document::append;
use crate::document::number::Number;
use crate::document::regex::Regex;
use crate::error::{Error, Result};
use bson::{RawBson, RawBsonRef, RawDocumentBuf};
use std::cmp::Ordering;

pub(super) fn parse(source: &Source<'_>, keywords: &mut Vec<Box<dyn Keyword>>) -> Result<()> {
    for (name, exclusive_name, side) in
        [("maximum", "exclusiveMaximum", Ordering::Less), ("minimum", "exclusiveMinimum", Ordering::Greater)]
    {
        let (limit, exclusive) = (source.number(name)?, source.boolean(exclusive_name)?);
        let Some(limit) = limit else {
            if exclusive.is_some() {
                return Err(Error::failed_to_parse(format!(
                    "$jsonSchema keyword '{exclusive_name}' needs the keyword '{name}'"
                )));
            }
            continue;
        };
        let mut specified = specified(name, limit);
        if let Some(exclusive) = exclusive {
            append(&mut specified, exclusive_name, RawBsonRef::Boolean(exclusive))?;
        }
        let or_equal = exclusive != Some(true);
        keywords.push(Box::new(Limit { name, specified, limit: limit.into(), side, or_equal }));
    }
    for (name, longest) in [("maxLength", true), ("minLength", false)] {
        if let Some(length) = source.count(name)? {
            let specified = specified(name, source.get(name)?.unwrap_or(RawBsonRef::Null));
            keywords.push(Box::new(Length { name, specified, length, longest }));
        }
    }
    if let Some(pattern) = source.string("pattern")? {
        let specified = specified("pattern", RawBsonRef::String(pattern));
        keywords.push(Box::new(Pattern { specified, regex: Regex::new(pattern, "")? }));
    }
    if let Some(divisor) = source.number("multipleOf")? {
        let number = Number::of(divisor).filter(|number| number.compare(Number::Int32(0)) == Ordering::Greater);
        let Some(number) = number.filter(|number| number.is_finite()) else {
            return Err(Error::failed_to_parse("$jsonSchema keyword 'multipleOf' must be a positive number"));
        };
        keywords.push(Box::new(MultipleOf { specified: specified("multipleOf", divisor), divisor: number }));
    }
    Ok(())
}

#[derive(Debug)]
struct Limit {
    name: &'static str,
    specified: RawDocumentBuf,
    limit: RawBson,
    side: Ordering,
    or_equal: bool,
}

impl Keyword for Limit {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let (Some(value), Some(limit)) = (Number::of(value), Number::of(self.limit.as_raw_bson_ref())) else {
            return Ok(true);
        };
        if value.is_nan() || limit.is_nan() {
            return Ok(self.or_equal && value.is_nan() && limit.is_nan());
        }
        let order = value.compare(limit);
        Ok(order == self.side || (self.or_equal && order == Ordering::Equal))
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        Ok(failure(self.name, &self.specified, "comparison failed", value))
    }
}

#[derive(Debug)]
struct Length {
    name: &'static str,
    specified: RawDocumentBuf,
    /// In code points.
    length: u64,
    longest: bool,
}

impl Keyword for Length {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let RawBsonRef::String(text) = value else { return Ok(true) };
        let length = text.chars().count() as u64;
        Ok(if self.longest { length <= self.length } else { length >= self.length })
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        Ok(failure(self.name, &self.specified, "specified string length was not satisfied", value))
    }
}

#[derive(Debug)]
struct Pattern {
    specified: RawDocumentBuf,
    regex: Regex,
}

impl Keyword for Pattern {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        match value {
            RawBsonRef::String(text) => self.regex.is_match(text),
            _ => Ok(true),
        }
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        Ok(failure("pattern", &self.specified, "regular expression did not match", value))
    }
}

#[derive(Debug)]
struct MultipleOf {
    specified: RawDocumentBuf,
    divisor: Number,
}

impl Keyword for MultipleOf {
    fn holds(&self, value: RawBsonRef<'_>) -> Result<bool> {
        let Some(number) = Number::of(value) else { return Ok(true) };
        if !number.is_finite() {
            return Ok(false);
        }
        let remainder = number.to_decimal().modulo(self.divisor.to_decimal());
        Ok(remainder.is_zero())
    }

    fn explain(&self, value: RawBsonRef<'_>) -> Result<RawDocumentBuf> {
        let reason = "considered value is not a multiple of the specified value";
        Ok(failure("multipleOf", &self.specified, reason, value))
    }
}
