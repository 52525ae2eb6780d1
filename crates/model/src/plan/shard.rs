//! The shard key: by cardinality, frequency, monotonicity, and the share of the queries that reach one shard.
//!
//! Candidates are the fields that queries fix, alone, hashed, or with `_id` behind them, and `_id` hashed. Each is
//! simulated over the shards: where the data would lie and where inserts would go. A key is refused if unique keys can't
//! hold under it, if inserts go to one shard, or if one value makes a chunk that cannot be split; among the rest the one
//! with the largest share of queries on one shard is taken.

use crate::language::entity::Entity;
use crate::language::query::Query;
use crate::model::Model;
use crate::shape::Shape;
use serde::Serialize;
use std::fmt::Write;

/// The largest shard may hold so many times the average.
const SKEW_LIMIT: f64 = 1.5;

/// Values that are simulated one by one; more are taken together.
const MAX_SIMULATED: u64 = 20_000;

/// The choice for one collection.
#[derive(Clone, Debug, Serialize)]
pub struct ShardPlan {
    /// Whether the model names the key itself.
    pub declared: bool,
    /// The key.
    pub chosen: Candidate,
    /// The other keys, with the reason against them.
    pub rejected: Vec<Candidate>,
}

/// A possible shard key.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// Its fields.
    pub fields: Vec<String>,
    /// Whether the first field is hashed.
    pub hashed: bool,
    /// The share of the queries, by rate, that reach one shard.
    pub targeted: f64,
    /// How the data would be spread.
    pub spread: Distribution,
    /// What speaks for or against it.
    pub reason: String,
    /// Whether it can be used at all.
    pub fits: bool,
}

/// Shares of the data and of the inserts, by shard.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// The share of the data on each shard.
    pub data: Vec<f64>,
    /// The share of the inserts that goes to the busiest shard.
    pub busiest_inserts: f64,
}

impl Distribution {
    /// The fullest shard against the average.
    pub fn skew(&self) -> f64 {
        self.data.iter().copied().fold(0.0, f64::max) * self.data.len() as f64
    }
}

/// Chooses a shard key for an entity's collection.
pub fn choose(model: &Model, entity: &Entity, shards: usize) -> ShardPlan {
    let shape = model.shape(entity);
    let queries: Vec<&Query> = model.queries_on(&entity.name).collect();
    let mut candidates: Vec<Candidate> = keys(entity, &shape, &queries)
        .into_iter()
        .map(|(fields, hashed)| judge(entity, &shape, &queries, fields, hashed, shards))
        .collect();
    let declared = entity.parts.shard.as_ref().filter(|shard| !shard.fields.is_empty());
    if let Some(shard) = declared {
        let chosen = judge(entity, &shape, &queries, shard.fields.clone(), shard.hashed, shards);
        candidates.retain(|other| other.fields != chosen.fields || other.hashed != chosen.hashed);
        candidates.iter_mut().for_each(|other| other.compare(&chosen));
        return ShardPlan { declared: true, chosen, rejected: candidates };
    }
    // The largest share of targeted queries; then the even spread; then the shorter key.
    candidates.sort_by(|a, b| {
        b.fits
            .cmp(&a.fits)
            .then(b.targeted.total_cmp(&a.targeted))
            .then(a.spread.skew().total_cmp(&b.spread.skew()))
            .then(a.fields.len().cmp(&b.fields.len()))
    });
    let chosen = candidates.remove(0);
    candidates.iter_mut().for_each(|other| other.compare(&chosen));
    ShardPlan { declared: false, chosen, rejected: candidates }
}

/// The keys worth a look.
fn keys(entity: &Entity, shape: &Shape, queries: &[&Query]) -> Vec<(Vec<String>, bool)> {
    let mut fields: Vec<String> = Vec::new();
    for query in queries {
        for path in query.equal.iter().chain(query.within.iter().map(|within| &within.path)).chain(&query.range) {
            let array = shape.leaf(path).is_none_or(|leaf| leaf.array);
            if path != "_id" && !array && !fields.contains(path) {
                fields.push(path.clone());
            }
        }
    }
    let mut keys = vec![(vec!["_id".to_owned()], true)];
    for field in fields {
        keys.push((vec![field.clone()], false));
        keys.push((vec![field.clone()], true));
        keys.push((vec![field, "_id".to_owned()], false));
    }
    for unique in &entity.parts.uniques {
        for length in 1..=unique.fields.len() {
            let key = (unique.fields[..length].to_vec(), false);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    keys
}

fn judge(
    entity: &Entity,
    shape: &Shape,
    queries: &[&Query],
    fields: Vec<String>,
    hashed: bool,
    shards: usize,
) -> Candidate {
    let first = shape.leaf(&fields[0]);
    let unique_first = first.is_some_and(|leaf| leaf.unique);
    let count = entity.expect.as_ref().and_then(|expect| expect.count).unwrap_or(1_000_000);
    let distinct = match first {
        Some(leaf) if leaf.unique => count,
        Some(leaf) => leaf.distinct.unwrap_or(1_000),
        None => 1_000,
    };
    let top = first.and_then(|leaf| leaf.top).unwrap_or(0.0).max(1.0 / distinct.max(1) as f64);
    let increasing = first.is_some_and(|leaf| leaf.increasing) && !hashed;
    let splittable = unique_first || fields.len() > 1;
    let spread = simulate(distinct, top, splittable, increasing, hashed, shards);
    let total: f64 = queries.iter().map(|query| query.per_second()).fold(0.0, |sum, rate| sum + rate);
    let targeting = |query: &&&Query| {
        let fixed = query.equal.contains(&fields[0]) || query.within.iter().any(|within| within.path == fields[0]);
        fixed || (!hashed && !increasing && query.range.contains(&fields[0]))
    };
    let hit: f64 = queries.iter().filter(targeting).map(|query| query.per_second()).fold(0.0, |sum, rate| sum + rate);
    let targeted = if total > 0.0 { hit / total } else { 0.0 };
    let (fits, reason) =
        verdict(shape, entity, &fields, hashed, distinct, top, increasing, splittable, &spread, shards);
    Candidate { fields, hashed, targeted, spread, reason, fits }
}

#[expect(clippy::too_many_arguments, reason = "the facts of one judgement")]
fn verdict(
    shape: &Shape,
    entity: &Entity,
    fields: &[String],
    hashed: bool,
    distinct: u64,
    top: f64,
    increasing: bool,
    splittable: bool,
    spread: &Distribution,
    shards: usize,
) -> (bool, String) {
    let single =
        shape.iter().filter(|(path, leaf)| leaf.unique && *path != "_id").map(|(path, _)| vec![path.to_owned()]);
    let compound = entity.parts.uniques.iter().map(|unique| unique.fields.clone());
    if let Some(unique) = single.chain(compound).find(|unique| hashed || !unique.starts_with(fields)) {
        return (false, format!("the unique key ({}) cannot hold under it", unique.join(", ")));
    }
    if increasing {
        return (false, format!("new values are the largest: all inserts go to one shard of {shards}"));
    }
    if distinct < shards as u64 * 10 && fields.len() == 1 {
        return (false, format!("only {distinct} different values for {shards} shards"));
    }
    if spread.skew() > SKEW_LIMIT && !splittable {
        let share = top * 100.0;
        return (false, format!("one value holds {share:.1} % of the documents in a chunk that cannot be split"));
    }
    (true, format!("{distinct} different values, the fullest shard holds {:.2} times the average", spread.skew()))
}

/// Simulates where documents lie when `distinct` values, one of them with the share `top`, are spread over shards.
///
/// Deterministic. Ranges are balanced as well as values that cannot be split allow; hashed values fall where they fall.
pub fn simulate(
    distinct: u64,
    top: f64,
    splittable: bool,
    increasing: bool,
    hashed: bool,
    shards: usize,
) -> Distribution {
    let count = distinct.clamp(1, MAX_SIMULATED);
    let rest = if count > 1 { (1.0 - top) / (count - 1) as f64 } else { 0.0 };
    let weights =
        std::iter::once(if count > 1 { top } else { 1.0 }).chain(std::iter::repeat_n(rest, count as usize - 1));
    spread(weights, splittable, increasing, hashed, shards)
}

/// The same for measured numbers of documents per value.
pub fn simulate_counts(
    counts: &[u64],
    splittable: bool,
    increasing: bool,
    hashed: bool,
    shards: usize,
) -> Distribution {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    spread(counts.iter().map(|count| *count as f64 / total), splittable, increasing, hashed, shards)
}

fn spread(
    weights: impl Iterator<Item = f64>,
    splittable: bool,
    increasing: bool,
    hashed: bool,
    shards: usize,
) -> Distribution {
    let mut data = vec![0.0; shards];
    if splittable && !hashed {
        data = vec![1.0 / shards as f64; shards];
    } else {
        for (value, weight) in weights.enumerate() {
            let shard = if hashed { (mix(value as u64) % shards as u64) as usize } else { least(&data) };
            data[shard] += weight;
        }
    }
    let busiest = if increasing { 1.0 } else { data.iter().copied().fold(0.0, f64::max) };
    Distribution { data, busiest_inserts: busiest }
}

fn least(data: &[f64]) -> usize {
    (0..data.len()).min_by(|a, b| data[*a].total_cmp(&data[*b])).unwrap_or(0)
}

/// A hash that spreads consecutive numbers (the finalizer of SplitMix64).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl ShardPlan {
    /// Adds the choice to a text for a person.
    pub(crate) fn render(&self, text: &mut String) {
        if !self.chosen.fits {
            let _ = writeln!(
                text,
                "  no shard key fits; the best would be {}: {}",
                self.chosen.describe(),
                self.chosen.reason
            );
            return;
        }
        let how = if self.declared { "declared" } else { "chosen" };
        let _ = writeln!(text, "  shard key {} ({how})", self.chosen.describe());
        let _ = writeln!(text, "      {}", self.chosen.reason);
        let _ = writeln!(
            text,
            "      {:.0} % of the queries reach one shard; the busiest shard takes {:.0} % of the inserts",
            self.chosen.targeted * 100.0,
            self.chosen.spread.busiest_inserts * 100.0
        );
        let shares: Vec<String> = self.chosen.spread.data.iter().map(|share| format!("{:.1}", share * 100.0)).collect();
        let _ = writeln!(text, "      data by shard in %: {}", shares.join(" "));
        for other in &self.rejected {
            let _ = writeln!(text, "      not {}: {}", other.describe(), other.reason);
        }
    }
}

impl Candidate {
    /// Says why a key that would do is not the one taken.
    fn compare(&mut self, chosen: &Candidate) {
        if !self.fits {
            return;
        }
        self.reason = if self.targeted < chosen.targeted {
            let (share, best) = (self.targeted * 100.0, chosen.targeted * 100.0);
            format!("{share:.0} % of the queries reach one shard, with the other key {best:.0} %")
        } else if self.spread.skew() > chosen.spread.skew() {
            format!("the fullest shard would hold {:.2} times the average", self.spread.skew())
        } else {
            "no better than the other key".into()
        };
    }

    fn describe(&self) -> String {
        let fields: Vec<String> = self
            .fields
            .iter()
            .enumerate()
            .map(|(position, field)| {
                let value = if self.hashed && position == 0 { "\"hashed\"" } else { "1" };
                format!("{field}: {value}")
            })
            .collect();
        format!("{{ {} }}", fields.join(", "))
    }
}
