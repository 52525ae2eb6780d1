//! `advise --measure`: candidate designs built with generated data, and their work measured beside the predicted.
//!
//! For each relation of a model the designs that can be built are built in a temporary store, for a few parents with their usual
//! children. What the relation's queries and writes do is done a number of times in each design; the measured time of each kind
//! times its declared rate is the design's work. Ranks are compared, not times: the prediction must say which design is better.

use super::calibrate::median;
use super::cost;
use super::decide::Design;
use super::relation::Relation;
use super::thresholds::Thresholds;
use bson::{Bson, Document, doc};
use serde::Serialize;
use std::time::Instant;
use store::{Collection, Find, Result, Store, Update};

/// Parents of a measurement.
const PARENTS: i32 = 40;
/// Bytes that all children of a measurement take at most.
const MAX_BYTES: u64 = 20_000_000;
/// Times that an operation is measured.
const REPEATS: i32 = 40;

/// A relation's designs, measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// The relation.
    pub name: String,
    /// The designs with predicted and measured work in milliseconds per second.
    pub designs: Vec<(Design, f64, f64)>,
    /// Kendall's tau between the two rankings: 1 for the same, -1 for the opposite.
    pub tau: f64,
}

/// Measures a relation's designs.
///
/// # Errors
/// What the store refuses.
pub async fn measure(store: &Store, relation: &Relation, table: &Thresholds) -> Result<Measurement> {
    let keep = relation.reads.shown.clamp(1, table.rules.recent.max(1));
    let items = (table.rules.bucket_bytes / relation.element_bytes.max(1)).clamp(1, table.rules.bucket_items);
    let mut designs = vec![Design::Embed, Design::Reference];
    if relation.reads.parent_with > 0.0 && relation.typical > keep {
        designs.push(Design::Recent { keep });
    }
    if relation.typical >= items {
        designs.push(Design::Bucket { items, bytes: table.rules.bucket_bytes });
    }
    let children = relation.typical.min(MAX_BYTES / PARENTS as u64 / relation.element_bytes.max(1)).max(1);
    let mut measured = Vec::new();
    for (number, design) in designs.into_iter().enumerate() {
        let built = Built {
            parents: store.collection("measure", &format!("{}.{number}.parents", relation.name)),
            children: store.collection("measure", &format!("{}.{number}.children", relation.name)),
            relation,
            design,
            count: children as i32,
        };
        built.fill().await?;
        measured.push((design, cost::of_design(relation, design, table), built.work().await?));
        built.parents.drop().await?;
        built.children.drop().await?;
    }
    let tau = kendall(&measured.iter().map(|(_, predicted, measured)| (*predicted, *measured)).collect::<Vec<_>>());
    Ok(Measurement { name: relation.name.clone(), designs: measured, tau })
}

/// Kendall's tau of pairs: agreeing pairs of pairs minus disagreeing ones, over all.
pub fn kendall(pairs: &[(f64, f64)]) -> f64 {
    let (mut agreeing, mut all) = (0.0, 0.0);
    for (number, a) in pairs.iter().enumerate() {
        for b in &pairs[number + 1..] {
            all += 1.0;
            let product = (a.0 - b.0) * (a.1 - b.1);
            agreeing += if product > 0.0 {
                1.0
            } else if product < 0.0 {
                -1.0
            } else {
                0.0
            };
        }
    }
    if all == 0.0 { 1.0 } else { agreeing / all }
}

struct Built<'r> {
    parents: Collection,
    children: Collection,
    relation: &'r Relation,
    design: Design,
    count: i32,
}

impl Built<'_> {
    fn element(&self, number: i32) -> Document {
        doc! { "k": number, "text": "x".repeat(self.relation.element_bytes.saturating_sub(30) as usize) }
    }

    fn child(&self, parent: i32, number: i32) -> Document {
        let text = "x".repeat(self.relation.document_bytes.saturating_sub(60) as usize);
        doc! { "_id": i64::from(parent) * 1_000_000 + i64::from(number), "p": parent, "n": number, "text": text }
    }

    fn embedded(&self) -> i32 {
        match self.design {
            Design::Embed => self.count,
            Design::Recent { keep } => self.count.min(keep as i32),
            _ => 0,
        }
    }

    async fn fill(&self) -> Result<()> {
        if matches!(self.design, Design::Reference | Design::Recent { .. } | Design::Bucket { .. }) {
            self.children.create_index(doc! { "p": 1, "n": 1 }, false).await?;
        }
        for parent in 0..PARENTS {
            let elements: Vec<Bson> = (0..self.embedded()).map(|number| self.element(number).into()).collect();
            let text = "x".repeat(self.relation.parent_bytes.saturating_sub(60) as usize);
            self.parents.insert_one(doc! { "_id": parent, "text": text, "c": elements, "v": 0 }, None).await?;
            let children: Vec<Document> = match self.design {
                Design::Reference | Design::Recent { .. } => {
                    (0..self.count).map(|number| self.child(parent, number)).collect()
                }
                Design::Bucket { items, .. } => (0..self.count)
                    .step_by(items as usize)
                    .map(|from| {
                        let to = self.count.min(from + items as i32);
                        let elements: Vec<Bson> = (from..to).map(|number| self.element(number).into()).collect();
                        doc! { "_id": i64::from(parent) * 1_000_000 + i64::from(from), "p": parent, "n": from, "c": elements }
                    })
                    .collect(),
                _ => Vec::new(),
            };
            for chunk in children.chunks(1_000) {
                self.children.insert_many(chunk.to_vec(), None).await?;
            }
        }
        Ok(())
    }

    /// The milliseconds of work in a second at the declared rates.
    async fn work(&self) -> Result<f64> {
        let (reads, writes) = (&self.relation.reads, &self.relation.writes);
        let kinds = [
            (reads.parent_with, Kind::ParentWith),
            (reads.parent_alone, Kind::Parent),
            (reads.pages, Kind::Page),
            (reads.singles, Kind::Single),
            (writes.inserts, Kind::Insert),
            (writes.changes, Kind::Change),
            (writes.parent_changes, Kind::ParentChange),
        ];
        let mut milliseconds = 0.0;
        for (rate, kind) in kinds.into_iter().filter(|(rate, _)| *rate > 0.0) {
            let mut times = Vec::new();
            for turn in 0..REPEATS {
                let begun = Instant::now();
                self.once(kind, turn).await?;
                times.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            milliseconds += rate * median(times);
        }
        Ok(milliseconds)
    }

    async fn once(&self, kind: Kind, turn: i32) -> Result<()> {
        let parent = turn * 7 % PARENTS;
        let number = turn * 3 % self.count;
        match kind {
            Kind::Parent => self.parent(parent).await,
            Kind::ParentWith => {
                self.parent(parent).await?;
                let shown = self.relation.reads.shown as i32;
                if self.embedded() < shown.min(self.count) { self.page(parent, shown).await } else { Ok(()) }
            }
            Kind::Page if self.design == Design::Embed => self.parent(parent).await,
            Kind::Page => self.page(parent, self.relation.reads.page as i32).await,
            Kind::Single if self.design == Design::Embed => self.parent(parent).await,
            Kind::Single => {
                let filter = doc! { "_id": self.holder(parent, number) };
                self.children.find_one(filter, None).await.map(|_| ())
            }
            Kind::ParentChange => {
                let inc = doc! { "$inc": { "v": 1 } };
                self.parents.update_one(doc! { "_id": parent }, inc, Update::default(), None).await.map(|_| ())
            }
            Kind::Insert => self.insert(parent, turn).await,
            Kind::Change => self.change(parent, number).await,
        }
    }

    async fn parent(&self, parent: i32) -> Result<()> {
        self.parents.find_one(doc! { "_id": parent }, None).await.map(|_| ())
    }

    async fn page(&self, parent: i32, count: i32) -> Result<()> {
        let per = match self.design {
            Design::Bucket { items, .. } => items as i32,
            _ => 1,
        };
        let limit = i64::from((count.max(1) + per - 1) / per);
        let options = Find { sort: Some(doc! { "n": -1 }), limit, ..Find::default() };
        self.children.find(doc! { "p": parent }, options, None).await.map(|_| ())
    }

    /// The `_id` of the document that holds a child.
    fn holder(&self, parent: i32, number: i32) -> i64 {
        let first = match self.design {
            Design::Bucket { items, .. } => number - number % items as i32,
            _ => number,
        };
        i64::from(parent) * 1_000_000 + i64::from(first)
    }

    async fn insert(&self, parent: i32, turn: i32) -> Result<()> {
        let number = self.count + turn;
        let push = |keep: i32| doc! { "$push": { "c": { "$each": [self.element(number)], "$slice": -keep } } };
        match self.design {
            Design::Embed => {
                let by_id = doc! { "_id": parent };
                self.parents.update_one(by_id, push(self.count), Update::default(), None).await?;
            }
            Design::Bucket { items, .. } => {
                let by_id = doc! { "_id": self.holder(parent, self.count - 1) };
                self.children.update_one(by_id, push(items as i32), Update::default(), None).await?;
            }
            Design::Recent { keep } => {
                self.children.insert_one(self.child(parent, number), None).await?;
                self.parents.update_one(doc! { "_id": parent }, push(keep as i32), Update::default(), None).await?;
            }
            _ => self.children.insert_one(self.child(parent, number), None).await?,
        }
        Ok(())
    }

    async fn change(&self, parent: i32, number: i32) -> Result<()> {
        let set = |field: &str| doc! { "$set": { field: number } };
        match self.design {
            Design::Embed => {
                let by_key = doc! { "_id": parent, "c.k": number };
                self.parents.update_one(by_key, set("c.$.n"), Update::default(), None).await?;
            }
            Design::Bucket { .. } => {
                let by_key = doc! { "_id": self.holder(parent, number), "c.k": number };
                self.children.update_one(by_key, set("c.$.n"), Update::default(), None).await?;
            }
            _ => {
                let by_id = doc! { "_id": self.holder(parent, number) };
                self.children.update_one(by_id, set("m"), Update::default(), None).await?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Kind {
    ParentWith,
    Parent,
    Page,
    Single,
    Insert,
    Change,
    ParentChange,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_of_equal_and_opposite_rankings() {
        assert_eq!(kendall(&[(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]), 1.0);
        assert_eq!(kendall(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), -1.0);
        assert_eq!(kendall(&[(1.0, 1.0)]), 1.0);
    }
}
