//! Laying the tree of paths over a document.
//!
//! Several subtrees may lead to one place (`$` beside a number, several array filters that match one element): they are
//! walked side by side, and two modifiers that meet are a conflict.

use crate::document::collation::Collator;
use crate::document::validate::nesting;
use crate::document::{MAX_DEPTH, RawBsonRef, RawDocument, RawDocumentBuf, Value};
use crate::error::{Code, Error, Result};
use crate::update::array_filter::ArrayFilters;
use crate::update::node::{Field, Node, Opened, document_of, fields_of};
use crate::update::path::{Key, PathTree, conflict, index};
use crate::update::{Change, Missing, Modifier, UpdateContext, show, too_deep};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The most null elements that setting a far position adds to an array.
const MAX_BACKFILL: usize = 1_500_000;

/// Where in the document an update stands, and what it needs to know there.
pub(crate) struct At<'c, 'a> {
    /// The document before the update.
    pub(crate) before: &'a RawDocument,
    /// The operation's surroundings.
    pub(crate) context: &'c UpdateContext<'c>,
    /// How strings compare.
    pub(crate) collator: Option<&'c Collator>,
    filters: &'c ArrayFilters,
    path: Vec<Cow<'a, str>>,
    arrays: usize,
}

impl At<'_, '_> {
    /// The path so far.
    pub(crate) fn path(&self) -> String {
        self.path.join(".")
    }

    /// The name of the field itself.
    pub(crate) fn name(&self) -> &str {
        self.path.last().map_or("", |name| name)
    }

    /// Whether the path leads through an array.
    pub(crate) fn in_array(&self) -> bool {
        self.arrays > 0
    }
}

/// Applies the tree; `None` when nothing changed.
pub(crate) fn apply(
    tree: &PathTree,
    filters: &ArrayFilters,
    before: &RawDocument,
    context: &UpdateContext<'_>,
    collator: Option<&Collator>,
) -> Result<Option<RawDocumentBuf>> {
    let mut at = At { before, context, collator, filters, path: Vec::new(), arrays: 0 };
    let mut root = Node::Document(fields_of(before)?);
    match at.existing(&[tree], &mut root)? {
        Change::None => Ok(None),
        _ => match root {
            Node::Document(fields) => Ok(Some(document_of(&fields)?)),
            _ => Err(Error::internal("the root of an update stays a document")),
        },
    }
}

/// What stands at one level of the trees.
enum Level<'t> {
    Leaf(&'t dyn Modifier),
    Fields(Vec<(Cow<'t, str>, Vec<&'t PathTree>)>),
    Elements(Vec<(&'t str, &'t PathTree)>),
}

impl<'a> At<'_, 'a> {
    fn level(&self, trees: &[&'a PathTree]) -> Result<Level<'a>> {
        if let [PathTree::Leaf(modifier)] = trees {
            return Ok(Level::Leaf(&**modifier));
        }
        if trees.iter().all(|tree| matches!(tree, PathTree::Elements(_))) {
            let filters = trees.iter().filter_map(|tree| match tree {
                PathTree::Elements(filters) => Some(filters.iter().map(|(name, tree)| (name.as_str(), tree))),
                _ => None,
            });
            return Ok(Level::Elements(filters.flatten().collect()));
        }
        if let [PathTree::Fields { named, position: None }] = trees {
            let fields = named.iter().map(|(key, tree)| (Cow::Borrowed(key.0.as_str()), vec![tree]));
            return Ok(Level::Fields(fields.collect()));
        }
        let mut merged: BTreeMap<Key, Vec<&'a PathTree>> = BTreeMap::new();
        for tree in trees {
            let PathTree::Fields { named, position } = tree else {
                return Err(conflict(&self.path(), &self.path()));
            };
            for (key, tree) in named {
                merged.entry(key.clone()).or_default().push(tree);
            }
            if let Some(tree) = position {
                let position = self.context.position.ok_or_else(|| {
                    Error::bad_value("The positional operator did not find the match needed from the query.")
                })?;
                merged.entry(Key(position.to_string())).or_default().push(tree);
            }
        }
        Ok(Level::Fields(merged.into_iter().map(|(key, trees)| (Cow::Owned(key.0), trees)).collect()))
    }

    /// Applies the trees to a value that exists.
    fn existing(&mut self, trees: &[&'a PathTree], node: &mut Node<'a>) -> Result<Change> {
        match self.level(trees)? {
            Level::Leaf(modifier) if modifier.inserts_only() && !self.context.inserting => Ok(Change::None),
            Level::Leaf(modifier) => {
                let change = modifier.modify(node, self)?;
                if change == Change::Modified {
                    self.check_depth(node)?;
                }
                Ok(change)
            }
            Level::Fields(fields) => {
                let mut changed = Change::None;
                for (name, trees) in fields {
                    if self.child(name, &trees, node)? {
                        changed = Change::Modified;
                    }
                }
                Ok(changed)
            }
            Level::Elements(filters) => self.elements(&filters, node),
        }
    }

    /// Applies the trees to a field or an array position; whether something changed.
    fn child(&mut self, name: Cow<'a, str>, trees: &[&'a PathTree], parent: &mut Node<'a>) -> Result<bool> {
        if self.path.is_empty() && name.starts_with('$') && !self.context.inserting {
            refuse_dollar(&name, trees)?;
        }
        match parent.open()? {
            Opened::Document(fields) => {
                let found = fields.iter().position(|field| field.name == name);
                self.path.push(name.clone());
                let changed = match found {
                    Some(found) => match self.existing(trees, &mut fields[found].node)? {
                        Change::None => false,
                        Change::Modified => true,
                        Change::Remove => {
                            fields.remove(found);
                            true
                        }
                    },
                    None => self.missing(trees)?.is_some_and(|node| {
                        fields.push(Field { name, node });
                        true
                    }),
                };
                self.path.pop();
                Ok(changed)
            }
            Opened::Array(elements) => {
                let Some(position) = index(&name) else {
                    return self.not_viable(&name, trees, parent);
                };
                self.arrays += 1;
                self.path.push(name);
                let changed = self.position(position, trees, elements)?;
                self.path.pop();
                self.arrays -= 1;
                Ok(changed)
            }
            Opened::Scalar => self.not_viable(&name, trees, parent),
        }
    }

    fn position(&mut self, position: usize, trees: &[&'a PathTree], elements: &mut Vec<Node<'a>>) -> Result<bool> {
        if let Some(element) = elements.get_mut(position) {
            return Ok(match self.existing(trees, element)? {
                Change::None => false,
                Change::Modified => true,
                Change::Remove => {
                    let was_null = element.value()?.get() == Some(RawBsonRef::Null);
                    *element = Node::NULL;
                    !was_null
                }
            });
        }
        let Some(node) = self.missing(trees)? else { return Ok(false) };
        if position - elements.len() > MAX_BACKFILL {
            return Err(Error::new(
                Code::CANNOT_BACKFILL_ARRAY,
                format!("can't backfill more than {MAX_BACKFILL} elements"),
            ));
        }
        elements.resize(position, Node::NULL);
        elements.push(node);
        Ok(true)
    }

    /// Applies array filters to an array.
    fn elements(&mut self, filters: &[(&'a str, &'a PathTree)], node: &mut Node<'a>) -> Result<Change> {
        if !node.is_array() {
            let value = node.value()?;
            return Err(Error::bad_value(format!(
                "Cannot apply array updates to non-array element {}: {}",
                self.name(),
                show(value.or_null())
            )));
        }
        let Opened::Array(elements) = node.open()? else {
            return Err(Error::internal("an array opens as an array"));
        };
        let mut changed = Change::None;
        self.arrays += 1;
        for (position, element) in elements.iter_mut().enumerate() {
            let mut trees = Vec::with_capacity(filters.len());
            for (identifier, tree) in filters {
                if self.filters.matches(identifier, &element.value()?, self.context.environment)? {
                    trees.push(*tree);
                }
            }
            if trees.is_empty() {
                continue;
            }
            self.path.push(Cow::Owned(position.to_string()));
            match self.existing(&trees, element)? {
                Change::None => {}
                Change::Modified => changed = Change::Modified,
                Change::Remove => {
                    *element = Node::NULL;
                    changed = Change::Modified;
                }
            }
            self.path.pop();
        }
        self.arrays -= 1;
        Ok(changed)
    }

    /// What the trees create where there is nothing.
    fn missing(&mut self, trees: &[&'a PathTree]) -> Result<Option<Node<'a>>> {
        match self.level(trees)? {
            Level::Leaf(modifier) if modifier.inserts_only() && !self.context.inserting => Ok(None),
            Level::Leaf(modifier) => {
                let created = modifier.create(self)?;
                if let Some(node) = &created {
                    self.check_depth(node)?;
                }
                Ok(created)
            }
            Level::Fields(fields) => {
                let mut created = Vec::new();
                for (name, trees) in fields {
                    self.path.push(name.clone());
                    if let Some(node) = self.missing(&trees)? {
                        created.push(Field { name, node });
                    }
                    self.path.pop();
                }
                Ok((!created.is_empty()).then_some(Node::Document(created)))
            }
            Level::Elements(filters) => {
                let ignored = filters.iter().all(|(_, tree)| {
                    tree.each_leaf(&mut |leaf| match leaf.inserts_only() && !self.context.inserting {
                        true => Ok(()),
                        false => Err(Error::internal("not ignored")),
                    })
                    .is_ok()
                });
                if ignored {
                    return Ok(None);
                }
                Err(Error::bad_value(format!(
                    "The path '{}' must exist in the document in order to apply array updates.",
                    self.path()
                )))
            }
        }
    }

    /// The trees lead to a field of something that has no such fields.
    fn not_viable(&self, name: &str, trees: &[&'a PathTree], parent: &Node<'a>) -> Result<bool> {
        let parent = parent.value()?;
        let element = || format!("{{{}: {}}}", self.name(), show(parent.or_null()));
        for tree in trees {
            tree.each_leaf(&mut |modifier| {
                if modifier.inserts_only() && !self.context.inserting {
                    return Ok(());
                }
                let message = match modifier.missing() {
                    Missing::Create => format!("Cannot create field '{name}' in element {}", element()),
                    Missing::Viable => {
                        let path = self.path();
                        format!(
                            "Cannot use the part ({name}) of ({path}.{name}) to traverse the element ({})",
                            element()
                        )
                    }
                    Missing::Ignore => return Ok(()),
                };
                Err(Error::new(Code::PATH_NOT_VIABLE, message))
            })?;
        }
        Ok(false)
    }

    fn check_depth(&self, node: &Node<'a>) -> Result<()> {
        let deep = |value: &Value<'_>| nesting(value.or_null()).map(|depth| depth + self.path.len() > MAX_DEPTH);
        let too_deep_here = match node {
            Node::Untouched { .. } | Node::Document(_) => false,
            Node::Raw(_) | Node::Owned(_) => deep(&node.value()?)?,
            Node::Array(elements) => {
                let mut found = self.path.len() + 1 > MAX_DEPTH;
                for element in elements {
                    if matches!(element, Node::Raw(RawBsonRef::Document(_) | RawBsonRef::Array(_))) {
                        let depth = nesting(element.value()?.or_null())?;
                        found |= depth + self.path.len() + 1 > MAX_DEPTH;
                    }
                }
                found
            }
        };
        if too_deep_here { Err(too_deep()) } else { Ok(()) }
    }
}

/// Refuses to write a top-level field whose name begins with `$`.
fn refuse_dollar(name: &str, trees: &[&PathTree]) -> Result<()> {
    for tree in trees {
        tree.each_leaf(&mut |modifier| {
            if modifier.inserts_only() || modifier.missing() != Missing::Create {
                return Ok(());
            }
            Err(dollar_prefixed(name))
        })?;
    }
    Ok(())
}

/// The refusal of a field name that begins with `$`.
pub(crate) fn dollar_prefixed(name: &str) -> Error {
    Error::new(
        Code::DOLLAR_PREFIXED_FIELD_NAME,
        format!(
            "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's replacement \
             document. Consider using an aggregation pipeline with $replaceWith."
        ),
    )
}
