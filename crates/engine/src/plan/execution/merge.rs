//! Stages over several scans: one after the other, or merged in order.

use super::{Counters, Cx, Member, Running, Settings, State, Work, start};
use crate::error::{Error, Result};
use crate::key;
use crate::plan::node::Node;
use crate::plan::order::{merge_fields, scan_below};
use crate::plan::seen::Seen;
use crate::plan::sort::SortPattern;
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Several scans, one after the other, each record once.
pub(super) struct Union {
    children: Vec<Running>,
    current: usize,
    seen: Seen,
}

impl Union {
    pub(super) fn new(children: Vec<Running>) -> Union {
        Union { children, current: 0, seen: Seen::default() }
    }
}

impl Work for Union {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        let Some(child) = self.children.get_mut(self.current) else { return Ok(State::End) };
        match child.step(cx)? {
            State::Row(member) => {
                counters.duplicates_tested += 1;
                if self.seen.insert(&member.record)? {
                    return Ok(State::Row(member));
                }
                counters.duplicates_dropped += 1;
                Ok(State::NeedTime)
            }
            State::NeedTime => Ok(State::NeedTime),
            State::End => {
                self.current += 1;
                Ok(if self.current == self.children.len() { State::End } else { State::NeedTime })
            }
        }
    }

    fn children(&self) -> Vec<&Running> {
        self.children.iter().collect()
    }

    fn release(&mut self) {
        self.children.iter_mut().for_each(Running::release);
    }
}

/// Several scans in the same order, merged.
pub(super) struct Merge {
    children: Vec<Running>,
    /// For each child, where the sort's fields are in its keys.
    places: Vec<Places>,
    /// Children whose next row is not known.
    pending: Vec<usize>,
    heads: BinaryHeap<Reverse<(Bytes, usize)>>,
    rows: Vec<Option<Box<Member>>>,
    seen: Seen,
}

/// Where a sort's fields are in the keys of a scan.
struct Places {
    descending: Vec<bool>,
    fields: Vec<(usize, bool)>,
}

impl Merge {
    pub(super) fn new(pattern: &SortPattern, children: &[Node], settings: &Settings) -> Merge {
        let places = children
            .iter()
            .map(|child| {
                let scan = scan_below(child).expect("only scans are merged");
                let fields = merge_fields(scan, pattern).expect("only scans with the sort's fields are merged");
                Places { descending: scan.descending(), fields }
            })
            .collect();
        let children: Vec<Running> = children.iter().map(|child| start(child, settings)).collect();
        Merge {
            places,
            pending: (0..children.len()).rev().collect(),
            heads: BinaryHeap::with_capacity(children.len()),
            rows: children.iter().map(|_| None).collect(),
            seen: Seen::default(),
            children,
        }
    }
}

impl Places {
    /// The bytes that order a row among the rows of all children.
    fn sort_key(&self, member: &Member) -> Result<Bytes> {
        let key = member.key.as_ref().ok_or_else(|| Error::internal("a merged row has no key"))?;
        let mut fields = Vec::with_capacity(self.descending.len());
        let mut at = 0;
        for descending in &self.descending {
            let length = key::skip(&key.fields[at..], *descending)?;
            fields.push(&key.fields[at..at + length]);
            at += length;
        }
        let mut bytes = Vec::with_capacity(32);
        for (field, inverted) in &self.fields {
            let from = bytes.len();
            bytes.extend_from_slice(fields[*field]);
            if *inverted {
                key::invert(&mut bytes[from..]);
            }
        }
        Ok(Bytes::from(bytes))
    }
}

impl Work for Merge {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        if let Some(number) = self.pending.last().copied() {
            match self.children[number].step(cx)? {
                State::Row(member) => {
                    self.heads.push(Reverse((self.places[number].sort_key(&member)?, number)));
                    self.rows[number] = Some(member);
                    self.pending.pop();
                }
                State::NeedTime => {}
                State::End => {
                    self.pending.pop();
                }
            }
            return Ok(State::NeedTime);
        }
        let Some(Reverse((sort_key, number))) = self.heads.pop() else { return Ok(State::End) };
        self.pending.push(number);
        let mut member = self.rows[number].take().expect("each head has its row");
        counters.duplicates_tested += 1;
        if !self.seen.insert(&member.record)? {
            counters.duplicates_dropped += 1;
            return Ok(State::NeedTime);
        }
        member.sort_key = Some(sort_key);
        Ok(State::Row(member))
    }

    fn children(&self) -> Vec<&Running> {
        self.children.iter().collect()
    }

    fn release(&mut self) {
        self.children.iter_mut().for_each(Running::release);
    }
}
