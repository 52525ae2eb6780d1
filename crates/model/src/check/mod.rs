//! The checks of a whole model, once every declaration has been read.
//!
//! Each finds everything it can and refuses with a reason: what cannot be kept true, what cannot be stored, what would
//! be declared in vain. They run on a model without reading errors, so that a misspelt line is reported once.

mod children;
mod copies;
mod keys;
mod queries;
mod storage;

use crate::language::entity::Entity;
use crate::model::{Body, Model};
use crate::problem::{Problem, Problems, Span, suggest};
use crate::shape::Shape;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Checks a model, adding what is wrong to `problems`.
pub fn check(model: &Model, problems: &mut Problems) {
    let shapes = model.all_entities().iter().map(|entity| (entity.name.clone(), model.shape(entity))).collect();
    let mut check = Check { model, problems, shapes };
    storage::names(&mut check);
    storage::references(&mut check);
    if check.problems.has_errors() {
        return;
    }
    copies::check(&mut check);
    children::check(&mut check);
    storage::check(&mut check);
    queries::check(&mut check);
    keys::check(&mut check);
}

/// What the checks carry along.
pub(super) struct Check<'m, 'p> {
    model: &'m Model,
    problems: &'p mut Problems,
    shapes: BTreeMap<String, Shape>,
}

impl<'m> Check<'m, '_> {
    fn wrong(&mut self, rule: &'static str, span: Span, message: String, help: impl Into<String>) {
        self.problems.push(Problem::new(rule, span, message).help(help));
    }

    fn warn(&mut self, rule: &'static str, span: Span, message: String, help: impl Into<String>) {
        self.problems.push(Problem::warning(rule, span, message).help(help));
    }

    fn entities(&self) -> Vec<Cow<'m, Entity>> {
        self.model.all_entities()
    }

    /// Reports an entity that doesn't exist; `place` starts the message.
    fn entity_exists(&mut self, place: &str, name: &str, span: Span) -> bool {
        if self.model.entity(name).is_some() {
            return true;
        }
        let help = suggest(name, "entities", self.model.entity_names());
        self.wrong("unknown-entity", span, format!("{place}: there is no entity `{name}`"), help);
        false
    }

    /// Reports a path that an entity doesn't have.
    fn path_exists(&mut self, place: &str, entity: &str, path: &str, span: Span) -> bool {
        let Some(shape) = self.shapes.get(entity) else { return false };
        if shape.has(path) {
            return true;
        }
        let help = suggest(path, "fields", shape.paths());
        self.wrong("unknown-field", span, format!("{place}: `{entity}` has no field `{path}`"), help);
        false
    }
}

/// Every body of an entity with the path it starts at: the entity's own, and those of its embeds and objects.
pub(crate) fn bodies(entity: &Entity) -> Vec<(String, &Body)> {
    fn add<'b>(prefix: String, body: &'b Body, list: &mut Vec<(String, &'b Body)>) {
        let embeds = body.embeds.iter().map(|embed| (&embed.name, &embed.body));
        let inner: Vec<_> = embeds.chain(body.fields.iter().map(|field| (&field.name, &field.body))).collect();
        list.push((prefix.clone(), body));
        for (name, body) in inner {
            add(format!("{prefix}{name}."), body, list);
        }
    }
    let mut list = Vec::new();
    add(String::new(), &entity.body, &mut list);
    list
}
