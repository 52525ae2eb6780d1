//! `entity NAME [collection=C] [id=TYPE] { … }`: a kind of document.
//!
//! Its collection is its name unless `collection=` says otherwise; its `_id` is an ObjectId unless `id=` names another
//! type (`uuid` means UUIDv7, made by Sheaf's services). All its other declarations stand in its block.

use super::expect::Expect;
use super::{Args, Declaration, Place, Reader, Target};
use crate::model::{Body, Parts};
use crate::problem::{Problem, Span};
use crate::value::Type;
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "entity",
    places: &[Place::Top],
    syntax: "entity NAME collection=COLLECTION id=TYPE { … }",
    meaning: "a kind of document, its collection and the type of its id",
    parse,
};

/// A kind of document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entity {
    /// Its name in the model.
    pub name: String,
    /// The collection its documents are stored in.
    pub collection: String,
    /// The type of its `_id`.
    pub id: Type,
    /// How many there are and how their number grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// What its documents hold.
    #[serde(flatten)]
    pub body: Body,
    /// What is derived for or done with its documents.
    #[serde(flatten)]
    pub parts: Parts,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// The types an `_id` may have.
pub(crate) const ID_TYPES: &[(&str, Type)] = &[
    ("objectId", Type::ObjectId),
    ("uuid", Type::Uuid),
    ("string", Type::String),
    ("int", Type::Int),
    ("long", Type::Long),
    ("object", Type::Object),
    ("any", Type::Any),
];

impl Entity {
    /// An entity without any content.
    pub fn new(name: impl Into<String>, collection: impl Into<String>, span: Span) -> Entity {
        Entity {
            name: name.into(),
            collection: collection.into(),
            id: Type::ObjectId,
            expect: None,
            body: Body::default(),
            parts: Parts::default(),
            span,
        }
    }
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("an entity");
    let collection = args.text("collection").unwrap_or_else(|| name.clone());
    check_collection(&mut args, &collection);
    let mut entity = Entity::new(name, collection, span);
    if let Some(id) = args.choice("id", ID_TYPES) {
        entity.id = id;
    }
    args.finish();
    let model = target.model();
    if model.entity_names().contains(&entity.name.as_str()) {
        let message = format!("entity `{}` is declared twice", entity.name);
        reader.problems.push(Problem::new("duplicate", span, message).help("give one of them another name"));
    }
    let path = entity.name.clone();
    reader.children(node, &path, Target::Entity(&mut entity));
    model.entities.push(entity);
}

/// Refuses names that MongoDB doesn't take for a collection.
pub(super) fn check_collection(args: &mut Args<'_, '_>, collection: &str) {
    if collection.starts_with("system.") || collection.contains('$') || collection.contains('\0') {
        let span = args.span_of("collection");
        args.wrong("bad-name", span, format!("`{collection}` cannot be a collection's name"));
    }
}
