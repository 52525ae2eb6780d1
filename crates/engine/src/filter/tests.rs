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

#[test]
fn a_refused_document_is_explained() {
    let explain = |document, candidate: RawDocumentBuf| {
        filter(document).explain_failure(&candidate, &Environment::fixed()).unwrap()
    };
    assert_eq!(
        explain(rawdoc! { "a": { "$gt": 5 } }, rawdoc! { "a": 3 }),
        rawdoc! {
            "operatorName": "$gt", "specifiedAs": { "a": { "$gt": 5 } },
            "reason": "comparison failed", "consideredValue": 3
        }
    );
    assert_eq!(
        explain(rawdoc! { "$or": [{ "a": 1 }, { "b": { "$type": "int" } }] }, rawdoc! { "b": "x" }),
        rawdoc! { "operatorName": "$or", "clausesNotSatisfied": [
            { "index": 0, "details": {
                "operatorName": "$eq", "specifiedAs": { "a": { "$eq": 1 } }, "reason": "field was missing" } },
            { "index": 1, "details": {
                "operatorName": "$type", "specifiedAs": { "b": { "$type": [16] } }, "reason": "type did not match",
                "consideredValue": "x", "consideredType": "string" } }
        ] }
    );
    assert_eq!(
        explain(rawdoc! { "$nor": [{ "a": { "$in": [1, 2] } }] }, rawdoc! { "a": 2 }),
        rawdoc! { "operatorName": "$nor", "clausesSatisfied": [
            { "index": 0, "details": {
                "operatorName": "$in", "specifiedAs": { "a": { "$in": [1, 2] } },
                "reason": "matching value found in array", "consideredValue": 2 } }
        ] }
    );
}

#[test]
fn a_failed_schema_is_explained() {
    let schema = rawdoc! { "$jsonSchema": {
        "title": "person",
        "required": ["name", "age"],
        "properties": {
            "name": { "bsonType": "string", "minLength": 2, "description": "at least two characters" },
            "tags": { "items": { "type": "string" } },
            "n": { "minimum": 1, "exclusiveMinimum": true }
        },
        "additionalProperties": false
    } };
    let candidate = rawdoc! { "name": "x", "tags": ["a", 2], "n": 1, "other": 5 };
    let explained = filter(schema).explain_failure(&candidate, &Environment::fixed()).unwrap();
    assert_eq!(
        explained,
        rawdoc! { "operatorName": "$jsonSchema", "title": "person", "schemaRulesNotSatisfied": [
            { "operatorName": "properties", "propertiesNotSatisfied": [
                { "propertyName": "name", "description": "at least two characters", "details": [
                    { "operatorName": "minLength", "specifiedAs": { "minLength": 2 },
                      "reason": "specified string length was not satisfied", "consideredValue": "x" }
                ] },
                { "propertyName": "tags", "details": [
                    { "operatorName": "items", "reason": "At least one item did not match the sub-schema",
                      "itemIndex": 1, "details": [
                        { "operatorName": "type", "specifiedAs": { "type": "string" },
                          "reason": "type did not match", "consideredValue": 2, "consideredType": "int" }
                    ] }
                ] },
                { "propertyName": "n", "details": [
                    { "operatorName": "minimum", "specifiedAs": { "minimum": 1, "exclusiveMinimum": true },
                      "reason": "comparison failed", "consideredValue": 1 }
                ] }
            ] },
            { "operatorName": "required", "specifiedAs": { "required": ["name", "age"] }, "missingProperties": ["age"] },
            { "operatorName": "additionalProperties", "specifiedAs": { "additionalProperties": false },
              "additionalProperties": ["other"] }
        ] }
    );
}
