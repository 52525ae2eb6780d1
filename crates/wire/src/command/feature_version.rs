//! `setFeatureCompatibilityVersion`: there is one feature set, that of this version; asking for it changes nothing.

use super::{Command, Context, Flag, Path, Run, arguments};
use crate::auth::{Action, Rights};
use engine::{Error, Result};

/// The version whose features there are.
pub(super) const VERSION: &str = "8.0";

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "setFeatureCompatibilityVersion",
    help: "confirms the feature set of this version, the only one there is",
    admin_only: true,
    writes: true,
    rights: Rights::Cluster(Action::SetFeatureCompatibilityVersion),
    run: Run::Now(|ctx, _| set(ctx)),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        confirm: Flag = "confirm",
        from_config_server: Flag = "fromConfigServer",
    }
}

fn set(ctx: &mut Context<'_>) -> Result<()> {
    let path = Path { parent: "setFeatureCompatibilityVersion", field: "setFeatureCompatibilityVersion" };
    let value = ctx.value()?;
    if super::arguments::is_null(value) {
        return Err(path.missing());
    }
    let version = value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?;
    if !Arguments::parse(ctx)?.confirm.0 {
        let message = format!("setFeatureCompatibilityVersion to '{version}' must be confirmed by {{ confirm: true }}");
        return Err(Error::location(7_369_100, message));
    }
    match version {
        VERSION => Ok(()),
        other => Err(Error::location(
            4_926_900,
            format!("Invalid feature compatibility version value '{other}'; expected '{VERSION}', the only one here"),
        )),
    }
}
