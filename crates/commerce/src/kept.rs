//! Values that the model keeps, where no hook of the store does it.
//!
//! On the embedded store the model's write hook keeps counts, sums, latest, recent and rollups, whoever writes. On a
//! deployment there is no hook: here each changed document is accounted for in the transaction that changed it, with
//! the same records that `sheaf keep` leaves, so that a keeper beside the shop counts nothing twice.

use crate::error::Result;
use crate::shop::Shop;
use crate::unit::Place;
use bson::{Bson, Document, RawDocumentBuf};
use model::keep::effect::Effect;
use store::Session;

/// Carries out what some changes mean for kept values.
pub(crate) async fn keep(
    shop: &Shop,
    images: &[(&'static str, Option<Document>, Option<Document>)],
    session: &mut Session,
    changed: &mut Vec<Place>,
) -> Result<()> {
    let Some(keeper) = shop.keeper() else { return Ok(()) };
    let mut written: Vec<(String, Bson)> = Vec::new();
    for (collection, before, after) in images.iter().filter(|(collection, ..)| keeper.watches(collection)) {
        let Some(id) = after.as_ref().or(before.as_ref()).and_then(|image| image.get("_id")) else { continue };
        written.push(((*collection).to_owned(), id.clone()));
        let raw = |image: &Document| RawDocumentBuf::try_from(image);
        let (before, after) = (before.as_ref().map(raw).transpose()?, after.as_ref().map(raw).transpose()?);
        let effects =
            keeper.others(collection, before.as_deref(), after.as_deref(), false).map_err(store::Error::from)?;
        for effect in effects {
            if let Effect::Parent { collection, id, .. } = effect {
                note(&collection, &Bson::try_from(id)?, changed);
            }
        }
    }
    model::keep::deployment::account(shop.store(), shop.database(), keeper, &written, session).await?;
    Ok(())
}

fn note(collection: &str, id: &Bson, changed: &mut Vec<Place>) {
    if let (Some(name), Bson::String(id)) = (crate::shop::COLLECTIONS.iter().find(|name| **name == collection), id) {
        changed.push((name, id.clone()));
    }
}
