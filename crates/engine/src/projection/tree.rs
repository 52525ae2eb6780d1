//! The tree of a projection: what happens to each named field.

use super::find_only::{ElemMatch, Slice};
use super::meta::Meta;
use crate::expression::{self, Compiled};
use std::collections::{BTreeSet, HashMap};

/// The named fields of one level.
#[derive(Debug, Default)]
pub(super) struct Branch {
    entries: Vec<(String, Entry)>,
    index: HashMap<String, usize>,
    /// Whether something below is computed.
    pub(super) computes: bool,
    /// Whether a positional `$` lies below.
    pub(super) positional: bool,
}

/// What happens to a field.
#[derive(Debug)]
pub(super) enum Entry {
    /// Fields of its own are named.
    Branch(Branch),
    /// It stays.
    Include,
    /// It goes.
    Exclude,
    /// It stays, but of the first array on the way only the matched element.
    Positional,
    /// It stays; if it is an array, a part of it.
    Slice(Slice),
    /// The first element of an array that matches.
    ElemMatch(ElemMatch),
    /// A value from beside the document.
    Meta(Meta),
    /// A computed value.
    Expression(Compiled),
}

impl Entry {
    /// Whether its value is made rather than taken over in place.
    pub(super) fn is_computed(&self) -> bool {
        match self {
            Entry::Branch(branch) => branch.computes,
            Entry::ElemMatch(_) | Entry::Meta(_) | Entry::Expression(_) => true,
            Entry::Include | Entry::Exclude | Entry::Positional | Entry::Slice(_) => false,
        }
    }
}

/// A path that can't be added because another one is there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Collision {
    /// A beginning of the path is there: what remains of the path.
    ChildAfterParent(String),
    /// The path itself is there, or one that goes on from it.
    ParentAfterChild,
}

impl Branch {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.position(name).map(|position| &self.entries[position].1)
    }

    /// Where a name stands among the entries.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        const FEW: usize = 8;
        if self.entries.len() <= FEW {
            return self.entries.iter().position(|(known, _)| known == name);
        }
        self.index.get(name).copied()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn included_names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, entry)| matches!(entry, Entry::Include)).map(|(name, _)| name.as_str())
    }

    /// The entry at a path.
    pub(super) fn find(&self, path: &str) -> Option<&Entry> {
        match path.split_once('.') {
            None => self.get(path),
            Some((first, rest)) => match self.get(first)? {
                Entry::Branch(branch) => branch.find(rest),
                _ => None,
            },
        }
    }

    /// Adds an entry at a path.
    pub(super) fn insert(&mut self, path: &str, entry: Entry) -> Result<(), Collision> {
        self.computes |= entry.is_computed();
        self.positional |= matches!(entry, Entry::Positional);
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        match (self.index.get(first).copied(), rest) {
            (None, None) => self.push(first, entry),
            (None, Some(rest)) => {
                let mut branch = Branch::default();
                branch.insert(rest, entry)?;
                self.push(first, Entry::Branch(branch));
            }
            (Some(_), None) => return Err(Collision::ParentAfterChild),
            (Some(position), Some(rest)) => match &mut self.entries[position].1 {
                Entry::Branch(branch) => return branch.insert(rest, entry),
                _ => return Err(Collision::ChildAfterParent(rest.to_owned())),
            },
        }
        Ok(())
    }

    fn push(&mut self, name: &str, entry: Entry) {
        self.index.insert(name.to_owned(), self.entries.len());
        self.entries.push((name.to_owned(), entry));
    }

    pub(super) fn shows_sort_key(&self) -> bool {
        self.entries.iter().any(|(_, entry)| match entry {
            Entry::Branch(branch) => branch.shows_sort_key(),
            Entry::Meta(Meta::SortKey) => true,
            _ => false,
        })
    }

    /// Gathers the included paths; false when something else than inclusion is named.
    pub(super) fn plain_paths(&self, prefix: &str, paths: &mut BTreeSet<String>) -> bool {
        self.entries.iter().all(|(name, entry)| match entry {
            Entry::Include => {
                paths.insert(format!("{prefix}{name}"));
                true
            }
            Entry::Branch(branch) => branch.plain_paths(&format!("{prefix}{name}."), paths),
            _ => false,
        })
    }

    /// Gathers the paths that an inclusion reads; false when an expression needs the whole document.
    pub(super) fn dependencies(&self, prefix: &str, paths: &mut BTreeSet<String>) -> bool {
        self.entries.iter().all(|(name, entry)| match entry {
            Entry::Branch(branch) => {
                if branch.computes {
                    // Arrays and documents on the way shape the result.
                    paths.insert(format!("{prefix}{name}"));
                }
                branch.dependencies(&format!("{prefix}{name}."), paths)
            }
            Entry::Expression(expression) => expression::collect(&**expression, paths),
            Entry::Exclude | Entry::Meta(_) => true,
            Entry::Include | Entry::Positional | Entry::Slice(_) | Entry::ElemMatch(_) => {
                paths.insert(format!("{prefix}{name}"));
                true
            }
        })
    }
}
