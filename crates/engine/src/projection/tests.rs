//! What goldens can't show: covered fields, dependencies, identity.

use super::*;
use bson::rawdoc;

fn projection(specification: RawDocumentBuf) -> Projection {
    Projection::parse(&specification, None, &mut expression::Parser::new(), Mode::Find).unwrap()
}

fn set(names: &[&str]) -> Option<BTreeSet<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn fields_for_covered_plans() {
    assert_eq!(projection(rawdoc! { "a": 1, "b.c": 1 }).only_fields(), set(&["_id", "a", "b.c"]));
    assert_eq!(projection(rawdoc! { "a": 1, "_id": 0 }).only_fields(), set(&["a"]));
    assert_eq!(projection(rawdoc! { "a": 0 }).only_fields(), None);
    assert_eq!(projection(rawdoc! { "a": 1, "b": "$c" }).only_fields(), None);
    assert_eq!(projection(rawdoc! { "a": 1, "b": "$c.d", "_id": 0 }).dependencies(), set(&["a", "c.d"]));
    assert_eq!(projection(rawdoc! { "b": "$$ROOT" }).dependencies(), None);
}

#[test]
fn identity_is_known() {
    assert!(projection(rawdoc! {}).is_identity());
    assert!(!projection(rawdoc! { "_id": 0 }).is_identity());
    assert!(!projection(rawdoc! { "_id": 1 }).is_identity());
}

#[test]
fn the_sort_key_is_shown_where_there_is_one() {
    let projection = projection(rawdoc! { "a": 1, "_id": 0, "key": { "$meta": "sortKey" } });
    assert!(projection.needs_sort_key());
    let key = rawdoc! { "k": [1] };
    let environment = Environment::fixed();
    let document = rawdoc! { "a": 1, "b": 2 };
    let shown = projection.apply_sorted(&document, key.get("k").unwrap(), &environment, None).unwrap();
    assert_eq!(shown, rawdoc! { "a": 1, "key": [1] });
    assert_eq!(projection.apply(&document, &environment, None).unwrap(), rawdoc! { "a": 1 });
}
