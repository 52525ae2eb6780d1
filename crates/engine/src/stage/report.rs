//! The stages that report on the server: what they share.

use crate::document::{RawDocumentBuf, Row};
use crate::error::Result;
use crate::stage::{Ready, Report, Rows, Stage, StageContext, deferred};
use std::sync::Arc;

/// A stage whose rows the engine makes.
#[derive(Debug)]
pub(super) struct Reporting {
    report: Report,
    options: RawDocumentBuf,
}

/// The stage for a report with checked options.
pub(super) fn of(report: Report, options: RawDocumentBuf) -> Vec<Arc<dyn Stage>> {
    vec![Arc::new(Reporting { report, options })]
}

impl Stage for Reporting {
    fn open(self: Arc<Self>, _: Rows, context: &Arc<StageContext>) -> Result<Rows> {
        let context = Arc::clone(context);
        Ok(deferred(move || {
            let rows = context.collections.report(self.report, &self.options, &context)?;
            Ok(Box::new(Ready::new(rows.into_iter().map(Row::from).collect())))
        }))
    }
}
