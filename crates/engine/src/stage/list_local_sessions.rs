//! `{$listLocalSessions: {allUsers | users}}`: the logical sessions of this server.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/listLocalSessions/>.

use crate::stage::list_sessions::check_options;
use crate::stage::{Position, Report, StageKind, report};

pub(super) const STAGE: StageKind = StageKind::new("$listLocalSessions", |argument, _| {
    Ok(report::of(Report::LocalSessions, check_options("$listLocalSessions", argument)?.to_owned()))
})
.at(Position::FirstWithoutCollection)
.not_in_transaction()
.in_facet();
