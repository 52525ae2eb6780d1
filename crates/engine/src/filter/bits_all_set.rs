//! `{field: {$bitsAllSet: mask}}`: all bits of the mask are set in a number or binary value at the path.
//!
//! What a mask is, and which values have bits: see [`super::bits`]. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/bitsAllSet/>.

use super::bits::{Kind, parse};
use super::{Operator, Parse};

static KIND: Kind = Kind { name: "$bitsAllSet", all: true, set: true };

pub(super) const OPERATOR: Operator =
    Operator { name: "$bitsAllSet", parse: Parse::Field(|field, argument, _| parse(&KIND, field, argument)) };
