//! The tree of a filter, and matching it.

use super::{Bounds, IndexTraits, Predicate, expr::ExprCondition, json_schema::JsonSchema};
use crate::document::traverse;
use crate::document::{FieldPath, collation::Collator, compare_values};
use crate::error::Result;
use crate::expression::Environment;
use bson::{RawBsonRef, RawDocument};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A node of a filter's tree. `And` and `Or` have at least two parts, and no part of their own kind.
#[derive(Clone, Debug)]
pub enum Node {
    /// All of them.
    And(Vec<Node>),
    /// At least one of them.
    Or(Vec<Node>),
    /// None of them.
    Nor(Vec<Node>),
    /// Not this.
    Not {
        /// What is negated.
        node: Box<Node>,
        /// How it was written: `$not`, `$ne`, `$nin` or `$exists`.
        name: &'static str,
    },
    /// A condition on the values at a path.
    Path {
        /// The path.
        path: FieldPath,
        /// The condition.
        test: Arc<dyn Predicate>,
    },
    /// `$expr`.
    Expr(Arc<ExprCondition>),
    /// `$jsonSchema`.
    Schema(Arc<JsonSchema>),
    /// `$sampleRate`.
    Sample(f64),
    /// Every document, or none.
    Always(bool),
}

/// What is matched.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A document.
    Document(&'a RawDocument),
    /// A value that stands for the first part of every path, whatever that is called.
    Named(RawBsonRef<'a>),
    /// A value that conditions look at directly, without entering arrays: an element in `$elemMatch`.
    Element(RawBsonRef<'a>),
}

/// The state of matching one document.
pub(super) struct Matching<'e, 'n> {
    pub(super) environment: &'e Environment,
    /// The array position of the last condition that matched through an array.
    pub(super) position: Option<(&'n FieldPath, usize)>,
    record: bool,
}

impl<'e> Matching<'e, '_> {
    pub(super) fn new(environment: &'e Environment, record: bool) -> Self {
        Matching { environment, position: None, record }
    }
}

impl Node {
    /// The conjunction, flattened.
    pub fn and(nodes: Vec<Node>) -> Node {
        let mut flat = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::And(inner) => flat.extend(inner),
                Node::Always(true) => {}
                other => flat.push(other),
            }
        }
        match flat.len() {
            0 => Node::Always(true),
            1 => flat.swap_remove(0),
            _ => Node::And(sorted(flat)),
        }
    }

    /// The disjunction, flattened.
    pub fn or(nodes: Vec<Node>) -> Node {
        let mut flat = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::Or(inner) => flat.extend(inner),
                Node::Always(false) => {}
                other => flat.push(other),
            }
        }
        match flat.len() {
            0 => Node::Always(false),
            1 => flat.swap_remove(0),
            _ => Node::Or(sorted(flat)),
        }
    }

    /// A condition on a path.
    pub fn path(path: &str, test: impl Predicate + 'static) -> Node {
        Node::Path { path: FieldPath::unchecked(path), test: Arc::new(test) }
    }

    fn own_path(&self) -> &str {
        match self {
            Node::Path { path, .. } => path.as_str(),
            _ => "",
        }
    }

    fn kind_rank(&self) -> u8 {
        match self {
            Node::And(_) => 0,
            Node::Or(_) => 1,
            Node::Path { test, .. } => match (test.name(), test.elements()) {
                ("$elemMatch", Some((_, true))) => 2,
                ("$elemMatch", _) => 3,
                ("$size", _) => 4,
                ("$eq", _) => 5,
                ("$lte", _) => 6,
                ("$lt", _) => 7,
                ("$gt", _) => 8,
                ("$gte", _) => 9,
                ("$regex", _) => 10,
                ("$mod", _) => 11,
                ("$exists", _) => 12,
                ("$in", _) => 13,
                ("$bitsAllSet", _) => 14,
                ("$bitsAllClear", _) => 15,
                ("$bitsAnySet", _) => 16,
                ("$bitsAnyClear", _) => 17,
                _ => 20,
            },
            Node::Not { .. } => 18,
            Node::Nor(_) => 19,
            Node::Expr(_) | Node::Schema(_) | Node::Sample(_) => 21,
            Node::Always(_) => 22,
        }
    }

    /// A negation, under the name it was written by.
    pub fn negation(node: Node, name: &'static str) -> Node {
        Node::Not { node: Box::new(node), name }
    }

    pub(super) fn matches<'n>(&'n self, subject: Subject<'_>, matching: &mut Matching<'_, 'n>) -> Result<bool> {
        match self {
            Node::And(nodes) => {
                let nodes = match many_equalities(nodes, subject, matching)? {
                    None => return Ok(false),
                    Some(decided) => &nodes[decided..],
                };
                for node in nodes {
                    if !node.matches(subject, matching)? {
                        matching.position = None;
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(nodes) if matching.record && !same_path(nodes) => {
                any(nodes, subject, &mut Matching::new(matching.environment, false))
            }
            Node::Or(nodes) => any(nodes, subject, matching),
            Node::Nor(nodes) => {
                let mut inner = Matching::new(matching.environment, false);
                Ok(!any(nodes, subject, &mut inner)?)
            }
            Node::Not { node, .. } => {
                let mut inner = Matching::new(matching.environment, false);
                Ok(!node.matches(subject, &mut inner)?)
            }
            Node::Path { path, test } => matches_path(path, &**test, subject, matching),
            Node::Expr(condition) => match subject {
                Subject::Document(document) => condition.matches(document, matching.environment),
                Subject::Named(_) | Subject::Element(_) => Ok(false),
            },
            Node::Schema(schema) => match subject {
                Subject::Document(document) => schema.matches(document),
                Subject::Named(_) | Subject::Element(_) => Ok(false),
            },
            Node::Sample(rate) => Ok((matching.environment.random)() < *rate),
            Node::Always(value) => Ok(*value),
        }
    }

    /// Gathers the paths it reads; false when the whole document is needed.
    pub(super) fn collect_paths(&self, paths: &mut BTreeSet<String>) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                // Every part is asked, also behind one that needs the whole document.
                nodes.iter().filter(|node| !node.collect_paths(paths)).count() == 0
            }
            Node::Not { node, .. } => node.collect_paths(paths),
            Node::Path { path, .. } => {
                paths.insert(path.as_str().to_owned());
                true
            }
            Node::Expr(condition) => crate::expression::collect(condition.expression(), paths),
            Node::Schema(_) => false,
            Node::Sample(_) | Node::Always(_) => true,
        }
    }

    /// Between which keys of an index on `path` every matching document has at least one. Of several conditions on the
    /// path the bounds are intersected where that is allowed, else the narrowest-looking is taken.
    ///
    /// # Errors
    /// `InvalidBSON` (22) when a bound's nested bytes are malformed.
    pub fn bounds_on(
        &self,
        path: &str,
        index: IndexTraits,
        collator: Option<&Collator>,
        environment: &Environment,
    ) -> Result<Option<Bounds>> {
        match self {
            Node::Path { path: own, test } if own.as_str() == path => Ok(test.bounds(index)),
            Node::And(nodes) => {
                let (mut best, mut complete): (Option<Bounds>, bool) = (None, true);
                for node in nodes {
                    let Some(next) = node.bounds_on(path, index, collator, environment)? else {
                        complete = false;
                        continue;
                    };
                    best = Some(match best {
                        None => next,
                        Some(known) if index.multikey => known.narrower(next),
                        Some(known) => known.intersect(&next, collator)?,
                    });
                }
                let best = best.map(|bounds| Bounds { exact: bounds.exact && complete, ..bounds });
                Ok(best)
            }
            Node::Or(nodes) => {
                let mut union: Option<Bounds> = None;
                for node in nodes {
                    let Some(next) = node.bounds_on(path, index, collator, environment)? else { return Ok(None) };
                    union = Some(match union {
                        None => next,
                        Some(known) => known.union(&next, collator)?,
                    });
                }
                Ok(union)
            }
            Node::Not { node, .. } => match node.bounds_on(path, index, collator, environment)? {
                Some(bounds) if bounds.exact => bounds.complement(collator, index.multikey).map(Some),
                _ => Ok(None),
            },
            Node::Expr(condition) => Ok(condition.bounds_on(path, index, environment)),
            _ => Ok(None),
        }
    }

    /// Whether no document without the field can match, so that a sparse index on it will do.
    pub fn needs_existence_of(&self, path: &str) -> bool {
        match self {
            Node::Path { path: own, test } => own.as_str() == path && test.needs_existence(),
            Node::And(nodes) => nodes.iter().any(|node| node.needs_existence_of(path)),
            Node::Or(nodes) => nodes.iter().all(|node| node.needs_existence_of(path)),
            Node::Always(value) => !value,
            _ => false,
        }
    }
}

/// The parts in MongoDB's order: by kind, then by path. `explain` shows it, and of several conditions that matched through
/// an array the last one gives the positional `$` its position.
fn sorted(mut nodes: Vec<Node>) -> Vec<Node> {
    nodes.sort_by(|a, b| (a.kind_rank(), a.own_path()).cmp(&(b.kind_rank(), b.own_path())));
    nodes
}

/// From how many equalities on one path on they are looked up among the path's values instead of one by one: `$all` of
/// thousands of values on an array of thousands of elements.
const MANY_EQUALITIES: usize = 32;

/// Decides a conjunction's first parts at once where they are many equalities on one path: how many parts hold, none when
/// one does not.
fn many_equalities(nodes: &[Node], subject: Subject<'_>, matching: &Matching<'_, '_>) -> Result<Option<usize>> {
    let Subject::Document(document) = subject else { return Ok(Some(0)) };
    let Some(Node::Path { path, test }) = nodes.first() else { return Ok(Some(0)) };
    if nodes.len() < MANY_EQUALITIES || matching.record {
        return Ok(Some(0));
    }
    let equality = |node: &Node| matches!(node, Node::Path { path: own, test } if own == path && test.name() == "$eq");
    let count = nodes.iter().take_while(|node| equality(node)).count();
    if count < MANY_EQUALITIES {
        return Ok(Some(0));
    }
    let (mut values, mut missing) = (Vec::new(), false);
    traverse::visit(document, path.as_str(), test.leaf(), &mut |value, _| {
        missing |= value.is_none();
        values.extend(value);
        Ok(false)
    })?;
    let mut failure = None;
    values.sort_by(|a, b| {
        compare_values(*a, *b, test.collator()).unwrap_or_else(|error| {
            failure = Some(error);
            Ordering::Equal
        })
    });
    if let Some(error) = failure {
        return Err(error);
    }
    for node in &nodes[..count] {
        let Node::Path { test, .. } = node else { continue };
        let Some(wanted) = test.equality() else { continue };
        let null_stands_for_missing = missing && wanted == RawBsonRef::Null;
        if !null_stands_for_missing && !holds(&values, wanted, test.collator())? {
            return Ok(None);
        }
    }
    Ok(Some(count))
}

/// Whether sorted values hold one.
fn holds(values: &[RawBsonRef<'_>], wanted: RawBsonRef<'_>, collator: Option<&Collator>) -> Result<bool> {
    let (mut low, mut high) = (0, values.len());
    while low < high {
        let middle = (low + high) / 2;
        match compare_values(values[middle], wanted, collator)? {
            Ordering::Equal => return Ok(true),
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
        }
    }
    Ok(false)
}

/// Whether all parts are equalities on one path: such a disjunction is one condition, and its match has a position.
fn same_path(nodes: &[Node]) -> bool {
    let path_of = |node: &Node| match node {
        Node::Path { path, test } if test.equality().is_some() => Some(path.clone()),
        _ => None,
    };
    let first = nodes.first().and_then(path_of);
    first.is_some() && nodes.iter().all(|node| path_of(node) == first)
}

fn any<'n>(nodes: &'n [Node], subject: Subject<'_>, matching: &mut Matching<'_, 'n>) -> Result<bool> {
    for node in nodes {
        if node.matches(subject, matching)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn matches_path<'n>(
    path: &'n FieldPath,
    test: &dyn Predicate,
    subject: Subject<'_>,
    matching: &mut Matching<'_, 'n>,
) -> Result<bool> {
    let environment = matching.environment;
    let mut found = None;
    let record = matching.record;
    let mut see = |value: Option<RawBsonRef<'_>>, position: Option<usize>| -> Result<bool> {
        if !test.matches(value, environment)? {
            return Ok(false);
        }
        if record {
            found = match (position, value) {
                (None, Some(value)) => test.position(value, environment)?,
                (position, _) => position,
            };
        }
        Ok(true)
    };
    let leaf = test.leaf();
    let matches = match subject {
        Subject::Document(document) => traverse::visit(document, path.as_str(), leaf, &mut see)?,
        Subject::Named(value) => {
            let rest = path.as_str().split_once('.').map(|(_, rest)| rest);
            traverse::visit_value(value, rest, leaf, &mut see)?
        }
        Subject::Element(value) => see(Some(value), None)?,
    };
    if matches && found.is_some() {
        matching.position = found.map(|position| (path, position));
    }
    Ok(matches)
}

/// Whether a document as an array element matches; an array counts as a document whose names are positions.
pub(super) fn element_matches(node: &Node, element: RawBsonRef<'_>, environment: &Environment) -> Result<bool> {
    let mut matching = Matching::new(environment, false);
    match element {
        RawBsonRef::Document(document) => node.matches(Subject::Document(document), &mut matching),
        RawBsonRef::Array(array) => {
            node.matches(Subject::Document(RawDocument::from_bytes(array.as_bytes())?), &mut matching)
        }
        _ => Ok(false),
    }
}

/// Whether conditions without paths match a value itself.
pub(super) fn value_matches(node: &Node, value: RawBsonRef<'_>, environment: &Environment) -> Result<bool> {
    node.matches(Subject::Element(value), &mut Matching::new(environment, false))
}
