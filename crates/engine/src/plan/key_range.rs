//! `min` and `max`: the range of an index's keys, whatever the filter says.

use super::node::{IndexScan, Node};
use super::{Hint, IndexInfo, IndexKind, KeyRange, Query, Target};
use crate::error::{Error, Result};
use crate::filter::{Filter, Intervals};
use crate::key::Key;
use bson::RawDocument;

/// The plan of a query with `min` or `max`.
///
/// # Errors
/// `Location51173` without a hint, `Location51174` when they don't fit the hinted index, `Location51175` when the least key
/// is not below the greatest, `BadValue` (2) for `$natural`, `Location51176`.
pub(super) fn solve(target: &Target, query: &Query, range: &KeyRange) -> Result<super::solve::Solution> {
    let index = match target.hint(query)? {
        None => {
            return Err(Error::location(51173, "When using min()/max() a hint of which index to use must be provided"));
        }
        Some(Hint::Natural { .. }) => {
            return Err(Error::location(51173, "hint must not be {$natural: 1} when using min()/max()"));
        }
        Some(Hint::Index(index)) => index,
    };
    if index.spec.wildcard().is_some() || index.spec.is_hashed() || index.kind == IndexKind::Clustered {
        return Err(Error::location(51174, "min()/max() are not supported on the hinted index"));
    }
    let low = range.min.as_deref().map(|min| encode(index, min)).transpose()?;
    let high = range.max.as_deref().map(|max| encode(index, max)).transpose()?;
    if let (Some(low), Some(high)) = (&low, &high)
        && low >= high
    {
        return Err(Error::location(
            51175,
            "The value provided for min() does not come before the value provided for max()",
        ));
    }
    let fields = index.scan_fields(None);
    let intervals = vec![Intervals::all(); fields.len()];
    let mut scan = IndexScan::new(index.clone(), fields, intervals)?;
    let low = low.unwrap_or_else(|| crate::key::LOWEST.to_vec());
    let high = high.unwrap_or_else(|| crate::key::HIGHEST.to_vec());
    scan.whole = Some((low, high));
    let ordered = query.pattern().is_none_or(|pattern| super::order::give_order(&mut scan, pattern));
    let filter = (!query.filter.is_empty()).then(|| Filter::clone(&query.filter));
    let node = Node::Fetch { filter, child: Box::new(Node::IndexScan(Box::new(scan))) };
    Ok(super::solve::Solution::new(node, ordered, 1))
}

/// The bytes of a whole key; its fields must be the index's, in order.
fn encode(index: &IndexInfo, bound: &RawDocument) -> Result<Vec<u8>> {
    let mut key = Key::new();
    let mut fields = index.spec.fields().iter();
    for field in bound {
        let (name, value) = field?;
        let expected = fields.next().filter(|field| field.path == name.as_str()).ok_or_else(|| mismatch(index))?;
        key.push(value, expected.kind.is_descending(), index.collator())?;
    }
    if fields.next().is_some() {
        return Err(mismatch(index));
    }
    Ok(key.into_parts().0)
}

fn mismatch(index: &IndexInfo) -> Error {
    Error::location(
        51174,
        format!("The index chosen is not compatible with min/max: {:?} has other fields", index.spec.pattern()),
    )
}
