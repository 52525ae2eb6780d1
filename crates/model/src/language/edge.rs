//! `edge NAME from=ENTITY to=ENTITY directed|mutual [collection=C] [from-field=F] [to-field=F] [count-from=F] [count-to=F] { … }`
//!
//! A relation between two entities, each pair a document of its own: unique, read from both ends, counted on both ends
//! if `count-from` (on the entity it starts from) and `count-to` name a field. A `mutual` edge has a document for each
//! direction; writing the second one is a no-op, deleting one deletes both. Its block holds further fields, and `where`
//! lines that say which edges are counted (e.g. not the blocked ones).

use super::entity::{Entity, check_collection};
use super::expect::Expect;
use super::filter::{self, Condition};
use super::reference::{OnDelete, Ref};
use super::unique::Unique;
use super::{Args, Declaration, Place, Reader, Target};
use crate::model::Body;
use crate::problem::{Problem, Span};
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "edge",
    places: &[Place::Top],
    syntax: "edge NAME from=ENTITY to=ENTITY directed count-from=FIELD count-to=FIELD { field … }",
    meaning: "a relation between two entities as documents of its own",
    parse,
};

/// A relation stored as documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// Its name.
    pub name: String,
    /// Its collection.
    pub collection: String,
    /// The entity it starts from.
    pub from: String,
    /// The entity it leads to.
    pub to: String,
    /// The field with the id it starts from.
    pub from_field: String,
    /// The field with the id it leads to.
    pub to_field: String,
    /// Whether both directions are stored.
    pub mutual: bool,
    /// The field on `from` that counts the edges that start there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_from: Option<String>,
    /// The field on `to` that counts the edges that end there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_to: Option<String>,
    /// Which edges are counted.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<Condition>,
    /// Edges that start from, and end at, one document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// Further fields.
    #[serde(flatten)]
    pub body: Body,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

impl Edge {
    /// Its documents as an entity that queries can be declared on.
    pub fn as_entity(&self) -> Entity {
        let mut entity = Entity::new(&self.name, &self.collection, self.span);
        entity.body = self.body.clone();
        entity.expect = self.expect.clone();
        for (field, to) in [(&self.from_field, &self.from), (&self.to_field, &self.to)] {
            let mut reference = Ref::new(field, to, self.span);
            reference.required = true;
            reference.on_delete = OnDelete::Cascade;
            reference.expect = self.expect.clone();
            entity.body.refs.push(reference);
        }
        let fields = vec![self.from_field.clone(), self.to_field.clone()];
        entity.parts.uniques.push(Unique { fields, filter: Vec::new(), span: self.span });
        entity
    }
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let (mutual, directed) = (args.flag("mutual"), args.flag("directed"));
    if mutual == directed {
        args.wrong("missing", span, "an edge is either `directed` (follows) or `mutual` (friends)".into());
    }
    let name = args.name("an edge");
    let collection = args.text("collection").unwrap_or_else(|| name.clone());
    check_collection(&mut args, &collection);
    let (from, to) = (args.required("from"), args.required("to"));
    let mut edge = Edge {
        name,
        collection,
        from,
        to,
        from_field: args.text("from-field").unwrap_or_else(|| "from".into()),
        to_field: args.text("to-field").unwrap_or_else(|| "to".into()),
        mutual,
        count_from: args.text("count-from"),
        count_to: args.text("count-to"),
        filter: Vec::new(),
        expect: None,
        body: Body::default(),
        span,
    };
    if edge.from_field == edge.to_field {
        args.wrong("duplicate", span, "`from-field` and `to-field` are the same field".into());
    }
    if mutual && edge.from != edge.to {
        args.wrong("bad-value", span, "a `mutual` edge joins documents of one entity".into());
    }
    args.finish();
    block(reader, node, &mut edge);
    let model = target.model();
    if model.entity_names().contains(&edge.name.as_str()) {
        let message = format!("edge `{}` has the name of another declaration", edge.name);
        reader.problems.push(Problem::new("duplicate", span, message).help("give one of them another name"));
    }
    model.edges.push(edge);
}

/// Reads the block: `where` lines here, everything else by the table.
fn block(reader: &mut Reader, node: &KdlNode, edge: &mut Edge) {
    let Some(children) = node.children() else { return };
    let mut others = kdl::KdlDocument::new();
    for child in children.nodes() {
        match child.name().value() {
            "where" => filter::line(reader, child, &mut edge.filter),
            _ => others.nodes_mut().push(child.clone()),
        }
    }
    let mut rest = node.clone();
    rest.set_children(others);
    let path = edge.name.clone();
    reader.children(&rest, &path, Target::Edge(edge));
}
