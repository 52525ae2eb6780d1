//! Links: fields whose values are the `_id`s of another collection's documents.

use super::Collection;
use super::names::words;
use super::path::PathStats;
use super::sample::{last_name, plain};
use bson::{Bson, Document, doc};
use store::{Find, Store};

/// Values of a field that are looked for.
const TRIED: usize = 20;
/// Arrays whose back references are looked for.
const MIRRORS_TRIED: i64 = 5;

/// A field whose values are ids of documents of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Where the field is.
    pub collection: String,
    /// Its path, with `[]` where it leads into arrays.
    pub path: String,
    /// Whose ids it holds.
    pub target: String,
    /// How many of the values that were looked for are there.
    pub hits: u64,
    /// How many were looked for.
    pub tried: u64,
    /// For an array of ids: the field of the target that holds the id back.
    pub mirror: Option<String>,
}

/// Finds the links of a database, with bounded work: some values of each field that may hold ids.
pub(super) async fn links(store: &Store, database: &str, collections: &[Collection]) -> store::Result<Vec<Link>> {
    let mut links = Vec::new();
    for collection in collections {
        for (path, stats) in &collection.sample.paths {
            if !may_hold_ids(path, stats) {
                continue;
            }
            let mut best: Option<Link> = None;
            for target in collections.iter().filter(|target| target.info.kind == "collection") {
                let link = tried(store, database, (collection, path, stats), target).await?;
                if link.as_ref().is_some_and(|link| best.as_ref().is_none_or(|best| best.hits < link.hits)) {
                    best = link;
                }
            }
            links.extend(best);
        }
    }
    for at in 0..links.len() {
        links[at].mirror = mirror(store, database, &links, at).await?;
    }
    Ok(links)
}

fn may_hold_ids(path: &str, stats: &PathStats) -> bool {
    let name = last_name(path);
    let named = words(name).last().is_some_and(|last| matches!(last.as_str(), "id" | "ids" | "ref" | "refs" | "no"));
    let typed = stats.of("objectId") + stats.of("binData") > 0;
    let texts = stats.of("string") > 0 && stats.strings.is_none();
    name != "_id"
        && !stats.ids.is_empty()
        && (typed || named || texts && stats.hex_strings == 0 && stats.date_strings == 0)
}

async fn tried(
    store: &Store,
    database: &str,
    (collection, path, stats): (&Collection, &str, &PathStats),
    target: &Collection,
) -> store::Result<Option<Link>> {
    let Some(ids) = target.sample.paths.get("_id") else { return Ok(None) };
    let fits = |value: &Bson| {
        let kind = bson::RawBson::try_from(value.clone());
        kind.is_ok_and(|kind| ids.of(super::path::type_name(kind.as_raw_bson_ref())) > 0)
    };
    let values: Vec<Bson> = stats.ids.iter().filter(|value| fits(value)).take(TRIED).cloned().collect();
    if values.is_empty() {
        return Ok(None);
    }
    let tried = values.len() as u64;
    let found = store.collection(database, &target.info.name).count(doc! { "_id": { "$in": values } }, None).await?;
    let link = Link {
        collection: collection.info.name.clone(),
        path: path.to_owned(),
        target: target.info.name.clone(),
        hits: found,
        tried,
        mirror: None,
    };
    Ok((found * 2 >= tried).then_some(link))
}

/// The field that points back from the documents whose ids an array holds.
async fn mirror(store: &Store, database: &str, links: &[Link], at: usize) -> store::Result<Option<String>> {
    let array = &links[at];
    if !array.path.ends_with("[]") || array.collection == array.target {
        return Ok(None);
    }
    let field = plain(&array.path);
    let back = links
        .iter()
        .filter(|back| back.collection == array.target && back.target == array.collection && !back.path.contains("[]"));
    for back in back {
        let filter = doc! { format!("{field}.1"): { "$exists": true } };
        let options = Find { limit: MIRRORS_TRIED, projection: Some(doc! { &field: 1 }), ..Find::default() };
        let parents = store.collection(database, &array.collection).find(filter, options, None).await?;
        let (mut held, mut mirrored) = (0, 0);
        for parent in parents {
            let ids: Vec<Bson> = values(&parent, &field).into_iter().take(TRIED).collect();
            held += ids.len() as u64;
            let id = parent.get("_id").cloned().unwrap_or(Bson::Null);
            let filter = doc! { "_id": { "$in": ids }, &back.path: id };
            mirrored += store.collection(database, &array.target).count(filter, None).await?;
        }
        if held > 0 && mirrored * 2 >= held {
            return Ok(Some(back.path.clone()));
        }
    }
    Ok(None)
}

fn values(document: &Document, path: &str) -> Vec<Bson> {
    let mut at = document;
    let mut names = path.split('.').peekable();
    while let Some(name) = names.next() {
        match at.get(name) {
            Some(Bson::Document(inner)) if names.peek().is_some() => at = inner,
            Some(Bson::Array(values)) => return values.clone(),
            _ => return Vec::new(),
        }
    }
    Vec::new()
}
