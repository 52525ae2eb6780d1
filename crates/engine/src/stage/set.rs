//! `{$set: …}`: another name of `$addFields`.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/set/>.

use crate::stage::{StageKind, add_fields};

pub(super) const STAGE: StageKind = StageKind::new("$set", add_fields::parse);
