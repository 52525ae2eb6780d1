//! The paths of an update, merged into one tree, so that conflicts show at once and each part of a document is opened once.

use crate::error::{Code, Error, Result};
use crate::update::Modifier;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A part of an update's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A field's name or an array position.
    Name(String),
    /// `$`: the array element that the query matched.
    Position,
    /// `$[]` (empty) or `$[identifier]`.
    Filter(String),
}

impl Part {
    fn parse(text: &str) -> Part {
        if text == "$" {
            return Part::Position;
        }
        match text.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']')) {
            Some(identifier) => Part::Filter(identifier.to_owned()),
            None => Part::Name(text.to_owned()),
        }
    }
}

/// Parses an update's path.
///
/// # Errors
/// `EmptyFieldName` (56) for an empty path or part, `BadValue` (2) for `$` forms where none may stand.
pub(crate) fn parse(path: &str) -> Result<Vec<Part>> {
    if path.is_empty() {
        return Err(Error::new(Code::EMPTY_FIELD_NAME, "an update path may not be empty"));
    }
    let mut parts = Vec::new();
    for text in path.split('.') {
        if text.is_empty() {
            return Err(Error::new(
                Code::EMPTY_FIELD_NAME,
                format!("The update path '{path}' contains an empty field name, which is not allowed."),
            ));
        }
        parts.push(Part::parse(text));
    }
    if parts.iter().filter(|part| **part == Part::Position).count() > 1 {
        return Err(Error::bad_value(format!("Too many positional (i.e. '$') elements found in path '{path}'")));
    }
    match parts[0] {
        Part::Position => Err(Error::bad_value(format!(
            "Cannot have positional (i.e. '$') element in the first position in path '{path}'"
        ))),
        Part::Filter(_) => Err(Error::bad_value(format!(
            "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '{path}'"
        ))),
        Part::Name(_) => Ok(parts),
    }
}

/// A field's name as a key of the tree: numbers in numeric order before and among names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) String);

/// The array position that a part of a path names.
pub(crate) fn index(name: &str) -> Option<usize> {
    let canonical = name == "0" || (!name.starts_with('0') && !name.is_empty());
    let digits = canonical && name.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| name.parse().ok()).flatten()
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        compare_names(&self.0, &other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order in which fields are updated: by name, numbers by value.
pub(crate) fn compare_names(a: &str, b: &str) -> Ordering {
    match (index(a), index(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.as_bytes().cmp(b.as_bytes()),
    }
}

/// The tree of an update's paths.
#[derive(Debug)]
pub(crate) enum PathTree {
    /// The end of a path.
    Leaf(Box<dyn Modifier>),
    /// Fields or array positions, and the matched position.
    Fields { named: BTreeMap<Key, PathTree>, position: Option<Box<PathTree>> },
    /// Array elements by their filter; the empty identifier stands for all.
    Elements(BTreeMap<String, PathTree>),
}

impl PathTree {
    /// A tree without paths.
    pub(crate) fn new() -> PathTree {
        PathTree::Fields { named: BTreeMap::new(), position: None }
    }

    /// Adds a path.
    ///
    /// # Errors
    /// `ConflictingUpdateOperators` (40) when another path is the same, leads through it, or reads it in another way.
    pub(crate) fn insert(&mut self, path: &str, parts: &[Part], modifier: Box<dyn Modifier>) -> Result<()> {
        let mut node = self;
        let last = parts.len() - 1;
        let mut modifier = Some(modifier);
        for (depth, part) in parts.iter().enumerate() {
            let conflict = || conflict(path, &path.split('.').take(depth + 1).collect::<Vec<_>>().join("."));
            let here = || conflict_at_parent(path, depth);
            let fresh = match modifier.take_if(|_| depth == last) {
                Some(modifier) => PathTree::Leaf(modifier),
                None => match &parts[depth + 1] {
                    Part::Filter(_) => PathTree::Elements(BTreeMap::new()),
                    _ => PathTree::new(),
                },
            };
            let is_leaf = matches!(fresh, PathTree::Leaf(_));
            let (child, existed) = match (node, part) {
                (PathTree::Fields { named, .. }, Part::Name(name)) => {
                    let key = Key(name.clone());
                    let existed = named.contains_key(&key);
                    (named.entry(key).or_insert(fresh), existed)
                }
                (PathTree::Fields { position, .. }, Part::Position) => {
                    let existed = position.is_some();
                    (&mut **position.get_or_insert_with(|| Box::new(fresh)), existed)
                }
                (PathTree::Elements(filters), Part::Filter(identifier)) => {
                    let existed = filters.contains_key(identifier);
                    (filters.entry(identifier.clone()).or_insert(fresh), existed)
                }
                _ => return Err(here()),
            };
            if existed && (is_leaf || matches!(child, PathTree::Leaf(_))) {
                return Err(conflict());
            }
            node = child;
        }
        Ok(())
    }

    /// Calls `visit` for each modifier below.
    pub(crate) fn each_leaf(&self, visit: &mut dyn FnMut(&dyn Modifier) -> Result<()>) -> Result<()> {
        match self {
            PathTree::Leaf(modifier) => visit(&**modifier),
            PathTree::Fields { named, position } => {
                named.values().chain(position.as_deref()).try_for_each(|child| child.each_leaf(visit))
            }
            PathTree::Elements(filters) => filters.values().try_for_each(|child| child.each_leaf(visit)),
        }
    }
}

/// The refusal of two paths that would change the same place.
pub(crate) fn conflict(path: &str, at: &str) -> Error {
    Error::new(
        Code::CONFLICTING_UPDATE_OPERATORS,
        format!("Updating the path '{path}' would create a conflict at '{at}'"),
    )
}

fn conflict_at_parent(path: &str, depth: usize) -> Error {
    conflict(path, &path.split('.').take(depth).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_paths_are_refused() {
        for (path, code) in
            [("", 56), ("a.", 56), (".a", 56), ("a..b", 56), ("$", 2), ("$[]", 2), ("$[x].a", 2), ("a.$.b.$", 2)]
        {
            assert_eq!(parse(path).unwrap_err().code.0, code, "{path}");
        }
        assert_eq!(parse("a.$bad").unwrap()[1], Part::Name("$bad".into()));
    }

    #[test]
    fn numbers_sort_by_value() {
        let mut names = ["10", "9", "a", "b", "1"];
        names.sort_by(|a, b| compare_names(a, b));
        assert_eq!(names, ["1", "9", "10", "a", "b"]);
        assert_eq!(
            [index("0"), index("01"), index(""), index("-1"), index("12")],
            [Some(0), None, None, None, Some(12)]
        );
    }
}
