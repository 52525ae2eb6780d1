//! A readable summary of a model: what a person wants to see before the JSON.

use crate::language::derived::Kind;
use crate::language::entity::Entity;
use crate::language::live::Sync;
use crate::model::{Body, Model};
use crate::problem::plural;
use crate::size::MAX_DOCUMENT_BYTES;
use std::fmt::Write;

/// The summary of a model, as plain text.
pub fn show(model: &Model) -> String {
    let mut text = String::new();
    for entity in &model.entities {
        show_entity(&mut text, model, entity);
    }
    for edge in &model.edges {
        let kind = if edge.mutual { "mutual" } else { "directed" };
        line(
            &mut text,
            0,
            &format!("edge {}: {} -> {} ({kind}), collection {}", edge.name, edge.from, edge.to, edge.collection),
        );
        line(&mut text, 1, &format!("fields {} and {}, unique together", edge.from_field, edge.to_field));
        for (name, entity) in [(&edge.count_from, &edge.from), (&edge.count_to, &edge.to)] {
            if let Some(name) = name {
                line(&mut text, 1, &format!("counted in {entity}.{name}"));
            }
        }
        text.push('\n');
    }
    for timeline in &model.timelines {
        let mode = format!("{:?}", timeline.mode).to_lowercase();
        let threshold = timeline.threshold.map(|threshold| format!(" above {threshold} followers")).unwrap_or_default();
        line(
            &mut text,
            0,
            &format!(
                "timeline {}: {} along {}, collection {}",
                timeline.name, timeline.of, timeline.along, timeline.collection
            ),
        );
        line(
            &mut text,
            1,
            &format!("{mode}{threshold}, newest by {}, at most {} in one inbox\n", timeline.order, timeline.cap),
        );
    }
    for rollup in &model.rollups {
        let keys: Vec<&str> = rollup.by.iter().map(|key| key.name.as_str()).collect();
        let values: Vec<&str> = rollup.values.iter().map(|value| value.name.as_str()).collect();
        line(
            &mut text,
            0,
            &format!("rollup {}: {} of {} by {}\n", rollup.name, values.join(", "), rollup.of, keys.join(", ")),
        );
    }
    for files in &model.files {
        line(&mut text, 0, &format!("files {}: chunks of {} bytes\n", files.name, files.chunk));
    }
    if !model.queries.is_empty() {
        line(&mut text, 0, "queries");
        for query in &model.queries {
            line(&mut text, 1, &query_line(query));
        }
    }
    text
}

fn line(text: &mut String, depth: usize, content: &str) {
    let _ = writeln!(text, "{}{content}", "  ".repeat(depth));
}

fn show_entity(text: &mut String, model: &Model, entity: &Entity) {
    line(text, 0, &format!("{} (collection {}, _id {})", entity.name, entity.collection, entity.id.name()));
    let size = model.document_size(entity);
    let share = size.max as f64 * 100.0 / MAX_DOCUMENT_BYTES as f64;
    let mut facts =
        format!("about {} a document, {} at most ({share:.1} % of 16 MiB)", bytes(size.typical), bytes(size.max));
    if let Some(expect) = &entity.expect {
        if let Some(count) = expect.count {
            let _ = write!(facts, "; {count} of them");
        }
        if let Some(growth) = expect.growth {
            let _ = write!(facts, ", {growth} more");
        }
    }
    line(text, 1, &facts);
    show_body(text, 1, &entity.body);
    show_parts(text, entity);
    text.push('\n');
}

fn show_body(text: &mut String, depth: usize, body: &Body) {
    for field in &body.fields {
        let mut words = vec![field.kind.name().to_owned()];
        if !field.values.is_empty() {
            words = vec![field.values.join(" | ")];
        }
        words.extend(field.list.then(|| field.max.map_or("list".into(), |max| format!("list of at most {max}"))));
        words.extend(field.required.then(|| "required".into()));
        words.extend(field.unique.then(|| "unique".into()));
        line(text, depth, &format!("{}: {}", field.name, words.join(", ")));
        show_body(text, depth + 1, &field.body);
    }
    for embed in &body.embeds {
        let bound = embed.max.map_or("one embedded document".into(), |max| format!("at most {max} embedded documents"));
        let key = embed.key.as_ref().map(|key| format!(", told apart by {key}")).unwrap_or_default();
        line(text, depth, &format!("{}: {bound}{key}", embed.name));
        show_body(text, depth + 1, &embed.body);
    }
    for reference in &body.refs {
        let on_delete = format!("{:?}", reference.on_delete).to_lowercase();
        line(text, depth, &format!("{} -> {} (on delete: {on_delete})", reference.name, reference.to));
    }
    for copy in &body.snapshots {
        let names = copied(copy.name.as_deref(), &copy.fields);
        line(text, depth, &format!("{names}: frozen copy via {}", copy.via));
    }
    for copy in &body.lives {
        let names = copied(copy.name.as_deref(), &copy.fields);
        let sync = match copy.sync {
            Sync::Txn { max, .. } => format!("kept in the source's transaction, {max} copies at most"),
            Sync::Lag { max } => format!("kept within {max}"),
        };
        line(text, depth, &format!("{names}: live copy via {}, {sync}", copy.via));
    }
}

fn copied(name: Option<&str>, fields: &[crate::language::copy::Copied]) -> String {
    let fields: Vec<&str> = fields.iter().map(|copied| copied.name.as_str()).collect();
    match name {
        Some(name) => format!("{name} {{ {} }}", fields.join(", ")),
        None => fields.join(", "),
    }
}

fn show_parts(text: &mut String, entity: &Entity) {
    let parts = &entity.parts;
    for derived in &parts.derived {
        let what = match derived.kind {
            Kind::Count => "how many".into(),
            Kind::Latest => {
                format!("the latest by {}", derived.order.as_ref().map(ToString::to_string).unwrap_or_default())
            }
            kind => format!("{} of {}", kind.name(), derived.field.as_deref().unwrap_or("")),
        };
        let filter = if derived.filter.is_empty() { "" } else { ", filtered" };
        line(text, 1, &format!("{}: {what}, over {}.{}{filter}", derived.name, derived.of, derived.by));
    }
    for recent in &parts.recents {
        line(text, 1, &format!("{}: the newest {} of {} by {}", recent.name, recent.keep, recent.of, recent.order));
    }
    for bucket in &parts.buckets {
        let bound = format!("at most {} items and {}", bucket.items, bytes(bucket.bytes));
        line(text, 1, &format!("{}: {} packed into chunks of {bound}", bucket.name, bucket.of));
    }
    for stock in &parts.stocks {
        line(text, 1, &format!("{}: stock, never below zero, ledger {}", stock.name, stock.ledger));
    }
    for states in &parts.states {
        let steps: Vec<String> =
            states.steps.iter().map(|step| format!("{} -> {}", step.from.join("|"), step.to)).collect();
        line(text, 1, &format!("{}: states from {}: {}", states.name, states.start, steps.join(", ")));
    }
    for split in &parts.splits {
        line(text, 1, &format!("{} stored apart in {}", split.fields.join(", "), split.collection));
    }
    for compress in &parts.compressed {
        line(text, 1, &format!("{} compressed above {}", compress.field, bytes(compress.above)));
    }
    for unique in &parts.uniques {
        line(text, 1, &format!("unique: {}", unique.fields.join(", ")));
    }
    if let Some(lock) = &parts.lock {
        line(text, 1, &format!("{}: optimistic lock", lock.field));
    }
    if let Some(expire) = &parts.expire {
        line(text, 1, &format!("expires {} after {}", expire.after, expire.field));
    }
    if let Some(series) = &parts.series {
        line(text, 1, &format!("time series by {}", series.time));
    }
    if let Some(shard) = &parts.shard {
        let key = if shard.fields.is_empty() { "chosen by the plan".into() } else { shard.fields.join(", ") };
        line(text, 1, &format!("shard key: {key}{}", if shard.hashed { " (hashed)" } else { "" }));
    }
}

fn query_line(query: &crate::language::query::Query) -> String {
    let mut words = Vec::new();
    words.extend(query.equal.iter().map(|path| format!("{path} = ?")));
    words.extend(query.within.iter().map(|within| format!("{} in ?", within.path)));
    words.extend(query.range.iter().map(|path| format!("{path} in a range")));
    let constants = query.filter.len();
    if constants > 0 {
        words.push(format!("{constants} constant condition{}", plural(constants)));
    }
    let mut text = format!("{}: {} where {}", query.name, query.on, words.join(" and "));
    if words.is_empty() {
        text = format!("{}: {}", query.name, query.on);
    }
    if !query.sort.is_empty() {
        let keys: Vec<String> = query.sort.iter().map(ToString::to_string).collect();
        let _ = write!(text, ", by {}", keys.join(", "));
    }
    if let Some(limit) = query.limit {
        let _ = write!(text, ", {limit} at most");
    }
    if let Some(rate) = query.rate {
        let _ = write!(text, ", {}", rate);
    }
    text
}

/// A number of bytes for a person.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
