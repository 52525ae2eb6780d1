//! Which indexes may answer a query at all.

use super::{IndexInfo, Query};
use crate::error::Result;
use crate::filter::{IndexTraits, Intervals, Node as Condition};

/// Whether an index holds every document that can match: partial and sparse indexes leave some out.
pub(super) fn holds_all_matches(index: &IndexInfo, query: &Query) -> Result<bool> {
    holds_matches_of(index, query.filter.root(), query)
}

/// Whether an index holds every document that matches a condition.
pub(super) fn holds_matches_of(index: &IndexInfo, condition: &Condition, query: &Query) -> Result<bool> {
    if let Some(partial) = index.spec.partial() {
        let same = crate::document::collation::same(
            partial.filter().collator().map(|one| &**one),
            query.filter.collator().map(|one| &**one),
        );
        if !implies(condition, partial.filter().root(), query, same)? {
            return Ok(false);
        }
    }
    if index.spec.sparse() {
        let needs = |path: &str| needs_existence(condition, path);
        return Ok(index.spec.fields().iter().any(|field| needs(&field.path)));
    }
    Ok(true)
}

/// Whether no document without the field can match; a negated equality with null says so too.
pub(super) fn needs_existence(condition: &Condition, path: &str) -> bool {
    if condition.needs_existence_of(path) {
        return true;
    }
    match condition {
        Condition::And(parts) => parts.iter().any(|part| needs_existence(part, path)),
        Condition::Or(parts) => parts.iter().all(|part| needs_existence(part, path)),
        Condition::Not { node, .. } => match &**node {
            // Only of a plain field: a path into an array without such fields equals no null, and yet is not there.
            Condition::Path { path: own, test } => {
                let equals_null = matches!(test.name(), "$eq" | "$in" | "$gte" | "$lte") && !test.needs_existence();
                own.as_str() == path && !path.contains('.') && equals_null
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether every document that matches `given` matches `wanted` too, as far as that can be seen.
fn implies(given: &Condition, wanted: &Condition, query: &Query, same_collation: bool) -> Result<bool> {
    match wanted {
        Condition::Always(true) => return Ok(true),
        Condition::And(parts) => {
            for part in parts {
                if !implies(given, part, query, same_collation)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        _ => {}
    }
    match given {
        Condition::Always(false) => return Ok(true),
        Condition::Or(parts) => {
            for part in parts {
                if !implies(part, wanted, query, same_collation)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        Condition::And(parts) => {
            for part in parts {
                if implies(part, wanted, query, same_collation)? {
                    return Ok(true);
                }
            }
            // Bounds from both sides only hold together.
            return single_implies(given, wanted, query, same_collation);
        }
        _ => {}
    }
    if let Condition::Or(parts) = wanted {
        for part in parts {
            if implies(given, part, query, same_collation)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    single_implies(given, wanted, query, same_collation)
}

fn single_implies(given: &Condition, wanted: &Condition, query: &Query, same_collation: bool) -> Result<bool> {
    let Condition::Path { path, test } = wanted else { return Ok(false) };
    if test.name() == "$exists" {
        return Ok(needs_existence(given, path.as_str()));
    }
    if let Condition::Path { path: own, test: given } = given
        && own == path
        && given.describe() == test.describe()
    {
        return Ok(same_collation);
    }
    if matches!(given, Condition::And(_) | Condition::Not { .. }) {
        return Ok(false);
    }
    let traits = IndexTraits::default();
    let Some(allowed) = test.bounds(traits) else { return Ok(false) };
    let whole_type = test.name() == "$type" && is_whole_type(&test.describe());
    if !(allowed.exact || whole_type) {
        return Ok(false);
    }
    let collator = query.filter.collator().map(|one| &**one);
    let Some(asked) = given.bounds_on(path.as_str(), traits, collator, &query.environment)? else { return Ok(false) };
    let of_strings =
        super::bounds::depend_on_collation(&asked.intervals) || super::bounds::depend_on_collation(&allowed.intervals);
    if of_strings && !same_collation {
        return Ok(false);
    }
    // What lies in both is all that was asked for.
    let common: Intervals = asked.intervals.intersect(&allowed.intervals, collator)?;
    Ok(common == asked.intervals && given.needs_existence_of(path.as_str()))
}

/// Whether a `$type` names types that bounds tell apart exactly.
fn is_whole_type(described: &bson::RawDocument) -> bool {
    let Ok(Some(value)) = described.get("$type") else { return false };
    let names: Vec<String> = match value {
        bson::RawBsonRef::String(name) => vec![name.to_owned()],
        bson::RawBsonRef::Array(array) => {
            array.into_iter().filter_map(|name| name.ok()?.as_str().map(str::to_owned)).collect()
        }
        _ => return false,
    };
    const WHOLE: &[&str] = &["number", "string", "object", "bool", "date", "objectId", "binData", "timestamp"];
    !names.is_empty() && names.iter().all(|name| WHOLE.contains(&name.as_str()))
}
