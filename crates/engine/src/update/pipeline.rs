//! An update by an aggregation pipeline of the stages that map one document to one.

use crate::document::{RawArray, RawDocument, RawDocumentBuf};
use crate::error::{Code, Error, Result};
use crate::expression::Parser;
use crate::update::UpdateContext;

/// A parsed pipeline.
#[derive(Debug)]
pub(crate) struct Pipeline {}

impl Pipeline {
    pub(crate) fn parse(_: &RawArray, _: &mut Parser) -> Result<Pipeline> {
        Err(Error::new(Code::NOT_IMPLEMENTED, "updates by pipeline are not there yet"))
    }

    pub(crate) fn apply(&self, before: &RawDocument, _: &UpdateContext<'_>) -> Result<RawDocumentBuf> {
        Ok(before.to_owned())
    }
}
