//! Names, references, sizes, and what an entity declares about its own fields.

use super::{Check, bodies};
use crate::language::series::Series;
use crate::problem::Span;
use crate::shape::Origin;
use crate::size::MAX_DOCUMENT_BYTES;
use crate::value::Type;
use std::collections::BTreeMap;

/// Collections and paths that are declared twice.
pub(super) fn names(check: &mut Check<'_, '_>) {
    let mut collections: BTreeMap<String, String> = BTreeMap::new();
    let mut used: Vec<(String, String, Span)> = Vec::new();
    for entity in check.entities() {
        used.push((entity.collection.clone(), format!("`{}`", entity.name), entity.span));
        for bucket in &entity.parts.buckets {
            used.push((bucket.collection.clone(), format!("bucket `{}`", bucket.name), bucket.span));
        }
        for split in &entity.parts.splits {
            used.push((split.collection.clone(), format!("split `{}`", split.name), split.span));
        }
        for stock in &entity.parts.stocks {
            for collection in std::iter::once(&stock.ledger).chain(&stock.holds) {
                used.push((collection.clone(), format!("stock `{}`", stock.name), stock.span));
            }
        }
    }
    for (collection, owner, span) in used {
        if let Some(other) = collections.get(&collection) {
            let message = format!("{owner} and {other} share the collection `{collection}`");
            check.wrong("duplicate", span, message, "give one of them another `collection=`");
        }
        collections.insert(collection, owner);
    }
    for entity in check.entities() {
        let duplicates = check.shapes[&entity.name].duplicates.clone();
        for (path, span) in duplicates {
            let kept = check.shapes[&entity.name].leaf(&path).map(|leaf| leaf.origin.clone());
            let copies = super::copies::places(&entity);
            let is = |kind: &str| copies.iter().any(|copy| copy.place == path && copy.kind == kind);
            if kept == Some(Origin::Snapshot) && is("live") {
                let message = format!(
                    "`{}`: `{path}` is a snapshot and a live copy at once: the one must never change, the other must follow",
                    entity.name
                );
                check.wrong(
                    "live-over-snapshot",
                    span,
                    message,
                    "drop one of them, or give the live copy another name",
                );
            } else {
                let message = format!("`{}`: `{path}` is declared twice", entity.name);
                check.wrong(
                    "duplicate",
                    span,
                    message,
                    "give one of them another name, or put copies into a sub-document with a NAME",
                );
            }
        }
    }
}

/// References to entities that don't exist.
pub(super) fn references(check: &mut Check<'_, '_>) {
    let model = check.model;
    for entity in &model.entities {
        for (prefix, body) in bodies(entity) {
            for reference in &body.refs {
                let place = format!("`{}`, ref `{prefix}{}`", entity.name, reference.name);
                if check.entity_exists(&place, &reference.to, reference.span) && model.declared(&reference.to).is_none()
                {
                    let message = format!("{place}: `{}` is not an entity with documents of its own", reference.to);
                    check.wrong("unknown-entity", reference.span, message, "refer to a declared `entity`");
                }
            }
            for embed in &body.embeds {
                if let Some(key) = &embed.key
                    && !check.shapes[&entity.name].has(&format!("{prefix}{}.{key}", embed.name))
                {
                    let message =
                        format!("`{}`: elements of `{prefix}{}` have no field `{key}`", entity.name, embed.name);
                    check.wrong("unknown-field", embed.span, message, "name a field of the element as its `key`");
                }
                if let Some(expected) = embed.expect.as_ref().and_then(|expect| expect.max)
                    && let Some(max) = embed.max
                    && expected > max
                {
                    let message = format!(
                        "`{}`: `{prefix}{}` holds at most {max} elements, but {expected} are expected",
                        entity.name, embed.name
                    );
                    check.wrong("embed-too-small", embed.span, message, "raise `max`, or make the elements an entity");
                }
            }
            for field in body.fields.iter().filter(|field| field.list && field.max.is_none()) {
                let message = format!("`{}`: the list `{prefix}{}` may grow without bound", entity.name, field.name);
                check.wrong(
                    "unbounded-embed",
                    field.span,
                    message,
                    "give it `max=N`, or make its values an entity or an `edge`",
                );
            }
        }
    }
    for edge in &model.edges {
        for name in [&edge.from, &edge.to] {
            let place = format!("edge `{}`", edge.name);
            if check.entity_exists(&place, name, edge.span) && model.declared(name).is_none() {
                let message = format!("{place}: `{name}` is not an entity with documents of its own");
                check.wrong("unknown-entity", edge.span, message, "an edge joins declared entities");
            }
        }
    }
}

/// What an entity declares about its own fields, and its size.
pub(super) fn check(check: &mut Check<'_, '_>) {
    let model = check.model;
    for entity in &model.entities {
        fields(check, entity);
        let size = model.document_size(entity);
        if size.max > MAX_DOCUMENT_BYTES {
            let message = format!(
                "`{}`: the largest document takes {} bytes; more than {MAX_DOCUMENT_BYTES} (16 MiB) cannot be stored",
                entity.name, size.max
            );
            check.wrong("too-large", entity.span, message, "lower the `max` of what it embeds, or make that an entity");
        }
    }
}

fn fields(check: &mut Check<'_, '_>, entity: &crate::language::entity::Entity) {
    let parts = &entity.parts;
    let name = &entity.name;
    if let Some(expire) = &parts.expire {
        let place = format!("`{name}`, expire");
        if check.path_exists(&place, name, &expire.field, expire.span) {
            let leaf = check.shapes[name].leaf(&expire.field).map(|leaf| leaf.kind);
            if leaf.is_some_and(|kind| !matches!(kind, Type::Date | Type::Any)) {
                let message = format!("{place}: `{}` is not a date: nothing would ever expire", expire.field);
                check.wrong("expire-not-a-date", expire.span, message, "declare the field as `date`");
            }
        }
        if parts.series.is_some() {
            let message = format!("{place}: a time series expires by its own option");
            check.wrong("bad-value", expire.span, message, "write `expire-after=` in `series`");
        }
    }
    if let Some(series) = &parts.series {
        time_series(check, entity, series);
    }
    splits(check, entity);
    for compress in &parts.compressed {
        check.path_exists(&format!("`{name}`, compress"), name, &compress.field, compress.span);
        let model = check.model;
        for query in model.queries_on(name) {
            if query.paths().any(|path| path == compress.field) {
                let message =
                    format!("query `{}` filters or sorts by `{}`, which is compressed", query.name, compress.field);
                check.wrong("compressed-filter", query.span, message, "don't compress a field that is searched");
            }
        }
    }
    for unique in &parts.uniques {
        for field in &unique.fields {
            check.path_exists(&format!("`{name}`, unique"), name, field, unique.span);
        }
    }
}

/// Fields that are split off are there and nowhere looked for in the document itself.
fn splits(check: &mut Check<'_, '_>, entity: &crate::language::entity::Entity) {
    let model = check.model;
    let name = &entity.name;
    for split in &entity.parts.splits {
        let place = format!("`{name}`, split `{}`", split.name);
        for field in &split.fields {
            if !check.path_exists(&place, name, field, split.span) {
                continue;
            }
            let is = |path: &str| {
                path == field || path.strip_prefix(field.as_str()).is_some_and(|rest| rest.starts_with('.'))
            };
            let mut used: Vec<String> = Vec::new();
            used.extend(
                model
                    .queries_on(name)
                    .filter(|query| query.paths().any(is))
                    .map(|query| format!("query `{}`", query.name)),
            );
            for other in check.entities() {
                let copies = super::copies::places(&other);
                let copy = copies.iter().find(|copy| copy.source == *name && is(&copy.from));
                used.extend(copy.map(|copy| format!("the copy `{}.{}`", other.name, copy.place)));
                let derived = other.parts.derived.iter().filter(|derived| derived.of == *name);
                for derived in derived {
                    let paths = derived.filter.iter().map(|line| line.path.as_str());
                    if paths.chain(derived.field.as_deref()).any(is) {
                        used.push(format!("`{}.{}`", other.name, derived.name));
                    }
                }
            }
            used.extend(entity.parts.compressed.iter().filter(|one| is(&one.field)).map(|_| "`compress`".to_owned()));
            used.extend(
                entity
                    .parts
                    .uniques
                    .iter()
                    .filter(|one| one.fields.iter().any(|field| is(field)))
                    .map(|_| "`unique`".to_owned()),
            );
            if field.contains('.') {
                check.wrong(
                    "bad-value",
                    split.span,
                    format!("{place}: `{field}` is no field of the document itself"),
                    "split off whole fields",
                );
            }
            if let Some(first) = used.first() {
                let message =
                    format!("{place}: `{field}` stands in a document of its own, but {first} looks for it here");
                check.wrong("split-field", split.span, message, "leave it where it is, or don't use it there");
            }
        }
    }
}

fn time_series(check: &mut Check<'_, '_>, entity: &crate::language::entity::Entity, series: &Series) {
    let name = &entity.name;
    let place = format!("`{name}`, series");
    if check.path_exists(&place, name, &series.time, series.span)
        && check.shapes[name].leaf(&series.time).is_some_and(|leaf| leaf.kind != Type::Date)
    {
        let message = format!("{place}: the time `{}` is not a date", series.time);
        check.wrong("bad-value", series.span, message, "declare the field as `date`");
    }
    if let Some(meta) = &series.meta {
        check.path_exists(&place, name, meta, series.span);
    }
    let shape = &check.shapes[name];
    let unique = shape.iter().any(|(path, leaf)| leaf.unique && path != "_id") || !entity.parts.uniques.is_empty();
    if unique {
        let message = format!("{place}: a time-series collection has no unique indexes");
        check.wrong("bad-value", series.span, message, "drop `unique`, or keep the entity in an ordinary collection");
    }
}
