//! `{$listSessions: {allUsers | users}}`: the logical sessions, asked of `config.system.sessions`.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/operator/aggregation/listSessions/>.

use crate::document::{RawBsonRef, RawDocument};
use crate::error::{Code, Error, Result};
use crate::stage::options::Options;
use crate::stage::{ParseContext, Position, Report, Stage, StageKind, report};
use std::sync::Arc;

pub(super) const STAGE: StageKind =
    StageKind::new("$listSessions", parse).at(Position::First).in_facet().not_in_transaction();

fn parse(argument: RawBsonRef<'_>, context: &mut ParseContext<'_>) -> Result<Vec<Arc<dyn Stage>>> {
    if context.namespace.to_string() != "config.system.sessions" {
        return Err(Error::new(
            Code::INVALID_NAMESPACE,
            "$listSessions may only be run against config.system.sessions",
        ));
    }
    Ok(report::of(Report::Sessions, check_options("$listSessions", argument)?.to_owned()))
}

/// Checks `{allUsers: bool, users: [{user, db}, …]}`.
pub(super) fn check_options<'a>(stage: &'static str, argument: RawBsonRef<'a>) -> Result<&'a RawDocument> {
    let RawBsonRef::Document(document) = argument else {
        return Err(Error::type_mismatch(format!("{stage} options must be specified in an object")));
    };
    let mut options = Options::of(stage, document)?;
    let all = options.boolean("allUsers")?.unwrap_or(false);
    let users = options.take("users");
    let mut some = false;
    if let Some(users) = users {
        let array = users.as_array().ok_or_else(|| options.wrong_type("users", users, "array"))?;
        for user in array {
            let user = match user? {
                RawBsonRef::Document(user) => user,
                RawBsonRef::Null => continue,
                other => return Err(options.wrong_type("users", other, "object")),
            };
            let mut user = Options::of("users", user)?;
            user.required_string("user")?;
            user.required_string("db")?;
            user.finish()?;
            some = true;
        }
    }
    options.finish()?;
    if all && some {
        return Err(Error::new(
            Code::UNSUPPORTED_FORMAT,
            format!("{stage} may not specify {{allUsers:true}} and {{users:[...]}} at the same time"),
        ));
    }
    Ok(document)
}
