//! `sheaf advise --ask`: the questions for a person without a model, ending with a declaration to paste.
//!
//! A pure state machine: it says what to ask, takes an answer, and says what to ask next. Whoever runs it owns the
//! terminal. The order is that of the decision: pairs first, then the four questions, then how fields are shown.

use super::decide::{Design, QUESTIONS};
use super::thresholds::Thresholds;

/// The next thing to say to the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Say {
    /// A question, with what an answer may be.
    Ask {
        /// The question.
        question: String,
        /// What an answer may be, for a hint.
        expected: &'static str,
    },
    /// The end: what to do, why, and the declaration.
    Done {
        /// The design in words.
        design: String,
        /// Why.
        reason: String,
        /// The declaration to paste.
        declaration: String,
    },
}

/// Where the conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Parent,
    Child,
    Pairs,
    Mutual,
    Grows,
    Typical,
    Max,
    Changed,
    ReadAlone,
    ShownWith,
    Shown,
    Field,
    Moment,
    Changes,
    End,
}

/// The conversation.
#[derive(Clone, Debug)]
pub struct Conversation {
    step: Step,
    table: Thresholds,
    parent: String,
    child: String,
    mutual: bool,
    pairs: bool,
    grows: bool,
    typical: u64,
    max: u64,
    changed: bool,
    read_alone: bool,
    shown: u64,
    field: Option<String>,
    moment: bool,
    changes_per_day: u64,
}

impl Conversation {
    /// A new conversation.
    pub fn new(table: Thresholds) -> Conversation {
        Conversation {
            step: Step::Parent,
            table,
            parent: String::new(),
            child: String::new(),
            mutual: false,
            pairs: false,
            grows: false,
            typical: 0,
            max: 0,
            changed: false,
            read_alone: false,
            shown: 0,
            field: None,
            moment: false,
            changes_per_day: 0,
        }
    }

    /// What to say next.
    pub fn say(&self) -> Say {
        let (parent, child) = (&self.parent, &self.child);
        let ask = |question: String, expected: &'static str| Say::Ask { question, expected };
        match self.step {
            Step::Parent => ask("What is the one thing called (e.g. article)?".into(), "a name"),
            Step::Child => ask(format!("What belongs to a `{parent}`, many times (e.g. comment)?"), "a name"),
            Step::Pairs => {
                ask(format!("Can one `{child}` belong to several `{parent}` at once, as a follower does?"), "yes or no")
            }
            Step::Mutual => ask("Does it always hold in both directions, as a friendship does?".into(), "yes or no"),
            Step::Grows => {
                ask(format!("{} Do more and more `{child}` come to one `{parent}`?", QUESTIONS[0]), "yes or no")
            }
            Step::Typical => ask(format!("{} How many `{child}` has a usual `{parent}`?", QUESTIONS[1]), "a number"),
            Step::Max => ask(format!("And how many has the largest `{parent}`?"), "a number"),
            Step::Changed => ask(
                format!("{} Is a `{child}` changed more often than its `{parent}` is read?", QUESTIONS[2]),
                "yes or no",
            ),
            Step::ReadAlone => ask(
                format!("{} Are there pages or searches of `{child}` without the `{parent}`?", QUESTIONS[3]),
                "yes or no",
            ),
            Step::ShownWith => ask(format!("Does every page of a `{parent}` show its newest `{child}`?"), "yes or no"),
            Step::Shown => ask("How many of them?".into(), "a number"),
            Step::Field => ask(
                format!("Which field of the `{parent}` is shown with every `{child}` (empty for none)?"),
                "a name or nothing",
            ),
            Step::Moment => {
                ask("Must it keep the value it had at that moment, as a price in an order does?".into(), "yes or no")
            }
            Step::Changes => ask("How often does it change in a day, for one of them?".into(), "a number"),
            Step::End => self.done(),
        }
    }

    /// Takes the answer to the last question.
    ///
    /// # Errors
    /// What was expected, if the answer cannot be understood; the same question is asked again.
    pub fn answer(&mut self, text: &str) -> Result<(), &'static str> {
        let text = text.trim();
        self.step = match self.step {
            Step::Parent => {
                self.parent = name(text)?;
                Step::Child
            }
            Step::Child => {
                self.child = name(text)?;
                Step::Pairs
            }
            Step::Pairs => {
                self.pairs = yes(text)?;
                if self.pairs { Step::Mutual } else { Step::Grows }
            }
            Step::Mutual => {
                self.mutual = yes(text)?;
                Step::End
            }
            Step::Grows => {
                self.grows = yes(text)?;
                Step::Typical
            }
            Step::Typical => {
                self.typical = number(text)?;
                Step::Max
            }
            Step::Max => {
                self.max = number(text)?;
                if self.max < self.typical {
                    return Err("a number that is not less than the usual one");
                }
                Step::Changed
            }
            Step::Changed => {
                self.changed = yes(text)?;
                Step::ReadAlone
            }
            Step::ReadAlone => {
                self.read_alone = yes(text)?;
                if self.embeds() { Step::End } else { Step::ShownWith }
            }
            Step::ShownWith => {
                if yes(text)? {
                    Step::Shown
                } else {
                    Step::Field
                }
            }
            Step::Shown => {
                self.shown = number(text)?.max(1);
                Step::Field
            }
            Step::Field if text.is_empty() => Step::End,
            Step::Field => {
                self.field = Some(name(text)?);
                Step::Moment
            }
            Step::Moment => {
                self.moment = yes(text)?;
                if self.moment { Step::End } else { Step::Changes }
            }
            Step::Changes => {
                self.changes_per_day = number(text)?;
                Step::End
            }
            Step::End => return Err("nothing more: the questions are answered"),
        };
        Ok(())
    }

    /// Whether the answers so far leave the children inside the parent.
    fn embeds(&self) -> bool {
        let (limits, rules) = (&self.table.limits, &self.table.rules);
        let uneven = self.max > self.typical.max(1).saturating_mul(rules.largest_over_typical);
        let controllable = self.max <= limits.array_elements.limit && !(uneven && self.max > rules.embed_whole);
        let paged = self.read_alone && self.max > rules.embed_whole;
        controllable && !(self.grows || self.changed || paged)
    }

    /// The design that the answers lead to.
    pub fn design(&self) -> Design {
        match () {
            () if self.pairs => Design::Edge,
            () if self.embeds() => Design::Embed,
            () if self.shown > 0 => Design::Recent { keep: self.shown },
            () => Design::Reference,
        }
    }

    fn done(&self) -> Say {
        let (parent, child) = (&self.parent, &self.child);
        let design = self.design();
        let (reason, declaration) = match design {
            Design::Edge => {
                let kind = if self.mutual { "mutual" } else { "directed" };
                let (from, to) = if self.mutual { (parent, parent) } else { (child, parent) };
                (
                    "each pair is a document: unique, read and counted from both ends, at any size".to_owned(),
                    format!("edge {child}s from={from} to={to} {kind} count-to={child}Count\n"),
                )
            }
            Design::Embed => (
                format!("it is bounded ({} at most) and one read brings both", self.max),
                format!(
                    "entity {parent} {{\n  embed {child}s many max={} when-full=reject {{\n    expect typical={} max={}\n    \
                     // the fields of a {child}\n  }}\n}}\n",
                    self.max.max(1),
                    self.typical,
                    self.max.max(1)
                ),
            ),
            _ => (self.why_apart(), self.apart()),
        };
        Say::Done { design: design.to_string(), reason, declaration }
    }

    fn why_apart(&self) -> String {
        let child = &self.child;
        match () {
            () if self.grows => format!("`{child}` grows without bound: embedded, it would meet 16 MiB one day"),
            () if self.changed => format!("`{child}` is changed more often than it is read with its parent"),
            () if self.read_alone && self.max <= self.table.limits.array_elements.limit => {
                format!("`{child}` is read on its own")
            }
            () => format!("the largest has {} `{child}`: its size is not under control", self.max),
        }
    }

    /// The declarations of children apart, with the newest and a copied field if they are wanted.
    fn apart(&self) -> String {
        let (parent, child) = (&self.parent, &self.child);
        let mut inside = String::new();
        if self.shown > 0 {
            inside = format!(
                "\n  recent latest{} {} of={child} by={parent}Id order=createdAt\n",
                capitalized(child),
                self.shown
            );
        }
        let mut shown = String::new();
        if let Some(field) = &self.field {
            // A copy pays while it is read more often than its source changes in all its places.
            let copies = self.typical.saturating_mul(self.changes_per_day);
            shown = match (self.moment, copies <= 1_000_000) {
                (true, _) => {
                    format!("  snapshot via={parent}Id {{ field {parent}{} from={field} }}\n", capitalized(field))
                }
                (false, true) => {
                    format!(
                        "  live via={parent}Id max-lag=\"5s\" {{ field {parent}{} from={field} }}\n",
                        capitalized(field)
                    )
                }
                (false, false) => format!("  // {field} changes too often to be copied: read it through {parent}Id\n"),
            };
        }
        let field = match &self.field {
            Some(field) => format!("  field {field} string\n"),
            None => String::new(),
        };
        let body = format!("{}{inside}", if field.is_empty() { String::new() } else { format!("\n{field}") });
        format!(
            "entity {parent} {{{body}}}\n\nentity {child} {{\n  ref {parent}Id to={parent} on-delete=cascade {{ expect typical={} \
             max={} }}\n{shown}  field createdAt date required increasing\n}}\n",
            self.typical,
            self.max.max(1)
        )
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn name(text: &str) -> Result<String, &'static str> {
    let good =
        text.chars().next().is_some_and(char::is_alphabetic) && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    if good { Ok(text.to_owned()) } else { Err("a name of letters and digits") }
}

fn yes(text: &str) -> Result<bool, &'static str> {
    match text.to_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err("yes or no"),
    }
}

fn number(text: &str) -> Result<u64, &'static str> {
    text.replace(['_', ','], "").parse().map_err(|_| "a whole number")
}
