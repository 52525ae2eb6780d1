//! `{$round: [number, place]}`: the number, rounded half to even at `place` digits after the point (before it where negative; 0 by default).
//!
//! The type stays, but an int32 that outgrows its type becomes an int64. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/round/>.

use super::Operator;
use super::numeric::to_places;
use crate::document::decimal::Round;

pub(super) const OPERATOR: Operator =
    Operator { name: "$round", parse: |argument, parser| to_places("$round", argument, parser, Round::HalfEven) };
