//! Cursors over documents that describe collections, indexes, databases: `listCollections` and the like.

use crate::context::Context;
use crate::cursor::{Batch, Cursor, Tailing};
use crate::database::Engine;
use crate::document::Row;
use crate::error::Result;
use crate::expression::Parser;
use crate::filter::Filter;
use crate::namespace::Namespace;
use crate::stage::RowSource;
use bson::{RawDocument, RawDocumentBuf};
use std::time::Instant;

/// Rows that were computed beforehand.
struct Listed(std::vec::IntoIter<RawDocumentBuf>);

impl RowSource for Listed {
    fn next(&mut self) -> Result<Option<Row>> {
        Ok(self.0.next().map(Row::from))
    }

    fn is_quick(&self) -> bool {
        true
    }
}

impl Engine {
    /// The documents that match a filter.
    ///
    /// # Errors
    /// An invalid filter.
    pub fn matching(&self, filter: &RawDocument, documents: Vec<RawDocumentBuf>) -> Result<Vec<RawDocumentBuf>> {
        let environment = self.inner.environment();
        let filter = Filter::parse(filter, &mut Parser::new(), None)?;
        let mut matching = Vec::new();
        for document in documents {
            if filter.matches(&document, &environment)? {
                matching.push(document);
            }
        }
        Ok(matching)
    }

    /// A cursor over given documents; `namespace` is what it shall be called by.
    ///
    /// # Errors
    /// Too many open cursors.
    pub fn listing(
        &self,
        context: &Context,
        namespace: Namespace,
        documents: Vec<RawDocumentBuf>,
        batch_size: Option<usize>,
    ) -> Result<Batch> {
        let cursor = Cursor {
            namespace,
            rows: Box::new(Listed(documents.into_iter())),
            held: None,
            session: context.session.as_ref().map(|session| session.id),
            transaction: context.transaction().and_then(|session| session.txn_number),
            tailing: Tailing::No,
            no_timeout: false,
            last_use: Instant::now(),
            reached: None,
            cell: None,
            opened_by: context.monitor.clone(),
        };
        self.inner.open_cursor(context, cursor, batch_size, false)
    }
}
