//! From a model to what is to be done about changes in each collection.

use super::bucket::Pack;
use super::declaration::{self, Declaration, Rule};
use super::effect::{Apart, Extreme, Newest, Packed, Referrers, Spread, Stocked};
use super::timeline::{Fan, Follows};
use super::{Adds, Bounded, Condition, Contribution, CopyIn, Keeper, Kept, KeptRule, Roll, RollExtreme, Watch};
use crate::language::copy::Copied;
use crate::language::derived::{Derived, Kind};
use crate::language::embed::WhenFull;
use crate::language::entity::Entity;
use crate::language::filter::{Condition as Line, Test};
use crate::language::live::{Overflow, Sync};
use crate::language::reference::OnDelete;
use crate::language::rollup::Value;
use crate::language::timeline::Mode;
use crate::model::{Body, Model};
use crate::value::{Literal, SortKey};
use bson::{Bson, Document, RawDocumentBuf};
use engine::filter::Filter;
use engine::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Prepares a model.
pub(super) fn compile(model: &Model) -> Result<Keeper> {
    let mut keeper = Keeper { watches: BTreeMap::new(), declarations: Vec::new() };
    for entity in model.all_entities() {
        let derived_only =
            model.declared(&entity.name).is_none() && !model.edges.iter().any(|edge| edge.name == entity.name);
        if derived_only {
            continue;
        }
        keeper.watch(&entity.collection).entity = entity.name.clone();
        copies(&mut keeper, model, &entity);
        own_rules(&mut keeper, &entity);
        stocks(&mut keeper, &entity)?;
        children(&mut keeper, model, &entity)?;
    }
    edges(&mut keeper, model)?;
    rollups(&mut keeper, model)?;
    timelines(&mut keeper, model)?;
    keeper.declarations.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(keeper)
}

impl Keeper {
    fn watch(&mut self, collection: &str) -> &mut Watch {
        self.watches.entry(collection.to_owned()).or_default()
    }

    fn declare(&mut self, name: &str, collection: &str, source: &str, rule: Rule) {
        let (name, collection, source) = (name.to_owned(), collection.to_owned(), source.to_owned());
        self.declarations.push(Declaration { name, collection, source, rule });
    }
}

/// A model's filter in MongoDB's language.
pub(super) fn filter(lines: &[Line]) -> Result<RawDocumentBuf> {
    let mut all = Vec::new();
    for line in lines {
        let values = |values: &[Literal]| Bson::Array(values.iter().map(literal).collect());
        let (operator, value) = match &line.test {
            Test::In(list) => ("$in", values(list)),
            Test::NotIn(list) => ("$nin", values(list)),
            Test::Gt(value) => ("$gt", literal(value)),
            Test::Gte(value) => ("$gte", literal(value)),
            Test::Lt(value) => ("$lt", literal(value)),
            Test::Lte(value) => ("$lte", literal(value)),
            Test::Exists(exists) => ("$exists", Bson::Boolean(*exists)),
        };
        let mut test = Document::new();
        test.insert(operator, value);
        let mut condition = Document::new();
        condition.insert(line.path.clone(), test);
        all.push(Bson::Document(condition));
    }
    let mut filter = Document::new();
    if !all.is_empty() {
        filter.insert("$and", all);
    }
    raw(&filter)
}

pub(crate) fn raw(document: &Document) -> Result<RawDocumentBuf> {
    RawDocumentBuf::try_from(document).map_err(|error| Error::bad_value(error.to_string()))
}

fn literal(literal: &Literal) -> Bson {
    match literal {
        Literal::Null => Bson::Null,
        Literal::Bool(value) => Bson::Boolean(*value),
        Literal::Int(value) => Bson::Int64(*value),
        Literal::Double(value) => Bson::Double(*value),
        Literal::Text(value) => Bson::String(value.clone()),
    }
}

fn condition(lines: &[Line]) -> Result<Condition> {
    let source = filter(lines)?;
    let parsed = match lines.is_empty() {
        true => None,
        false => Some(Filter::parse(&source, &mut engine::expression::Parser::new(), None)?),
    };
    Ok(Condition { filter: parsed, source })
}

/// The fields of a copy: their names and their paths in the source.
fn pairs(fields: &[Copied]) -> Vec<(String, String)> {
    fields.iter().map(|copied| (copied.name.clone(), copied.source().to_owned())).collect()
}

/// Every body with the steps that lead to it.
type Steps = Vec<(String, Option<Option<String>>)>;

fn walk<'b>(body: &'b Body, steps: &Steps, visit: &mut dyn FnMut(&'b Body, &Steps)) {
    visit(body, steps);
    for embed in &body.embeds {
        let mut inner = steps.clone();
        inner.push((embed.name.clone(), embed.many.then(|| embed.key.clone())));
        walk(&embed.body, &inner, visit);
    }
    for field in &body.fields {
        let mut inner = steps.clone();
        inner.push((field.name.clone(), field.list.then_some(None)));
        walk(&field.body, &inner, visit);
    }
}

/// Copies and references of an entity, seen from both ends.
fn copies(keeper: &mut Keeper, model: &Model, entity: &Entity) {
    walk(&entity.body, &Steps::new(), &mut |body, steps| {
        let prefix: String = steps.iter().map(|(name, _)| format!("{name}.")).collect();
        for reference in &body.refs {
            let Some(source) = model.declared(&reference.to).map(|source| source.collection.clone()) else { continue };
            let path = format!("{prefix}{}", reference.name);
            let many = reference.many || steps.iter().any(|(_, many)| many.is_some());
            let rule = Rule::Reference { path: path.clone(), many };
            keeper.declare(&format!("{}.{path}", entity.name), &entity.collection, &source, rule);
            if reference.on_delete != OnDelete::Keep {
                keeper.watch(&source).referrers.push(Arc::new(Referrers {
                    declaration: format!("{}.{path}", entity.name),
                    collection: entity.collection.clone(),
                    path: path.clone(),
                    many,
                    on_delete: reference.on_delete,
                }));
            }
            let here = |via: &String| *via == reference.name;
            for snapshot in body.snapshots.iter().filter(|copy| here(&copy.via)) {
                let declaration = copy_name(entity, &prefix, "snapshot", snapshot.name.as_ref(), &snapshot.via);
                keeper.copy(
                    &entity.collection,
                    CopyIn {
                        declaration,
                        fill: Some(snapshot.fill),
                        steps: steps.clone(),
                        reference: reference.name.clone(),
                        name: snapshot.name.clone(),
                        source: source.clone(),
                        fields: pairs(&snapshot.fields),
                    },
                );
            }
            for live in body.lives.iter().filter(|copy| here(&copy.via)) {
                let declaration = copy_name(entity, &prefix, "live", live.name.as_ref(), &live.via);
                keeper.copy(
                    &entity.collection,
                    CopyIn {
                        declaration: declaration.clone(),
                        fill: None,
                        steps: steps.clone(),
                        reference: reference.name.clone(),
                        name: live.name.clone(),
                        source: source.clone(),
                        fields: pairs(&live.fields),
                    },
                );
                keeper.watch(&source).spreads.push(Arc::new(Spread {
                    declaration,
                    holders: entity.collection.clone(),
                    via: path.clone(),
                    steps: steps.iter().map(|(name, many)| (name.clone(), many.is_some())).collect(),
                    reference: reference.name.clone(),
                    name: live.name.clone(),
                    fields: pairs(&live.fields),
                    refuse_above: match live.sync {
                        Sync::Txn { max, overflow: Overflow::Refuse } => Some(max),
                        _ => None,
                    },
                    max_lag_ms: match live.sync {
                        Sync::Lag { max } => Some(max.ms),
                        Sync::Txn { .. } => None,
                    },
                }));
            }
        }
    });
}

/// The name of a copy: its own, or the kind with the reference that it follows.
fn copy_name(entity: &Entity, prefix: &str, kind: &str, name: Option<&String>, via: &str) -> String {
    match name {
        Some(name) => format!("{}.{prefix}{name}", entity.name),
        None => format!("{}.{prefix}{kind}({via})", entity.name),
    }
}

impl Keeper {
    fn copy(&mut self, holders: &str, copy: CopyIn) {
        let copy = Arc::new(copy);
        self.declare(&copy.declaration, holders, &copy.source, Rule::Copy(copy.clone()));
        self.watch(holders).copies.push(copy);
    }
}

/// Rules about an entity's own documents.
fn own_rules(keeper: &mut Keeper, entity: &Entity) {
    let bounded = entity.body.embeds.iter().filter(|embed| embed.many).filter_map(|embed| {
        Some(Bounded {
            name: embed.name.clone(),
            max: embed.max? as usize,
            key: embed.key.clone(),
            drop_oldest: embed.when_full == Some(WhenFull::DropOldest),
        })
    });
    let lists = entity.body.fields.iter().filter(|field| field.list).filter_map(|field| {
        Some(Bounded { name: field.name.clone(), max: field.max? as usize, key: None, drop_oldest: false })
    });
    let watch = keeper.watch(&entity.collection);
    watch.bounded.extend(bounded.chain(lists));
    watch.states.extend(entity.parts.states.iter().cloned());
    watch.stocks.extend(entity.parts.stocks.iter().cloned());
    watch.lock = entity.parts.lock.as_ref().map(|lock| lock.field.clone());
    for stock in &entity.parts.stocks {
        keeper.watch(&stock.ledger).ledger = Some(format!("{}.{}", entity.name, stock.name));
    }
    for split in &entity.parts.splits {
        let declaration = format!("{}.{}", entity.name, split.name);
        let rule = Apart { declaration, parts: split.collection.clone(), fields: split.fields.clone() };
        let rule = Arc::new(rule);
        keeper.declare(&rule.declaration, &entity.collection, &rule.parts, Rule::Split(rule.clone()));
        keeper.watch(&entity.collection).aparts.push(rule);
    }
    for compress in &entity.parts.compressed {
        let rule = Arc::new(Packed {
            declaration: format!("{}.{}", entity.name, compress.field),
            path: compress.field.clone(),
            above: compress.above as usize,
            with: compress.with,
        });
        keeper.declare(&rule.declaration, &entity.collection, &entity.collection, Rule::Compressed(rule.clone()));
        keeper.watch(&entity.collection).packed.push(rule);
    }
}

/// Quantities that follow their ledger and holds: sums over both.
fn stocks(keeper: &mut Keeper, entity: &Entity) -> Result<()> {
    for stock in entity.parts.stocks.iter().filter(|stock| stock.kept) {
        let rule = Arc::new(Stocked {
            declaration: format!("{}.{}", entity.name, stock.name),
            items: entity.collection.clone(),
            field: stock.name.clone(),
            held: stock.held.clone(),
            ledger: stock.ledger.clone(),
            holds: stock.holds.clone(),
            hold_for_ms: stock.hold_for.map_or(0, |time| time.ms as i64),
        });
        let declaration = rule.declaration.clone();
        keeper.declare(&declaration, &rule.items, &rule.ledger, Rule::Stock(rule.clone()));
        for field in std::iter::once(&rule.field).chain(&rule.held) {
            keeper.watch(&rule.items).kept.push(Kept {
                field: field.clone(),
                declaration: declaration.clone(),
                rule: KeptRule::Number,
            });
        }
        let mut adds = |from: &str, field: &str, taken: bool, filter: bson::Document| -> Result<()> {
            let source = raw(&filter)?;
            let filter = Some(Filter::parse(&source, &mut engine::expression::Parser::new(), None)?);
            keeper.watch(from).contributions.push(Contribution {
                declaration: declaration.clone(),
                parents: rule.items.clone(),
                by: super::stock::ITEM.to_owned(),
                filter: Condition { filter, source },
                kind: Adds::Amount { field: field.to_owned(), path: super::stock::QUANTITY.to_owned(), taken },
            });
            Ok(())
        };
        adds(&rule.ledger, &rule.field, false, super::stock::counted_lines())?;
        if let (Some(holds), Some(held)) = (&rule.holds, &rule.held) {
            adds(holds, &rule.field, true, super::stock::open_holds())?;
            adds(holds, held, false, super::stock::open_holds())?;
            keeper.watch(holds).holds.push(rule.clone());
        }
        keeper.watch(&rule.ledger).lines.push(rule);
    }
    Ok(())
}

/// The order's field is always among the copied ones.
fn with_order(fields: &[Copied], order: &SortKey) -> (Vec<(String, String)>, String) {
    let mut pairs = pairs(fields);
    let known = pairs.iter().find(|(_, path)| *path == order.path).map(|(name, _)| name.clone());
    let name = known.unwrap_or_else(|| {
        let name = order.path.rsplit('.').next().unwrap_or(&order.path).to_owned();
        pairs.push((name.clone(), order.path.clone()));
        name
    });
    pairs.retain(|(name, _)| name != "_id");
    (pairs, name)
}

/// What an entity's documents keep from their children.
fn children(keeper: &mut Keeper, model: &Model, entity: &Entity) -> Result<()> {
    for derived in &entity.parts.derived {
        let Some(child) = model.entity(&derived.of).map(|child| child.collection.clone()) else { continue };
        let condition = condition(&derived.filter)?;
        let kind = adds(derived, &child, &condition);
        let rule = match &kind {
            Adds::One(_) | Adds::Amount { .. } => KeptRule::Number,
            Adds::Extreme(rule) => KeptRule::Extreme(rule.clone()),
            Adds::Newest(rule) => KeptRule::Newest(rule.clone()),
        };
        let declaration = format!("{}.{}", entity.name, derived.name);
        let audited = match &kind {
            Adds::One(field) => Rule::Number(number(field, &derived.by, &condition, None)),
            Adds::Amount { field, path, .. } => Rule::Number(number(field, &derived.by, &condition, Some(path))),
            Adds::Extreme(rule) => Rule::Extreme(rule.clone()),
            Adds::Newest(rule) => Rule::Newest(rule.clone()),
        };
        keeper.declare(&declaration, &entity.collection, &child, audited);
        keeper.watch(&entity.collection).kept.push(Kept {
            field: derived.name.clone(),
            declaration: declaration.clone(),
            rule,
        });
        keeper.watch(&child).contributions.push(Contribution {
            declaration,
            parents: entity.collection.clone(),
            by: derived.by.clone(),
            filter: condition,
            kind,
        });
    }
    for recent in &entity.parts.recents {
        let Some(child) = model.entity(&recent.of).map(|child| child.collection.clone()) else { continue };
        let condition = condition(&recent.filter)?;
        let (fields, order_name) = with_order(&recent.fields, &recent.order);
        let newest = Newest {
            field: recent.name.clone(),
            keep: Some(recent.keep as usize),
            children: child.clone(),
            by: recent.by.clone(),
            order: recent.order.path.clone(),
            order_name,
            descending: recent.order.descending,
            fields,
            filter: condition.source.clone(),
        };
        let newest = Arc::new(newest);
        let declaration = format!("{}.{}", entity.name, recent.name);
        keeper.declare(&declaration, &entity.collection, &child, Rule::Newest(newest.clone()));
        keeper.watch(&entity.collection).kept.push(Kept {
            field: recent.name.clone(),
            declaration: declaration.clone(),
            rule: KeptRule::Newest(newest.clone()),
        });
        keeper.watch(&child).contributions.push(Contribution {
            declaration,
            parents: entity.collection.clone(),
            by: recent.by.clone(),
            filter: condition,
            kind: Adds::Newest(newest),
        });
    }
    for bucket in &entity.parts.buckets {
        let Some(child) = model.entity(&bucket.of).map(|child| child.collection.clone()) else { continue };
        let (fields, order_name) = match bucket.fields.is_empty() {
            true => (Vec::new(), bucket.order.path.clone()),
            false => with_order(&bucket.fields, &bucket.order),
        };
        let pack = Arc::new(Pack {
            declaration: format!("{}.{}", entity.name, bucket.name),
            collection: bucket.collection.clone(),
            by: bucket.by.clone(),
            order: bucket.order.path.clone(),
            order_name,
            items: bucket.items as usize,
            bytes: bucket.bytes as usize,
            fields,
        });
        keeper.declare(&pack.declaration, &pack.collection, &child, Rule::Bucket(pack.clone()));
        keeper.watch(&child).packs.push(pack);
    }
    Ok(())
}

fn number(field: &str, by: &str, condition: &Condition, amount: Option<&String>) -> declaration::Number {
    declaration::Number {
        field: field.to_owned(),
        by: by.to_owned(),
        filter: condition.source.clone(),
        amount: amount.cloned(),
    }
}

fn adds(derived: &Derived, children: &str, condition: &Condition) -> Adds {
    let path = derived.field.clone().unwrap_or_default();
    match derived.kind {
        Kind::Count => Adds::One(derived.name.clone()),
        Kind::Sum => Adds::Amount { field: derived.name.clone(), path, taken: false },
        Kind::Min | Kind::Max => Adds::Extreme(Arc::new(Extreme {
            field: derived.name.clone(),
            largest: derived.kind == Kind::Max,
            children: children.to_owned(),
            by: derived.by.clone(),
            path,
            filter: condition.source.clone(),
        })),
        Kind::Latest => {
            let order = derived.order.clone().unwrap_or(SortKey { path: "_id".into(), descending: false });
            let (fields, order_name) = with_order(&derived.fields, &order);
            Adds::Newest(Arc::new(Newest {
                field: derived.name.clone(),
                keep: None,
                children: children.to_owned(),
                by: derived.by.clone(),
                order: order.path.clone(),
                order_name,
                descending: order.descending,
                fields,
                filter: condition.source.clone(),
            }))
        }
    }
}

/// Edges count on both ends, and mutual ones have a reverse row.
fn edges(keeper: &mut Keeper, model: &Model) -> Result<()> {
    for edge in &model.edges {
        let ends = [(&edge.count_from, &edge.from, &edge.from_field), (&edge.count_to, &edge.to, &edge.to_field)];
        for (name, entity, by) in ends {
            let (Some(name), Some(parent)) = (name, model.declared(entity)) else { continue };
            let declaration = format!("{}.{name}", parent.name);
            let condition = condition(&edge.filter)?;
            let audited = Rule::Number(number(name, by, &condition, None));
            keeper.declare(&declaration, &parent.collection, &edge.collection, audited);
            keeper.watch(&parent.collection).kept.push(Kept {
                field: name.clone(),
                declaration: declaration.clone(),
                rule: KeptRule::Number,
            });
            let contribution = Contribution {
                declaration,
                parents: parent.collection.clone(),
                by: by.clone(),
                filter: condition,
                kind: Adds::One(name.clone()),
            };
            keeper.watch(&edge.collection).contributions.push(contribution);
        }
        if edge.mutual {
            let rule = Rule::Mirror { from: edge.from_field.clone(), to: edge.to_field.clone() };
            keeper.declare(&edge.name, &edge.collection, &edge.collection, rule);
            keeper.watch(&edge.collection).mirror = Some((edge.from_field.clone(), edge.to_field.clone()));
        }
    }
    Ok(())
}

/// Items that are pushed into inboxes; those that are pulled need nothing but their index.
fn timelines(keeper: &mut Keeper, model: &Model) -> Result<()> {
    for timeline in model.timelines.iter().filter(|timeline| timeline.mode != Mode::Pull) {
        let Some(edge) = model.edges.iter().find(|edge| edge.name == timeline.along) else { continue };
        let (Some(items), Some(authors)) = (model.entity(&timeline.of), model.declared(&edge.to)) else { continue };
        let (fields, order_name) = with_order(&timeline.fields, &timeline.order);
        let most = timeline.threshold.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
        let fan = Arc::new(Fan {
            declaration: timeline.name.clone(),
            rows: timeline.collection.clone(),
            edges: edge.collection.clone(),
            from: edge.from_field.clone(),
            to: edge.to_field.clone(),
            filter: filter(&edge.filter)?,
            items: items.collection.clone(),
            by: timeline.by.clone(),
            order: timeline.order.path.clone(),
            order_name,
            cap: timeline.cap as usize,
            fields,
            authors: authors.collection.clone(),
            threshold: edge.count_to.clone().zip(most),
        });
        keeper.declare(&fan.declaration, &fan.rows, &fan.edges, Rule::Timeline(fan.clone()));
        keeper.watch(&fan.items).fans.push(fan.clone());
        let follows = Follows { fan: fan.clone(), filter: condition(&edge.filter)? };
        keeper.watch(&fan.edges).follows.push(follows);
        keeper.watch(&fan.authors).authors.push(fan);
    }
    Ok(())
}

fn rollups(keeper: &mut Keeper, model: &Model) -> Result<()> {
    for rollup in &model.rollups {
        let Some(source) = model.entity(&rollup.of).map(|source| source.collection.clone()) else { continue };
        let tz = match &rollup.tz {
            Some(name) => jiff::tz::TimeZone::get(name).map_err(|error| Error::bad_value(error.to_string()))?,
            None => jiff::tz::TimeZone::UTC,
        };
        let named = |kind: Kind| rollup.values.iter().filter(move |value| value.kind == kind);
        let extreme = |value: &Value| RollExtreme {
            name: value.name.clone(),
            path: value.field.clone().unwrap_or_default(),
            largest: value.kind == Kind::Max,
        };
        let roll = Roll {
            declaration: rollup.name.clone(),
            collection: rollup.collection.clone(),
            source: source.clone(),
            unwind: rollup.unwind.clone(),
            keys: rollup.by.clone(),
            tz,
            counts: named(Kind::Count).map(|value| value.name.clone()).collect(),
            sums: named(Kind::Sum).map(|value| (value.name.clone(), value.field.clone().unwrap_or_default())).collect(),
            extremes: named(Kind::Min).chain(named(Kind::Max)).map(extreme).collect(),
            filter: condition(&rollup.filter)?,
        };
        let roll = Arc::new(roll);
        keeper.declare(&rollup.name, &rollup.collection, &source, Rule::Roll(roll.clone()));
        keeper.watch(&source).rolls.push(roll);
    }
    Ok(())
}
