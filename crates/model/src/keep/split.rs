//! Rarely read fields in a document of their own, under the same `_id`.
//!
//! Whoever writes such a field into the document finds it in the other part: it is moved there in the same write, beside what
//! stands there already. A write that leaves the field out leaves it where it is; it is removed in the other part itself.

use super::compile;
use super::effect::{Apart, Effect, Place};
use super::embedded::ModelHook;
use super::value::{document, owned, tree};
use bson::{RawBson, RawDocument, doc};
use engine::Result;
use engine::hook::HookScope;
use std::sync::Arc;

/// Moves the fields that a document holds into its other part.
pub(super) fn apart(rule: &Arc<Apart>, image: &RawDocument, effects: &mut Vec<Effect>) -> Result<()> {
    let mut fields = Vec::new();
    for name in &rule.fields {
        if let Some(value) = engine::document::get(image, name)? {
            fields.push((name.clone(), RawBson::from(value)));
            effects.push(Effect::Set { place: Place::top(name), value: None });
        }
    }
    if let (false, Some(id)) = (fields.is_empty(), owned(image, "_id")?) {
        effects.push(Effect::Apart { rule: rule.clone(), id, fields: Some(fields) });
    }
    Ok(())
}

impl ModelHook {
    /// Puts fields into a document's other part; without fields, the part goes.
    pub(super) fn put_apart(
        &self,
        rule: &Apart,
        id: &RawBson,
        fields: Option<&[(String, RawBson)]>,
        scope: &mut dyn HookScope,
    ) -> Result<()> {
        let namespace = self.namespace(&rule.parts)?;
        let Some(fields) = fields else { return scope.delete(&namespace, id.as_raw_bson_ref()).map(|_| ()) };
        let stored = scope.get(&namespace, id.as_raw_bson_ref())?;
        let mut part = match &stored {
            Some(stored) => document(stored)?,
            None => doc! { "_id": tree(id.clone())? },
        };
        for (name, value) in fields {
            part.insert(name.clone(), tree(value.clone())?);
        }
        let part = compile::raw(&part)?;
        match stored {
            Some(stored) if stored.as_bytes() == part.as_bytes() => Ok(()),
            Some(_) => scope.replace(&namespace, part).map(|_| ()),
            None => scope.insert(&namespace, part),
        }
    }
}
