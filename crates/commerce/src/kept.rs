//! Values that the model keeps, where no hook of the store does it: the same planner, carried out in the transaction that
//! made the change.
//!
//! On the embedded store the model's write hook keeps counts, sums, latest, recent and rollups, whoever writes. On a
//! deployment there is no hook: here the planner gets each changed document's two images, and its effects are written
//! in the same transaction.

use crate::error::Result;
use crate::shop::Shop;
use crate::unit::Place;
use bson::{Bson, Document, RawBson, RawDocumentBuf, doc};
use model::keep::Keeper;
use model::keep::effect::{Change, Effect, Newest, Spread};
use std::collections::BTreeMap;
use store::{Find, Session, Update};

/// What is added to a document's fields.
type Sums = BTreeMap<String, Bson>;

/// A copy to spread: which, its source, and what the source's fields are now.
type Copied = (std::sync::Arc<Spread>, Bson, Vec<(String, Option<Bson>)>);

#[derive(Default)]
struct Work {
    /// By collection and id (as a document, for its order), what is added.
    parents: BTreeMap<(String, Vec<u8>), (Bson, Sums)>,
    rolls: BTreeMap<(String, Vec<u8>), (Document, Sums)>,
    newest: Vec<(String, Bson, std::sync::Arc<Newest>)>,
    spreads: Vec<Copied>,
}

/// Carries out what some changes mean for kept values.
pub(crate) async fn keep(
    shop: &Shop,
    images: &[(&'static str, Option<Document>, Option<Document>)],
    session: &mut Session,
    changed: &mut Vec<Place>,
) -> Result<()> {
    let Some(keeper) = shop.keeper() else { return Ok(()) };
    let mut work = Work::default();
    for (collection, before, after) in images {
        plan(keeper, collection, before.as_ref(), after.as_ref(), &mut work)?;
    }
    for ((collection, _), (id, sums)) in work.parents {
        let handle = shop.collection(&collection);
        handle.update_one(doc! { "_id": &id }, add(sums), Update::default(), Some(&mut *session)).await?;
        note(&collection, &id, changed);
    }
    for ((collection, _), (key, sums)) in work.rolls {
        roll(shop, &collection, key, sums, session).await?;
    }
    for (collection, parent, rule) in work.newest {
        newest(shop, &collection, &parent, &rule, session).await?;
        note(&collection, &parent, changed);
    }
    for (spread, id, values) in work.spreads {
        copies(shop, &spread, &id, values, session).await?;
    }
    Ok(())
}

fn note(collection: &str, id: &Bson, changed: &mut Vec<Place>) {
    if let (Some(name), Bson::String(id)) = (crate::shop::COLLECTIONS.iter().find(|name| **name == collection), id) {
        changed.push((name, id.clone()));
    }
}

fn raw(document: &Document) -> Result<RawDocumentBuf> {
    Ok(RawDocumentBuf::try_from(document)?)
}

fn tree(value: RawBson) -> Result<Bson> {
    Ok(Bson::try_from(value)?)
}

fn plan(
    keeper: &Keeper,
    collection: &str,
    before: Option<&Document>,
    after: Option<&Document>,
    work: &mut Work,
) -> Result<()> {
    if !keeper.watches(collection) {
        return Ok(());
    }
    let (before, after) = (before.map(raw).transpose()?, after.map(raw).transpose()?);
    let effects = keeper.others(collection, before.as_deref(), after.as_deref(), false).map_err(store::Error::from)?;
    for effect in effects {
        match effect {
            Effect::Parent { collection, id, change } => {
                let id = tree(id)?;
                match change {
                    Change::Add { field, amount } => {
                        let key = (collection, doc! { "": &id }.to_vec()?);
                        let sums = &mut work.parents.entry(key).or_insert_with(|| (id, Sums::new())).1;
                        grow(sums, field, tree(amount.into())?);
                    }
                    Change::Newest { rule, .. } => {
                        if !work.newest.iter().any(|(_, other, known)| *other == id && *known == rule) {
                            work.newest.push((collection, id, rule));
                        }
                    }
                    Change::Extreme { rule, .. } => {
                        let why = format!("`{}`: the shop does not keep a min or max", rule.field);
                        return Err(store::Error::new(115, why).into());
                    }
                }
            }
            Effect::Roll { collection, key, documents, amounts } => {
                let bytes = key.as_bytes().to_vec();
                let key = Document::try_from(&*key)?;
                let sums = &mut work.rolls.entry((collection, bytes)).or_insert_with(|| (key, Sums::new())).1;
                grow(sums, "_documents".to_owned(), Bson::Int64(documents));
                for (name, amount) in amounts {
                    grow(sums, name, tree(amount.into())?);
                }
            }
            Effect::Spread { spread, id, values }
                if before.is_some() && spread.steps.iter().all(|(_, in_array)| !in_array) =>
            {
                let values = values
                    .into_iter()
                    .map(|(name, value)| Ok((name, value.map(tree).transpose()?)))
                    .collect::<Result<_>>()?;
                work.spreads.push((spread, tree(id)?, values));
            }
            _ => {}
        }
    }
    Ok(())
}

fn grow(sums: &mut Sums, field: String, amount: Bson) {
    let sum = sums.entry(field).or_insert(Bson::Int64(0));
    let whole = |value: &Bson| match value {
        Bson::Int32(number) => i64::from(*number),
        Bson::Int64(number) => *number,
        _ => 0, // the shop's model adds up whole numbers only
    };
    *sum = Bson::Int64(whole(sum) + whole(&amount));
}

fn add(sums: Sums) -> Document {
    doc! { "$inc": sums.into_iter().collect::<Document>() }
}

async fn roll(shop: &Shop, collection: &str, key: Document, sums: Sums, session: &mut Session) -> Result<()> {
    let handle = shop.collection(collection);
    let mut update = add(sums);
    update.insert("$setOnInsert", key.clone());
    let upsert = Update { upsert: true, ..Update::default() };
    handle.update_one(doc! { "_id": &key }, update, upsert, Some(&mut *session)).await?;
    handle.delete_one(doc! { "_id": key, "_documents": 0 }, Some(session)).await?;
    Ok(())
}

/// A `latest` or `recent` as its children say.
async fn newest(shop: &Shop, parents: &str, parent: &Bson, rule: &Newest, session: &mut Session) -> Result<()> {
    let mut filter = Document::try_from(&*rule.filter)?;
    filter.insert(rule.by.clone(), parent.clone());
    let direction = if rule.descending { 1 } else { -1 };
    let mut sort = doc! { rule.order.clone(): direction };
    sort.insert("_id", -1);
    let options = Find { sort: Some(sort), limit: rule.keep.unwrap_or(1) as i64, ..Find::default() };
    let children = shop.collection(&rule.children).find(filter, options, Some(&mut *session)).await?;
    let mut copies = Vec::new();
    for child in children {
        let mut copy = doc! { "_id": child.get("_id").cloned().unwrap_or(Bson::Null) };
        for (name, path) in &rule.fields {
            if let Some(value) = child.get(path) {
                copy.insert(name.clone(), value.clone());
            }
        }
        copies.push(Bson::Document(copy));
    }
    let value = match rule.keep {
        Some(_) => Some(Bson::Array(copies)),
        None => copies.into_iter().next(),
    };
    let update = match value {
        Some(value) => doc! { "$set": { rule.field.clone(): value } },
        None => doc! { "$unset": { rule.field.clone(): "" } },
    };
    shop.collection(parents).update_one(doc! { "_id": parent }, update, Update::default(), Some(session)).await?;
    Ok(())
}

/// Live copies follow their source.
async fn copies(
    shop: &Shop,
    spread: &Spread,
    id: &Bson,
    values: Vec<(String, Option<Bson>)>,
    session: &mut Session,
) -> Result<()> {
    let (mut set, mut unset) = (Document::new(), Document::new());
    let place: String = spread.steps.iter().map(|(step, _)| format!("{step}.")).collect();
    for (name, value) in values {
        let path = spread.name.as_ref().map_or(name.clone(), |inner| format!("{inner}.{name}"));
        let path = format!("{place}{path}");
        match value {
            Some(value) => set.insert(path, value),
            None => unset.insert(path, ""),
        };
    }
    let mut update = Document::new();
    for (operator, fields) in [("$set", set), ("$unset", unset)] {
        if !fields.is_empty() {
            update.insert(operator, fields);
        }
    }
    let filter = doc! { spread.via.clone(): id };
    shop.collection(&spread.holders).update_many(filter, update, Update::default(), Some(session)).await?;
    Ok(())
}
