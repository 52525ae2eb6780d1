//! What is kept from children: derived values, recents, buckets, edges, timelines and rollups.

use super::Check;
use crate::language::derived::{Derived, Kind};
use crate::language::filter::Condition;
use crate::problem::Span;
use crate::shape::Origin;
use crate::value::Type;

pub(super) fn check(check: &mut Check<'_, '_>) {
    let model = check.model;
    for entity in &model.entities {
        for each in &entity.parts.derived {
            derived(check, &entity.name, each);
        }
        for recent in &entity.parts.recents {
            let place = format!("`{}`, recent `{}`", entity.name, recent.name);
            if !children(check, &place, &entity.name, &recent.of, &recent.by, recent.span) {
                continue;
            }
            check.path_exists(&place, &recent.of, &recent.order.path, recent.span);
            for copied in &recent.fields {
                check.path_exists(&place, &recent.of, copied.source(), recent.span);
            }
            filter(check, &place, &recent.of, &recent.filter);
        }
        for bucket in &entity.parts.buckets {
            let place = format!("`{}`, bucket `{}`", entity.name, bucket.name);
            if !children(check, &place, &entity.name, &bucket.of, &bucket.by, bucket.span) {
                continue;
            }
            check.path_exists(&place, &bucket.of, &bucket.order.path, bucket.span);
            for copied in &bucket.fields {
                check.path_exists(&place, &bucket.of, copied.source(), bucket.span);
            }
        }
    }
    for edge in &model.edges {
        filter(check, &format!("edge `{}`", edge.name), &edge.name, &edge.filter);
    }
    timelines(check);
    rollups(check);
}

/// The children's entity exists and refers to the parent's.
fn children(check: &mut Check<'_, '_>, place: &str, parent: &str, of: &str, by: &str, span: Span) -> bool {
    if !check.entity_exists(place, of, span) || !check.path_exists(place, of, by, span) {
        return false;
    }
    let id = check.model.declared(parent).map_or(Type::Any, |entity| entity.id);
    let Some(leaf) = check.shapes[of].leaf(by).cloned() else { return true };
    if let Origin::Ref(to) = &leaf.origin
        && to != parent
    {
        let message = format!("{place}: `{of}.{by}` refers to `{to}`, not to `{parent}`");
        check.wrong(
            "not-a-child",
            span,
            message,
            format!("name the field of `{of}` that holds the `{parent}`'s id in `by`"),
        );
        return false;
    }
    if leaf.array {
        let message = format!("{place}: `{of}.{by}` is an array; a child has one parent");
        check.wrong("not-a-child", span, message, "keep one id per document, or use a `rollup` with `unwind`");
        return false;
    }
    if leaf.kind != id && leaf.kind != Type::Any && id != Type::Any {
        let message = format!(
            "{place}: `{of}.{by}` is {} and `{parent}._id` is {}: different types never match",
            leaf.kind.name(),
            id.name()
        );
        check.wrong("not-a-child", span, message, format!("declare `ref {by} to={parent}` in `{of}`"));
        return false;
    }
    true
}

fn derived(check: &mut Check<'_, '_>, parent: &str, derived: &Derived) {
    let place = format!("`{parent}`, {} `{}`", derived.kind.name(), derived.name);
    if !children(check, &place, parent, &derived.of, &derived.by, derived.span) {
        return;
    }
    if let Some(field) = &derived.field
        && check.path_exists(&place, &derived.of, field, derived.span)
        && derived.kind == Kind::Sum
    {
        summable(check, &place, &derived.of, field, derived.span);
    }
    if let Some(order) = &derived.order {
        check.path_exists(&place, &derived.of, &order.path, derived.span);
    }
    for copied in &derived.fields {
        check.path_exists(&place, &derived.of, copied.source(), derived.span);
    }
    filter(check, &place, &derived.of, &derived.filter);
}

/// A sum is over integers or decimals.
fn summable(check: &mut Check<'_, '_>, place: &str, entity: &str, field: &str, span: Span) {
    let Some(leaf) = check.shapes[entity].leaf(field) else { return };
    let kind = leaf.kind;
    if matches!(kind, Type::Int | Type::Long | Type::Decimal | Type::Any) {
        return;
    }
    let (message, help) = match kind {
        Type::Double => (
            format!("{place}: a sum of doubles depends on the order of the writes and cannot be kept exact"),
            format!("declare `{entity}.{field}` as `long` (minor units) or `decimal`"),
        ),
        _ => (
            format!("{place}: `{entity}.{field}` is {}, which cannot be added up", kind.name()),
            "name a number".into(),
        ),
    };
    check.wrong("bad-sum", span, message, help);
}

/// A filter depends on the child's own fields only.
fn filter(check: &mut Check<'_, '_>, place: &str, child: &str, filter: &[Condition]) {
    for condition in filter {
        let path = &condition.path;
        let crosses = path.match_indices('.').find_map(|(dot, _)| {
            let leaf = check.shapes.get(child)?.leaf(&path[..dot])?;
            match &leaf.origin {
                Origin::Ref(to) => Some((path[..dot].to_owned(), to.clone(), path[dot + 1..].to_owned())),
                _ => None,
            }
        });
        if let Some((reference, to, rest)) = crosses {
            let message = format!(
                "{place}: the filter `{path}` depends on another document (`{to}` behind `{reference}`), whose change would \
                 have to recount all its children"
            );
            let help = format!(
                "copy it into `{child}` first (`live via={reference} {{ fields {rest} }}`) and filter by the copy"
            );
            check.wrong("filter-beyond-child", condition.span, message, help);
            continue;
        }
        if !check.path_exists(place, child, path, condition.span) {
            continue;
        }
        let keeper = check.shapes[child].leaf(path).and_then(|leaf| match &leaf.origin {
            Origin::Derived(name) => Some(*name),
            Origin::Recent => Some("recent"),
            _ => None,
        });
        if let Some(keeper) = keeper {
            let message = format!(
                "{place}: the filter `{path}` is itself kept by `{keeper}` and depends on other documents than the child"
            );
            check.wrong(
                "filter-beyond-child",
                condition.span,
                message,
                "filter by a field that the child's own writes set",
            );
        }
    }
}

fn timelines(check: &mut Check<'_, '_>) {
    let model = check.model;
    for timeline in &model.timelines {
        let place = format!("timeline `{}`", timeline.name);
        let edges: Vec<&str> = model.edges.iter().map(|edge| edge.name.as_str()).collect();
        let Some(edge) = model.edges.iter().find(|edge| edge.name == timeline.along) else {
            let help = crate::problem::suggest(&timeline.along, "edges", edges.iter().copied());
            let message = format!("{place}: there is no edge `{}`", timeline.along);
            check.wrong("unknown-entity", timeline.span, message, help);
            continue;
        };
        if !check.entity_exists(&place, &timeline.of, timeline.span)
            || !check.path_exists(&place, &timeline.of, &timeline.by, timeline.span)
        {
            continue;
        }
        check.path_exists(&place, &timeline.of, &timeline.order.path, timeline.span);
        for copied in &timeline.fields {
            check.path_exists(&place, &timeline.of, copied.source(), timeline.span);
        }
        let author = check.shapes[&timeline.of].leaf(&timeline.by).map(|leaf| leaf.origin.clone());
        if author != Some(Origin::Ref(edge.to.clone())) {
            let message = format!(
                "{place}: the edge `{}` leads to `{}`, but `{}.{}` doesn't refer to it",
                edge.name, edge.to, timeline.of, timeline.by
            );
            check.wrong("not-a-child", timeline.span, message, "name the reference to the item's author in `by`");
        }
        if timeline.threshold.is_some() && edge.count_to.is_none() {
            let message = format!("{place}: a hybrid must know how many followers an author has");
            let help = format!("let the edge `{}` count them: `count-to=\"followerCount\"`", edge.name);
            check.wrong("missing", timeline.span, message, help);
        }
    }
}

fn rollups(check: &mut Check<'_, '_>) {
    let model = check.model;
    for rollup in &model.rollups {
        let place = format!("rollup `{}`", rollup.name);
        if !check.entity_exists(&place, &rollup.of, rollup.span) {
            continue;
        }
        if let Some(unwind) = &rollup.unwind
            && check.path_exists(&place, &rollup.of, unwind, rollup.span)
            && check.shapes[&rollup.of].leaf(unwind).is_some_and(|leaf| !leaf.array)
        {
            let message = format!("{place}: `{}.{unwind}` is not an array", rollup.of);
            check.wrong("bad-value", rollup.span, message, "`unwind` names an `embed many` or a list");
        }
        for key in &rollup.by {
            rollup_field(check, &place, rollup, &key.path);
            let kind = check.shapes[&rollup.of].leaf(&key.path).map(|leaf| leaf.kind);
            if key.unit.is_some() && kind.is_some_and(|kind| !matches!(kind, Type::Date | Type::Any)) {
                let message = format!("{place}: `{}` is not a date and has no {}", key.path, "unit");
                check.wrong("bad-value", rollup.span, message, "drop `unit`, or group by a date");
            }
        }
        for value in &rollup.values {
            if let Some(field) = &value.field
                && rollup_field(check, &place, rollup, field)
                && value.kind == Kind::Sum
            {
                summable(check, &place, &rollup.of, field, rollup.span);
            }
        }
        filter(check, &place, &rollup.of, &rollup.filter);
    }
}

/// A rollup's field exists, and lies in no other array than the unwound one.
fn rollup_field(check: &mut Check<'_, '_>, place: &str, rollup: &crate::language::rollup::Rollup, path: &str) -> bool {
    if !check.path_exists(place, &rollup.of, path, rollup.span) {
        return false;
    }
    let array = check.shapes[&rollup.of].leaf(path).is_some_and(|leaf| leaf.array);
    let unwound =
        rollup.unwind.as_ref().is_some_and(|unwind| path == unwind || path.starts_with(&format!("{unwind}.")));
    if array && !unwound {
        let top = path.split('.').next().unwrap_or(path);
        let message = format!("{place}: `{path}` has many values in one document");
        check.wrong(
            "bad-value",
            rollup.span,
            message,
            format!("write `unwind={top}` to take every element for itself"),
        );
    }
    true
}
