//! What an index is needed for: a declared query, or the upkeep of a declaration.

use crate::check::bodies;
use crate::language::derived::Kind;
use crate::language::entity::Entity;
use crate::language::filter::{Condition, Test};
use crate::language::query::Query;
use crate::language::reference::OnDelete;
use crate::language::rollup::Key;
use crate::model::Model;
use crate::shape::{Leaf, Shape};
use crate::value::SortKey;

/// Up to so many values of an `$in` are merged in order by the server, and so count as equality.
pub const IN_AS_EQUALITY: u64 = 200;

/// A condition makes an index partial if it chooses at most this share of the documents.
pub const PARTIAL_SHARE: f64 = 0.1;

/// One need for an index.
#[derive(Clone, Debug, Default)]
pub struct Need {
    /// What needs it, for the plan's reader.
    pub reason: String,
    /// Paths that equal one value.
    pub equal: Vec<String>,
    /// Paths that equal one of a few values.
    pub within: Vec<String>,
    /// The order of the answer.
    pub sort: Vec<SortKey>,
    /// Paths in a range, the most selective first.
    pub range: Vec<String>,
    /// Conditions that choose few documents.
    pub partial: Vec<Condition>,
    /// The fields of the answer, if not all.
    pub project: Vec<String>,
    /// How often it is used.
    pub per_second: f64,
    /// The documents of one answer.
    pub limit: Option<u64>,
    /// The share of documents in a usual range.
    pub range_share: Option<f64>,
}

/// Every need for an index on an entity's collection, those of queries first.
pub fn needs(model: &Model, entity: &Entity) -> Vec<Need> {
    let shape = model.shape(entity);
    let mut list: Vec<Need> = model.queries_on(&entity.name).map(|query| of_query(&shape, query)).collect();
    list.extend(of_references(entity));
    list.extend(of_children(model, entity));
    for edge in model.edges.iter().filter(|edge| edge.name == entity.name) {
        list.push(simple(
            format!("reading the edge from its other end (`{}`)", edge.to),
            &[&edge.to_field, &edge.from_field],
        ));
    }
    for timeline in model.timelines.iter().filter(|timeline| timeline.name == entity.name) {
        let mut need = simple("reading and trimming one inbox".into(), &["ownerId"]);
        need.sort = vec![SortKey { path: timeline.order.path.clone(), descending: true }];
        list.push(need);
        list.push(simple("withdrawing an item from the inboxes".into(), &["itemId"]));
    }
    list
}

fn simple(reason: String, equal: &[&str]) -> Need {
    Need { reason, equal: equal.iter().map(|path| (*path).to_owned()).collect(), ..Need::default() }
}

fn of_query(shape: &Shape, query: &Query) -> Need {
    let mut need = Need {
        reason: format!("query `{}`", query.name),
        equal: query.equal.clone(),
        sort: query.sort.clone(),
        project: query.fields.clone(),
        per_second: query.per_second(),
        limit: query.limit,
        range_share: query.range_share,
        ..Need::default()
    };
    for within in &query.within {
        if within.max.unwrap_or(IN_AS_EQUALITY) <= IN_AS_EQUALITY {
            need.within.push(within.path.clone());
        } else {
            need.range.push(within.path.clone());
        }
    }
    need.range.extend(query.range.iter().cloned());
    for condition in &query.filter {
        let share = shape.leaf(&condition.path).and_then(|leaf| share(leaf, &condition.test));
        match &condition.test {
            Test::In(values) if share.is_some_and(|share| share <= PARTIAL_SHARE) && !values.is_empty() => {
                need.partial.push(condition.clone());
            }
            Test::In(values) if values.len() == 1 => need.equal.push(condition.path.clone()),
            Test::In(_) => need.within.push(condition.path.clone()),
            Test::Gt(_) | Test::Gte(_) | Test::Lt(_) | Test::Lte(_) => need.range.push(condition.path.clone()),
            Test::NotIn(_) | Test::Exists(_) => {}
        }
    }
    dedup(&mut need.equal);
    dedup(&mut need.within);
    need.within.retain(|path| !need.equal.contains(path));
    dedup(&mut need.range);
    need.range.retain(|path| !need.equal.contains(path) && !need.within.contains(path));
    need.sort.retain(|key| !need.equal.contains(&key.path));
    need
}

/// The share of the documents that a condition on an enumeration chooses.
///
/// With `top` given, the first value is the most frequent one and the others share the rest.
pub fn share(leaf: &Leaf, test: &Test) -> Option<f64> {
    let Test::In(values) = test else { return None };
    let (top, count) = (leaf.top?, leaf.values.len());
    if count < 2 {
        return None;
    }
    let one = |value: &crate::value::Literal| match value {
        crate::value::Literal::Text(text) if leaf.values.first() == Some(text) => top,
        _ => (1.0 - top) / (count - 1) as f64,
    };
    Some(values.iter().map(one).sum())
}

/// References whose documents must be found when the referred one is deleted or its copies change.
fn of_references(entity: &Entity) -> Vec<Need> {
    let mut list = Vec::new();
    for (prefix, body) in bodies(entity) {
        for reference in &body.refs {
            let path = format!("{prefix}{}", reference.name);
            let live = body.lives.iter().any(|live| live.via == reference.name);
            if live {
                list.push(simple(format!("finding the live copies of a `{}`", reference.to), &[&path]));
            } else if reference.on_delete != OnDelete::Keep {
                list.push(simple(format!("deleting a `{}`", reference.to), &[&path]));
            }
        }
    }
    list
}

/// Children that parents derive values from.
fn of_children(model: &Model, child: &Entity) -> Vec<Need> {
    let mut list = Vec::new();
    for parent in &model.entities {
        for derived in parent.parts.derived.iter().filter(|derived| derived.of == child.name) {
            let reason = format!("keeping {} `{}.{}`", derived.kind.name(), parent.name, derived.name);
            let mut need = simple(reason, &[&derived.by]);
            match derived.kind {
                Kind::Latest => need.sort = derived.order.iter().map(newest_first).collect(),
                Kind::Min | Kind::Max => {
                    let descending = derived.kind == Kind::Max;
                    need.sort = derived.field.iter().map(|path| SortKey { path: path.clone(), descending }).collect();
                }
                Kind::Count | Kind::Sum => {}
            }
            list.push(need);
        }
        for recent in parent.parts.recents.iter().filter(|recent| recent.of == child.name) {
            let mut need = simple(format!("keeping recent `{}.{}`", parent.name, recent.name), &[&recent.by]);
            need.sort = vec![newest_first(&recent.order)];
            list.push(need);
        }
        for bucket in parent.parts.buckets.iter().filter(|bucket| bucket.of == child.name) {
            let mut need = simple(format!("keeping bucket `{}.{}`", parent.name, bucket.name), &[&bucket.by]);
            need.sort = vec![bucket.order.clone()];
            list.push(need);
        }
    }
    for rollup in model.rollups.iter().filter(|rollup| rollup.of == child.name) {
        for value in rollup.values.iter().filter(|value| matches!(value.kind, Kind::Min | Kind::Max)) {
            let reason = format!("keeping {} `{}.{}`", value.kind.name(), rollup.name, value.name);
            let (cut, equal): (Vec<_>, Vec<_>) = rollup.by.iter().partition(|key| key.unit.is_some());
            let paths = |keys: Vec<&Key>| keys.into_iter().map(|key| key.path.clone()).collect();
            let descending = value.kind == Kind::Max;
            let sort = value.field.iter().map(|path| SortKey { path: path.clone(), descending }).collect();
            list.push(Need { reason, equal: paths(equal), sort, range: paths(cut), ..Need::default() });
        }
    }
    for timeline in model.timelines.iter().filter(|timeline| timeline.of == child.name) {
        let mut need = simple(format!("pulling items into timeline `{}`", timeline.name), &[&timeline.by]);
        need.sort = vec![SortKey { path: timeline.order.path.clone(), descending: true }];
        list.push(need);
    }
    list
}

fn newest_first(order: &SortKey) -> SortKey {
    SortKey { path: order.path.clone(), descending: !order.descending }
}

fn dedup(paths: &mut Vec<String>) {
    let mut seen = std::collections::BTreeSet::new();
    paths.retain(|path| seen.insert(path.clone()));
}
