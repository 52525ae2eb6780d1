//! `getLog` and `logRotate`.
//!
//! The log goes to standard error, whose rotation is its reader's; `logRotate` succeeds so that scripts go on.

use super::{Command, Context, Run};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::raw::RawBsonRef;
use engine::{Error, Result};

/// `getLog`.
pub(crate) static GET_LOG: Command = Command {
    name: "getLog",
    help: "returns recent lines of the log, or the warnings of the start",
    admin_only: true,
    rights: Rights::Cluster(Action::GetLog),
    run: Run::Now(get_log),
    ..Command::DEFAULT
};

/// `logRotate`.
pub(crate) static LOG_ROTATE: Command = Command {
    name: "logRotate",
    help: "accepted; the log goes to standard error",
    admin_only: true,
    rights: Rights::Cluster(Action::LogRotate),
    run: Run::Now(|ctx, _| {
        let value = ctx.value()?;
        super::diagnostic::NoArguments::parse(ctx)?;
        match value {
            RawBsonRef::String("server") | RawBsonRef::Boolean(_) => Ok(()),
            RawBsonRef::String(other) => {
                Err(Error::new(engine::Code::NO_SUCH_KEY, format!("No log type named '{other}' exists")))
            }
            other if super::number(other).is_some() => Ok(()),
            other => {
                let path = super::Path { parent: "logRotate", field: "logRotate" };
                Err(path.wrong_type(other, &["bool", "decimal", "double", "int", "long", "string"]))
            }
        }
    }),
    ..Command::DEFAULT
};

fn get_log(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let value = ctx.value()?;
    if super::arguments::is_null(value) {
        return Err(super::Path { parent: "getLog", field: "getLog" }.missing());
    }
    let Some(which) = value.as_str() else {
        let kind = super::arguments::type_name(value.element_type());
        return Err(Error::type_mismatch(format!("Argument to getLog must be of type String; found {kind} instead")));
    };
    super::diagnostic::NoArguments::parse(ctx)?;
    let mut warnings = Vec::new();
    if !ctx.shared.requires_auth {
        warnings.push(startup_warning(
            "Access control is not enabled: whoever reaches this port may read and write all data",
        ));
    }
    match which {
        "*" => reply.put_strings("names", ["global", "startupWarnings"]),
        "global" | "startupWarnings" => {
            reply.put("totalLinesWritten", warnings.len() as i32);
            reply.put_strings("log", warnings.iter().map(String::as_str));
        }
        other => return Err(Error::new(engine::Code::OPERATION_FAILED, format!("no RamLog named: {other}"))),
    }
    Ok(())
}

/// A line in the shape that mongosh shows at its start.
fn startup_warning(text: &str) -> String {
    let now = bson::DateTime::now().try_to_rfc3339_string().unwrap_or_default();
    format!(
        r#"{{"t":{{"$date":"{now}"}},"s":"W","c":"CONTROL","id":22120,"ctx":"initandlisten","msg":"{text}","tags":["startupWarnings"]}}"#
    )
}
