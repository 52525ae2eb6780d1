//! Records: what was last accounted for each document, and what it adds to its parents.

use super::super::Keeper;
use super::super::effect::{Change, Effect};
use super::super::value::tree;
use bson::{Bson, Document, RawBson, RawDocumentBuf, doc};
use engine::document::Number;
use store::{Index, Result, Store};

/// The collection, in each database, with the records: `{_id: {c: collection, id}, image, shares: [{k, p, v}]}`,
/// `tried` while inboxes are being filled, and `awaited` for a document that is referred to and not there.
pub const RECORDS: &str = "sheaf.records";

/// The collection, in each database, with the lease and the resume token.
pub const KEEPERS: &str = "sheaf.keepers";

pub(super) async fn prepare(store: &Store, database: &str) -> Result<()> {
    let shares = vec![Index::new(doc! { "shares.p": 1, "shares.k": 1 })];
    store.collection(database, RECORDS).create_indexes(shares).await
}

pub(super) fn record_id(collection: &str, id: &Bson) -> Document {
    doc! { "c": collection, "id": id.clone() }
}

pub(super) fn raw(document: &Document) -> Result<RawDocumentBuf> {
    Ok(RawDocumentBuf::try_from(document)?)
}

pub(super) fn image(record: Option<&Document>) -> Result<Option<RawDocumentBuf>> {
    record.and_then(|record| record.get_document("image").ok()).map(raw).transpose()
}

/// The images that were fanned out and not accounted for.
pub(super) fn tried(record: Option<&Document>) -> Result<Vec<RawDocumentBuf>> {
    let Some(tried) = record.and_then(|record| record.get_array("tried").ok()) else { return Ok(Vec::new()) };
    tried.iter().filter_map(Bson::as_document).map(raw).collect()
}

/// A number as BSON; whole ones in 64 bits, so that adding to them never overflows 32.
pub(super) fn number(number: Number) -> Bson {
    let number = match number {
        Number::Int32(number) => Number::Int64(number.into()),
        number => number,
    };
    Bson::try_from(RawBson::from(number)).expect("a number is well-formed BSON")
}

/// What a document adds to its parents' counts and sums: declaration, parent, value.
pub(super) fn shares(keeper: &Keeper, collection: &str, now: Option<&RawDocumentBuf>) -> Result<Vec<Document>> {
    let mut shares = Vec::new();
    let Some(now) = now else { return Ok(shares) };
    for effect in keeper.others(collection, None, Some(now), false)? {
        if let Effect::Parent { collection, id, change: Change::Add { field, amount } } = effect
            && !keeper.is_stock(&collection, &field)
        {
            shares.push(doc! { "k": format!("{collection}.{field}"), "p": tree(id)?, "v": number(amount) });
        }
    }
    Ok(shares)
}
