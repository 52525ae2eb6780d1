//! `{$toObjectId: expression}`: the value as an ObjectId.
//!
//! Null gives null; what does not convert is refused. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/aggregation/toObjectId/>.

use super::Operator;
use super::conversion::Target;
use super::shorthand::shorthand;

pub(super) const OPERATOR: Operator = Operator {
    name: "$toObjectId",
    parse: |argument, parser| shorthand("$toObjectId", argument, parser, Target::ObjectId),
};
