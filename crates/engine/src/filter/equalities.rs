//! The fields that an upsert takes over from its filter.
//!
//! Equalities count, alone or within `$and`, and `$in`, `$or` and `$all` of one element, which are the same. Everything
//! else says nothing about the document to be inserted. Documented at
//! <https://www.mongodb.com/docs/manual/reference/method/db.collection.updateOne/#upsert>.

use super::Node;
use crate::document::FieldPath;
use crate::error::{Code, Error, Result};
use bson::RawBson;

/// Gathers the equalities of a tree, ordered by path.
pub(super) fn collect(root: &Node) -> Result<Vec<(FieldPath, RawBson)>> {
    let mut found = Vec::new();
    gather(root, &mut found)?;
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn gather(node: &Node, found: &mut Vec<(FieldPath, RawBson)>) -> Result<()> {
    match node {
        Node::And(nodes) => nodes.iter().try_for_each(|node| gather(node, found)),
        Node::Path { path, test } => match test.equality() {
            Some(value) => {
                refuse_conflict(path, found)?;
                found.push((path.clone(), value.into()));
                Ok(())
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn refuse_conflict(path: &FieldPath, found: &[(FieldPath, RawBson)]) -> Result<()> {
    for (known, _) in found {
        if known == path {
            return Err(Error::new(
                Code::NOT_SINGLE_VALUE_FIELD,
                format!("cannot infer query fields to set, path '{path}' is matched twice"),
            ));
        }
        if is_beginning(known.as_str(), path.as_str()) || is_beginning(path.as_str(), known.as_str()) {
            return Err(Error::new(
                Code::NOT_SINGLE_VALUE_FIELD,
                format!("cannot infer query fields to set, both paths '{path}' and '{known}' are matched"),
            ));
        }
    }
    Ok(())
}

fn is_beginning(short: &str, long: &str) -> bool {
    long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'))
}
