//! `{$sampleRate: rate}`: each document with that probability.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/sampleRate/>.

use super::{Node, Operator, Parse, Parser};
use crate::document::number::Number;
use crate::error::{Error, Result};
use bson::RawBsonRef;

pub(super) const OPERATOR: Operator = Operator { name: "$sampleRate", parse: Parse::Top(parse) };

fn parse(argument: RawBsonRef<'_>, parser: &mut Parser<'_>) -> Result<Node> {
    parser.whole_document_only("$sampleRate")?;
    let rate = Number::of(argument)
        .ok_or_else(|| Error::bad_value("argument to $sampleRate must be a numeric type"))?
        .to_f64();
    if !(0.0..=1.0).contains(&rate) {
        return Err(Error::bad_value("numeric argument to $sampleRate must be in [0, 1]"));
    }
    Ok(if rate == 0.0 {
        Node::Always(false)
    } else if rate == 1.0 {
        Node::Always(true)
    } else {
        Node::Sample(rate)
    })
}
