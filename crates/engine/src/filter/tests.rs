//! What goldens can't show: positions, bounds, equalities, paths.

use super::*;
use crate::expression::Parser as ExpressionParser;
use bson::{RawDocumentBuf, rawdoc};

fn filter(document: RawDocumentBuf) -> Filter {
    Filter::parse(&document, &mut ExpressionParser::new(), None).unwrap()
}

fn matches(document: RawDocumentBuf, candidate: RawDocumentBuf) -> bool {
    filter(document).matches(&candidate, &Environment::fixed()).unwrap()
}

#[test]
fn the_table_is_sorted() {
    assert!(OPERATORS.windows(2).all(|pair| pair[0].name < pair[1].name));
    assert!(UNSUPPORTED.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

#[test]
fn null_missing_and_arrays() {
    assert!(matches(rawdoc! { "a": bson::RawBson::Null }, rawdoc! {}));
    assert!(matches(rawdoc! { "a.b": bson::RawBson::Null }, rawdoc! { "a": [{ "b": 1 }, {}] }));
    assert!(!matches(rawdoc! { "a.b": bson::RawBson::Null }, rawdoc! { "a": [1, 2] }));
    assert!(matches(rawdoc! { "a": { "$gt": 1 } }, rawdoc! { "a": [0, 5] }));
    assert!(!matches(rawdoc! { "a": { "$gt": 1 } }, rawdoc! { "a": "x" }));
    assert!(matches(rawdoc! { "a": { "$elemMatch": { "$gt": 1, "$lt": 5 } } }, rawdoc! { "a": [0, 3] }));
    assert!(!matches(rawdoc! { "a": { "$elemMatch": { "$gt": 1, "$lt": 5 } } }, rawdoc! { "a": [0, 7] }));
    assert!(matches(rawdoc! { "a": { "$ne": 3 } }, rawdoc! { "b": 1 }));
    assert!(!matches(rawdoc! { "a": { "$nin": [3, 4] } }, rawdoc! { "a": [1, 4] }));
}

#[test]
fn the_position_is_that_of_the_last_array_condition() {
    let position = |filter_document, document: RawDocumentBuf| {
        let found = filter(filter_document).matched_position(&document, &Environment::fixed()).unwrap();
        found.map(|(path, position)| (path.to_string(), position))
    };
    assert_eq!(position(rawdoc! { "a": 5 }, rawdoc! { "a": [4, 5] }), Some(("a".into(), 1)));
    assert_eq!(
        position(rawdoc! { "a": { "$gte": 5 }, "b": 1 }, rawdoc! { "a": [1, 2, 9], "b": 1 }),
        Some(("a".into(), 2))
    );
    assert_eq!(position(rawdoc! { "a.b": 2 }, rawdoc! { "a": [{ "b": 1 }, { "b": [1, 2] }] }), Some(("a.b".into(), 1)));
    assert_eq!(
        position(rawdoc! { "a": { "$elemMatch": { "b": 2 } } }, rawdoc! { "a": [{ "b": 1 }, { "b": 2 }] }),
        Some(("a".into(), 1))
    );
    assert_eq!(position(rawdoc! { "a": 5 }, rawdoc! { "a": 5 }), None);
    assert_eq!(position(rawdoc! { "a": 6 }, rawdoc! { "a": [5] }), None);
}

#[test]
fn a_value_stands_for_the_first_part_of_every_path() {
    let environment = Environment::fixed();
    let pull = filter(rawdoc! { "": { "$gt": 5 } });
    assert!(pull.matches_value(RawBsonRef::Int32(6), &environment).unwrap());
    assert!(!pull.matches_value(RawBsonRef::Int32(5), &environment).unwrap());
    let array_filter = filter(rawdoc! { "x.y": 1, "x.z": { "$ne": 2 } });
    let value = rawdoc! { "y": 1, "z": 3 };
    assert!(array_filter.matches_value(RawBsonRef::Document(&value), &environment).unwrap());
}

#[test]
fn equalities_for_upserts() {
    let equalities = |document| {
        let found = filter(document).equalities()?;
        Ok::<_, crate::Error>(found.into_iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>())
    };
    let document = rawdoc! {
        "a": 1, "$and": [{ "b.c": 2 }], "d": { "$in": [3] }, "$or": [{ "e": 4 }], "f": { "$gt": 5 },
        "g": { "$all": [6] }, "h": { "$in": [1, 2] }, "i": { "$ne": 7 }
    };
    assert_eq!(equalities(document).unwrap(), ["a", "b.c", "d", "e", "g"]);
    assert_eq!(equalities(rawdoc! { "$and": [{ "a": 1 }, { "a": 1 }] }).unwrap_err().code.0, 54);
    assert_eq!(equalities(rawdoc! { "a": 1, "a.b": 1 }).unwrap_err().code.0, 54);
}

#[test]
fn bounds_of_conditions() {
    let single = IndexTraits::default();
    let multikey = IndexTraits { multikey: true, ..single };
    let bounds = |document, index| {
        let found = filter(document).root().bounds_on("a", index, None, &Environment::fixed()).unwrap();
        found.map(|bounds| (bounds.intervals.0.len(), bounds.exact))
    };
    assert_eq!(bounds(rawdoc! { "a": { "$gt": 1, "$lt": 5 } }, single), Some((1, true)));
    assert_eq!(bounds(rawdoc! { "a": { "$gt": 1, "$lt": 5 } }, multikey), Some((1, false)));
    assert_eq!(bounds(rawdoc! { "a": { "$in": [1, 3, 3, "x"] } }, single), Some((3, true)));
    assert_eq!(bounds(rawdoc! { "a": { "$ne": 1 } }, single), Some((2, true)));
    assert_eq!(bounds(rawdoc! { "a": { "$ne": bson::RawBson::Null } }, single), None);
    assert_eq!(bounds(rawdoc! { "$or": [{ "a": 1 }, { "a": { "$gt": 5 } }] }, single), Some((2, true)));
    assert_eq!(bounds(rawdoc! { "$or": [{ "a": 1 }, { "b": 1 }] }, single), None);
    assert_eq!(bounds(rawdoc! { "a": [1, 2] }, multikey), Some((2, false)));
    assert_eq!(bounds(rawdoc! { "a": { "$regex": "^ab" } }, single), Some((2, true)));
}
