//! `{$replaceWith: expression}`: another way to write `$replaceRoot`.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/replaceWith/>.

use crate::stage::{StageKind, replace_root};

pub(super) const STAGE: StageKind =
    StageKind::new("$replaceWith", |argument, context| replace_root::of(argument, "replacement document", context));
