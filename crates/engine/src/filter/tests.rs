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
fn many_values_of_all_are_looked_up_at_once() {
    let numbers = |count: i32| {
        let mut array = bson::RawArrayBuf::new();
        (0..count).for_each(|number| array.push(number));
        array
    };
    let all = |count| rawdoc! { "a": { "$all": numbers(count) }, "b": 1 };
    assert!(matches(all(500), rawdoc! { "a": numbers(600), "b": 1 }));
    assert!(!matches(all(500), rawdoc! { "a": numbers(499), "b": 1 }));
    assert!(!matches(all(500), rawdoc! { "a": numbers(600), "b": 2 }));
    assert!(!matches(all(500), rawdoc! { "b": 1 }));
    let position = filter(all(40)).matched_position(&rawdoc! { "a": numbers(50), "b": 1 }, &Environment::fixed());
    assert_eq!(position.unwrap().map(|found| found.1), Some(39));
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
    assert_eq!(bounds(rawdoc! { "$expr": { "$eq": ["$a", 5] } }, multikey), Some((1, false)));
    assert_eq!(bounds(rawdoc! { "$expr": { "$gt": [5, "$a"] } }, single), Some((1, false)));
    assert_eq!(bounds(rawdoc! { "$expr": { "$gt": ["$a", 5] } }, multikey), None);
}

#[test]
fn operators_have_no_place_in_some_filters() {
    let code = |place, document: RawDocumentBuf| {
        Filter::parse_for(place, &document, &mut ExpressionParser::new(), None).map_or_else(|error| error.code.0, |_| 0)
    };
    assert_eq!(code(Place::ArrayFilters, rawdoc! { "$expr": true }), 224);
    assert_eq!(code(Place::Validator, rawdoc! { "$expr": true }), 0);
    assert_eq!(code(Place::Validator, rawdoc! { "a": { "$near": [0, 0] } }), 5_626_500);
    assert_eq!(code(Place::Validator, rawdoc! { "$text": { "$search": "x" } }), 2);
    assert_eq!(code(Place::Projection, rawdoc! { "$jsonSchema": {} }), 224);
}

mod properties {
    //! Bounds lose no document, and exact ones take none too many.

    use super::*;
    use crate::document::traverse::{self, Leaf};
    use bson::{Bson, doc};
    use proptest::prelude::*;

    fn scalar() -> BoxedStrategy<Bson> {
        prop_oneof![
            Just(Bson::Null),
            (-3i32..4).prop_map(Bson::Int32),
            (-2i64..3).prop_map(Bson::Int64),
            prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-0.5), Just(2.0)].prop_map(Bson::Double),
            "[ab]{0,2}".prop_map(Bson::String),
            any::<bool>().prop_map(Bson::Boolean),
            Just(Bson::MinKey),
            Just(Bson::MaxKey),
            Just(Bson::Document(doc! { "x": 1 })),
            Just(Bson::DateTime(bson::DateTime::from_millis(5))),
        ]
        .boxed()
    }

    fn value() -> BoxedStrategy<Bson> {
        prop_oneof![
            4 => scalar(),
            2 => prop::collection::vec(scalar(), 0..3).prop_map(Bson::Array),
            1 => prop::collection::vec(prop::collection::vec(scalar(), 0..2).prop_map(Bson::Array), 1..3)
                .prop_map(Bson::Array),
        ]
        .boxed()
    }

    fn condition() -> BoxedStrategy<Bson> {
        let compare = prop_oneof![Just("$eq"), Just("$gt"), Just("$gte"), Just("$lt"), Just("$lte"), Just("$ne")];
        prop_oneof![
            (compare.clone(), value()).prop_map(|(name, value)| doc! { name: value }),
            (compare.clone(), value(), compare, value())
                .prop_map(|(first, a, second, b)| doc! { "$elemMatch": { first: a, second: b } }),
            (prop_oneof![Just("$in"), Just("$nin")], prop::collection::vec(value(), 0..3))
                .prop_map(|(name, values)| doc! { name: values }),
            prop_oneof![Just("number"), Just("string"), Just("null"), Just("array"), Just("object")]
                .prop_map(|name| doc! { "$type": name }),
            any::<bool>().prop_map(|there| doc! { "$exists": there }),
            "\\^[ab]{1,2}\\??".prop_map(|pattern| doc! { "$regex": pattern }),
            (1i32..3, 0i32..2).prop_map(|(divisor, remainder)| doc! { "$mod": [divisor, remainder] }),
            (0i32..3).prop_map(|size| doc! { "$size": size }),
        ]
        .prop_map(Bson::Document)
        .boxed()
    }

    fn filter_document() -> BoxedStrategy<bson::Document> {
        prop_oneof![
            4 => condition().prop_map(|one| doc! { "a": one }),
            1 => condition().prop_map(|one| doc! { "a": { "$not": one } }),
            2 => (condition(), condition()).prop_map(|(one, other)| doc! { "$and": [{ "a": one }, { "a": other }] }),
            2 => (condition(), condition()).prop_map(|(one, other)| doc! { "$or": [{ "a": one }, { "a": other }] }),
            1 => (condition(), condition()).prop_map(|(one, other)| doc! { "$nor": [{ "a": one }, { "a": other }] }),
            1 => (prop_oneof![Just("$eq"), Just("$gt"), Just("$gte"), Just("$lt"), Just("$lte")], scalar())
                .prop_map(|(name, value)| doc! { "$expr": { name: ["$a", { "$literal": value }] } }),
            1 => (prop_oneof![Just("$eq"), Just("$gt"), Just("$lte")], -2i32..3)
                .prop_map(|(name, value)| doc! { "$expr": { name: ["$a", value] } }),
        ]
        .boxed()
    }

    /// The keys of a document in an index on `a`, and whether an array is in them.
    fn keys(document: &RawDocument) -> (Vec<RawBson>, bool) {
        let mut keys = Vec::new();
        let mut multikey = false;
        traverse::visit(document, "a", Leaf::Elements, &mut |value, position| {
            multikey |= position.is_some();
            keys.push(value.map_or(RawBson::Null, RawBson::from));
            Ok(false)
        })
        .unwrap();
        if keys.is_empty() {
            keys.push(RawBson::Undefined);
            multikey = true;
        }
        (keys, multikey)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn bounds_lose_no_document(
            filter_document in filter_document(),
            value in proptest::option::of(value()),
            collated in any::<bool>(),
        ) {
            let filter = filter(RawDocumentBuf::try_from(&filter_document).unwrap());
            let document = value.map_or(doc! {}, |value| doc! { "a": value });
            let document = RawDocumentBuf::try_from(&document).unwrap();
            let environment = Environment::fixed();
            let (keys, multikey) = keys(&document);
            let index = IndexTraits { multikey, collated };
            let Some(bounds) = filter.root().bounds_on("a", index, None, &environment).unwrap() else { return Ok(()) };
            let matches = filter.matches(&document, &environment).unwrap();
            let mut inside = false;
            for key in &keys {
                inside |= bounds.intervals.contains(key.as_raw_bson_ref(), None).unwrap();
            }
            prop_assert!(inside || !matches, "lost by {:?}", bounds);
            prop_assert!(!bounds.exact || matches == inside, "inexact {:?}", bounds);
        }
    }
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
