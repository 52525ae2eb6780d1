//! `killOp`: asks a running operation to stop.

use super::{Command, Run, arguments};
use crate::auth::{Action, Rights};
use bson::raw::RawBsonRef;
use engine::{Code, Error};

arguments! {
    struct KillOp<'a> {
        op: RawBsonRef<'a> = "op",
    }
}

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "killOp",
    help: "asks a running operation to stop",
    ignores_unknown_fields: true,
    admin_only: true,
    rights: Rights::Cluster(Action::Killop),
    run: Run::Now(|ctx, reply| {
        let arguments = match KillOp::parse(ctx) {
            Err(error) if error.code.0 == 40414 => {
                return Err(Error::new(Code::NO_SUCH_KEY, "Did not provide \"op\" field"));
            }
            parsed => parsed?,
        };
        let whole = super::arguments::whole(arguments.op, "op");
        let wanted = whole
            .map_err(|_| Error::bad_value("the \"op\" field of killOp is a whole number"))?
            .ok_or_else(|| Error::type_mismatch("the \"op\" field of killOp is an operation's number"))?;
        if i32::try_from(wanted).is_err() {
            return Err(Error::location(
                26823,
                format!("invalid op : {wanted}. Op ID cannot be represented with 32 bits"),
            ));
        }
        reply.put("info", "attempting to kill op");
        for connection in ctx.shared.connections() {
            if let Some(operation) = connection.operation.lock().as_ref()
                && i64::from(operation.id) == wanted
            {
                operation.interrupt(Code::INTERRUPTED);
            }
        }
        Ok(())
    }),
    ..Command::DEFAULT
};
