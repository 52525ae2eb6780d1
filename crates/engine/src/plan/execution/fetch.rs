//! The stage that reads the documents that keys lead to.

use super::{Counters, Cx, Running, Settings, State, Work};
use crate::error::Result;
use crate::filter::Filter;
use crate::keyspace;
use bson::RawDocument;
use std::sync::Arc;

/// Reads documents and checks what the keys left open.
pub(super) struct Fetch {
    collection: u32,
    filter: Option<Filter>,
    /// For rows whose key was read in an older view than their document.
    whole: Arc<Filter>,
    child: Running,
}

impl Fetch {
    pub(super) fn new(settings: &Settings, filter: Option<Filter>, child: Running) -> Fetch {
        Fetch { collection: settings.collection, filter, whole: settings.filter.clone(), child }
    }
}

impl Work for Fetch {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        let mut member = match self.child.step(cx)? {
            State::Row(member) => member,
            state => return Ok(state),
        };
        if member.document.is_none() {
            let Some(document) = cx.view.get(&keyspace::record(self.collection, &member.record))? else {
                return Ok(State::NeedTime);
            };
            cx.count_document(counters);
            member.document = Some(document);
        }
        let document = member.document.as_ref().expect("it is read above");
        let document = RawDocument::from_bytes(document)?;
        let matches = if member.generation == cx.generation {
            self.filter.as_ref().map_or(Ok(true), |filter| filter.matches(document, cx.environment))?
        } else {
            self.whole.matches(document, cx.environment)?
        };
        Ok(if matches { State::Row(member) } else { State::NeedTime })
    }

    fn children(&self) -> Vec<&Running> {
        vec![&self.child]
    }

    fn release(&mut self) {
        self.child.release();
    }
}
