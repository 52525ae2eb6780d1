//! The document that an upsert inserts: the filter's equalities, changed by the update.

use crate::document::{FieldPath, RawBson, RawDocumentBuf, validate};
use crate::error::{Code, Error, Result};
use crate::update::node::{Field, Node, Opened, document_of};
use crate::update::{Update, UpdateContext, check_id, immutable_id, too_deep};
use bson::oid::ObjectId;
use std::borrow::Cow;

/// Builds the document that an upsert inserts where nothing matched: `_id` in front, taken from the filter, else from the
/// update, else made by `new_id`. A replacement takes nothing but the `_id` from the filter.
///
/// # Errors
/// `NotSingleValueField` (54) when the filter asks two values of one path, `ImmutableField` (66) when the update changes the
/// filter's `_id`, `Location17420` beyond 16 MiB, and what [`Update::apply`] and [`validate::storable`] refuse.
pub fn upsert_document(
    equalities: &[(FieldPath, RawBson)],
    update: &Update,
    context: &UpdateContext<'_>,
    new_id: impl FnOnce() -> ObjectId,
) -> Result<RawDocumentBuf> {
    let base = if update.is_replacement() {
        let ids: Vec<_> = equalities.iter().filter(|(path, _)| path.as_str() == "_id").cloned().collect();
        document_from(&ids)?
    } else {
        document_from(equalities)?
    };
    let context = UpdateContext { inserting: true, ..*context };
    let after = update.apply(&base, &context)?;
    let document = match after {
        None => base,
        Some(after) => {
            check_id(&base, &after, immutable_id)?;
            after
        }
    };
    validate::storable(document, new_id)
}

/// The document that has just these values.
fn document_from(equalities: &[(FieldPath, RawBson)]) -> Result<RawDocumentBuf> {
    for (at, (path, _)) in equalities.iter().enumerate() {
        for (other, _) in &equalities[..at] {
            check_distinct(other.as_str(), path.as_str())?;
        }
    }
    let mut root = Node::Document(Vec::new());
    for (path, value) in equalities {
        let parts: Vec<&str> = path.parts().collect();
        if validate::nesting(value.as_raw_bson_ref())? + parts.len() > crate::document::MAX_DEPTH {
            return Err(too_deep());
        }
        put(&mut root, &parts, value)?;
    }
    match root {
        Node::Document(fields) => document_of(&fields),
        _ => Err(Error::internal("the root of an upsert stays a document")),
    }
}

fn put<'a>(parent: &mut Node<'a>, parts: &[&'a str], value: &'a RawBson) -> Result<()> {
    let [name, rest @ ..] = parts else {
        *parent = Node::Raw(value.as_raw_bson_ref());
        return Ok(());
    };
    let Opened::Document(fields) = parent.open()? else {
        return Err(Error::internal("distinct paths never lead through a value"));
    };
    let at = match fields.iter().position(|field| field.name == *name) {
        Some(at) => at,
        None => {
            fields.push(Field { name: Cow::Borrowed(name), node: Node::Document(Vec::new()) });
            fields.len() - 1
        }
    };
    put(&mut fields[at].node, rest, value)
}

fn check_distinct(a: &str, b: &str) -> Result<()> {
    let inside = |outer: &str, inner: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
    let message = if a == b {
        format!("cannot infer query fields to set, path '{a}' is matched twice")
    } else if inside(a, b) || inside(b, a) {
        format!("cannot infer query fields to set, both paths '{a}' and '{b}' are matched")
    } else {
        return Ok(());
    };
    Err(Error::new(Code::NOT_SINGLE_VALUE_FIELD, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::{Environment, Parser};
    use bson::{RawBsonRef, rawdoc};

    fn upsert(equalities: RawDocumentBuf, update: RawDocumentBuf) -> Result<RawDocumentBuf> {
        let equalities = equalities
            .iter()
            .map(|field| field.map(|(name, value)| (FieldPath::unchecked(name.as_str()), value.into())))
            .collect::<Result<Vec<_>, _>>()?;
        let update = Update::parse(RawBsonRef::Document(&update), &[], &mut Parser::new(), None)?;
        let environment = Environment::fixed();
        upsert_document(&equalities, &update, &UpdateContext::new(&environment, None), || ObjectId::from_bytes([7; 12]))
    }

    #[test]
    fn the_filters_equalities_and_the_update_make_the_document() {
        let made = ObjectId::from_bytes([7; 12]);
        for (equalities, update, expected) in [
            (
                rawdoc! { "a": 1, "_id": 5, "b.c": 2 },
                rawdoc! { "$set": { "d": 3 } },
                rawdoc! {
                    "_id": 5, "a": 1, "b": { "c": 2 }, "d": 3
                },
            ),
            (rawdoc! { "a": 1 }, rawdoc! { "$inc": { "n": 1 } }, rawdoc! { "_id": made, "a": 1, "n": 1 }),
            (rawdoc! { "a": 1 }, rawdoc! { "$setOnInsert": { "_id": 3 } }, rawdoc! { "_id": 3, "a": 1 }),
            (rawdoc! { "a": 1, "_id": 5 }, rawdoc! { "x": 10 }, rawdoc! { "_id": 5, "x": 10 }),
            (rawdoc! { "_id": 1 }, rawdoc! { "$setOnInsert": { "$x": 1 } }, rawdoc! { "_id": 1, "$x": 1 }),
            (rawdoc! { "_id": 99 }, rawdoc! { "$pop": { "a": 1 } }, rawdoc! { "_id": 99 }),
        ] {
            assert_eq!(upsert(equalities, update).unwrap(), expected);
        }
    }

    #[test]
    fn a_changed_id_and_a_path_asked_twice_are_refused() {
        for (equalities, update, code) in [
            (rawdoc! { "_id": 1 }, rawdoc! { "$setOnInsert": { "_id": 2 } }, 66),
            (rawdoc! { "_id.a": 1 }, rawdoc! { "$setOnInsert": { "_id.b": 2 } }, 66),
            (rawdoc! { "_id.a": 1 }, rawdoc! { "$setOnInsert": { "_id": "plain" } }, 66),
            (rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }, 66),
            (rawdoc! { "a": 1, "a.b": 2 }, rawdoc! { "$set": { "x": 1 } }, 54),
            (rawdoc! {}, rawdoc! { "_id": [1] }, 53),
        ] {
            assert_eq!(upsert(equalities, update).unwrap_err().code.0, code);
        }
    }
}
