//! Snapshots and live copies: sources that exist, no contradiction, no cycle, no fan-out beyond its bound.

use super::{Check, bodies};
use crate::language::copy::Copied;
use crate::language::entity::Entity;
use crate::language::live::{Overflow, Sync};
use crate::problem::{Span, suggest};
use std::collections::{BTreeMap, BTreeSet};

/// One copied field: where it stands and where it comes from.
pub(super) struct Place {
    pub(super) kind: &'static str,
    pub(super) place: String,
    via: String,
    pub(super) source: String,
    pub(super) from: String,
    span: Span,
}

/// Every copied field of an entity.
pub(super) fn places(entity: &Entity) -> Vec<Place> {
    let mut list = Vec::new();
    for (prefix, body) in bodies(entity) {
        let snapshots = body.snapshots.iter().map(|copy| ("snapshot", &copy.name, &copy.via, &copy.fields, copy.span));
        let lives = body.lives.iter().map(|copy| ("live", &copy.name, &copy.via, &copy.fields, copy.span));
        for (kind, name, via, fields, span) in snapshots.chain(lives) {
            let Some(source) = body.refs.iter().find(|reference| reference.name == *via) else { continue };
            let base = name.as_ref().map_or(prefix.clone(), |name| format!("{prefix}{name}."));
            list.extend(fields.iter().map(|copied: &Copied| Place {
                kind,
                place: format!("{base}{}", copied.name),
                via: format!("{prefix}{via}"),
                source: source.to.clone(),
                from: copied.source().to_owned(),
                span,
            }));
        }
    }
    list
}

pub(super) fn check(check: &mut Check<'_, '_>) {
    for entity in check.entities() {
        sources(check, &entity);
        contradictions(check, &entity);
        fan_out(check, &entity);
    }
    cycles(check);
}

fn sources(check: &mut Check<'_, '_>, entity: &Entity) {
    for (prefix, body) in bodies(entity) {
        let snapshots = body.snapshots.iter().map(|copy| ("snapshot", &copy.via, copy.span));
        let lives = body.lives.iter().map(|copy| ("live", &copy.via, copy.span));
        for (kind, via, span) in snapshots.chain(lives) {
            match body.refs.iter().find(|reference| reference.name == *via) {
                None => {
                    let names: Vec<&str> = body.refs.iter().map(|reference| reference.name.as_str()).collect();
                    let message = format!("`{}`, {kind}: there is no reference `{prefix}{via}`", entity.name);
                    check.wrong("unknown-reference", span, message, suggest(via, "references", names.iter().copied()));
                }
                Some(reference) if reference.many => {
                    let message =
                        format!("`{}`, {kind}: `{prefix}{via}` holds many ids: which one is copied?", entity.name);
                    check.wrong("bad-value", span, message, "embed elements with one reference and one copy each");
                }
                Some(_) => {}
            }
        }
    }
    for place in places(entity) {
        let label = format!("`{}`, {} via `{}`", entity.name, place.kind, place.via);
        check.path_exists(&label, &place.source, &place.from, place.span);
    }
}

/// A field that is frozen and kept in sync at once.
fn contradictions(check: &mut Check<'_, '_>, entity: &Entity) {
    let places = places(entity);
    for live in places.iter().filter(|place| place.kind == "live") {
        let frozen =
            places.iter().find(|other| other.kind == "snapshot" && other.via == live.via && other.from == live.from);
        if let Some(frozen) = frozen {
            let message = format!(
                "`{}`: `{}` of `{}` is copied as a snapshot (`{}`) and as a live copy (`{}`) in the same document: readers \
                 would find two values that disagree after the first change",
                entity.name, live.from, live.source, frozen.place, live.place
            );
            check.wrong(
                "snapshot-also-live",
                live.span,
                message,
                "keep the snapshot for facts of the past, the live copy for the present",
            );
        }
    }
}

/// Transactional copies with more copies per source than the transaction may change.
fn fan_out(check: &mut Check<'_, '_>, entity: &Entity) {
    for (prefix, body) in bodies(entity) {
        for live in &body.lives {
            let Sync::Txn { max, overflow } = live.sync else { continue };
            let Some((typical, most)) = fan_out_of(check, entity, &prefix, body, &live.via) else {
                let message = format!(
                    "`{}`, live via `{prefix}{}`: nothing says how many copies one source has; {max} at most are kept in its \
                     transaction",
                    entity.name, live.via
                );
                check.warn("unknown-fan-out", live.span, message, "write `expect typical=N max=N` in the `ref`");
                continue;
            };
            let expected = if overflow == Overflow::Refuse { most } else { typical };
            if expected > max {
                let message = format!(
                    "`{}`, live via `{prefix}{}`: up to {expected} copies of one source are expected, its transaction may \
                     change {max}",
                    entity.name, live.via
                );
                let help = "let the copies follow later (`max-lag=\"5s\"`), read through the reference, or raise `max` (1000 at most)";
                check.wrong("fan-out-too-large", live.span, message, help);
            }
        }
    }
}

fn fan_out_of(
    check: &Check<'_, '_>,
    entity: &Entity,
    prefix: &str,
    body: &crate::model::Body,
    via: &str,
) -> Option<(u64, u64)> {
    if prefix.is_empty() {
        return check.model.fan_out(entity, via);
    }
    let expect = body.refs.iter().find(|reference| reference.name == via)?.expect.as_ref()?;
    Some((expect.typical.or(expect.max)?, expect.max?))
}

/// A field (entity, path).
type Node = (String, String);

/// Fields that depend on themselves through copies and derived values.
fn cycles(check: &mut Check<'_, '_>) {
    let mut graph: BTreeMap<Node, Vec<(Node, Span)>> = BTreeMap::new();
    for entity in check.entities() {
        for place in places(&entity).into_iter().filter(|place| place.kind == "live") {
            let target = (entity.name.clone(), place.place);
            graph.entry(target).or_default().push(((place.source, place.from), place.span));
        }
        for derived in &entity.parts.derived {
            let children = derived.field.iter().chain(derived.order.iter().map(|order| &order.path));
            let copied = derived.fields.iter().map(|copied| copied.source().to_owned());
            let filter = derived.filter.iter().map(|condition| condition.path.clone());
            for path in children.cloned().chain(copied).chain(filter) {
                let target = (entity.name.clone(), derived.name.clone());
                graph.entry(target).or_default().push(((derived.of.clone(), path), derived.span));
            }
        }
        for recent in &entity.parts.recents {
            for path in recent.fields.iter().map(Copied::source).chain([recent.order.path.as_str()]) {
                let target = (entity.name.clone(), recent.name.clone());
                graph.entry(target).or_default().push(((recent.of.clone(), path.to_owned()), recent.span));
            }
        }
    }
    let mut reported: BTreeSet<Node> = BTreeSet::new();
    for start in graph.keys() {
        if reported.contains(start) {
            continue;
        }
        if let Some((cycle, span)) = cycle_from(&graph, start) {
            let names: Vec<String> = cycle.iter().map(|(entity, path)| format!("`{entity}.{path}`")).collect();
            let message = format!("copies in a circle: {}", names.join(" follows "));
            check.problems.push(
                crate::problem::Problem::new("copy-cycle", span, message)
                    .help("make one of them a `snapshot`, or read it through the reference"),
            );
            reported.extend(cycle);
        }
    }
}

/// The way from a field back to itself, if there is one.
fn cycle_from(graph: &BTreeMap<Node, Vec<(Node, Span)>>, start: &Node) -> Option<(Vec<Node>, Span)> {
    let mut stack = vec![(start.clone(), vec![start.clone()], None)];
    let mut seen = BTreeSet::new();
    while let Some((node, path, first)) = stack.pop() {
        for ((entity, field), span) in matching(graph, &node) {
            let next = (entity.clone(), field.clone());
            let first = first.unwrap_or(*span);
            if covers(start, &next) {
                let mut cycle = path.clone();
                cycle.push(start.clone());
                return Some((cycle, first));
            }
            if seen.insert(next.clone()) {
                let mut path = path.clone();
                path.push(next.clone());
                stack.push((next, path, Some(first)));
            }
        }
    }
    None
}

/// What a field follows: its own edges, and those of the fields below and above it.
fn matching<'g>(
    graph: &'g BTreeMap<Node, Vec<(Node, Span)>>,
    node: &Node,
) -> impl Iterator<Item = &'g (Node, Span)> + use<'g> {
    let node = node.clone();
    graph.iter().filter(move |(target, _)| covers(target, &node)).flat_map(|(_, edges)| edges)
}

/// Whether two fields of one entity are the same, or one lies in the other.
fn covers(a: &Node, b: &Node) -> bool {
    let inside = |a: &str, b: &str| b.strip_prefix(a).is_some_and(|rest| rest.starts_with('.'));
    a.0 == b.0 && (a.1 == b.1 || inside(&a.1, &b.1) || inside(&b.1, &a.1))
}
