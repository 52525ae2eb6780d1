//! `timeline NAME along=EDGE of=ENTITY by=FIELD order=FIELD cap=N mode=push|pull|hybrid [threshold=N] [collection=C] { fields … }`
//!
//! Fan-out of items along edges into capped inboxes: whoever has an edge to the author finds the author's items in an
//! inbox. `push` writes each item into the inbox of every follower, `pull` reads the items of all followed authors,
//! `hybrid` pushes those of authors with at most `threshold` followers and pulls the rest. An inbox entry is a document
//! `{_id: {owner, item}, ownerId, itemId, authorId, <order>, …copied fields}`; the oldest beyond `cap` are dropped.

use super::copy::{self, Copied};
use super::entity::{Entity, check_collection};
use super::reference::{OnDelete, Ref};
use super::unique::Unique;
use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::{Problem, Span};
use crate::value::{SortKey, Type};
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "timeline",
    places: &[Place::Top],
    syntax: "timeline NAME along=EDGE of=ENTITY by=FIELD order=FIELD cap=N mode=hybrid threshold=N { fields … }",
    meaning: "fan-out of items along edges into capped inboxes",
    parse,
};

/// Fan-out along edges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Its name.
    pub name: String,
    /// The collection of the inbox entries.
    pub collection: String,
    /// The edge from the reader to the author.
    pub along: String,
    /// The items' entity.
    pub of: String,
    /// The items' field with the author's id.
    pub by: String,
    /// The order of an inbox.
    pub order: SortKey,
    /// The most entries in one inbox.
    pub cap: u64,
    /// How items reach their readers.
    pub mode: Mode,
    /// The followers above which a hybrid pulls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// What of an item is copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Copied>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// How items reach their readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Written into every inbox.
    Push,
    /// Read from the authors.
    Pull,
    /// Pushed below, pulled above the threshold.
    Hybrid,
}

impl Timeline {
    /// The inbox entries as an entity that queries can be declared on.
    pub fn as_entity(&self) -> Entity {
        use super::field::Field;
        let mut entity = Entity::new(&self.name, &self.collection, self.span);
        let mut item = Ref::new("itemId", &self.of, self.span);
        item.on_delete = OnDelete::Cascade;
        entity.body.refs.push(item);
        for name in ["ownerId", "authorId"] {
            let mut field = Field::new(name, Type::Any, self.span);
            field.size = Some(12);
            entity.body.fields.push(field);
        }
        let mut order = Field::new(&self.order.path, Type::Any, self.span);
        (order.increasing, order.size) = (true, Some(8));
        entity.body.fields.push(order);
        for copied in self.fields.iter().filter(|copied| copied.name != self.order.path) {
            entity.body.fields.push(Field::new(&copied.name, Type::Any, self.span));
        }
        let fields = vec!["ownerId".into(), "itemId".into()];
        entity.parts.uniques.push(Unique { fields, filter: Vec::new(), span: self.span });
        entity
    }
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("a timeline");
    let collection = args.text("collection").unwrap_or_else(|| name.clone());
    check_collection(&mut args, &collection);
    let (along, of, by) = (args.required("along"), args.required("of"), args.required("by"));
    args.required("order");
    let order = args.sort_key("order").unwrap_or(SortKey { path: "_id".into(), descending: false });
    let cap = args.positive_integer("cap");
    if cap.is_none() {
        args.wrong("missing", span, "`cap=` is missing: an inbox must be bounded".into());
    }
    let mode = args.choice("mode", &[("push", Mode::Push), ("pull", Mode::Pull), ("hybrid", Mode::Hybrid)]);
    let mode = mode.unwrap_or(Mode::Hybrid);
    let mut threshold = args.positive_integer("threshold");
    if mode == Mode::Hybrid && threshold.is_none() {
        threshold = Some(100_000);
    } else if mode != Mode::Hybrid && threshold.is_some() {
        let span = args.span_of("threshold");
        args.wrong("bad-value", span, "`threshold` belongs to mode=hybrid".into());
    }
    args.finish();
    let fields = copy::block(reader, node, &name);
    let cap = cap.unwrap_or(1);
    let timeline = Timeline { name, collection, along, of, by, order, cap, mode, threshold, fields, span };
    let model = target.model();
    if model.entity_names().contains(&timeline.name.as_str()) {
        let message = format!("timeline `{}` has the name of another declaration", timeline.name);
        reader.problems.push(Problem::new("duplicate", span, message).help("give one of them another name"));
    }
    model.timelines.push(timeline);
}
