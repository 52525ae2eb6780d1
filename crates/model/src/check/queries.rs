//! Queries: what they name exists, and they don't ask for what no index can give.

use super::{Check, bodies};
use crate::language::query::Query;

pub(super) fn check(check: &mut Check<'_, '_>) {
    let model = check.model;
    for query in &model.queries {
        let place = format!("query `{}`", query.name);
        if !check.entity_exists(&place, &query.on, query.span) {
            continue;
        }
        let paths: Vec<String> =
            query.paths().chain(query.fields.iter().map(String::as_str)).map(str::to_owned).collect();
        for path in paths {
            check.path_exists(&place, &query.on, &path, query.span);
        }
        includes(check, &place, query);
        bounds(check, &place, query);
    }
}

/// What is read along is an embed, a reference, or an entity that refers to this one.
fn includes(check: &mut Check<'_, '_>, place: &str, query: &Query) {
    let model = check.model;
    let Some(entity) = model.entity(&query.on) else { return };
    for include in &query.include {
        let own = bodies(&entity).iter().any(|(prefix, body)| {
            let is = |name: &str| format!("{prefix}{name}") == include.name;
            body.embeds.iter().any(|embed| is(&embed.name)) || body.refs.iter().any(|reference| is(&reference.name))
        });
        let kept = entity.parts.recents.iter().any(|recent| recent.name == include.name);
        let child = model
            .entity(&include.name)
            .is_some_and(|child| child.body.refs.iter().any(|reference| reference.to == query.on));
        if !own && !kept && !child {
            let message = format!("{place}: `{}` has nothing named `{}` to include", query.on, include.name);
            let help = "name an embed, a `ref` of this entity, or an entity with a `ref` to this one";
            check.wrong("unknown-field", query.span, message, help);
        }
    }
}

/// An answer of unknown size from a growing collection.
fn bounds(check: &mut Check<'_, '_>, place: &str, query: &Query) {
    let Some(shape) = check.shapes.get(&query.on) else { return };
    let uniques = check.model.entity(&query.on).map(|entity| entity.parts.uniques.clone()).unwrap_or_default();
    let single = query.equal.iter().any(|path| shape.leaf(path).is_some_and(|leaf| leaf.unique))
        || uniques.iter().any(|unique| unique.fields.iter().all(|field| query.equal.contains(field)));
    if query.limit.is_none() && !single && query.fields.is_empty() {
        let message = format!("{place}: nothing bounds the answer");
        check.warn("unbounded-query", query.span, message, "add `limit N`, and page by the last value seen");
    }
    if query.range.len() > 1 {
        let message = format!("{place}: an index bounds one range; the others are looked at document by document");
        check.warn("several-ranges", query.span, message, "keep the most selective range");
    }
}
