//! Every path a document of an entity can have, with its type and where it comes from.
//!
//! Copies take their types from the field they copy, through as many entities as it takes; a chain longer than
//! [`MAX_CHAIN`] (only possible in a cycle, which the checks refuse) ends in [`Type::Any`].

use crate::language::copy::Copied;
use crate::language::derived::Kind;
use crate::language::entity::Entity;
use crate::language::expect::Expect;
use crate::language::field::Field;
use crate::model::{Body, Model};
use crate::problem::Span;
use crate::value::{Rate, SortKey, Type};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The longest chain of copies that types are followed through.
const MAX_CHAIN: usize = 8;

/// One path of a document.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// What stands there.
    pub kind: Type,
    /// Whether the path leads through or to an array.
    pub array: bool,
    /// Whether it must be there.
    pub required: bool,
    /// Whether it is unique.
    pub unique: bool,
    /// How many different values there are.
    pub distinct: Option<u64>,
    /// The share of the most frequent value.
    pub top: Option<f64>,
    /// Whether new values are larger than old ones.
    pub increasing: bool,
    /// The values of an enumeration.
    pub values: Vec<String>,
    /// The usual bytes of a value's content.
    pub size: Option<u64>,
    /// How often it changes.
    pub changes: Option<Rate>,
    /// Where it comes from.
    pub origin: Origin,
    /// Where it is declared.
    pub span: Span,
}

/// Where a path comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `_id`
    Id,
    /// A field that the application writes.
    Field,
    /// A reference to this entity.
    Ref(String),
    /// An embedded document or array.
    Embed,
    /// A frozen copy.
    Snapshot,
    /// A copy kept in sync.
    Live,
    /// Kept by `count`, `sum`, `min`, `max`, `latest`, or an edge.
    Derived(&'static str),
    /// Kept by `recent`.
    Recent,
    /// A state, or the history of states.
    States,
    /// A guarded quantity.
    Stock,
    /// The optimistic lock.
    Version,
}

impl Origin {
    /// The declaration that keeps the value, if it is not the application's to write.
    pub fn keeper(&self) -> Option<&'static str> {
        match self {
            Origin::Live => Some("live"),
            Origin::Derived(name) => Some(name),
            Origin::Recent => Some("recent"),
            _ => None,
        }
    }
}

/// Every path of an entity's documents.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    leaves: BTreeMap<String, Leaf>,
    /// Paths that are declared more than once.
    pub duplicates: Vec<(String, Span)>,
    /// The top-level names that are asked for, if not all: what a copy needs of its source. Without this every copy
    /// would compute its source's copies, and so on.
    wanted: Option<Vec<String>>,
}

impl Shape {
    /// What stands at a path; array indexes in it are not allowed for.
    pub fn leaf(&self, path: &str) -> Option<&Leaf> {
        self.leaves.get(path)
    }

    /// Whether a path may exist: it is declared, or lies in an object without declared fields.
    pub fn has(&self, path: &str) -> bool {
        if self.leaves.contains_key(path) {
            return true;
        }
        let mut rest = path;
        while let Some((parent, _)) = rest.rsplit_once('.') {
            if let Some(leaf) = self.leaves.get(parent) {
                let open = matches!(leaf.kind, Type::Any | Type::Object) && leaf.origin != Origin::Embed;
                return open && !self.leaves.keys().any(|key| key.starts_with(&format!("{parent}.")));
            }
            rest = parent;
        }
        false
    }

    /// Every path with what stands there, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Leaf)> {
        self.leaves.iter().map(|(path, leaf)| (path.as_str(), leaf))
    }

    /// Every path, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> + Clone {
        self.leaves.keys().map(String::as_str)
    }

    /// Whether a path is asked for.
    fn wants(&self, path: &str) -> bool {
        let top = path.split('.').next().unwrap_or(path);
        self.wanted.as_ref().is_none_or(|wanted| wanted.iter().any(|name| name == top))
    }

    fn insert(&mut self, path: String, leaf: Leaf) {
        if !self.wants(&path) {
            return;
        }
        match self.leaves.entry(path) {
            Entry::Occupied(taken) => self.duplicates.push((taken.key().clone(), leaf.span)),
            Entry::Vacant(free) => {
                free.insert(leaf);
            }
        }
    }
}

impl Leaf {
    fn new(kind: Type, array: bool, origin: Origin, span: Span) -> Leaf {
        Leaf {
            kind,
            array,
            required: false,
            unique: false,
            distinct: None,
            top: None,
            increasing: false,
            values: Vec::new(),
            size: None,
            changes: None,
            origin,
            span,
        }
    }

    fn of_field(field: &Field, array: bool) -> Leaf {
        Leaf {
            required: field.required,
            unique: field.unique,
            distinct: field.distinct,
            top: field.top,
            increasing: field.increasing,
            values: field.values.clone(),
            size: field.size,
            changes: field.changes,
            ..Leaf::new(field.kind, array || field.list, Origin::Field, field.span)
        }
    }
}

impl Model {
    /// Every path of an entity's documents.
    pub fn shape(&self, entity: &Entity) -> Shape {
        self.shape_at(entity, None, 0)
    }

    fn shape_at(&self, entity: &Entity, wanted: Option<Vec<String>>, depth: usize) -> Shape {
        let mut shape = Shape { wanted, ..Shape::default() };
        let mut id = Leaf::new(entity.id, false, Origin::Id, entity.span);
        id.unique = true;
        id.required = true;
        id.increasing = matches!(entity.id, Type::ObjectId | Type::Uuid);
        shape.insert("_id".into(), id);
        let count = entity.expect.as_ref().and_then(|expect| expect.count);
        self.add_body(&mut shape, ("", false, count), &entity.body, depth);
        self.add_parts(&mut shape, entity, depth);
        shape
    }

    /// `place` is the path's beginning, whether it leads through an array, and how many documents there are.
    fn add_body(&self, shape: &mut Shape, place: (&str, bool, Option<u64>), body: &Body, depth: usize) {
        let (prefix, array, count) = place;
        for field in &body.fields {
            let path = format!("{prefix}{}", field.name);
            shape.insert(path.clone(), Leaf::of_field(field, array));
            self.add_body(shape, (&format!("{path}."), array || field.list, None), &field.body, depth);
        }
        for embed in &body.embeds {
            let path = format!("{prefix}{}", embed.name);
            let array = array || embed.many;
            let mut leaf = Leaf::new(Type::Object, array, Origin::Embed, embed.span);
            leaf.required = embed.required;
            shape.insert(path.clone(), leaf);
            self.add_body(shape, (&format!("{path}."), array, None), &embed.body, depth);
        }
        for reference in &body.refs {
            let to = self.declared(&reference.to);
            let kind = to.map_or(Type::Any, |entity| entity.id);
            let origin = Origin::Ref(reference.to.clone());
            let mut leaf = Leaf::new(kind, array || reference.many, origin, reference.span);
            leaf.required = reference.required;
            leaf.unique = reference.unique;
            leaf.distinct = to.and_then(|entity| entity.expect.as_ref()).and_then(|expect| expect.count);
            leaf.top = reference
                .expect
                .as_ref()
                .and_then(|expect| expect.max)
                .zip(count)
                .map(|(max, count)| if count == 0 { 1.0 } else { (max as f64 / count as f64).min(1.0) });
            shape.insert(format!("{prefix}{}", reference.name), leaf);
        }
        let snapshots =
            body.snapshots.iter().map(|copy| (&copy.name, &copy.via, &copy.fields, Origin::Snapshot, copy.span));
        let lives = body.lives.iter().map(|copy| (&copy.name, &copy.via, &copy.fields, Origin::Live, copy.span));
        for (name, via, fields, origin, span) in snapshots.chain(lives) {
            let source = body.refs.iter().find(|reference| reference.name == *via).map(|reference| &reference.to);
            let base = match name {
                Some(name) => {
                    shape.insert(format!("{prefix}{name}"), Leaf::new(Type::Object, array, origin.clone(), span));
                    format!("{prefix}{name}.")
                }
                None => prefix.to_owned(),
            };
            self.add_copies(shape, &base, array, source.map(String::as_str), fields, &origin, span, depth);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one call for five kinds of copies")]
    fn add_copies(
        &self,
        shape: &mut Shape,
        base: &str,
        array: bool,
        source: Option<&str>,
        fields: &[Copied],
        origin: &Origin,
        span: Span,
        depth: usize,
    ) {
        let fields: Vec<&Copied> =
            fields.iter().filter(|copied| shape.wants(&format!("{base}{}", copied.name))).collect();
        if fields.is_empty() {
            return;
        }
        let source = source.filter(|_| depth < MAX_CHAIN).and_then(|name| self.entity(name));
        let top = |path: &str| path.split('.').next().unwrap_or(path).to_owned();
        let wanted = fields.iter().map(|copied| top(copied.source())).collect();
        let source = source.map(|source| self.shape_at(&source, Some(wanted), depth + 1));
        for copied in fields {
            let place = format!("{base}{}", copied.name);
            let from = copied.source();
            let mut leaf = Leaf::new(Type::Any, array, origin.clone(), span);
            if let Some(original) = source.as_ref().and_then(|shape| shape.leaf(from)) {
                leaf =
                    Leaf { array: array || original.array, unique: false, required: false, span, ..original.clone() };
                leaf.origin = origin.clone();
            }
            shape.insert(place.clone(), leaf);
            let below = format!("{from}.");
            for (path, original) in source.iter().flat_map(Shape::iter).filter(|(path, _)| path.starts_with(&below)) {
                let leaf = Leaf { array: array || original.array, unique: false, span, ..original.clone() };
                let leaf = Leaf { origin: origin.clone(), ..leaf };
                shape.insert(format!("{place}.{}", &path[below.len()..]), leaf);
            }
        }
    }

    fn add_parts(&self, shape: &mut Shape, entity: &Entity, depth: usize) {
        let parts = &entity.parts;
        for derived in &parts.derived {
            let origin = Origin::Derived(derived.kind.name());
            let kind = match derived.kind {
                Kind::Count => Type::Long,
                Kind::Latest => Type::Object,
                _ if !shape.wants(&derived.name) => Type::Any,
                Kind::Sum | Kind::Min | Kind::Max => self.kind_of(&derived.of, derived.field.as_deref(), depth),
            };
            let kind = if derived.kind == Kind::Sum && kind == Type::Int { Type::Long } else { kind };
            shape.insert(derived.name.clone(), Leaf::new(kind, false, origin.clone(), derived.span));
            let base = format!("{}.", derived.name);
            let source = Some(derived.of.as_str());
            let fields = match &derived.order {
                Some(order) => with_order(&derived.fields, order),
                None => derived.fields.clone(),
            };
            self.add_copies(shape, &base, false, source, &fields, &origin, derived.span, depth);
        }
        for recent in &parts.recents {
            shape.insert(recent.name.clone(), Leaf::new(Type::Object, true, Origin::Recent, recent.span));
            let fields = with_order(&recent.fields, &recent.order);
            let base = format!("{}.", recent.name);
            let source = Some(recent.of.as_str());
            self.add_copies(shape, &base, true, source, &fields, &Origin::Recent, recent.span, depth);
        }
        for states in &parts.states {
            let mut leaf = Leaf::new(Type::String, false, Origin::States, states.span);
            leaf.values = states.all().into_iter().map(str::to_owned).collect();
            leaf.distinct = Some(leaf.values.len() as u64);
            leaf.size = leaf.values.iter().map(|value| value.len() as u64).max();
            leaf.required = true;
            shape.insert(states.name.clone(), leaf);
            if let Some(history) = &states.history {
                shape.insert(history.clone(), Leaf::new(Type::Object, true, Origin::States, states.span));
                for (name, kind) in [("state", Type::String), ("at", Type::Date), ("by", Type::Any)] {
                    let leaf = Leaf::new(kind, true, Origin::States, states.span);
                    shape.insert(format!("{history}.{name}"), leaf);
                }
            }
        }
        for stock in &parts.stocks {
            for name in std::iter::once(&stock.name).chain(&stock.held) {
                shape.insert(name.clone(), Leaf::new(Type::Long, false, Origin::Stock, stock.span));
            }
        }
        if let Some(lock) = &parts.lock {
            shape.insert(lock.field.clone(), Leaf::new(Type::Long, false, Origin::Version, lock.span));
        }
        for edge in &self.edges {
            let from = edge.count_from.iter().filter(|_| edge.from == entity.name);
            let to = edge.count_to.iter().filter(|_| edge.to == entity.name);
            for name in from.chain(to) {
                shape.insert(name.clone(), Leaf::new(Type::Long, false, Origin::Derived("edge"), edge.span));
            }
        }
    }

    fn kind_of(&self, entity: &str, path: Option<&str>, depth: usize) -> Type {
        if depth >= MAX_CHAIN {
            return Type::Any;
        }
        let leaf = |entity: &Entity| {
            let path = path?;
            let top = path.split('.').next().unwrap_or(path).to_owned();
            self.shape_at(entity, Some(vec![top]), depth + 1).leaf(path).map(|leaf| leaf.kind)
        };
        self.entity(entity).and_then(|entity| leaf(&entity)).unwrap_or(Type::Any)
    }

    /// How many children one parent has, usually and at most: as declared, or the average for both.
    pub fn fan_out(&self, child: &Entity, by: &str) -> Option<(u64, u64)> {
        let reference = child.body.refs.iter().find(|reference| reference.name == by)?;
        let expect = reference.expect.as_ref();
        let count = |expect: &Option<Expect>| expect.as_ref().and_then(|expect| expect.count);
        let average = count(&child.expect)
            .zip(self.declared(&reference.to).and_then(|parent| count(&parent.expect)))
            .map(|(children, parents)| children.div_ceil(parents.max(1)));
        let max = expect.and_then(|expect| expect.max).or(average)?;
        let typical = expect.and_then(|expect| expect.typical).or(average).unwrap_or(max).min(max);
        Some((typical, max))
    }
}

/// What of a child is kept: the declared fields, its `_id`, and the field that orders it.
fn with_order(fields: &[Copied], order: &SortKey) -> Vec<Copied> {
    let mut list = fields.to_vec();
    let name = order.path.rsplit('.').next().unwrap_or(&order.path);
    for (name, path) in [("_id", "_id"), (name, order.path.as_str())] {
        if !list.iter().any(|copied| copied.source() == path || copied.name == name) {
            list.push(Copied { name: name.to_owned(), from: (name != path).then(|| path.to_owned()) });
        }
    }
    list
}
