//! Specifications that are refused, and the keys that documents have.

use super::*;
use crate::key::Decoder;
use bson::{RawBson, RawBsonRef, rawdoc};

fn spec(mut document: bson::RawDocumentBuf) -> IndexSpec {
    document.append(bson::raw::cstr!("name"), "test");
    IndexSpec::parse(&document, None).unwrap()
}

fn code(document: bson::RawDocumentBuf) -> i32 {
    IndexSpec::parse(&document, None).unwrap_err().code.0
}

/// The keys of a document, as text: fields joined by `,`.
fn keys(spec: &IndexSpec, document: &bson::RawDocument) -> Vec<String> {
    let descending = spec.descending();
    let keys = spec.keys(document).unwrap();
    keys.entries
        .iter()
        .map(|entry| {
            let mut decoder = Decoder::new(&entry.key, &entry.bits);
            let fields: Vec<String> =
                descending.iter().map(|descending| text(decoder.next(*descending).unwrap())).collect();
            assert!(decoder.rest().is_empty());
            fields.join(",")
        })
        .collect()
}

fn text(value: RawBson) -> String {
    if value == RawBson::Undefined { "undefined".to_owned() } else { bson::Bson::try_from(value).unwrap().to_string() }
}

#[test]
fn arrays_give_a_key_for_each_element() {
    let a = spec(rawdoc! { "key": { "a": 1 } });
    assert_eq!(keys(&a, &rawdoc! { "a": [2, 1, 2, 2.0] }), ["1", "2"]);
    assert_eq!(keys(&a, &rawdoc! { "a": [[1, 2], 3] }), ["3", "[1, 2]"]);
    assert_eq!(keys(&a, &rawdoc! { "a": [] }), ["undefined"]);
    assert_eq!(keys(&a, &rawdoc! { "b": 1 }), ["null"]);
    let ab = spec(rawdoc! { "key": { "a.b": 1 } });
    assert_eq!(keys(&ab, &rawdoc! { "a": [{ "b": 1 }, { "b": [2, 3] }, 7, { "c": 1 }] }), ["null", "1", "2", "3"]);
    assert_eq!(keys(&ab, &rawdoc! { "a": [] }), ["null"]);
    assert_eq!(keys(&ab, &rawdoc! { "a": { "b": 5 } }), ["5"]);
    assert_eq!(ab.keys(&rawdoc! { "a": [{ "b": [1] }] }).unwrap().multikey, [0b11]);
    assert_eq!(ab.keys(&rawdoc! { "a": { "b": [1] } }).unwrap().multikey, [0b10]);
    assert!(!ab.keys(&rawdoc! { "a": { "b": 1 } }).unwrap().is_multikey());
}

#[test]
fn compound_keys_share_their_array() {
    let shared = spec(rawdoc! { "key": { "a.b": 1, "a.c": -1, "d": 1 } });
    let document = rawdoc! { "a": [{ "b": 1, "c": 2 }, { "b": 3 }], "d": "x" };
    assert_eq!(keys(&shared, &document), ["1,2,\"x\"", "3,null,\"x\""]);
    let parallel = spec(rawdoc! { "key": { "a": 1, "b": 1 } });
    assert_eq!(
        parallel.keys(&rawdoc! { "a": [1], "b": [2] }).unwrap_err().code,
        crate::Code::CANNOT_INDEX_PARALLEL_ARRAYS
    );
    assert_eq!(keys(&parallel, &rawdoc! { "a": [1, 2], "b": 3 }), ["1,3", "2,3"]);
    assert_eq!(parallel.keys(&rawdoc! { "a": [], "b": [] }).unwrap_err().code.0, 171);
}

#[test]
fn numbers_in_paths_are_positions_or_names() {
    let first = spec(rawdoc! { "key": { "a.0": 1 } });
    assert_eq!(keys(&first, &rawdoc! { "a": [5, 6] }), ["5"]);
    assert_eq!(keys(&first, &rawdoc! { "a": { "0": 7 } }), ["7"]);
    assert_eq!(first.keys(&rawdoc! { "a": [{ "0": 1 }] }).unwrap_err().code.0, 16746);
    let nested = spec(rawdoc! { "key": { "a.0.b": 1 } });
    assert_eq!(keys(&nested, &rawdoc! { "a": [{ "b": 1 }, { "b": 2 }] }), ["1"]);
}

#[test]
fn sparse_leaves_out_what_has_none_of_the_fields() {
    let one = spec(rawdoc! { "key": { "a": 1 }, "sparse": true });
    assert!(keys(&one, &rawdoc! { "b": 1 }).is_empty());
    assert_eq!(keys(&one, &rawdoc! { "a": RawBsonRef::Null }), ["null"]);
    let two = spec(rawdoc! { "key": { "a": 1, "b": 1 }, "sparse": true });
    assert_eq!(keys(&two, &rawdoc! { "b": 1 }), ["null,1"]);
    assert!(keys(&two, &rawdoc! { "c": 1 }).is_empty());
}

#[test]
fn hashed_fields_hash_equal_values_equally() {
    let hashed = spec(rawdoc! { "key": { "a": "hashed" } });
    assert_eq!(keys(&hashed, &rawdoc! { "a": 1 }), keys(&hashed, &rawdoc! { "a": 1.0 }));
    assert_ne!(keys(&hashed, &rawdoc! { "a": 1 }), keys(&hashed, &rawdoc! { "a": 2 }));
    assert_eq!(hashed.keys(&rawdoc! { "a": [1] }).unwrap_err().code.0, 16766);
}

#[test]
fn wildcards_index_every_path() {
    let all = spec(rawdoc! { "key": { "$**": 1 } });
    let document = rawdoc! { "_id": 1, "a": { "b": 2, "e": {} }, "c": [1, { "d": 3 }, [4]], "f": [] };
    assert_eq!(
        keys(&all, &document),
        ["\"a.b\",2", "\"a.e\",{}", "\"c\",1", "\"c\",[4]", "\"c.d\",3", "\"f\",undefined"]
    );
    let below = spec(rawdoc! { "key": { "a.$**": 1 } });
    assert_eq!(keys(&below, &document), ["\"a.b\",2", "\"a.e\",{}"]);
    let included = spec(rawdoc! { "key": { "$**": 1 }, "wildcardProjection": { "_id": 1, "a.b": 1 } });
    assert_eq!(keys(&included, &document), ["\"_id\",1", "\"a.b\",2"]);
    let compound = spec(rawdoc! { "key": { "x": 1, "$**": 1 }, "wildcardProjection": { "x": 0 } });
    assert_eq!(keys(&compound, &rawdoc! { "x": 5, "y": 6 }), ["5,\"y\",6"]);
    assert_eq!(compound.keys(&rawdoc! { "x": [5], "y": 6 }).unwrap_err().code.0, 7246301);
}

#[test]
fn wrong_specifications_are_refused() {
    for (expected, document) in [
        (9, rawdoc! { "key": { "a": 1 } }),
        (9, rawdoc! {}),
        (14, rawdoc! { "key": { "a": 1 }, "name": 1 }),
        (67, rawdoc! { "key": {}, "name": "x" }),
        (67, rawdoc! { "key": { "a": 1 }, "name": "" }),
        (67, rawdoc! { "key": { "a": 0 }, "name": "x" }),
        (67, rawdoc! { "key": { "a": "bogus" }, "name": "x" }),
        (67, rawdoc! { "key": { "a": "text" }, "name": "x" }),
        (67, rawdoc! { "key": { "a..b": 1 }, "name": "x" }),
        (67, rawdoc! { "key": { "$a": 1 }, "name": "x" }),
        (67, rawdoc! { "key": { "a": true }, "name": "x" }),
        (197, rawdoc! { "key": { "a": 1 }, "name": "x", "unknownOption": true }),
        (16764, rawdoc! { "key": { "a": "hashed" }, "name": "x", "unique": true }),
        (31303, rawdoc! { "key": { "a": "hashed", "b": "hashed" }, "name": "x" }),
        (67, rawdoc! { "key": { "a": 1, "b": 1 }, "name": "x", "expireAfterSeconds": 1 }),
        (67, rawdoc! { "key": { "a": 1 }, "name": "x", "expireAfterSeconds": -1 }),
        (67, rawdoc! { "key": { "a": 1 }, "name": "x", "expireAfterSeconds": f64::NAN }),
        (197, rawdoc! { "key": { "_id": 1 }, "name": "x", "hidden": true }),
        (2, rawdoc! { "key": { "_id": -1 }, "name": "x" }),
        (2, rawdoc! { "key": { "a": 1 }, "name": "_id_" }),
        (67, rawdoc! { "key": { "a": 1 }, "name": "x", "sparse": true, "partialFilterExpression": { "a": 1 } }),
        (67, rawdoc! { "key": { "a": 1 }, "name": "x", "partialFilterExpression": { "a": { "$ne": 1 } } }),
        (67, rawdoc! { "key": { "a": 1 }, "name": "x", "partialFilterExpression": { "a": { "$exists": false } } }),
        (2, rawdoc! { "key": { "a": 1 }, "name": "x", "collation": {} }),
        (2, rawdoc! { "key": { "a": 1 }, "name": "x", "wildcardProjection": { "b": 1 } }),
        (31254, rawdoc! { "key": { "$**": 1 }, "name": "x", "wildcardProjection": { "a": 1, "b": 0 } }),
        (31249, rawdoc! { "key": { "$**": 1 }, "name": "x", "wildcardProjection": { "a": 0, "a.b": 0 } }),
        (67, rawdoc! { "key": { "$**": 1, "a": 1 }, "name": "x" }),
        (7246209, rawdoc! { "key": { "$**": 1, "a": 1 }, "name": "x", "wildcardProjection": { "b": 0 } }),
        (67, rawdoc! { "key": { "$**.a": 1 }, "name": "x" }),
        (67, rawdoc! { "key": { "$**": 1 }, "name": "x", "unique": true }),
        (7246202, rawdoc! { "key": { "a": "wildcard" }, "name": "x" }),
    ] {
        assert_eq!(code(document.clone()), expected, "{document:?}");
    }
}

#[test]
fn an_existing_index_judges_a_new_one() {
    let index = |document: bson::RawDocumentBuf| IndexSpec::parse(&document, None).unwrap();
    let existing = index(rawdoc! { "key": { "a": 1 }, "name": "a_1" });
    let judge = |document| existing.judge(&index(document)).map_err(|error| error.code.0);
    assert_eq!(judge(rawdoc! { "key": { "a": 1.0 }, "name": "a_1" }), Ok(Verdict::Same));
    assert_eq!(judge(rawdoc! { "key": { "b": 1 }, "name": "b_1" }), Ok(Verdict::Different));
    assert_eq!(
        judge(rawdoc! { "key": { "a": 1 }, "name": "a_en", "collation": { "locale": "en" } }),
        Ok(Verdict::Different)
    );
    assert_eq!(judge(rawdoc! { "key": { "b": 1 }, "name": "a_1" }), Err(86));
    assert_eq!(judge(rawdoc! { "key": { "a": 1 }, "name": "a_1", "unique": true }), Err(86));
    assert_eq!(judge(rawdoc! { "key": { "a": 1 }, "name": "other" }), Err(85));
    assert_eq!(judge(rawdoc! { "key": { "a": 1 }, "name": "a_1", "expireAfterSeconds": 5 }), Err(85));
    assert_eq!(judge(rawdoc! { "key": { "a": 1 }, "name": "a_1", "hidden": true }), Err(85));
    let partial = index(
        rawdoc! { "key": { "a": 1 }, "name": "p", "partialFilterExpression": { "$and": [{ "a": 1 }, { "b": 2 }] } },
    );
    let turned = index(rawdoc! { "key": { "a": 1 }, "name": "p", "partialFilterExpression": { "b": 2, "a": 1 } });
    assert_eq!(partial.judge(&turned).unwrap(), Verdict::Same);
}

#[test]
fn the_document_is_complete_and_reads_back() {
    let given =
        rawdoc! { "key": { "a": 1 }, "name": "a_1", "unique": 1, "sparse": false, "collation": { "locale": "en" } };
    let spec = IndexSpec::parse(&given, None).unwrap();
    assert_eq!(spec.document().get_bool("unique").ok(), Some(true));
    assert!(spec.document().get("sparse").unwrap().is_none());
    assert_eq!(spec.document().get_document("collation").unwrap().get_str("version").ok(), Some("57.1"));
    let again = IndexSpec::parse(spec.document(), None).unwrap();
    assert_eq!(again.document(), spec.document());
    let collator = spec.collator().cloned();
    let simple = rawdoc! { "key": { "b": 1 }, "name": "b_1", "collation": { "locale": "simple" } };
    let simple = IndexSpec::parse(&simple, collator.as_ref()).unwrap();
    assert!(IndexSpec::parse(simple.document(), collator.as_ref()).unwrap().collator().is_none());
}
