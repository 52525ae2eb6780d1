//! `ping`: answers.

use super::{Command, Run};
use crate::auth::Rights;

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "ping",
    help: "answers, to show that the server does",
    stable_api: true,
    rights: Rights::Anyone,
    run: Run::Now(|ctx, _| super::diagnostic::NoArguments::parse(ctx).map(|_| ())),
    ..Command::DEFAULT
};
