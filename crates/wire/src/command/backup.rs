//! `sheafBackup`: a backup of the whole server into a folder on the server's own disk, while everything goes on.
//!
//! `{sheafBackup: "/path"}` makes a backup in an empty folder; with `append: true` the commits since are added to one that is
//! there. The reply says which states it can restore. Since it writes where it is told, it takes the right to stop the server.

use super::{Command, Context, Flag, Later, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use bson::DateTime;
use engine::Error;
use engine::backup::{self, Manifest, Progress};
use std::path::PathBuf;

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "sheafBackup",
    help: "writes a backup of the whole server into a folder on its disk, or adds what came since",
    admin_only: true,
    rights: Rights::Cluster(Action::Shutdown),
    run: Run::Later(run),
    ..Command::DEFAULT
};

arguments! {
    struct BackupArguments<'a> {
        append: Flag = "append",
    }
}

fn run<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let append = BackupArguments::parse(ctx)?.append.0;
        let path = Path { parent: "sheafBackup", field: "sheafBackup" };
        let value = ctx.value()?;
        let folder = PathBuf::from(value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?);
        if !folder.is_absolute() {
            return Err(Error::bad_value("the folder of a backup must be given by its absolute path"));
        }
        let (engine, context) = (ctx.shared.engine.clone(), ctx.engine_context());
        let work = move || {
            let mut report = |_: Progress| context.check();
            match append {
                true => backup::append(engine.storage(), &folder, &mut report),
                false => backup::create(engine.storage(), &folder, &mut report),
            }
        };
        let manifest =
            tokio::task::spawn_blocking(work).await.map_err(|error| Error::internal(error.to_string()))??;
        describe(&manifest, reply);
        Ok(())
    })
}

fn describe(manifest: &Manifest, reply: &mut Writer) {
    reply.put("keys", manifest.key_count() as i64);
    reply.put("sizeBytes", manifest.size_bytes() as i64);
    reply.put("earliest", DateTime::from_millis(manifest.earliest_ms()));
    reply.put("latest", DateTime::from_millis(manifest.latest_ms()));
    reply.put("position", manifest.last as i64);
}
