//! The relations and wanted fields of a model, with the numbers that its expectations and queries give.

use super::relation::{Reads, Relation, Wanted, Writes};
use crate::check::bodies;
use crate::language::entity::Entity;
use crate::language::expect::Expect;
use crate::language::query::Query;
use crate::language::reference::Ref;
use crate::model::{Body, Model};
use crate::size::{key_bytes, value_bytes};
use crate::value::{Rate, Type};

/// Children of a parent if nothing is declared.
const UNKNOWN_CHILDREN: u64 = 10;

/// Documents of an answer without a limit.
const UNKNOWN_LIMIT: u64 = 20;

/// A relation entity with at most so many fields of its own is a pair and nothing else.
const MAX_PAIR_FIELDS: usize = 2;

/// Every relation of a model.
pub fn relations(model: &Model) -> Vec<Relation> {
    let mut list = Vec::new();
    for entity in &model.entities {
        for reference in &entity.body.refs {
            if let Some(parent) = model.declared(&reference.to) {
                list.push(of_ref(model, parent, entity, reference));
            }
        }
        for embed in entity.body.embeds.iter().filter(|embed| embed.many) {
            list.push(of_embed(model, entity, embed));
        }
        for field in entity.body.fields.iter().filter(|field| field.list) {
            list.push(of_list(model, entity, field));
        }
    }
    list.extend(model.edges.iter().map(|edge| of_edge(model, edge)));
    list
}

fn per_second(rate: Option<Rate>) -> f64 {
    rate.map_or(0.0, Rate::per_second)
}

fn count(entity: &Entity) -> u64 {
    entity.expect.as_ref().and_then(|expect| expect.count).unwrap_or(1_000)
}

fn growth(expect: Option<&Expect>) -> f64 {
    expect.and_then(|expect| expect.growth).map_or(0.0, Rate::per_day)
}

/// The bytes of an element: as declared, or the child's without the parent's id and with an array's key.
fn element_bytes(model: &Model, child: &Entity, by: &str, typical: u64) -> (u64, u64) {
    let document = model.document_size(child).typical;
    if let Some(size) = child.expect.as_ref().and_then(|expect| expect.size) {
        return (size, document);
    }
    let shape = model.shape(child);
    let id = shape.leaf(by).map_or(12, |leaf| value_bytes(leaf.kind, leaf.size)) + key_bytes(by);
    let key = 2 + typical.max(1).ilog10() as u64 + 1;
    (document.saturating_sub(id).max(5) + key, document)
}

/// Whether documents of an entity are pairs of two others.
fn is_pair(entity: &Entity) -> bool {
    let refs: Vec<&str> = entity.body.refs.iter().map(|reference| reference.name.as_str()).collect();
    let unique = entity.parts.uniques.iter().any(|unique| {
        unique.fields.len() == 2 && refs.len() == 2 && unique.fields.iter().all(|field| refs.contains(&field.as_str()))
    });
    unique && entity.body.fields.len() <= MAX_PAIR_FIELDS && entity.body.embeds.is_empty()
}

fn of_ref(model: &Model, parent: &Entity, child: &Entity, reference: &Ref) -> Relation {
    let (typical, max) = model.fan_out(child, &reference.name).unwrap_or((UNKNOWN_CHILDREN, UNKNOWN_CHILDREN));
    let (element, document) = element_bytes(model, child, &reference.name, typical);
    let expect = child.expect.as_ref();
    let recents: Vec<(&str, u64)> = parent
        .parts
        .recents
        .iter()
        .filter(|recent| recent.of == child.name && recent.by == reference.name)
        .map(|recent| (recent.name.as_str(), recent.keep))
        .collect();
    let bucket = parent.parts.buckets.iter().any(|bucket| bucket.of == child.name && bucket.by == reference.name);
    let mut reads = Reads::default();
    for query in model.queries_on(&parent.name) {
        let included = query.include.iter().find(|include| include.name == child.name);
        let kept = recents
            .iter()
            .find(|(name, _)| query.include.iter().any(|include| include.name == *name) || shows(query, name));
        if let Some(shown) =
            included.map(|include| include.limit.unwrap_or(UNKNOWN_LIMIT)).or(kept.map(|(_, keep)| *keep))
        {
            reads.parent_with += query.per_second();
            reads.shown = reads.shown.max(shown);
        } else {
            reads.parent_alone += query.per_second();
        }
    }
    for query in model.queries_on(&child.name) {
        if query.equal.contains(&reference.name) {
            reads.pages += query.per_second();
            reads.page = reads.page.max(query.limit.unwrap_or(UNKNOWN_LIMIT));
        } else {
            reads.singles += query.per_second();
        }
    }
    let bare = parent_bytes(model, parent, None);
    Relation {
        name: format!("{}.{} -> {}", child.name, reference.name, parent.name),
        parent: parent.name.clone(),
        child: child.name.clone(),
        declared: match (recents.is_empty(), bucket, is_pair(child)) {
            (false, ..) => "recent",
            (_, true, _) => "bucket",
            (_, _, true) => "edge",
            _ => "reference",
        },
        parents: count(parent),
        typical,
        max,
        growth_per_day: growth(reference.expect.as_ref()),
        bound: None,
        element_bytes: element,
        document_bytes: document,
        parent_bytes: bare,
        many_to_many: is_pair(child),
        shared_by: 1,
        reads,
        writes: Writes {
            inserts: per_second(expect.and_then(|expect| expect.growth)),
            with_parent: 0.0,
            changes: per_second(expect.and_then(|expect| expect.changes)),
            parent_changes: per_second(parent.expect.as_ref().and_then(|expect| expect.changes)),
        },
    }
}

/// Whether a query's answer holds a field.
fn shows(query: &Query, field: &str) -> bool {
    query.fields.is_empty() || query.fields.iter().any(|path| path == field || path.starts_with(&format!("{field}.")))
}

/// The bytes of a parent without the lists kept in it.
fn parent_bytes(model: &Model, parent: &Entity, without: Option<&str>) -> u64 {
    let mut bare = parent.clone();
    bare.parts.recents.clear();
    bare.body.embeds.retain(|embed| Some(embed.name.as_str()) != without);
    bare.body.fields.retain(|field| Some(field.name.as_str()) != without);
    model.document_size(&bare).typical
}

fn of_embed(model: &Model, entity: &Entity, embed: &crate::language::embed::Embed) -> Relation {
    let shape = model.shape(entity);
    let max = embed.max.unwrap_or(0);
    let expect = embed.expect.as_ref();
    let typical = expect.and_then(|expect| expect.typical).unwrap_or(max.min(5)).max(1);
    let largest = expect.and_then(|expect| expect.max).unwrap_or(max);
    let inner = model.body_size(&shape, &format!("{}.", embed.name), &embed.body).typical + 5;
    let element = expect.and_then(|expect| expect.size).unwrap_or(inner + 3 + typical.ilog10() as u64);
    let mut reads = Reads::default();
    for query in model.queries_on(&entity.name) {
        if shows(query, &embed.name) {
            reads.parent_with += query.per_second();
            reads.shown = largest;
        } else {
            reads.parent_alone += query.per_second();
        }
    }
    let shared_by =
        embed.body.refs.iter().filter_map(|reference| reference.expect.as_ref()?.typical).max().unwrap_or(1);
    let source_growth = embed
        .body
        .refs
        .iter()
        .filter_map(|reference| model.declared(&reference.to)?.expect.as_ref()?.growth)
        .map(Rate::per_second)
        .fold(0.0, f64::max);
    let own = entity.expect.as_ref();
    let inserts = if shared_by > 1 { source_growth } else { growth(expect) / 86_400.0 };
    let with_parent = per_second(own.and_then(|expect| expect.growth)) * typical as f64;
    Relation {
        name: format!("{}.{}", entity.name, embed.name),
        parent: entity.name.clone(),
        child: embed.name.clone(),
        declared: "embed",
        parents: count(entity),
        typical,
        max: largest,
        growth_per_day: growth(expect),
        bound: embed.max,
        element_bytes: element,
        document_bytes: inner + key_bytes("_id") + 12 + key_bytes(&entity.name) + 12,
        parent_bytes: parent_bytes(model, entity, Some(&embed.name)),
        many_to_many: false,
        shared_by,
        reads,
        writes: Writes {
            inserts,
            with_parent,
            changes: per_second(expect.and_then(|expect| expect.changes)),
            parent_changes: per_second(own.and_then(|expect| expect.changes)),
        },
    }
}

/// A list of values, seen as children.
fn of_list(model: &Model, entity: &Entity, field: &crate::language::field::Field) -> Relation {
    let max = field.max.unwrap_or(0);
    let value = value_bytes(field.kind, field.size);
    let rate: f64 = model.queries_on(&entity.name).map(Query::per_second).fold(0.0, |sum, rate| sum + rate);
    Relation {
        name: format!("{}.{}", entity.name, field.name),
        parent: entity.name.clone(),
        child: field.name.clone(),
        declared: "embed",
        parents: count(entity),
        typical: max.min(5),
        max,
        growth_per_day: 0.0,
        bound: field.max,
        element_bytes: value + 3,
        document_bytes: value + 50,
        parent_bytes: parent_bytes(model, entity, Some(&field.name)),
        many_to_many: false,
        shared_by: 1,
        reads: Reads { parent_with: rate, shown: max, ..Reads::default() },
        writes: Writes {
            parent_changes: per_second(entity.expect.as_ref().and_then(|expect| expect.changes)),
            ..Writes::default()
        },
    }
}

fn of_edge(model: &Model, edge: &crate::language::edge::Edge) -> Relation {
    let entity = edge.as_entity();
    let expect = edge.expect.as_ref();
    let max = expect.and_then(|expect| expect.max).unwrap_or(UNKNOWN_CHILDREN);
    let id = model.declared(&edge.to).map_or(Type::ObjectId, |entity| entity.id);
    let parent = model.declared(&edge.from);
    let mut reads = Reads::default();
    for query in model.queries_on(&edge.name) {
        let both = query.equal.contains(&edge.from_field) && query.equal.contains(&edge.to_field);
        if both {
            reads.singles += query.per_second();
        } else {
            reads.pages += query.per_second();
            reads.page = reads.page.max(query.limit.unwrap_or(UNKNOWN_LIMIT));
        }
    }
    Relation {
        name: format!("{}: {} -> {}", edge.name, edge.from, edge.to),
        parent: edge.from.clone(),
        child: edge.to.clone(),
        declared: "edge",
        parents: parent.map_or(1_000, count),
        typical: expect.and_then(|expect| expect.typical).unwrap_or(max),
        max,
        growth_per_day: growth(expect),
        bound: None,
        element_bytes: value_bytes(id, None) + 2 + max.max(1).ilog10() as u64 + 1,
        document_bytes: model.document_size(&entity).typical,
        parent_bytes: parent.map_or(100, |parent| parent_bytes(model, parent, None)),
        many_to_many: true,
        shared_by: 1,
        reads,
        writes: Writes { inserts: growth(expect) / 86_400.0, ..Writes::default() },
    }
}

/// Every field of another document that a model shows or copies.
pub fn wanted(model: &Model) -> Vec<Wanted> {
    let mut list = Vec::new();
    for entity in &model.entities {
        for (prefix, body) in bodies(entity) {
            let snapshots =
                body.snapshots.iter().map(|copy| (&copy.name, &copy.via, &copy.fields, "snapshot", Some(true)));
            let lives = body.lives.iter().map(|copy| (&copy.name, &copy.via, &copy.fields, "live copy", Some(false)));
            for (name, via, fields, declared, moment) in snapshots.chain(lives) {
                let Some(reference) = body.refs.iter().find(|reference| reference.name == *via) else { continue };
                let fields: Vec<String> = fields.iter().map(|copied| copied.source().to_owned()).collect();
                let name = match name {
                    Some(name) => format!("{}.{prefix}{name}", entity.name),
                    None => format!("{}.{prefix}{}", entity.name, fields.join("+")),
                };
                list.push(of_copy(model, entity, &prefix, reference, name, fields, declared, moment));
            }
        }
        for query in model.queries_on(&entity.name) {
            list.extend(query.include.iter().filter_map(|include| of_include(model, entity, query, include)));
        }
    }
    list
}

/// A query that reads along what stands behind a reference.
fn of_include(
    model: &Model,
    entity: &Entity,
    query: &Query,
    include: &crate::language::query::Include,
) -> Option<Wanted> {
    let all = bodies(entity);
    let (prefix, body): &(String, &Body) = all.iter().find(|(prefix, body)| {
        body.refs.iter().any(|reference| format!("{prefix}{}", reference.name) == include.name)
    })?;
    let reference = body.refs.iter().find(|reference| format!("{prefix}{}", reference.name) == include.name)?;
    let fields: Vec<String> = include.fields.iter().map(|copied| copied.source().to_owned()).collect();
    if fields.is_empty() {
        return None;
    }
    let name = format!("{}.{} in query `{}`", entity.name, include.name, query.name);
    let moment = records_events(entity).then_some(true);
    Some(of_copy(model, entity, prefix, reference, name, fields, "reference", moment))
}

/// Whether documents of an entity record what happened: they have states, or freeze other facts.
fn records_events(entity: &Entity) -> bool {
    !entity.parts.states.is_empty() || bodies(entity).iter().any(|(_, body)| !body.snapshots.is_empty())
}

#[expect(clippy::too_many_arguments, reason = "the facts of one copy")]
fn of_copy(
    model: &Model,
    entity: &Entity,
    prefix: &str,
    reference: &Ref,
    name: String,
    fields: Vec<String>,
    declared: &'static str,
    of_the_moment: Option<bool>,
) -> Wanted {
    let source = model.declared(&reference.to);
    let shape = source.map(|source| model.shape(source)).unwrap_or_default();
    let fan_out = match prefix.is_empty() {
        true => model.fan_out(entity, &reference.name),
        false => reference.expect.as_ref().and_then(|expect| Some((expect.typical?, expect.max?))),
    };
    let (typical, max) = fan_out.unwrap_or((UNKNOWN_CHILDREN, UNKNOWN_CHILDREN));
    let leaves: Vec<_> = fields.iter().filter_map(|field| shape.leaf(field)).collect();
    let declared_changes: Option<f64> = leaves
        .iter()
        .filter_map(|leaf| leaf.changes)
        .map(Rate::per_second)
        .fold(None, |sum: Option<f64>, rate| Some(sum.unwrap_or(0.0) + rate));
    let expect = source.and_then(|source| source.expect.as_ref());
    let source_changes = declared_changes.unwrap_or_else(|| per_second(expect.and_then(|expect| expect.changes)));
    let bytes = leaves.iter().map(|leaf| value_bytes(leaf.kind, leaf.size) + 10).sum();
    let queries: Vec<&Query> = model.queries_on(&entity.name).collect();
    let reads = queries.iter().map(|query| query.per_second()).fold(0.0, |sum, rate| sum + rate);
    Wanted {
        name,
        holder: entity.name.clone(),
        source: reference.to.clone(),
        via: format!("{prefix}{}", reference.name),
        fields,
        declared,
        of_the_moment,
        typical,
        max,
        source_changes,
        reads,
        page: queries.iter().filter_map(|query| query.limit).max().unwrap_or(1).min(100),
        inserts: per_second(entity.expect.as_ref().and_then(|expect| expect.growth)),
        bytes,
        holder_bytes: model.document_size(entity).typical,
        source_bytes: source.map_or(0, |source| model.document_size(source).typical),
    }
}
