//! The groups of a rollup, kept embedded.

use super::embedded::ModelHook;
use super::value::document;
use super::{compile, newest};
use bson::{Bson, RawBsonRef, RawDocument, doc};
use engine::Result;
use engine::document::Number;
use engine::hook::HookScope;

impl ModelHook {
    /// A rollup's group grows or shrinks; an empty one goes.
    pub(super) fn roll(
        &self,
        collection: &str,
        key: &RawDocument,
        documents: i64,
        amounts: &[(String, Number)],
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        const DOCUMENTS: &str = "_documents";
        let namespace = self.namespace(collection)?;
        let stored = scope.get(&namespace, RawBsonRef::Document(key))?;
        let key = document(key)?;
        let mut group = match &stored {
            Some(stored) => document(stored)?,
            None => {
                let mut group = doc! { "_id": key.clone() };
                group.extend(key.clone());
                group
            }
        };
        newest::add(&mut group, DOCUMENTS, Number::Int64(documents))?;
        for (name, amount) in amounts {
            newest::add(&mut group, name, *amount)?;
        }
        let left = newest::number(group.get(DOCUMENTS))?;
        match (stored.is_some(), left.is_zero()) {
            (true, true) => {
                let id = newest::raw(&Bson::Document(key))?;
                scope.delete(&namespace, id.as_raw_bson_ref())?;
            }
            (true, false) => {
                scope.replace(&namespace, compile::raw(&group)?)?;
            }
            (false, true) => {}
            (false, false) => scope.insert(&namespace, compile::raw(&group)?)?,
        }
        Ok(())
    }
}
