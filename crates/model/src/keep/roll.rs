//! The groups of a rollup, kept embedded.

use super::embedded::ModelHook;
use super::rollup::{Group, Search};
use super::value::{document, owned, tree};
use super::{Roll, compile, newest};
use bson::{Bson, Document, RawBson, RawBsonRef, RawDocument, doc};
use engine::Result;
use engine::hook::HookScope;

/// How many documents are read at first to find an extreme; more if it isn't among them.
const FIRST: usize = 16;

impl ModelHook {
    /// A rollup's group changes; an empty one goes. Without the document that changed it, its extremes are read again.
    pub(super) fn roll(
        &self,
        roll: &Roll,
        group: &Group,
        writing: Option<&RawBson>,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        const DOCUMENTS: &str = "_documents";
        let namespace = self.namespace(&roll.collection)?;
        let stored = scope.get(&namespace, RawBsonRef::Document(&group.key))?;
        let key = document(&group.key)?;
        let mut changed = match &stored {
            Some(stored) => document(stored)?,
            None => {
                let mut changed = doc! { "_id": key.clone() };
                changed.extend(key.clone());
                changed
            }
        };
        newest::add(&mut changed, DOCUMENTS, engine::document::Number::Int64(group.documents))?;
        for (name, amount) in &group.amounts {
            newest::add(&mut changed, name, *amount)?;
        }
        if newest::number(changed.get(DOCUMENTS))?.is_zero() {
            if stored.is_some() {
                let id = newest::raw(&Bson::Document(key))?;
                scope.delete(&namespace, id.as_raw_bson_ref())?;
            }
            return Ok(());
        }
        for (number, rule) in roll.extremes.iter().enumerate() {
            let lost = match (writing, group.extremes.get(number)) {
                (Some(_), Some(moved)) => {
                    newest::extreme(&mut changed, &rule.name, rule.largest, moved.gone.as_ref(), moved.came.as_ref())?
                }
                _ => true,
            };
            if lost {
                let came = group.extremes.get(number).and_then(|moved| moved.came.as_ref());
                let found = self.look_up_rolled(roll, number, &group.key, writing.map(|id| (id, came)), scope)?;
                put(&mut changed, &rule.name, found)?;
            }
        }
        let changed = compile::raw(&changed)?;
        match stored {
            Some(stored) if stored.as_bytes() == changed.as_bytes() => Ok(()),
            Some(_) => scope.replace(&namespace, changed).map(|_| ()),
            None => scope.insert(&namespace, changed),
        }
    }

    /// An extreme among a group's documents as stored, but for one that is being written.
    fn look_up_rolled(
        &self,
        roll: &Roll,
        number: usize,
        key: &RawDocument,
        writing: Option<(&RawBson, Option<&RawBson>)>,
        scope: &dyn HookScope,
    ) -> Result<Option<RawBson>> {
        let source = self.namespace(&roll.source)?;
        let (filter, sort) = Search::new(roll, number, key).query()?;
        let (filter, sort) = (compile::raw(&filter)?, compile::raw(&sort)?);
        let mut limit = FIRST;
        loop {
            let mut search = Search::new(roll, number, key);
            let found = scope.find_sorted(&source, &filter, &sort, limit)?;
            let mut over = found.len() < limit;
            for image in &found {
                if let Some((id, _)) = writing
                    && owned(image, "_id")?.is_some_and(|other| other == *id)
                {
                    continue;
                }
                if search.take(image)? {
                    over = true;
                    break;
                }
            }
            if over {
                if let Some((_, Some(came))) = writing {
                    search.take_value(came.clone())?;
                }
                return Ok(search.found());
            }
            limit *= 8;
        }
    }
}

fn put(changed: &mut Document, name: &str, value: Option<RawBson>) -> Result<()> {
    match value {
        Some(value) => {
            changed.insert(name, tree(value)?);
        }
        None => {
            changed.remove(name);
        }
    }
    Ok(())
}
