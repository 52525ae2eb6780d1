//! `{field: {$bitsAnyClear: mask}}`: at least one bit of the mask is clear in a number or binary value at the path.
//!
//! What a mask is, and which values have bits: see [`super::bits`]. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/bitsAnyClear/>.

use super::bits::{Kind, parse};
use super::{Operator, Parse};

static KIND: Kind = Kind { name: "$bitsAnyClear", all: false, set: false };

pub(super) const OPERATOR: Operator =
    Operator { name: "$bitsAnyClear", parse: Parse::Field(|field, argument, _| parse(&KIND, field, argument)) };
