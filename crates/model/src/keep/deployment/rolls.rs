//! Rollups on a deployment: one group, changed in a session's transaction.

use super::super::rollup::{Group, Search};
use super::super::value::tree;
use super::super::{Roll, RollExtreme};
use super::records::{number, raw};
use bson::{Bson, Document, RawDocument, doc};
use store::{Collection, Find, Result, Session, Store, Update};

/// Changes a group; an empty one goes. A lost extreme is read again from the documents as the transaction sees them.
pub(super) async fn roll(
    store: &Store,
    database: &str,
    roll: &Roll,
    group: Group,
    session: &mut Session,
) -> Result<u64> {
    let key = Document::try_from(&*group.key)?;
    let mut inc = doc! { "_documents": group.documents };
    let grows = group.documents != 0 || group.amounts.iter().any(|(_, amount)| !amount.is_zero());
    for (name, amount) in group.amounts {
        inc.insert(name, number(amount));
    }
    let (mut least, mut greatest, mut lost) = (Document::new(), Document::new(), Vec::new());
    for (place, (rule, moved)) in roll.extremes.iter().zip(group.extremes).enumerate() {
        match (moved.gone, moved.came) {
            (Some(_), _) => lost.push((place, rule)),
            (None, Some(came)) => {
                let operator = if rule.largest { &mut greatest } else { &mut least };
                operator.insert(rule.name.clone(), tree(came)?);
            }
            (None, None) => {}
        }
    }
    let mut update = doc! { "$inc": inc, "$setOnInsert": key.clone() };
    for (operator, fields) in [("$min", least), ("$max", greatest)] {
        if !fields.is_empty() {
            update.insert(operator, fields);
        }
    }
    let groups = store.collection(database, &roll.collection);
    let by_key = doc! { "_id": key };
    // An extreme alone changes in a group that is there.
    let options = Update { upsert: grows, ..Update::default() };
    groups.update_one(by_key.clone(), update, options, Some(&mut *session)).await?;
    let mut empty = by_key.clone();
    empty.insert("_documents", 0);
    if groups.delete_one(empty, Some(&mut *session)).await? == 0 {
        look_up(&store.collection(database, &roll.source), &groups, roll, lost, &group.key, session).await?;
    }
    Ok(1)
}

async fn look_up(
    source: &Collection,
    groups: &Collection,
    roll: &Roll,
    lost: Vec<(usize, &RollExtreme)>,
    key: &RawDocument,
    session: &mut Session,
) -> Result<()> {
    for (place, rule) in lost {
        let mut search = Search::new(roll, place, key);
        let (filter, sort) = search.query()?;
        let find = Find { sort: Some(sort), ..Find::default() };
        let mut cursor = source.stream(filter, find, Some(&mut *session)).await?;
        while let Some(image) = cursor.next(Some(&mut *session)).await? {
            if search.take(&raw(&image)?)? {
                break;
            }
        }
        let update = match search.found() {
            Some(found) => doc! { "$set": { &rule.name: tree(found)? } },
            None => doc! { "$unset": { &rule.name: 1 } },
        };
        let by_key = doc! { "_id": Bson::Document(Document::try_from(key)?) };
        groups.update_one(by_key, update, Update::default(), Some(&mut *session)).await?;
    }
    Ok(())
}
