//! `states FIELD start=STATE [history=FIELD] [max=N] { to STATE from=STATE…; … }`: a state machine on a field.
//!
//! `to STATE from=A B C` allows the steps A, B, C to STATE (`from=A` and further states as words). Every other change is
//! refused, as is an insert in another state than `start`. `history` names an array that keeps the last `max` steps
//! (32 unless given): state, time, who.

use super::{Args, Declaration, Place, Reader, Target};
use crate::problem::{Problem, Span, suggest};
use kdl::KdlNode;
use serde::{Deserialize, Serialize};

/// The row in the table of declarations.
pub const ROW: Declaration = Declaration {
    name: "states",
    places: &[Place::Entity],
    syntax: "states FIELD start=STATE history=FIELD max=32 { to STATE from=STATE; … }",
    meaning: "a state machine on a field, with a bounded history",
    parse,
};

/// A state machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct States {
    /// The field with the state.
    pub name: String,
    /// The state of a new document.
    pub start: String,
    /// The steps that are allowed.
    pub steps: Vec<Step>,
    /// The field with the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// The most steps the history keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Where it is declared.
    #[serde(skip)]
    pub span: Span,
}

/// The ways into a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The state it leads to.
    pub to: String,
    /// The states it may come from.
    pub from: Vec<String>,
}

impl States {
    /// Every state, the start first.
    pub fn all(&self) -> Vec<&str> {
        let mut states = vec![self.start.as_str()];
        for step in &self.steps {
            for state in step.from.iter().chain([&step.to]) {
                if !states.contains(&state.as_str()) {
                    states.push(state);
                }
            }
        }
        states
    }

    /// Whether a document may go from one state to another.
    pub fn allows(&self, from: &str, to: &str) -> bool {
        self.steps.iter().any(|step| step.to == to && step.from.iter().any(|state| state == from))
    }
}

fn parse(reader: &mut Reader, node: &KdlNode, mut target: Target<'_>) {
    let mut args = Args::new(reader, node, ROW.syntax);
    let span = args.span();
    let name = args.name("the state's field");
    let start = args.required("start");
    let history = args.text("history");
    let mut max = args.positive_integer("max");
    if history.is_some() {
        max = max.or(Some(32));
    } else if max.is_some() {
        args.wrong("missing", span, "`max` bounds the history: name its field with `history=`".into());
    }
    args.finish();
    let mut states = States { name, start, steps: Vec::new(), history, max, span };
    let mut places = Vec::new();
    let path = states.name.clone();
    reader.lines(node, &path, &["to"], |reader, child| {
        let mut args = Args::new(reader, child, "to STATE from=STATE STATE …");
        let to = args.name("the state");
        let mut from = args.texts("from");
        from.extend(args.words());
        let span = args.span();
        if from.is_empty() {
            args.wrong("missing", span, "`from=` is missing".into());
        }
        args.finish();
        states.steps.push(Step { to, from });
        places.push(span);
    });
    if states.steps.is_empty() {
        let mut args = Args::new(reader, node, ROW.syntax);
        args.wrong("missing", span, "which steps are allowed?".into());
    }
    if !states.start.is_empty() {
        reachable(reader, &states, &places);
    }
    target.entity().parts.states.push(states);
}

/// Refuses steps from states that no document can be in.
fn reachable(reader: &mut Reader, states: &States, places: &[Span]) {
    let mut reached = vec![states.start.as_str()];
    loop {
        let more: Vec<&str> = states
            .steps
            .iter()
            .filter(|step| !reached.contains(&step.to.as_str()))
            .filter(|step| step.from.iter().any(|from| reached.contains(&from.as_str())))
            .map(|step| step.to.as_str())
            .collect();
        if more.is_empty() {
            break;
        }
        reached.extend(more);
    }
    for (step, span) in states.steps.iter().zip(places) {
        for from in step.from.iter().filter(|from| !reached.contains(&from.as_str())) {
            let message = format!("states `{}`: no step leads from `{}` to `{from}`", states.name, states.start);
            let help = suggest(from, "states that are reached", reached.iter().copied());
            reader.problems.push(Problem::new("unreachable-state", *span, message).help(help));
        }
    }
}
