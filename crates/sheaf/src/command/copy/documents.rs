//! Copying one collection: its options, its documents in the order of `_id`, its indexes.

use super::state::Journal;
use super::{Arguments, skipped};
use crate::transfer::progress::Progress;
use crate::transfer::summary::Line;
use crate::transfer::{Result, Trouble};
use bson::{Bson, Document, RawDocumentBuf, doc};
use store::{Collection, CollectionInfo, Find, Index, InsertMany, Store, WriteModel};

/// The code of a collection that exists with other options.
const NAMESPACE_EXISTS: i32 = 48;
/// The documents of a batch.
const BATCH_DOCUMENTS: usize = 1000;
/// The bytes of a batch.
const BATCH_BYTES: usize = 4 << 20;
/// The batches after which it is noted how far the collection is.
const BATCHES_BETWEEN_NOTES: usize = 8;

/// The types in the order of values, each with those that are ordered among each other.
const TYPE_ORDER: &[&[&str]] = &[
    &["minKey"],
    &["undefined"],
    &["null"],
    &["number"],
    &["string", "symbol"],
    &["object"],
    &["array"],
    &["binData"],
    &["objectId"],
    &["bool"],
    &["date"],
    &["timestamp"],
    &["regex"],
    &["dbPointer"],
    &["javascript"],
    &["javascriptWithScope"],
    &["maxKey"],
];

pub(super) async fn copy(
    from: &Store,
    to: &Store,
    database: &str,
    info: &CollectionInfo,
    journal: &mut Journal,
    arguments: &Arguments,
) -> Result<Line> {
    let namespace = format!("{database}.{}", info.name);
    if journal.is_done(&namespace) {
        return Ok(skipped(namespace));
    }
    let (source, target) = (from.collection(database, &info.name), to.collection(database, &info.name));
    let is_series = info.kind == "timeseries";
    let last = journal.last_id(&namespace).cloned();
    if journal.drop || is_series && journal.resumed {
        target.drop().await?;
    } else if last.is_none() && !journal.resumed && info.kind != "view" && target.estimated_count().await? > 0 {
        return Err(Trouble::Usage(format!(
            "{namespace} holds documents in the target already: copy with --drop, or empty it"
        )));
    }
    let mut options = info.options.clone();
    for own in ["uuid", "idIndex"] {
        options.remove(own);
    }
    match target.create(options).await {
        Err(error) if error.code == Some(NAMESPACE_EXISTS) => {}
        done => done?,
    }
    let mut line = Line { namespace: namespace.clone(), what: "copied", ..Line::default() };
    if info.kind != "view" {
        let progress = Progress::documents(&namespace, source.estimated_count().await.ok(), arguments.quiet);
        copy_documents(&source, &target, is_series, last, journal, &progress, &mut line).await?;
        line.took = progress.finish();
        target.create_indexes(indexes(&source, info).await?).await?;
    }
    journal.collection_done(&namespace).await?;
    Ok(line)
}

async fn copy_documents(
    source: &Collection,
    target: &Collection,
    is_series: bool,
    last: Option<Bson>,
    journal: &mut Journal,
    progress: &Progress,
    line: &mut Line,
) -> Result<()> {
    let (filter, sort) = match (is_series, &last) {
        (true, _) => (Document::new(), None),
        (false, None) => (Document::new(), Some(doc! { "_id": 1 })),
        (false, Some(last)) => (beyond(last), Some(doc! { "_id": 1 })),
    };
    let mut cursor = source.stream(filter, Find { sort, ..Find::default() }, None).await?;
    let (mut batch, mut bytes, mut batches) = (Vec::new(), 0, 0);
    loop {
        let next = cursor.next_raw(None).await?;
        let is_over = next.is_none();
        if let Some(document) = next {
            bytes += document.as_bytes().len();
            batch.push(document);
        }
        if batch.is_empty() || !is_over && batch.len() < BATCH_DOCUMENTS && bytes < BATCH_BYTES {
            if is_over {
                return Ok(());
            }
            continue;
        }
        let id = batch.last().and_then(|document: &RawDocumentBuf| document.get("_id").ok().flatten());
        let id = id.and_then(|id| Bson::try_from(id).ok());
        line.documents += batch.len() as u64;
        line.bytes += bytes as u64;
        progress.add(batch.len() as u64);
        put(target, std::mem::take(&mut batch), is_series).await?;
        bytes = 0;
        batches += 1;
        if let (Some(id), false, true) = (id, is_series, batches % BATCHES_BETWEEN_NOTES == 0) {
            journal.reached(&line.namespace, id).await?;
        }
    }
}

/// Inserts documents; those that are there already, from an earlier run, are replaced.
async fn put(target: &Collection, documents: Vec<RawDocumentBuf>, is_series: bool) -> Result<()> {
    let options = InsertMany { ordered: false, bypass_document_validation: true };
    let kept = documents.clone();
    let done = target.insert_raw_many(documents, options).await?;
    let mut again = Vec::new();
    for failed in done.errors {
        if is_series || !failed.error.is_duplicate_key() {
            return Err(failed.error.into());
        }
        let document = kept.get(failed.index).map(|raw| Document::try_from(&**raw)).transpose()?;
        let Some(document) = document else { continue };
        let filter = doc! { "_id": document.get("_id").cloned().unwrap_or(Bson::Null) };
        again.push((target.clone(), WriteModel::Replace { filter, replacement: document, upsert: true }));
    }
    let bulk = store::BulkWrite { ordered: true, bypass_document_validation: true };
    target.store().bulk_write(again, bulk, None).await?.ok()?;
    Ok(())
}

/// What lies beyond an `_id` in the order of all values: greater ones of its type, and all of later types.
fn beyond(last: &Bson) -> Document {
    let name = match last {
        Bson::MinKey => "minKey",
        Bson::Undefined => "undefined",
        Bson::Null => "null",
        Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal128(_) => "number",
        Bson::String(_) => "string",
        Bson::Symbol(_) => "symbol",
        Bson::Document(_) => "object",
        Bson::Array(_) => "array",
        Bson::Binary(_) => "binData",
        Bson::ObjectId(_) => "objectId",
        Bson::Boolean(_) => "bool",
        Bson::DateTime(_) => "date",
        Bson::Timestamp(_) => "timestamp",
        Bson::RegularExpression(_) => "regex",
        Bson::DbPointer(_) => "dbPointer",
        Bson::JavaScriptCode(_) => "javascript",
        Bson::JavaScriptCodeWithScope(_) => "javascriptWithScope",
        Bson::MaxKey => "maxKey",
    };
    let place = TYPE_ORDER.iter().position(|types| types.contains(&name)).unwrap_or(0);
    let later: Vec<&str> = TYPE_ORDER[place + 1..].iter().flat_map(|types| types.iter().copied()).collect();
    let mut parts = vec![doc! { "_id": { "$gt": last.clone() } }];
    if !later.is_empty() {
        parts.push(doc! { "_id": { "$type": later } });
    }
    doc! { "$or": parts }
}

/// The source's indexes, without those that the target has by itself.
async fn indexes(source: &Collection, info: &CollectionInfo) -> Result<Vec<Index>> {
    let series = info.options.get_document("timeseries").ok();
    let own = series.and_then(|series| {
        Some(format!("{}_1_{}_1", series.get_str("metaField").ok()?, series.get_str("timeField").ok()?))
    });
    let mut found = Vec::new();
    for index in source.list_indexes().await? {
        let name = index.get_str("name").unwrap_or_default();
        if name == "_id_" || index.get_bool("clustered").unwrap_or(false) || own.as_deref() == Some(name) {
            continue;
        }
        let Ok(keys) = index.get_document("key").cloned() else { continue };
        let options = index.into_iter().filter(|(name, _)| name != "key" && name != "ns").collect();
        found.push(Index { keys, options });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_lies_beyond_an_id_crosses_types() {
        let store = Store::in_memory().unwrap();
        let collection = store.collection("d", "c");
        let ids = [Bson::Int32(1), Bson::Double(2.5), "a".into(), "b".into(), doc! { "x": 1 }.into(), true.into()];
        for id in &ids {
            collection.insert_one(doc! { "_id": id.clone() }, None).await.unwrap();
        }
        for (place, id) in ids.iter().enumerate() {
            let find = Find { sort: Some(doc! { "_id": 1 }), ..Find::default() };
            let found = collection.find(beyond(id), find, None).await.unwrap();
            let found: Vec<Bson> = found.into_iter().map(|document| document.get("_id").unwrap().clone()).collect();
            assert_eq!(found, ids[place + 1..], "{id}");
        }
    }
}
