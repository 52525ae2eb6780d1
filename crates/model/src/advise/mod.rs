//! Advice: for every relation the design that costs least among those that hold, with the others and the reasons.
//!
//! [`collect`] takes the relations from a model, [`decide`] asks the four questions and compares costs ([`cost`]) within
//! the [`thresholds`], [`forecast`] says when a document gets too large, and [`ask`] walks a person through the same
//! questions without a model. The clock comes from outside.

pub mod ask;
pub mod calibrate;
pub mod collect;
pub mod cost;
pub mod decide;
pub mod forecast;
pub mod measure;
pub mod relation;
pub mod thresholds;

use crate::model::Model;
use crate::plan::plan;
use crate::show::bytes;
use crate::size::MAX_DOCUMENT_BYTES;
use decide::{Candidate, Decision, Design};
use jiff::civil::Date;
use serde::Serialize;
use std::fmt::Write;
use thresholds::Thresholds;

/// The advice on a whole model.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// How each relation is best stored.
    pub relations: Vec<Decision>,
    /// How each wanted field is best shown.
    pub fields: Vec<Decision>,
    /// The documents of each entity beside the limits.
    pub entities: Vec<Measured>,
}

/// An entity's measures beside the limits.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The entity.
    pub entity: String,
    /// Its usual document in bytes.
    pub typical_bytes: u64,
    /// Its largest document in bytes.
    pub largest_bytes: u64,
    /// Measured values beside their limits.
    pub limits: Vec<String>,
}

/// Advises on a model; `today` is what forecasts count from.
pub fn advise(model: &Model, table: &Thresholds, today: Date) -> Advice {
    let relations = collect::relations(model).iter().map(|relation| decide::decide(relation, table, today)).collect();
    let fields = collect::wanted(model).iter().map(|wanted| decide::decide_copy(wanted, table)).collect();
    let plan = plan(model, None);
    let entities = model
        .entities
        .iter()
        .map(|entity| {
            let size = model.document_size(entity);
            let indexes = plan.collection(&entity.collection).map_or(0, |plan| plan.indexes.len() as u64 + 1);
            Measured {
                entity: entity.name.clone(),
                typical_bytes: size.typical,
                largest_bytes: size.max,
                limits: vec![
                    format!("document bytes: {}", table.limits.document_bytes.beside(size.max)),
                    format!("indexes: {}", table.limits.indexes.beside(indexes)),
                ],
            }
        })
        .collect();
    Advice { relations, fields, entities }
}

impl Advice {
    /// The decision on a relation or field of that name.
    pub fn decision(&self, name: &str) -> Option<&Decision> {
        self.relations.iter().chain(&self.fields).find(|decision| decision.name == name)
    }

    /// The advice as JSON, indented, in a stable order.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("advice has no map with keys that are not texts");
        text.push('\n');
        text
    }

    /// The advice for a person.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for decision in self.relations.iter().chain(&self.fields) {
            render_decision(&mut text, decision);
        }
        for measured in &self.entities {
            let share = measured.largest_bytes as f64 * 100.0 / MAX_DOCUMENT_BYTES as f64;
            let _ = writeln!(
                text,
                "{}: {} usually, {} at most ({share:.1} % of 16 MiB)",
                measured.entity,
                bytes(measured.typical_bytes),
                bytes(measured.largest_bytes)
            );
            for limit in &measured.limits {
                let _ = writeln!(text, "    {limit}");
            }
        }
        text
    }
}

fn render_decision(text: &mut String, decision: &Decision) {
    let chosen = &decision.chosen;
    let agrees = same(decision.declared, chosen.design);
    let mark = if agrees { "as declared" } else { "declared otherwise" };
    let _ = writeln!(text, "{}: {} ({mark}: {})", decision.name, chosen.design, decision.declared);
    let _ = writeln!(text, "    {}; {}", chosen.reason, cost_text(chosen));
    for answer in &decision.answers {
        let _ = writeln!(text, "    {} {}", answer.question, answer.answer);
    }
    for other in &decision.rejected {
        let _ = writeln!(text, "    not {} ({}): {}", other.design, cost_text(other), other.reason);
    }
    if let Some(forecast) = &decision.forecast {
        let reach = |what: &str, reach: &Option<forecast::Reach>| match reach {
            Some(reach) => format!("{what} after {:.0} days ({})", reach.days, reach.date),
            None => format!("{what} never"),
        };
        let _ = writeln!(
            text,
            "    embedded, the largest document takes {}; the busiest meets {}, {}",
            bytes(forecast.largest_bytes),
            reach("1 MB", &forecast.one_mb),
            reach("16 MiB", &forecast.sixteen_mib)
        );
    }
    for limit in &decision.limits {
        let _ = writeln!(text, "    {limit}");
    }
    text.push('\n');
}

fn cost_text(candidate: &Candidate) -> String {
    if candidate.cost_ms.is_finite() {
        format!("{:.2} ms of work a second", candidate.cost_ms)
    } else {
        "not possible".into()
    }
}

/// Whether what is declared is the design that was chosen.
fn same(declared: &str, design: Design) -> bool {
    match design {
        Design::Embed => declared == "embed",
        Design::Reference => declared == "reference",
        Design::Recent { .. } => declared == "recent",
        Design::Bucket { .. } => declared == "bucket",
        Design::Edge => declared == "edge",
        Design::Snapshot => declared == "snapshot",
        Design::Live => declared == "live copy",
    }
}
