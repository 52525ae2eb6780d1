//! Logging in and out: `saslStart`, `saslContinue`, `logout`.

use super::{Command, Run};
use crate::auth::{self, Rights};

/// `saslStart`.
pub(crate) static START: Command = Command {
    name: "saslStart",
    help: "starts a login",
    stable_api: true,
    rights: Rights::Anyone,
    run: Run::Now(|ctx, reply| auth::start(ctx, ctx.body(), ctx.database(), reply)),
    ..Command::DEFAULT
};

/// `saslContinue`.
pub(crate) static CONTINUE: Command = Command {
    name: "saslContinue",
    help: "goes on with a login",
    stable_api: true,
    rights: Rights::Anyone,
    run: Run::Now(auth::resume),
    ..Command::DEFAULT
};

/// `logout`.
pub(crate) static LOGOUT: Command = Command {
    name: "logout",
    help: "ends the login",
    rights: Rights::Anyone,
    run: Run::Now(|ctx, _| {
        ctx.client.login.log_out();
        *ctx.client.info.user.lock() = None;
        Ok(())
    }),
    ..Command::DEFAULT
};
