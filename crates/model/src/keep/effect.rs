//! What a change of one document causes: data, independent of where it is carried out.

use super::bucket::Packing;
use super::rollup::Group;
use super::timeline::{Fan, Fanned};
use super::{CopyIn, Roll};
use crate::language::compress::Codec;
use crate::language::reference::OnDelete;
use bson::{Document, RawBson, RawDocumentBuf};
use engine::document::Number;
use std::sync::Arc;

/// Something that must happen for a change to keep the model true.
#[derive(Clone, Debug)]
pub enum Effect {
    /// The change itself breaks the model and must not be made.
    Refuse {
        /// The declaration it breaks, e.g. `order.status`.
        declaration: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A field of the changed document itself gets a value (`None` removes it).
    Set {
        /// Where in the document.
        place: Place,
        /// The value.
        value: Option<RawBson>,
    },
    /// Fields of the changed document are copied from another one.
    Fill(Fill),
    /// A derived value of a parent changes.
    Parent {
        /// The parent's collection.
        collection: String,
        /// The parent's id.
        id: RawBson,
        /// What changes.
        change: Change,
    },
    /// Copies in other documents follow a change of this one.
    Spread {
        /// What is copied where.
        spread: Arc<Spread>,
        /// The id of the changed document.
        id: RawBson,
        /// The new values, by their names in the copy; `None` for a field that is gone.
        values: Vec<(String, Option<RawBson>)>,
    },
    /// The document goes, and others refer to it.
    Referrers {
        /// Who they are and what becomes of them.
        rule: Arc<Referrers>,
        /// The id of the document that goes.
        id: RawBson,
    },
    /// The reverse row of a mutual edge follows.
    Mirror(Mirror),
    /// Rarely read fields go into the document's other part; without fields, the part goes.
    Apart {
        /// Which declaration.
        rule: Arc<Apart>,
        /// The document's id, which is the part's too.
        id: RawBson,
        /// The fields with their values.
        fields: Option<Vec<(String, RawBson)>>,
    },
    /// The line of a ledger that is being appended says what was there before and is there after it.
    Line {
        /// Which declaration.
        rule: Arc<Stocked>,
        /// What it is a line of.
        item: RawBson,
        /// By how much the quantity changes.
        quantity: i64,
    },
    /// A line is appended to a ledger.
    Append {
        /// The ledger.
        ledger: String,
        /// The line.
        line: Document,
    },
    /// The inboxes of a timeline change.
    Fan {
        /// Which declaration.
        fan: Arc<Fan>,
        /// What is to be settled in them.
        what: Fanned,
    },
    /// The chunks that a child is packed into change.
    Pack(Packing),
    /// A rollup's values change under one key.
    Roll {
        /// Which declaration.
        roll: Arc<Roll>,
        /// The document that changed.
        child: RawBson,
        /// What changes.
        group: Group,
    },
}

/// A place in a document: names, with an element's position after the name of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place(pub Vec<Step>);

/// One step into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field.
    Name(String),
    /// An element.
    Index(usize),
}

impl Place {
    /// A top-level field.
    pub fn top(name: &str) -> Place {
        Place(vec![Step::Name(name.to_owned())])
    }

    /// A place further in.
    pub fn then(&self, step: Step) -> Place {
        let mut steps = self.0.clone();
        steps.push(step);
        Place(steps)
    }

    /// The fields of a dotted path below this place.
    pub fn path(&self, path: &str) -> Place {
        path.split('.').fold(self.clone(), |place, name| place.then(Step::Name(name.to_owned())))
    }
}

/// A copy to be taken from its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill {
    /// Which declaration.
    pub copy: Arc<CopyIn>,
    /// The source's id.
    pub id: RawBson,
    /// The sub-document that gets the fields.
    pub place: Place,
    /// Whether values that are there already are replaced.
    pub replace: bool,
}

/// How a derived value of a parent changes.
#[derive(Clone, Debug)]
pub enum Change {
    /// A count or sum grows by so much.
    Add {
        /// The parent's field.
        field: String,
        /// By how much.
        amount: Number,
    },
    /// A `min` or `max`: one child's value left, another one came.
    Extreme {
        /// Which declaration.
        rule: Arc<Extreme>,
        /// The value that is gone.
        gone: Option<RawBson>,
        /// The value that came.
        came: Option<RawBson>,
        /// The child.
        child: RawBson,
    },
    /// A `latest` or `recent`: one child left, came, or changed.
    Newest {
        /// Which declaration.
        rule: Arc<Newest>,
        /// The child's id.
        child: RawBson,
        /// Its copied fields, if it belongs to the parent now.
        came: Option<Document>,
    },
}

/// A `min` or `max` declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Extreme {
    /// The parent's field.
    pub field: String,
    /// The largest instead of the smallest.
    pub largest: bool,
    /// The children's collection.
    pub children: String,
    /// The children's field with the parent's id.
    pub by: String,
    /// The children's field that is compared.
    pub path: String,
    /// Which children count.
    pub filter: RawDocumentBuf,
}

/// A `latest` or `recent` declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest {
    /// The parent's field.
    pub field: String,
    /// `None` for `latest`, which is one sub-document; otherwise the length of the list.
    pub keep: Option<usize>,
    /// The children's collection.
    pub children: String,
    /// The children's field with the parent's id.
    pub by: String,
    /// The children's path that orders them.
    pub order: String,
    /// Its name in the copy.
    pub order_name: String,
    /// Whether the smallest is the newest.
    pub descending: bool,
    /// The copied fields: their names in the copy and their paths in the child.
    pub fields: Vec<(String, String)>,
    /// Which children count.
    pub filter: RawDocumentBuf,
}

/// A live copy, seen from its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// The declaration, e.g. `post.author`.
    pub declaration: String,
    /// The collection that holds the copies.
    pub holders: String,
    /// The path of the reference in a holder.
    pub via: String,
    /// The steps to the sub-documents with the reference: names, and whether each is an array.
    pub steps: Vec<(String, bool)>,
    /// The reference's name in them.
    pub reference: String,
    /// The sub-document of the copy in them.
    pub name: Option<String>,
    /// The fields: their names in the copy and their paths in the source.
    pub fields: Vec<(String, String)>,
    /// The most copies that a change may take along; more is refused.
    pub refuse_above: Option<u64>,
    /// How far the copies may be behind, in milliseconds.
    pub max_lag_ms: Option<u64>,
}

/// References to a collection, and what a delete there does to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Referrers {
    /// The declaration, e.g. `order.userId`.
    pub declaration: String,
    /// The collection that holds the references.
    pub collection: String,
    /// The path of the reference.
    pub path: String,
    /// Whether the reference is an array of ids.
    pub many: bool,
    /// What becomes of them.
    pub on_delete: OnDelete,
}

/// A `split` declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Apart {
    /// The declaration, e.g. `user.profile`.
    pub declaration: String,
    /// The collection of the other parts.
    pub parts: String,
    /// The fields that stand there.
    pub fields: Vec<String>,
}

/// A `compress` declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// The declaration, e.g. `article.body`.
    pub declaration: String,
    /// The path of the field.
    pub path: String,
    /// Values up to this many bytes are left alone.
    pub above: usize,
    /// How it is compressed.
    pub with: Codec,
}

/// A `stock` declaration that the model keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Stocked {
    /// The declaration, e.g. `sku.available`.
    pub declaration: String,
    /// The items' collection.
    pub items: String,
    /// Their field with what is available.
    pub field: String,
    /// Their field with what is set aside.
    pub held: Option<String>,
    /// The collection of the movements.
    pub ledger: String,
    /// The collection of the holds.
    pub holds: Option<String>,
    /// How long a hold lives that doesn't say so.
    pub hold_for_ms: i64,
}

/// The reverse row of a mutual edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    /// The edge's collection.
    pub collection: String,
    /// The field it starts from, and the one it leads to.
    pub ends: (String, String),
    /// The reverse row's ends.
    pub from: RawBson,
    /// See `from`.
    pub to: RawBson,
    /// What the reverse row holds beside its id and ends; `None` if it goes.
    pub fields: Option<Document>,
}
