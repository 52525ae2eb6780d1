//! Shard keys against the queries and the unique keys.

use super::Check;
use crate::language::entity::Entity;
use crate::language::shard::Shard;

pub(super) fn check(check: &mut Check<'_, '_>) {
    let model = check.model;
    for entity in &model.entities {
        if let Some(shard) = &entity.parts.shard
            && !shard.fields.is_empty()
        {
            shard_key(check, entity, shard);
        }
    }
}

fn shard_key(check: &mut Check<'_, '_>, entity: &Entity, shard: &Shard) {
    let place = format!("`{}`, shard", entity.name);
    for field in &shard.fields {
        if !check.path_exists(&place, &entity.name, field, shard.span) {
            return;
        }
        if check.shapes[&entity.name].leaf(field).is_some_and(|leaf| leaf.array) {
            let message = format!("{place}: `{field}` is or lies in an array, which cannot be a shard key");
            check.wrong("bad-shard-key", shard.span, message, "name a field with one value");
            return;
        }
    }
    let model = check.model;
    let queries: Vec<_> = model.queries_on(&entity.name).collect();
    let first = &shard.fields[0];
    if !queries.is_empty() && !queries.iter().any(|query| query.paths().any(|path| path == first)) {
        let message = format!("{place}: no query names `{first}`: every one would ask all shards");
        let named: Vec<&str> = queries.iter().flat_map(|query| query.equal.iter().map(String::as_str)).collect();
        let help = match named.first() {
            Some(path) => format!("a key that starts with `{path}` is named by a query; or write `shard auto`"),
            None => "write `shard auto`".into(),
        };
        check.wrong("shard-key-unused", shard.span, message, help);
    }
    let single: Vec<Vec<String>> = check.shapes[&entity.name]
        .iter()
        .filter(|(path, leaf)| leaf.unique && *path != "_id" && !path.contains('.'))
        .map(|(path, _)| vec![path.to_owned()])
        .collect();
    let compound = entity.parts.uniques.iter().map(|unique| unique.fields.clone());
    for unique in single.into_iter().chain(compound) {
        if shard.hashed || !unique.starts_with(&shard.fields) {
            let message = format!(
                "{place}: the unique key ({}) cannot hold: across shards only a key that starts with the shard key ({}{}) is \
                 unique",
                unique.join(", "),
                shard.fields.join(", "),
                if shard.hashed { ", hashed" } else { "" }
            );
            let help = format!(
                "shard by `{}`, put the shard key in front of the unique key, or keep the unique values in a collection of \
                 their own",
                unique[0]
            );
            check.wrong("unique-under-shard-key", shard.span, message, help);
        }
    }
}
