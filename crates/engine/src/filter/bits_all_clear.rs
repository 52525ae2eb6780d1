//! `{field: {$bitsAllClear: mask}}`: all bits of the mask are clear in a number or binary value at the path.
//!
//! What a mask is, and which values have bits: see [`super::bits`]. Documented at
//! <https://www.mongodb.com/docs/manual/reference/operator/query/bitsAllClear/>.

use super::bits::{Kind, parse};
use super::{Operator, Parse};

static KIND: Kind = Kind { name: "$bitsAllClear", all: true, set: false };

pub(super) const OPERATOR: Operator =
    Operator { name: "$bitsAllClear", parse: Parse::Field(|field, argument, _| parse(&KIND, field, argument)) };
