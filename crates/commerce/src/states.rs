//! State machines as data: what may follow what.
//!
//! Orders:
//!
//! ```text
//!   created ──> paid ──> shipped ──> signed
//!      │  └────>│ │         │           │
//!      │        │ └──────> refunded <───┘
//!      ├──> expired ──> cancelled
//!      └──────────────────^      (expired ──> paid: a late payment for which there is stock again)
//! ```

use crate::error::{Error, Result};
use crate::fields::{Fields, push};
use crate::time::Time;
use bson::{Document, doc};

/// The most entries of a history; the oldest go.
pub const MAX_HISTORY: usize = 16;

/// A state machine: the states with their successors, the first one is where it starts.
#[derive(Debug)]
pub struct Machine {
    /// What it is about.
    pub what: &'static str,
    /// Each state and what may follow it.
    pub moves: &'static [(&'static str, &'static [&'static str])],
}

/// What becomes of an order.
pub const ORDER: Machine = Machine {
    what: "order",
    moves: &[
        ("created", &["paid", "cancelled", "expired"]),
        ("expired", &["paid", "cancelled"]),
        ("paid", &["shipped", "refunded"]),
        ("shipped", &["signed", "refunded"]),
        ("signed", &["refunded"]),
        ("cancelled", &[]),
        ("refunded", &[]),
    ],
};

/// What becomes of a payment attempt. A capture is final, whatever is reported afterwards: the money has moved.
pub const PAYMENT: Machine = Machine {
    what: "payment",
    moves: &[("pending", &["captured", "failed"]), ("failed", &["captured"]), ("captured", &[])],
};

/// What becomes of a refund. One that was given up is not taken up again: another one is asked for.
pub const REFUND: Machine =
    Machine { what: "refund", moves: &[("pending", &["done", "failed"]), ("done", &[]), ("failed", &[])] };

/// What becomes of a return.
pub const RETURN: Machine = Machine {
    what: "return",
    moves: &[
        ("requested", &["approved", "rejected", "withdrawn"]),
        ("approved", &["received", "withdrawn"]),
        ("received", &["refunded"]),
        ("refunded", &[]),
        ("rejected", &[]),
        ("withdrawn", &[]),
    ],
};

/// What becomes of an exchange.
pub const EXCHANGE: Machine = Machine {
    what: "exchange",
    moves: &[
        ("requested", &["approved", "rejected", "withdrawn"]),
        ("approved", &["received", "withdrawn"]),
        ("received", &["replaced"]),
        ("replaced", &[]),
        ("rejected", &[]),
        ("withdrawn", &[]),
    ],
};

/// What becomes of a complaint.
pub const COMPLAINT: Machine = Machine {
    what: "complaint",
    moves: &[
        ("open", &["answered", "closed"]),
        ("answered", &["reopened", "closed"]),
        ("reopened", &["answered", "closed"]),
        ("closed", &[]),
    ],
};

impl Machine {
    /// Where it starts.
    pub fn start(&self) -> &'static str {
        self.moves[0].0
    }

    /// Whether one state may follow another.
    pub fn allows(&self, from: &str, to: &str) -> bool {
        self.moves.iter().any(|(state, next)| *state == from && next.contains(&to))
    }

    /// Moves a document on, with its history.
    pub(crate) fn advance(&self, document: &mut Document, to: &'static str, step: Step<'_>) -> Result<()> {
        let from = document.text("status");
        if !self.allows(from, to) {
            let (from, id) = (from.to_owned(), document.text("_id").to_owned());
            return Err(Error::IllegalMove { what: self.what, id, from, to: to.to_owned() });
        }
        document.insert("status", to);
        push(document, "statusHistory", step.entry(to), MAX_HISTORY);
        Ok(())
    }

    /// A new document starts.
    pub(crate) fn begin(&self, document: &mut Document, step: Step<'_>) {
        document.insert("status", self.start());
        push(document, "statusHistory", step.entry(self.start()), MAX_HISTORY);
    }
}

/// When, by whom and why a state changes.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) at: Time,
    pub(crate) by: &'a str,
    pub(crate) why: &'a str,
}

impl Step<'_> {
    fn entry(&self, state: &str) -> Document {
        doc! { "state": state, "at": self.at, "by": self.by, "why": self.why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line a state: every other step is illegal.
    const TABLES: &str = "
        order created: paid cancelled expired
        order expired: paid cancelled
        order paid: shipped refunded
        order shipped: signed refunded
        order signed: refunded
        order cancelled:
        order refunded:
        payment pending: captured failed
        payment failed: captured
        payment captured:
        refund pending: done failed
        refund done:
        refund failed:
        return requested: approved rejected withdrawn
        return approved: received withdrawn
        return received: refunded
        return refunded:
        return rejected:
        return withdrawn:
        exchange requested: approved rejected withdrawn
        exchange approved: received withdrawn
        exchange received: replaced
        exchange replaced:
        exchange rejected:
        exchange withdrawn:
        complaint open: answered closed
        complaint answered: reopened closed
        complaint reopened: answered closed
        complaint closed:
    ";

    #[test]
    fn each_state_moves_where_its_line_says_and_nowhere_else() {
        let mut lines = 0;
        for line in TABLES.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (head, next) = line.split_once(':').unwrap();
            let (what, from) = head.split_once(' ').unwrap();
            let machine = [&ORDER, &PAYMENT, &REFUND, &RETURN, &EXCHANGE, &COMPLAINT]
                .into_iter()
                .find(|machine| machine.what == what)
                .unwrap();
            let legal: Vec<_> = next.split_ascii_whitespace().collect();
            for (to, _) in machine.moves {
                let mut document = doc! { "_id": "x", "status": from };
                let moved = machine.advance(&mut document, to, Step { at: Time::default(), by: "me", why: "" });
                match legal.contains(to) {
                    true => assert_eq!((moved.is_ok(), document.text("status")), (true, *to), "{line}"),
                    false => {
                        let refusal = moved.unwrap_err();
                        assert!(matches!(refusal, Error::IllegalMove { .. }), "{what} {from} to {to}: {refusal}");
                        assert_eq!(document, doc! { "_id": "x", "status": from });
                    }
                }
            }
            lines += 1;
        }
        let states: usize = [ORDER, PAYMENT, REFUND, RETURN, EXCHANGE, COMPLAINT].iter().map(|m| m.moves.len()).sum();
        assert_eq!(lines, states, "each state has its line");
    }
}
