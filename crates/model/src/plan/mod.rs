//! The plan: which indexes serve the declared queries and the model's own upkeep, and how collections are sharded.
//!
//! [`need`] turns queries and declarations into needs, [`index`] turns needs into as few indexes as serve them all,
//! [`shard`] chooses a shard key by cardinality, frequency, monotonicity and the share of queries that reach one shard,
//! with a simulated distribution. Nothing here touches a database.

pub mod index;
pub mod need;
pub mod shard;

use crate::language::entity::Entity;
use crate::model::Model;
use crate::show::bytes;
use crate::value::Duration;
use index::Index;
use serde::Serialize;
use shard::ShardPlan;
use std::fmt::Write;

/// The plan of a whole model.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// One part per collection, by entity.
    pub collections: Vec<CollectionPlan>,
}

/// The plan of one collection.
#[derive(Clone, Debug, Serialize)]
pub struct CollectionPlan {
    /// The entity, or what else the collection belongs to.
    pub entity: String,
    /// The collection.
    pub collection: String,
    /// Its indexes beside the one on `_id`.
    pub indexes: Vec<Index>,
    /// Needs that no further index serves, with what serves them.
    pub notes: Vec<String>,
    /// How it is sharded, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardPlan>,
}

/// Plans a model's indexes; with `shards`, its shard keys over so many shards too.
pub fn plan(model: &Model, shards: Option<usize>) -> Plan {
    let mut collections = Vec::new();
    for entity in model.all_entities() {
        let (indexes, notes) = index::indexes(model, &entity);
        let shard = shards.map(|shards| shard::choose(model, &entity, shards.max(1)));
        collections.push(CollectionPlan {
            entity: entity.name.clone(),
            collection: entity.collection.clone(),
            indexes,
            notes,
            shard,
        });
        collections.extend(helpers(&entity));
    }
    collections.sort_by(|a, b| a.collection.cmp(&b.collection));
    Plan { collections }
}

/// The collections that an entity's declarations need beside its own.
fn helpers(entity: &Entity) -> Vec<CollectionPlan> {
    let mut list = Vec::new();
    let mut add = |owner: String, collection: &str, indexes: Vec<Index>| {
        list.push(CollectionPlan {
            entity: owner,
            collection: collection.to_owned(),
            indexes,
            notes: Vec::new(),
            shard: None,
        });
    };
    for bucket in &entity.parts.buckets {
        let index = Index::plain(&[&bucket.by, "first"], "chunks of one parent in the order of their children");
        add(format!("bucket {}", bucket.name), &bucket.collection, vec![index]);
    }
    for split in &entity.parts.splits {
        add(format!("split {}", split.name), &split.collection, Vec::new());
    }
    for stock in &entity.parts.stocks {
        let ledger = Index::plain(&["item", "at"], "the movements of one item in order");
        add(format!("ledger of {}", stock.name), &stock.ledger, vec![ledger]);
        if let Some(holds) = &stock.holds {
            let by_item = Index::plain(&["item", "expiresAt"], "the holds on one item");
            let mut due = Index::plain(&["expiresAt"], "holds that are due");
            // Holds that the model keeps end by their expiry; others are ended by whoever keeps them.
            due.expire_after = stock.kept.then_some(Duration { ms: 0 });
            add(format!("holds of {}", stock.name), holds, vec![by_item, due]);
        }
    }
    list
}

impl Plan {
    /// The plan of a collection.
    pub fn collection(&self, name: &str) -> Option<&CollectionPlan> {
        self.collections.iter().find(|plan| plan.collection == name)
    }

    /// The plan for a person.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for plan in &self.collections {
            let _ = writeln!(text, "{} ({})", plan.collection, plan.entity);
            for index in &plan.indexes {
                let _ = writeln!(text, "  {}", index.describe());
                for reason in &index.serves {
                    let _ = writeln!(text, "      for {reason}");
                }
                for note in &index.notes {
                    let _ = writeln!(text, "      {note}");
                }
                if index.entries_per_second > 0.0 || index.total_bytes > 0 {
                    let size = bytes(index.total_bytes);
                    let _ =
                        writeln!(text, "      costs {:.1} entries written a second, {size}", index.entries_per_second);
                }
            }
            if plan.indexes.is_empty() {
                let _ = writeln!(text, "  no index beside the one on _id");
            }
            for note in &plan.notes {
                let _ = writeln!(text, "  {note}");
            }
            if let Some(shard) = &plan.shard {
                shard.render(&mut text);
            }
            text.push('\n');
        }
        text
    }

    /// The plan as JSON, indented, in a stable order.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a plan has no map with keys that are not texts");
        text.push('\n');
        text
    }
}
