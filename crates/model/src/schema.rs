//! The validator of an entity: its declared types as `$jsonSchema`, for any MongoDB server.
//!
//! A schema says what stands in a field, not what else a document may hold: further fields are allowed. A field that is not
//! required may be null. Whole numbers are taken in both widths, since drivers send the shorter one where it fits.

use crate::language::entity::Entity;
use crate::language::field::Field;
use crate::language::split::Split;
use crate::model::Body;
use crate::value::Type;
use bson::{Bson, Document, doc};

/// The validator of an entity's collection; `None` where there is nothing to check or no validator is possible.
pub fn validator(entity: &Entity) -> Option<Document> {
    if entity.parts.series.is_some() {
        return None;
    }
    let mut schema = body(&within(entity), &compressed(entity));
    let properties = schema.entry("properties").or_insert_with(|| Bson::Document(Document::new()));
    if let Bson::Document(properties) = properties {
        for stock in &entity.parts.stocks {
            for field in std::iter::once(&stock.name).chain(&stock.held) {
                properties.insert(field.clone(), doc! { "bsonType": ["int", "long"], "minimum": 0 });
            }
        }
        for states in &entity.parts.states {
            let mut names: Vec<&str> = vec![&states.start];
            names.extend(states.steps.iter().flat_map(|step| step.from.iter().chain([&step.to]).map(String::as_str)));
            names.sort_unstable();
            names.dedup();
            properties.insert(states.name.clone(), doc! { "enum": names });
        }
        if properties.is_empty() {
            schema.remove("properties");
        }
    }
    (schema.len() > 1).then(|| doc! { "$jsonSchema": schema })
}

/// What stands in the entity's own documents: all but what is split off.
fn within(entity: &Entity) -> Body {
    let mut body = entity.body.clone();
    let apart: Vec<&String> = entity.parts.splits.iter().flat_map(|split| &split.fields).collect();
    body.fields.retain(|field| !apart.contains(&&field.name));
    body.embeds.retain(|embed| !apart.contains(&&embed.name));
    body
}

/// The validator of the documents with the fields that are split off; `None` where there is nothing to check.
pub fn split_validator(entity: &Entity, split: &Split) -> Option<Document> {
    let mut body = entity.body.clone();
    body.fields.retain(|field| split.fields.contains(&field.name));
    body.embeds.retain(|embed| split.fields.contains(&embed.name));
    body.refs.clear();
    // The parts are written field by field: none of them has to be there.
    body.fields.iter_mut().for_each(|field| field.required = false);
    body.embeds.iter_mut().for_each(|embed| embed.required = false);
    let schema = self::body(&body, &compressed(entity));
    (schema.len() > 1).then(|| doc! { "$jsonSchema": schema })
}

/// The fields that stand compressed: bytes in the place of what is declared.
fn compressed(entity: &Entity) -> Vec<&str> {
    entity.parts.compressed.iter().map(|field| field.field.as_str()).collect()
}

fn body(body: &Body, compressed: &[&str]) -> Document {
    let mut required: Vec<&str> = Vec::new();
    let mut properties = Document::new();
    for field in &body.fields {
        if field.required {
            required.push(&field.name);
        }
        let schema = if compressed.contains(&field.name.as_str()) { Document::new() } else { of_field(field) };
        if !schema.is_empty() {
            properties.insert(field.name.clone(), schema);
        }
    }
    for embed in &body.embeds {
        if embed.required {
            required.push(&embed.name);
        }
        let inner = self::body(&embed.body, &[]);
        let schema = match (embed.many, embed.required) {
            (true, required) => list(inner, embed.max, required),
            (false, true) => inner,
            (false, false) => nullable(inner),
        };
        properties.insert(embed.name.clone(), schema);
    }
    for reference in &body.refs {
        if reference.required {
            required.push(&reference.name);
        }
        if reference.many {
            properties.insert(reference.name.clone(), list(Document::new(), reference.max, reference.required));
        }
    }
    let mut schema = doc! { "bsonType": "object" };
    if !required.is_empty() {
        required.sort_unstable();
        schema.insert("required", required);
    }
    if !properties.is_empty() {
        schema.insert("properties", properties);
    }
    schema
}

fn of_field(field: &Field) -> Document {
    let mut inner = Document::new();
    if !field.values.is_empty() {
        let mut values: Vec<Bson> = field.values.iter().map(|value| Bson::String(value.clone())).collect();
        if !field.required && !field.list {
            values.push(Bson::Null);
        }
        inner.insert("enum", values);
    } else if field.kind == Type::Object {
        inner = body(&field.body, &[]);
    } else if let Some(types) = types(field.kind) {
        inner.insert("bsonType", types.to_vec());
    }
    if field.list {
        return list(inner, field.max, field.required);
    }
    if field.required { inner } else { nullable(inner) }
}

/// MongoDB's names of what a declared type takes.
fn types(kind: Type) -> Option<&'static [&'static str]> {
    Some(match kind {
        Type::String => &["string"],
        Type::Int | Type::Long => &["int", "long"],
        Type::Double => &["double", "int", "long"],
        Type::Decimal => &["decimal"],
        Type::Bool => &["bool"],
        Type::Date => &["date"],
        Type::ObjectId => &["objectId"],
        Type::Uuid | Type::Binary => &["binData"],
        Type::Object => &["object"],
        Type::Any => return None,
    })
}

fn list(items: Document, max: Option<u64>, required: bool) -> Document {
    let mut schema = doc! { "bsonType": "array" };
    if let Some(max) = max {
        schema.insert("maxItems", max as i64);
    }
    if !items.is_empty() {
        schema.insert("items", items);
    }
    if required { schema } else { nullable(schema) }
}

/// The same, or null.
fn nullable(mut schema: Document) -> Document {
    match schema.remove("bsonType") {
        Some(Bson::Array(mut types)) => {
            types.push("null".into());
            schema.insert("bsonType", types);
        }
        Some(other) => {
            schema.insert("bsonType", vec![other, "null".into()]);
        }
        None => {}
    }
    schema
}
