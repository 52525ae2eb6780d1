//! stub
use crate::error::Result;
use crate::expression::*;
use crate::filter::Filter;
use bson::*;
#[derive(Debug)]
pub struct Projection;
pub enum Mode {
    Find,
    Aggregate,
}
impl Projection {
    pub fn parse(_: &RawDocument, _: Option<&Filter>, _: &mut Parser, _: Mode) -> Result<Projection> {
        Ok(Projection)
    }
    pub fn apply(&self, d: &RawDocument, _: &Environment, _: Option<usize>) -> Result<RawDocumentBuf> {
        Ok(d.to_owned())
    }
}
