//! `$min`, `$max`, `$first`, `$last`, `$firstN`, `$lastN` and `$addToSet` over a sliding window: what is in is kept in the
//! order in which it came, so that the oldest value can be forgotten.

use super::{Accumulator, Options, array_of, kept, kept_bytes};
use crate::document::collation::Collator;
use crate::document::{Value, compare_values};
use crate::error::Result;
use crate::key;
use bson::RawBson;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// `$min` (false) or `$max` (true).
pub(super) fn start_extreme(options: &Options, highest: bool) -> Box<dyn Accumulator> {
    Box::new(Extreme {
        highest,
        candidates: VecDeque::new(),
        added: 0,
        removed: 0,
        bytes: 0,
        collator: options.collator.clone(),
    })
}

/// `$first` or `$last` without `n`, `$firstN` or `$lastN` with it.
pub(super) fn start_end(last: bool, n: Option<usize>) -> Box<dyn Accumulator> {
    Box::new(End { last, n, values: VecDeque::new(), bytes: 0 })
}

/// `$addToSet`.
pub(super) fn start_set(options: &Options) -> Box<dyn Accumulator> {
    Box::new(Set {
        members: HashMap::new(),
        values: BTreeMap::new(),
        next: 0,
        bytes: 0,
        collator: options.collator.clone(),
    })
}

/// The values that are the extreme now or will be once older ones are gone: each more extreme than all behind it.
#[derive(Debug)]
struct Extreme {
    highest: bool,
    candidates: VecDeque<(u64, RawBson)>,
    added: u64,
    removed: u64,
    bytes: usize,
    collator: Option<Arc<Collator>>,
}

impl Accumulator for Extreme {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        let number = self.added;
        self.added += 1;
        if value.is_nullish() {
            return Ok(());
        }
        let beaten = if self.highest { Ordering::Less } else { Ordering::Greater };
        while let Some((_, last)) = self.candidates.back() {
            if compare_values(last.as_raw_bson_ref(), value.or_null(), self.collator.as_deref())? != beaten {
                break;
            }
            self.bytes -= kept_bytes(last);
            self.candidates.pop_back();
        }
        let value = kept(value);
        self.bytes += kept_bytes(&value);
        self.candidates.push_back((number, value));
        Ok(())
    }

    fn remove(&mut self, _: Value<'_>) -> Result<()> {
        if let Some((number, oldest)) = self.candidates.front()
            && *number == self.removed
        {
            self.bytes -= kept_bytes(oldest);
            self.candidates.pop_front();
        }
        self.removed += 1;
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(self.candidates.front().map_or(Value::NULL, |(_, value)| Value::Owned(value.clone())))
    }

    fn size_bytes(&self) -> usize {
        size_of::<Extreme>() + self.bytes
    }
}

#[derive(Debug)]
struct End {
    last: bool,
    n: Option<usize>,
    values: VecDeque<RawBson>,
    bytes: usize,
}

impl Accumulator for End {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        let value = kept(value);
        self.bytes += kept_bytes(&value);
        self.values.push_back(value);
        Ok(())
    }

    fn remove(&mut self, _: Value<'_>) -> Result<()> {
        if let Some(oldest) = self.values.pop_front() {
            self.bytes -= kept_bytes(&oldest);
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        let Some(n) = self.n else {
            let end = if self.last { self.values.back() } else { self.values.front() };
            return Ok(end.cloned().map_or(Value::NULL, Value::Owned));
        };
        let skipped = if self.last { self.values.len().saturating_sub(n) } else { 0 };
        Ok(array_of(self.values.iter().skip(skipped).take(n).map(RawBson::as_raw_bson_ref)))
    }

    fn size_bytes(&self) -> usize {
        size_of::<End>() + self.bytes
    }
}

#[derive(Debug)]
struct Set {
    /// By its key, how often a value is in and its place in `values`.
    members: HashMap<Vec<u8>, (u64, u64)>,
    values: BTreeMap<u64, RawBson>,
    next: u64,
    bytes: usize,
    collator: Option<Arc<Collator>>,
}

impl Set {
    fn key(&self, value: &Value<'_>) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        key::encode(value.or_null(), self.collator.as_deref(), &mut key)?;
        Ok(key)
    }
}

impl Accumulator for Set {
    fn add(&mut self, value: Value<'_>) -> Result<()> {
        if value.is_missing() {
            return Ok(());
        }
        let key = self.key(&value)?;
        if let Some((count, _)) = self.members.get_mut(&key) {
            *count += 1;
            return Ok(());
        }
        let value = kept(value);
        self.bytes += key.len() + kept_bytes(&value);
        self.members.insert(key, (1, self.next));
        self.values.insert(self.next, value);
        self.next += 1;
        Ok(())
    }

    fn remove(&mut self, value: Value<'_>) -> Result<()> {
        if value.is_missing() {
            return Ok(());
        }
        let key = self.key(&value)?;
        let Some((count, place)) = self.members.get_mut(&key) else { return Ok(()) };
        *count -= 1;
        if *count == 0 {
            let place = *place;
            self.members.remove(&key);
            if let Some(value) = self.values.remove(&place) {
                self.bytes -= key.len() + kept_bytes(&value);
            }
        }
        Ok(())
    }

    fn result(&self) -> Result<Value<'static>> {
        Ok(array_of(self.values.values().map(RawBson::as_raw_bson_ref)))
    }

    fn size_bytes(&self) -> usize {
        size_of::<Set>() + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ACCUMULATORS, Argument, Options};
    use super::*;
    use proptest::prelude::*;

    fn slid(start: super::super::Start, values: &[Option<i32>], width: usize) -> Vec<RawBson> {
        let options = Options { n: 2, ..Options::default() };
        let value = |at: usize| values[at].map_or(Value::Missing, Value::from);
        let mut accumulator = start(&options);
        let mut results = Vec::new();
        for at in 0..values.len() {
            accumulator.add(value(at)).unwrap();
            if at >= width {
                accumulator.remove(value(at - width)).unwrap();
            }
            results.push(accumulator.result().unwrap().or_null().into());
        }
        results
    }

    fn anew(start: super::super::Start, values: &[Option<i32>], width: usize) -> Vec<RawBson> {
        let options = Options { n: 2, ..Options::default() };
        let mut results = Vec::new();
        for at in 0..values.len() {
            let mut accumulator = start(&options);
            for value in &values[(at + 1).saturating_sub(width)..=at] {
                accumulator.add(value.map_or(Value::Missing, Value::from)).unwrap();
            }
            results.push(accumulator.result().unwrap().or_null().into());
        }
        results
    }

    /// The elements of arrays in order: what is not ordered by the accumulator may come in any.
    fn sorted(mut results: Vec<RawBson>) -> Vec<RawBson> {
        for result in &mut results {
            if let RawBson::Array(array) = result {
                let mut elements: Vec<i32> =
                    array.into_iter().map(|element| element.unwrap().as_i32().unwrap_or(-1)).collect();
                elements.sort_unstable();
                *result = RawBson::String(format!("{elements:?}"));
            }
        }
        results
    }

    proptest! {
        #[test]
        fn a_sliding_accumulator_gives_what_a_new_one_gives(
            values in prop::collection::vec(prop::option::of(0..5_i32), 0..30),
            width in 1..6_usize,
        ) {
            for kind in ACCUMULATORS {
                let takes_operand = matches!(kind.argument, Argument::Operand | Argument::Several | Argument::Nothing);
                let exact = !kind.name.starts_with("$stdDev");
                if let (Some(removable), true, true) = (kind.start_removable, takes_operand, exact) {
                    let (slid, anew) = (slid(removable, &values, width), anew(kind.start, &values, width));
                    if kind.name == "$addToSet" {
                        prop_assert_eq!(sorted(slid), sorted(anew));
                    } else {
                        prop_assert_eq!(slid, anew, "{}", kind.name);
                    }
                }
            }
        }
    }
}
