//! Stages that only pass rows on, or not.

use super::{Counters, Cx, Running, See, Shown, State, Work};
use crate::error::Result;

/// No rows.
pub(super) struct Nothing;

impl Work for Nothing {
    fn step(&mut self, _: &Cx<'_>, _: &mut Counters) -> Result<State> {
        Ok(State::End)
    }
}

/// All rows, as they are.
pub(super) struct Through(pub(super) Running);

impl Work for Through {
    fn step(&mut self, cx: &Cx<'_>, _: &mut Counters) -> Result<State> {
        self.0.step(cx)
    }

    fn show(&mut self, cx: &Cx<'_>, _: &mut Counters, most: usize, see: &mut See<'_>) -> Result<Option<Shown>> {
        self.0.show(cx, most, see)
    }

    fn children(&self) -> Vec<&Running> {
        vec![&self.0]
    }

    fn release(&mut self) {
        self.0.release();
    }
}

/// All rows but the first.
pub(super) struct Skip {
    left: u64,
    child: Running,
}

impl Skip {
    pub(super) fn new(amount: u64, child: Running) -> Skip {
        Skip { left: amount, child }
    }
}

impl Work for Skip {
    fn step(&mut self, cx: &Cx<'_>, _: &mut Counters) -> Result<State> {
        match self.child.step(cx)? {
            State::Row(_) if self.left > 0 => {
                self.left -= 1;
                Ok(State::NeedTime)
            }
            state => Ok(state),
        }
    }

    fn children(&self) -> Vec<&Running> {
        vec![&self.child]
    }

    fn release(&mut self) {
        self.child.release();
    }
}

/// The first rows only.
pub(super) struct Limit {
    left: u64,
    child: Running,
}

impl Limit {
    pub(super) fn new(amount: u64, child: Running) -> Limit {
        Limit { left: amount, child }
    }
}

impl Work for Limit {
    fn step(&mut self, cx: &Cx<'_>, _: &mut Counters) -> Result<State> {
        if self.left == 0 {
            return Ok(State::End);
        }
        let state = self.child.step(cx)?;
        if let State::Row(_) = state {
            self.left -= 1;
        }
        Ok(state)
    }

    fn children(&self) -> Vec<&Running> {
        vec![&self.child]
    }

    fn release(&mut self) {
        self.child.release();
    }
}

/// All rows, and their number.
pub(super) struct Count(pub(super) Running);

impl Work for Count {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        let state = self.0.step(cx)?;
        if let State::Row(_) = state {
            counters.counted += 1;
        }
        Ok(state)
    }

    fn show(&mut self, cx: &Cx<'_>, counters: &mut Counters, most: usize, see: &mut See<'_>) -> Result<Option<Shown>> {
        self.0.show(cx, most, &mut |record, document| {
            counters.counted += 1;
            see(record, document)
        })
    }

    fn children(&self) -> Vec<&Running> {
        vec![&self.0]
    }

    fn release(&mut self) {
        self.0.release();
    }
}
