//! Indexes from needs: equality, sort, range; merged where one serves another's need.
//!
//! An index serves a need if its first keys are the need's equality paths in any order, then the sort in one direction
//! or wholly reversed, then the range. It follows that an index that is a true prefix of another is not made, and that
//! {a, c} is not served by {a, b, c}: between a and c there would be a key that the query doesn't fix.

use super::need::{Need, needs};
use crate::language::entity::Entity;
use crate::language::filter::Condition;
use crate::model::Model;
use crate::shape::Shape;
use crate::size::value_bytes;
use crate::value::Duration;
use serde::Serialize;
use std::fmt::Write;

/// Fields are added to an index for covering only up to this many bytes.
const COVERING_BYTES: u64 = 64;

/// Fields are added for covering only if they are read so many times as often as entries are written.
const COVERING_READS_PER_WRITE: f64 = 10.0;

/// What an entry takes beside its keys' values.
const ENTRY_OVERHEAD: u64 = 16;

/// The most keys of one index.
const MAX_KEYS: usize = 32;

/// A planned index.
#[derive(Clone, Debug, Serialize)]
pub struct Index {
    /// Its name, as MongoDB makes it.
    pub name: String,
    /// Its keys in order.
    pub keys: Vec<Key>,
    /// Whether it refuses duplicates.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
    /// The documents it holds, if not all.
    #[serde(rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<Condition>,
    /// When documents expire by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<Duration>,
    /// What it is for.
    pub serves: Vec<String>,
    /// What a reader of the plan should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Entries written a second: inserts, and two for each change of a key.
    pub entries_per_second: f64,
    /// What it takes at the expected count.
    pub total_bytes: u64,
}

/// One key of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// The field's path.
    pub path: String,
    /// Largest first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub descending: bool,
}

impl Index {
    /// An ascending index with one purpose.
    pub fn plain(paths: &[&str], serves: &str) -> Index {
        let keys = paths.iter().map(|path| Key { path: (*path).to_owned(), descending: false }).collect();
        Index::new(keys, serves.to_owned())
    }

    fn new(keys: Vec<Key>, serves: String) -> Index {
        let mut index = Index {
            name: String::new(),
            keys,
            unique: false,
            partial: Vec::new(),
            expire_after: None,
            serves: vec![serves],
            notes: Vec::new(),
            entries_per_second: 0.0,
            total_bytes: 0,
        };
        index.rename();
        index
    }

    fn rename(&mut self) {
        let parts: Vec<String> =
            self.keys.iter().map(|key| format!("{}_{}", key.path, if key.descending { -1 } else { 1 })).collect();
        self.name = parts.join("_");
        if !self.partial.is_empty() {
            self.name.push_str("_partial");
        }
    }

    /// Its paths in order.
    pub fn paths(&self) -> Vec<&str> {
        self.keys.iter().map(|key| key.path.as_str()).collect()
    }

    /// Its keys and options in one line, as the shell would take them.
    pub fn describe(&self) -> String {
        let keys: Vec<String> = self
            .keys
            .iter()
            .map(|key| {
                let path = if key.path.contains('.') { format!("{:?}", key.path) } else { key.path.clone() };
                format!("{path}: {}", if key.descending { -1 } else { 1 })
            })
            .collect();
        let mut text = format!("{{ {} }}", keys.join(", "));
        if self.unique {
            text.push_str(", unique");
        }
        for condition in &self.partial {
            let _ = write!(text, ", only where {} {}", condition.path, describe_test(&condition.test));
        }
        if let Some(after) = self.expire_after {
            let _ = write!(text, ", expires {after} after the date");
        }
        text
    }

    /// Whether it serves a need as it is.
    fn serves(&self, need: &Need) -> bool {
        let equal = need.equal.len() + need.within.len();
        if self.partial != need.partial || self.keys.len() < equal {
            return false;
        }
        let prefix: Vec<&str> = self.keys[..equal].iter().map(|key| key.path.as_str()).collect();
        if !need.equal.iter().chain(&need.within).all(|path| prefix.contains(&path.as_str())) {
            return false;
        }
        let rest = &self.keys[equal..];
        if rest.len() < need.sort.len() {
            return false;
        }
        let mut reversed = None;
        for (key, sort) in rest.iter().zip(&need.sort) {
            let opposite = key.descending != sort.descending;
            if key.path != sort.path || *reversed.get_or_insert(opposite) != opposite {
                return false;
            }
        }
        let sorted = |path: &str| need.sort.iter().any(|key| key.path == path);
        match need.range.iter().find(|path| !sorted(path)) {
            Some(range) => rest.get(need.sort.len()).is_some_and(|key| key.path == *range),
            None => true,
        }
    }
}

/// A test as the plan's reader sees it.
fn describe_test(test: &crate::language::filter::Test) -> String {
    use crate::language::filter::Test;
    match test {
        Test::In(values) if values.len() == 1 => format!("= {}", values[0]),
        Test::In(values) => format!("in {}", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        Test::NotIn(values) => {
            format!("not in {}", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        Test::Gt(value) => format!("> {value}"),
        Test::Gte(value) => format!(">= {value}"),
        Test::Lt(value) => format!("< {value}"),
        Test::Lte(value) => format!("<= {value}"),
        Test::Exists(exists) => format!("exists: {exists}"),
    }
}

/// The indexes of an entity's collection, and notes on needs without an index of their own.
pub fn indexes(model: &Model, entity: &Entity) -> (Vec<Index>, Vec<String>) {
    let shape = model.shape(entity);
    let mut list = given(entity, &shape);
    let mut notes = Vec::new();
    let all = needs(model, entity);
    let mut order: Vec<(usize, &Need)> = all.iter().enumerate().collect();
    order.sort_by_key(|(position, need)| (std::cmp::Reverse(keys_of(need)), *position));
    for (_, need) in order {
        if let Some(path) = single_document(&shape, entity, need) {
            match list.iter_mut().find(|index| index.unique && index.paths() == [path.as_str()]) {
                Some(index) => index.serves.push(need.reason.clone()),
                None if path == "_id" => notes.push(format!("{} uses the index on _id", need.reason)),
                None => {}
            }
            continue;
        }
        if entity.parts.series.is_some() && need.equal.iter().all(|path| series_path(entity, path)) {
            notes.push(format!("{} uses the time series' own order by meta and time", need.reason));
            continue;
        }
        if let Some(index) = list.iter_mut().find(|index| index.serves(need)) {
            index.serves.push(need.reason.clone());
            continue;
        }
        let (keys, mut remarks) = keys_for(&all, &shape, entity, need);
        if keys.len() == 1 && keys[0].path == "_id" {
            notes.push(format!("{} uses the index on _id", need.reason));
            continue;
        }
        if keys.is_empty() {
            notes.push(format!("{} reads the whole collection", need.reason));
            continue;
        }
        let mut index = Index::new(keys, need.reason.clone());
        index.partial = need.partial.clone();
        index.notes.append(&mut remarks);
        index.rename();
        cover(&mut index, &shape, entity, need);
        list.push(index);
    }
    drop_prefixes(&mut list);
    for index in &mut list {
        cost(index, entity, &shape);
    }
    list.sort_by(|a, b| a.name.cmp(&b.name));
    (list, notes)
}

fn series_path(entity: &Entity, path: &str) -> bool {
    entity.parts.series.as_ref().is_some_and(|series| series.meta.as_deref() == Some(path) || series.time == path)
}

fn keys_of(need: &Need) -> usize {
    need.equal.len() + need.within.len() + need.sort.len() + need.range.len()
}

/// Unique keys and the end of a document's life.
fn given(entity: &Entity, shape: &Shape) -> Vec<Index> {
    let mut list = Vec::new();
    for (path, leaf) in shape.iter().filter(|(path, leaf)| leaf.unique && *path != "_id") {
        let mut index = Index::plain(&[path], &format!("`{path}` is unique"));
        index.unique = true;
        if !leaf.required {
            index
                .notes
                .push(format!("documents without `{path}` share one null: make it required, or there is at most one"));
        }
        list.push(index);
    }
    for unique in &entity.parts.uniques {
        let paths: Vec<&str> = unique.fields.iter().map(String::as_str).collect();
        let mut index = Index::plain(&paths, "unique together");
        index.unique = true;
        index.partial = unique.filter.clone();
        index.rename();
        list.push(index);
    }
    if let Some(expire) = &entity.parts.expire {
        let mut index = Index::plain(&[&expire.field], "the end of a document's life");
        index.expire_after = Some(expire.after);
        list.push(index);
    }
    list
}

/// The unique path by which a need finds at most one document.
fn single_document(shape: &Shape, entity: &Entity, need: &Need) -> Option<String> {
    if !need.partial.is_empty() && need.equal.is_empty() {
        return None;
    }
    let single = need.equal.iter().find(|path| shape.leaf(path).is_some_and(|leaf| leaf.unique));
    let compound = |need: &Need| {
        let whole = |fields: &Vec<String>| fields.iter().all(|field| need.equal.contains(field));
        entity.parts.uniques.iter().any(|unique| unique.filter.is_empty() && whole(&unique.fields))
    };
    match single {
        Some(path) => Some(path.clone()),
        None if compound(need) && need.sort.is_empty() => Some(String::new()),
        None => None,
    }
}

/// The keys a need asks for, in equality, sort, range order.
fn keys_for(all: &[Need], shape: &Shape, entity: &Entity, need: &Need) -> (Vec<Key>, Vec<String>) {
    let mut notes = Vec::new();
    let used = |path: &String| all.iter().filter(|other| other.equal.contains(path)).count();
    let distinct = |path: &String| shape.leaf(path).and_then(|leaf| leaf.distinct).unwrap_or(u64::MAX / 2);
    let mut equal = need.equal.clone();
    equal.sort_by_key(|path| (std::cmp::Reverse(used(path)), std::cmp::Reverse(distinct(path)), path.clone()));
    let mut paths: Vec<Key> = Vec::new();
    let mut arrays: Vec<String> = Vec::new();
    let mut add = |paths: &mut Vec<Key>, notes: &mut Vec<String>, path: &str, descending: bool| {
        if paths.iter().any(|key| key.path == path) || paths.len() >= MAX_KEYS {
            return;
        }
        if shape.leaf(path).is_some_and(|leaf| leaf.array) {
            let top = path.split('.').next().unwrap_or(path).to_owned();
            if arrays.iter().any(|array| *array != top) {
                notes.push(format!("`{path}` is left out: one index cannot hold two arrays"));
                return;
            }
            arrays.push(top);
        }
        paths.push(Key { path: path.to_owned(), descending });
    };
    for path in equal.iter().chain(&need.within) {
        add(&mut paths, &mut notes, path, false);
    }
    let range_first = range_first(shape, entity, need);
    if let Some(reason) = &range_first {
        notes.push(reason.clone());
        for path in &need.range {
            add(&mut paths, &mut notes, path, false);
        }
    }
    for key in &need.sort {
        add(&mut paths, &mut notes, &key.path, key.descending);
    }
    if range_first.is_none() {
        let sorted = |path: &str| need.sort.iter().any(|key| key.path == path);
        if let Some(path) = need.range.iter().find(|path| !sorted(path)) {
            add(&mut paths, &mut notes, path, false);
        }
    }
    (paths, notes)
}

/// Why the range goes before the sort, if that is cheaper.
///
/// In sort order the server reads entries until the limit is full: limit / share of the range. With the range first it
/// reads all entries of the range and sorts them in memory.
fn range_first(shape: &Shape, entity: &Entity, need: &Need) -> Option<String> {
    let share = need.range_share?;
    if need.sort.is_empty() || need.range.iter().all(|path| need.sort.iter().any(|key| key.path == *path)) {
        return None;
    }
    let count = entity.expect.as_ref().and_then(|expect| expect.count)? as f64;
    let selectivity = |path: &String| shape.leaf(path).and_then(|leaf| leaf.distinct).map_or(1.0, |n| 1.0 / n as f64);
    let matched = count * need.equal.iter().map(selectivity).product::<f64>();
    let in_order = need.limit.map_or(matched, |limit| (limit as f64 / share).min(matched));
    let in_range = matched * share;
    let sorted = in_range * (1.0 + in_range.max(2.0).log2() / 10.0);
    (sorted * 2.0 < in_order).then(|| {
        format!(
            "the range stands before the sort here: it reads {in_range:.0} entries and sorts them, where sort order would \
             read {in_order:.0}"
        )
    })
}

/// Adds the fields of a small answer to the index, where that pays.
fn cover(index: &mut Index, shape: &Shape, entity: &Entity, need: &Need) {
    let array = |path: &str| shape.leaf(path).is_none_or(|leaf| leaf.array);
    if need.project.is_empty() || index.paths().into_iter().any(array) || need.project.iter().any(|path| array(path)) {
        return;
    }
    let missing: Vec<String> =
        need.project.iter().filter(|path| !index.paths().contains(&path.as_str())).cloned().collect();
    let added: u64 =
        missing.iter().filter_map(|path| shape.leaf(path)).map(|leaf| value_bytes(leaf.kind, leaf.size)).sum();
    let inserts = entity.expect.as_ref().and_then(|expect| expect.growth).map_or(0.0, |rate| rate.per_second());
    let changes: f64 = missing
        .iter()
        .filter_map(|path| shape.leaf(path))
        .filter_map(|leaf| leaf.changes)
        .map(|rate| rate.per_second())
        .sum();
    if added > COVERING_BYTES || need.per_second < COVERING_READS_PER_WRITE * (inserts + 2.0 * changes) {
        return;
    }
    for path in missing {
        index.keys.push(Key { path, descending: false });
    }
    index.rename();
    let id = if index.paths().contains(&"_id") { "" } else { " (leave _id out of the projection)" };
    index.notes.push(format!("covers {} without reading documents{id}", need.reason));
}

/// Drops plain indexes that are a true prefix of another one.
fn drop_prefixes(list: &mut Vec<Index>) {
    let mut position = 0;
    while position < list.len() {
        let index = &list[position];
        let droppable = !index.unique && index.expire_after.is_none();
        let longer = list.iter().position(|other| {
            other.keys.len() > index.keys.len()
                && other.partial == index.partial
                && agree(&other.keys[..index.keys.len()], &index.keys)
        });
        match longer {
            Some(longer) if droppable => {
                let reasons = std::mem::take(&mut list[position].serves);
                list[longer].serves.extend(reasons);
                list.remove(position);
            }
            _ => position += 1,
        }
    }
}

/// Whether keys are the same, or the same read backwards.
fn agree(a: &[Key], b: &[Key]) -> bool {
    let paths = a.iter().zip(b).all(|(a, b)| a.path == b.path);
    let same = a.iter().zip(b).all(|(a, b)| a.descending == b.descending);
    let reversed = a.iter().zip(b).all(|(a, b)| a.descending != b.descending);
    paths && (same || reversed)
}

/// What an index costs.
fn cost(index: &mut Index, entity: &Entity, shape: &Shape) {
    let expect = entity.expect.as_ref();
    let inserts = expect.and_then(|expect| expect.growth).map_or(0.0, |rate| rate.per_second());
    let leaves: Vec<_> = index.keys.iter().filter_map(|key| shape.leaf(&key.path)).collect();
    let changes: f64 = leaves.iter().filter_map(|leaf| leaf.changes).map(|rate| rate.per_second()).sum();
    let fan = index
        .keys
        .iter()
        .filter(|key| shape.leaf(&key.path).is_some_and(|leaf| leaf.array))
        .map(|key| typical_elements(entity, &key.path))
        .max()
        .unwrap_or(1);
    let partial: f64 = index
        .partial
        .iter()
        .filter_map(|condition| super::need::share(shape.leaf(&condition.path)?, &condition.test))
        .product();
    let states =
        index.keys.iter().filter(|key| entity.parts.states.iter().any(|states| states.name == key.path)).count();
    let moves = expect.and_then(|expect| expect.changes).map_or(0.0, |rate| rate.per_second()) * states.min(1) as f64;
    index.entries_per_second = partial * fan as f64 * (inserts + 2.0 * (changes + moves));
    let entry: u64 = leaves.iter().map(|leaf| value_bytes(leaf.kind, leaf.size)).sum::<u64>() + ENTRY_OVERHEAD;
    let count = expect.and_then(|expect| expect.count).unwrap_or(0);
    index.total_bytes = (count as f64 * partial * fan as f64 * entry as f64) as u64;
}

/// The elements of an array in a usual document.
fn typical_elements(entity: &Entity, path: &str) -> u64 {
    let top = path.split('.').next().unwrap_or(path);
    let embed = entity.body.embeds.iter().find(|embed| embed.name == top);
    let expected = embed.and_then(|embed| embed.expect.as_ref()).and_then(|expect| expect.typical);
    let list = entity.body.fields.iter().find(|field| field.name == top).and_then(|field| field.max);
    expected.or(embed.and_then(|embed| embed.max).or(list).map(|max| max.min(5))).unwrap_or(1).max(1)
}
