//! `{field: {$bitsAnySet: mask}}`: at least one bit of the mask is set in a number or binary value at the path.
//!
//! What a mask is, and which values have bits: see [`super::bits`]. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/bitsAnySet/>.

use super::bits::{Kind, parse};
use super::{Operator, Parse};

static KIND: Kind = Kind { name: "$bitsAnySet", all: false, set: true };

pub(super) const OPERATOR: Operator =
    Operator { name: "$bitsAnySet", parse: Parse::Field(|field, argument, _| parse(&KIND, field, argument)) };
