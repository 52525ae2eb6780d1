//! What a change of the model means for a live database: collections, indexes, copies to backfill, fields to drop.
//!
//! The steps are in the order in which they can be taken online, while old and new programs run side by side: first what
//! only adds (collections, indexes, validators that accept both), then backfills, then the switch, and last what removes.
//! Nothing that removes data is done without being asked for.

use crate::check::bodies;
use crate::language::entity::Entity;
use crate::model::Model;
use crate::plan::{Plan, plan};
use crate::shape::{Origin, Shape};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One step from the old model to the new one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum Step {
    /// Make a collection.
    CreateCollection {
        /// Which.
        collection: String,
    },
    /// Build an index.
    CreateIndex {
        /// On which collection.
        collection: String,
        /// The index, as the shell would take it.
        index: String,
    },
    /// Let the validator accept old and new documents.
    WidenValidator {
        /// Of which collection.
        collection: String,
    },
    /// Fill copies, counters and other kept values.
    Backfill {
        /// In which collection.
        collection: String,
        /// Which field.
        field: String,
        /// The declaration that keeps it.
        by: String,
    },
    /// A field that must be there is missing in old documents.
    FillRequired {
        /// In which collection.
        collection: String,
        /// Which field.
        field: String,
    },
    /// A field has another type.
    ConvertField {
        /// In which collection.
        collection: String,
        /// Which field.
        field: String,
        /// The old type.
        from: String,
        /// The new type.
        to: String,
    },
    /// Let the new model take effect.
    Activate,
    /// Let the validator accept new documents only.
    TightenValidator {
        /// Of which collection.
        collection: String,
    },
    /// Drop an index (only with `--drop`).
    DropIndex {
        /// Of which collection.
        collection: String,
        /// The index.
        index: String,
    },
    /// Remove a field (only with `--drop`).
    DropField {
        /// From which collection.
        collection: String,
        /// Which field.
        field: String,
    },
    /// Drop a collection (only with `--drop`).
    DropCollection {
        /// Which.
        collection: String,
    },
}

impl Step {
    /// Whether it removes an index or data.
    pub fn removes(&self) -> bool {
        matches!(self, Step::DropIndex { .. } | Step::DropField { .. } | Step::DropCollection { .. })
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::CreateCollection { collection } => write!(f, "create collection {collection}"),
            Step::CreateIndex { collection, index } => write!(f, "create index on {collection}: {index}"),
            Step::WidenValidator { collection } => {
                write!(f, "let the validator of {collection} accept old and new documents")
            }
            Step::Backfill { collection, field, by } => write!(f, "backfill {collection}.{field} ({by})"),
            Step::FillRequired { collection, field } => {
                write!(f, "give old documents of {collection} the required field {field}")
            }
            Step::ConvertField { collection, field, from, to } => {
                write!(f, "convert {collection}.{field} from {from} to {to}")
            }
            Step::Activate => f.write_str("activate the new model"),
            Step::TightenValidator { collection } => {
                write!(f, "let the validator of {collection} accept new documents only")
            }
            Step::DropIndex { collection, index } => {
                write!(f, "drop index of {collection}: {index} (only with --drop)")
            }
            Step::DropField { collection, field } => write!(f, "drop field {collection}.{field} (only with --drop)"),
            Step::DropCollection { collection } => write!(f, "drop collection {collection} (only with --drop)"),
        }
    }
}

/// The steps from one model to another, in the order in which they can be taken online; none if nothing changes.
pub fn diff(old: &Model, new: &Model) -> Vec<Step> {
    if old == new {
        return Vec::new();
    }
    let (old_plan, new_plan) = (plan(old, None), plan(new, None));
    let (mut first, mut backfills, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for part in &new_plan.collections {
        if old_plan.collection(&part.collection).is_none() {
            first.push(Step::CreateCollection { collection: part.collection.clone() });
        }
    }
    let (old_indexes, new_indexes) = (indexes(&old_plan), indexes(&new_plan));
    for (collection, index) in new_indexes.iter().filter(|pair| !old_indexes.contains(pair)) {
        first.push(Step::CreateIndex { collection: collection.clone(), index: index.clone() });
    }
    let mut tighten = Vec::new();
    for entity in new.all_entities() {
        let before = old.entity(&entity.name).map(|entity| (old.shape(&entity), kept(old, &entity)));
        let existed = before.is_some();
        let (old_shape, old_kept) = before.unwrap_or_default();
        let changes = Changes { collection: &entity.collection, old: &old_shape, new: &new.shape(&entity) };
        if existed && changes.any() {
            first.push(Step::WidenValidator { collection: entity.collection.clone() });
            tighten.push(Step::TightenValidator { collection: entity.collection.clone() });
        }
        for (field, declaration) in kept(new, &entity) {
            if old_kept.get(&field) != Some(&declaration) {
                let by = declaration.split(':').next().unwrap_or_default().to_owned();
                backfills.push(Step::Backfill { collection: entity.collection.clone(), field, by });
            }
        }
        if existed {
            changes.steps(&mut backfills, &mut last);
        }
    }
    backfills.extend(moved(old, new));
    for (collection, index) in old_indexes.iter().filter(|pair| !new_indexes.contains(pair)) {
        if new_plan.collection(collection).is_some() {
            last.push(Step::DropIndex { collection: collection.clone(), index: index.clone() });
        }
    }
    for part in old_plan.collections.iter().filter(|part| new_plan.collection(&part.collection).is_none()) {
        last.push(Step::DropCollection { collection: part.collection.clone() });
    }
    last.sort_by_key(|step| matches!(step, Step::DropCollection { .. }));
    let mut steps = first;
    steps.extend(backfills);
    steps.push(Step::Activate);
    steps.extend(tighten);
    steps.extend(last);
    steps
}

fn indexes(plan: &Plan) -> Vec<(String, String)> {
    let lines = |part: &crate::plan::CollectionPlan| {
        let collection = part.collection.clone();
        part.indexes.iter().map(move |index| (collection.clone(), index.describe())).collect::<Vec<_>>()
    };
    plan.collections.iter().flat_map(lines).collect()
}

/// Every kept field of an entity with its declaration in one line, so that a change of the declaration is seen.
fn kept(model: &Model, entity: &Entity) -> BTreeMap<String, String> {
    let mut list = BTreeMap::new();
    for (prefix, body) in bodies(entity) {
        for live in &body.lives {
            for copied in &live.fields {
                let base = live.name.as_ref().map_or(prefix.clone(), |name| format!("{prefix}{name}."));
                list.insert(format!("{base}{}", copied.name), format!("live:{}:{}", live.via, copied.source()));
            }
        }
        for snapshot in &body.snapshots {
            for copied in &snapshot.fields {
                let base = snapshot.name.as_ref().map_or(prefix.clone(), |name| format!("{prefix}{name}."));
                list.insert(format!("{base}{}", copied.name), format!("snapshot:{}:{}", snapshot.via, copied.source()));
            }
        }
    }
    for derived in &entity.parts.derived {
        list.insert(derived.name.clone(), format!("{}:{}", derived.kind.name(), json(derived)));
    }
    for recent in &entity.parts.recents {
        list.insert(recent.name.clone(), format!("recent:{}", json(recent)));
    }
    for bucket in &entity.parts.buckets {
        list.insert(bucket.name.clone(), format!("bucket:{}", json(bucket)));
    }
    for edge in &model.edges {
        let from = edge.count_from.iter().filter(|_| edge.from == entity.name);
        let to = edge.count_to.iter().filter(|_| edge.to == entity.name);
        for name in from.chain(to) {
            list.insert(name.clone(), format!("edge:{}:{}", edge.name, json(&edge.filter)));
        }
    }
    if let Some(rollup) = model.rollups.iter().find(|rollup| rollup.name == entity.name) {
        list.insert("*".into(), format!("rollup:{}", json(rollup)));
    }
    list
}

/// A declaration's canonical JSON.
fn json<T: Serialize>(declaration: &T) -> String {
    serde_json::to_string(declaration).expect("a declaration has no map with keys that are not texts")
}

/// Entities whose collection has another name.
fn moved(old: &Model, new: &Model) -> Vec<Step> {
    let pairs = new.entities.iter().filter_map(|entity| Some((old.declared(&entity.name)?, entity)));
    pairs
        .filter(|(before, after)| before.collection != after.collection)
        .map(|(before, after)| Step::Backfill {
            collection: after.collection.clone(),
            field: "*".into(),
            by: format!("copy of {}", before.collection),
        })
        .collect()
}

/// The fields of one entity before and after.
struct Changes<'s> {
    collection: &'s str,
    old: &'s Shape,
    new: &'s Shape,
}

impl Changes<'_> {
    fn any(&self) -> bool {
        let facts = |shape: &Shape| -> Vec<(String, String)> {
            shape
                .iter()
                .map(|(path, leaf)| {
                    (path.to_owned(), format!("{:?} {} {} {:?}", leaf.kind, leaf.required, leaf.array, leaf.values))
                })
                .collect()
        };
        facts(self.old) != facts(self.new)
    }

    fn steps(&self, fills: &mut Vec<Step>, drops: &mut Vec<Step>) {
        let collection = self.collection.to_owned();
        for (path, leaf) in self.new.iter() {
            let field = path.to_owned();
            match self.old.leaf(path) {
                Some(before) if before.kind != leaf.kind => fills.push(Step::ConvertField {
                    collection: collection.clone(),
                    field,
                    from: before.kind.name().into(),
                    to: leaf.kind.name().into(),
                }),
                Some(before) if before.required => {}
                _ if leaf.required && matches!(leaf.origin, Origin::Field | Origin::Ref(_) | Origin::States) => {
                    fills.push(Step::FillRequired { collection: collection.clone(), field });
                }
                _ => {}
            }
        }
        for (path, _) in self.old.iter() {
            let parent_dropped = path.rsplit_once('.').is_some_and(|(parent, _)| !self.new.has(parent));
            if !self.new.has(path) && !parent_dropped {
                drops.push(Step::DropField { collection: collection.clone(), field: path.to_owned() });
            }
        }
    }
}

/// The steps for a person.
pub fn render(steps: &[Step]) -> String {
    if steps.is_empty() {
        return "nothing changes\n".into();
    }
    let mut text = String::new();
    for (number, step) in steps.iter().enumerate() {
        let _ = writeln!(text, "{:3}. {step}", number + 1);
    }
    text
}

/// The steps as JSON, indented, with a final newline.
pub fn to_json(steps: &[Step]) -> String {
    let mut text = serde_json::to_string_pretty(steps).expect("a step has no map with keys that are not texts");
    text.push('\n');
    text
}
