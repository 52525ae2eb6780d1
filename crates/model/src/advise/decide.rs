//! The decision for one relation: four questions in order, then the cost among what they leave.
//!
//! Whether it grows without bound and whether its size is controllable rule designs out. Whether it is changed on its own
//! and whether it is read on its own are a matter of cost: a bounded history that is changed with its parent is
//! embedded although it is changed, a review that is mostly read on its own is not.

use super::cost;
use super::forecast::{Forecast, forecast};
use super::relation::{Relation, Wanted};
use super::thresholds::Thresholds;
use crate::size::MAX_DOCUMENT_BYTES;
use jiff::civil::Date;
use serde::Serialize;
use std::fmt;

/// A way to store a relation, or to show a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Inside the parent.
    Embed,
    /// Documents of their own that hold the parent's id; for a field: looked up at every read.
    Reference,
    /// The newest inside the parent, all in their own collection.
    Recent {
        /// How many.
        keep: u64,
    },
    /// Packed into chunk documents.
    Bucket {
        /// Children in one chunk.
        items: u64,
        /// Bytes of one chunk.
        bytes: u64,
    },
    /// A document per pair.
    Edge,
    /// A copy of the moment.
    Snapshot,
    /// A copy kept in sync.
    Live,
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Design::Embed => f.write_str("embed"),
            Design::Reference => f.write_str("reference"),
            Design::Recent { keep } => write!(f, "recent {keep} with overflow"),
            Design::Bucket { items, .. } => write!(f, "bucket of {items}"),
            Design::Edge => f.write_str("edge"),
            Design::Snapshot => f.write_str("snapshot"),
            Design::Live => f.write_str("live copy"),
        }
    }
}

/// What was decided for one relation or field.
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// The relation's name.
    pub name: String,
    /// How it is declared now.
    pub declared: &'static str,
    /// The design to take.
    pub chosen: Candidate,
    /// The others, cheapest first.
    pub rejected: Vec<Candidate>,
    /// The four questions with their answers, in order; none for a field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// How the parent would grow with all children embedded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// Measured values beside their limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
}

/// One design with its cost and what speaks for or against it.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// The design.
    pub design: Design,
    /// Its work in milliseconds per second.
    pub cost_ms: f64,
    /// One sentence.
    pub reason: String,
}

/// One of the four questions.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The question.
    pub question: &'static str,
    /// The answer with its numbers.
    pub answer: String,
}

/// The four questions, in the order in which they are asked.
pub const QUESTIONS: [&str; 4] =
    ["Does it grow without bound?", "Is its size controllable?", "Is it changed on its own?", "Is it read on its own?"];

/// Decides how a relation is stored.
pub fn decide(relation: &Relation, table: &Thresholds, today: Date) -> Decision {
    let facts = Facts::of(relation, table, today);
    let keep = relation.reads.shown.clamp(1, table.rules.recent.max(1)).max(if relation.reads.shown == 0 {
        table.rules.recent
    } else {
        1
    });
    let items = (table.rules.bucket_bytes / relation.element_bytes.max(1)).clamp(1, table.rules.bucket_items);
    let designs = [
        Design::Embed,
        Design::Reference,
        Design::Recent { keep },
        Design::Bucket { items, bytes: table.rules.bucket_bytes },
        Design::Edge,
    ];
    let mut allowed = Vec::new();
    let mut rejected = Vec::new();
    for design in designs {
        let cost_ms = cost::of_design(relation, design, table);
        match facts.against(relation, design, table) {
            Some(reason) => rejected.push(Candidate { design, cost_ms, reason }),
            None => allowed.push(Candidate { design, cost_ms, reason: String::new() }),
        }
    }
    allowed.sort_by(|a, b| a.cost_ms.total_cmp(&b.cost_ms));
    let mut chosen = allowed.remove(0);
    chosen.reason = facts.because(relation, chosen.design);
    for mut other in allowed {
        other.reason = format!("it costs {} as much", times(other.cost_ms, chosen.cost_ms));
        rejected.push(other);
    }
    rejected.sort_by(|a, b| a.cost_ms.total_cmp(&b.cost_ms));
    Decision {
        name: relation.name.clone(),
        declared: relation.declared,
        chosen,
        rejected,
        answers: facts.answers(relation),
        limits: vec![
            format!("array elements: {}", table.limits.array_elements.beside(relation.max)),
            format!("document bytes if embedded: {}", table.limits.document_bytes.beside(facts.forecast.largest_bytes)),
        ],
        forecast: Some(facts.forecast),
    }
}

/// `2.4 times`, or plain words where the numbers say nothing.
fn times(cost: f64, best: f64) -> String {
    match cost / best {
        ratio if !ratio.is_finite() => "infinitely".into(),
        ratio if ratio < 1.05 => "about".into(),
        ratio => format!("{ratio:.1} times"),
    }
}

/// What the four questions found.
struct Facts {
    unbounded: bool,
    controllable: Result<(), String>,
    broadcast: bool,
    forecast: Forecast,
}

impl Facts {
    fn of(relation: &Relation, table: &Thresholds, today: Date) -> Facts {
        let forecast = forecast(
            relation.parent_bytes,
            relation.element_bytes,
            relation.growth_per_day,
            relation.max,
            relation.bound,
            today,
        );
        let unbounded = relation.bound.is_none() && relation.growth_per_day > 0.0;
        let broadcast = relation.shared_by > 1 && relation.shared_by.saturating_mul(2) >= relation.parents.max(2);
        Facts { unbounded, controllable: controllable(relation, table, &forecast), broadcast, forecast }
    }

    /// Why a design is out of the question, if it is.
    fn against(&self, relation: &Relation, design: Design, table: &Thresholds) -> Option<String> {
        let child = &relation.child;
        if relation.many_to_many && !self.broadcast {
            return match design {
                Design::Edge => None,
                Design::Embed => Some(format!(
                    "an array of {child} ids on one side is read from that side only and reaches {} bytes",
                    self.forecast.largest_bytes
                )),
                _ => Some("a pair belongs to both ends and must be unique and readable from each".into()),
            };
        }
        match design {
            Design::Reference => None,
            Design::Edge => Some(format!("a `{child}` belongs to one `{}`; there are no pairs", relation.parent)),
            Design::Snapshot | Design::Live => Some("these are ways to show a field".into()),
            _ if self.broadcast => Some(format!(
                "the same `{child}` would be written into {} documents, once for each `{}`",
                relation.shared_by, relation.parent
            )),
            Design::Embed => self.against_embed(relation, table),
            Design::Recent { keep } => {
                if relation.reads.parent_with <= 0.0 {
                    Some(format!("no query reads a `{}` together with its newest `{child}`", relation.parent))
                } else if self.against_embed(relation, table).is_none() && relation.max <= table.rules.embed_whole {
                    Some(format!("up to {} may be embedded whole", table.rules.embed_whole))
                } else if relation.max <= keep {
                    Some(format!("there are at most {}: all of them would be embedded", relation.max))
                } else {
                    None
                }
            }
            Design::Bucket { items, .. } => {
                let (reads, writes) = (&relation.reads, &relation.writes);
                if relation.typical < items {
                    Some(format!("a usual `{}` has {}: not even one full chunk", relation.parent, relation.typical))
                } else if reads.singles > reads.pages + reads.parent_with {
                    Some(format!("a `{child}` is mostly read by its own key, which a chunk doesn't have"))
                } else if writes.changes > writes.inserts {
                    Some(format!("every change of a `{child}` would rewrite a chunk of {items}"))
                } else if relation.element_bytes.saturating_mul(4) > table.rules.bucket_bytes {
                    Some(format!("a `{child}` of {} bytes fills a chunk by itself", relation.element_bytes))
                } else {
                    None
                }
            }
        }
    }

    fn against_embed(&self, relation: &Relation, table: &Thresholds) -> Option<String> {
        if self.unbounded {
            let horizon = table.rules.forecast_years as f64 * 365.0;
            return Some(match &self.forecast.sixteen_mib {
                Some(reach) if reach.days < horizon => format!(
                    "it grows without bound: the busiest `{}` meets 16 MiB after {:.0} days, on {}",
                    relation.parent, reach.days, reach.date
                ),
                _ => format!(
                    "it grows without bound, by {} a day at the busiest `{}`",
                    relation.growth_per_day, relation.parent
                ),
            });
        }
        self.controllable.clone().err()
    }

    fn because(&self, relation: &Relation, design: Design) -> String {
        let (parent, child) = (&relation.parent, &relation.child);
        match design {
            Design::Embed => {
                format!("it is bounded ({} at most), belongs to one `{parent}`, and one read brings both", relation.max)
            }
            Design::Reference if self.broadcast => {
                format!("one document serves all {} that show it", relation.shared_by)
            }
            Design::Reference => format!("`{child}` keeps its own documents, found by the `{parent}`'s id and paged"),
            Design::Recent { keep } => {
                format!("the newest {keep} come with the `{parent}` in one read, the rest is a page away")
            }
            Design::Bucket { items, .. } => {
                format!("{items} that follow each other come with one document instead of {items}")
            }
            Design::Edge => "each pair is a document: unique, read and counted from both ends, at any size".into(),
            Design::Snapshot | Design::Live => String::new(),
        }
    }

    fn answers(&self, relation: &Relation) -> Vec<Answer> {
        let (reads, writes) = (&relation.reads, &relation.writes);
        let grows = match (self.unbounded, relation.bound) {
            (true, _) => format!("yes, by {} a day at the busiest parent", relation.growth_per_day),
            (false, Some(bound)) => format!("no, {bound} at most"),
            (false, None) => "no growth is declared".into(),
        };
        let size = match &self.controllable {
            Ok(()) => format!(
                "yes: {} usually, {} at most, {} bytes",
                relation.typical, relation.max, self.forecast.largest_bytes
            ),
            Err(reason) => format!("no: {reason}"),
        };
        let changed = match writes.changes {
            0.0 => format!("no; {:.2} are added a second", writes.inserts),
            changes => format!("yes, {changes:.2} times a second; {:.2} are added", writes.inserts),
        };
        let alone = reads.pages + reads.singles;
        let read = match alone {
            0.0 => format!("no; {:.1} times a second with its parent", reads.parent_with),
            alone => format!("yes, {alone:.1} times a second; {:.1} times with its parent", reads.parent_with),
        };
        let answers = [grows, size, changed, read];
        QUESTIONS.into_iter().zip(answers).map(|(question, answer)| Answer { question, answer }).collect()
    }
}

/// The second question: whether the largest parent stays within what a document may be.
fn controllable(relation: &Relation, table: &Thresholds, forecast: &Forecast) -> Result<(), String> {
    let (limits, rules) = (&table.limits, &table.rules);
    let bytes = forecast.largest_bytes;
    if bytes > MAX_DOCUMENT_BYTES {
        return Err(format!(
            "the largest `{}` has {} of them and would take {bytes} bytes, more than 16 MiB",
            relation.parent, relation.max
        ));
    }
    if bytes > limits.document_bytes.limit {
        return Err(format!(
            "the largest `{}` has {} of them and would take {bytes} bytes",
            relation.parent, relation.max
        ));
    }
    if relation.max > limits.array_elements.limit {
        return Err(format!("the largest `{}` has {} of them", relation.parent, relation.max));
    }
    let uneven = relation.max > relation.typical.max(1).saturating_mul(rules.largest_over_typical);
    if uneven && relation.max > rules.embed_whole {
        return Err(format!(
            "the largest `{}` has {} of them where a usual one has {}",
            relation.parent, relation.max, relation.typical
        ));
    }
    Ok(())
}

/// Decides how a field of another document is shown.
pub fn decide_copy(wanted: &Wanted, table: &Thresholds) -> Decision {
    let option =
        |design: Design| Candidate { design, cost_ms: cost::of_copy(wanted, design, table), reason: String::new() };
    let (mut reference, mut snapshot, mut live) =
        (option(Design::Reference), option(Design::Snapshot), option(Design::Live));
    let fields = wanted.fields.join(", ");
    let (chosen, rejected) = if wanted.of_the_moment == Some(true) {
        snapshot.reason = format!(
            "`{}` records what {fields} was at that moment, whatever becomes of the `{}`",
            wanted.holder, wanted.source
        );
        reference.reason = "it would show today's value for yesterday's event".into();
        live.reason = "it would rewrite the record when the source changes".into();
        (snapshot, vec![reference, live])
    } else {
        snapshot.reason = format!("it would go stale with the first change of the `{}`", wanted.source);
        if live.cost_ms < reference.cost_ms {
            let sync =
                if wanted.max <= table.rules.txn_copies { "in the source's transaction" } else { "within a lag" };
            live.reason = format!(
                "{fields} is read {:.1} times a second and changes {:.4} times; its {} copies at most can follow {sync}",
                wanted.reads, wanted.source_changes, wanted.max
            );
            reference.reason =
                format!("a second read for every answer costs {} as much", times(reference.cost_ms, live.cost_ms));
            (live, vec![reference, snapshot])
        } else {
            reference.reason =
                format!("{fields} changes so often, or is shown so seldom, that looking it up is cheaper");
            live.reason = format!(
                "following {:.4} changes a second in {} documents each costs {} as much",
                wanted.source_changes,
                wanted.typical,
                times(live.cost_ms, reference.cost_ms)
            );
            (reference, vec![live, snapshot])
        }
    };
    Decision {
        name: wanted.name.clone(),
        declared: wanted.declared,
        chosen,
        rejected,
        answers: Vec::new(),
        forecast: None,
        limits: Vec::new(),
    }
}
