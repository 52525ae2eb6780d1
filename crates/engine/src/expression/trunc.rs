//! `{$trunc: [number, place]}`: the number, cut off at `place` digits after the point (before it where negative; 0 by default).
//!
//! The type stays, but an int32 that outgrows its type becomes an int64. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/trunc/>.

use super::Operator;
use super::numeric::to_places;
use crate::document::decimal::Round;

pub(super) const OPERATOR: Operator =
    Operator { name: "$trunc", parse: |argument, parser| to_places("$trunc", argument, parser, Round::Down) };
