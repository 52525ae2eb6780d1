//! `{$median: {input, method}}`: the median of the numbers in an array, or of a single number; null without any.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/median/>.

use super::Operator;
use super::percentile::parse_percentile;

pub(super) const OPERATOR: Operator =
    Operator { name: "$median", parse: |argument, parser| parse_percentile("$median", false, argument, parser) };
