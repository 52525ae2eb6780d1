//! `killCursors`: closes cursors.

use super::{Command, Context, Run, arguments};
use crate::bson::Writer;
use bson::RawArray;
use engine::{Namespace, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "killCursors",
    help: "closes cursors",
    stable_api: true,
    in_transaction: true,
    run: Run::Now(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        cursors: &'a RawArray = "cursors",
    }
}

fn run(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let value = ctx.value()?;
    let namespace = match value.as_str() {
        Some(name) if name.starts_with('$') => {
            Namespace { database: ctx.database().to_owned(), collection: name.to_owned() }
        }
        _ => ctx.collection_of(value)?,
    };
    let arguments = Arguments::parse(ctx)?;
    let mut ids = Vec::new();
    for (index, cursor) in arguments.cursors.into_iter().enumerate() {
        let cursor = cursor?;
        let field = format!("cursors.{index}");
        let path = super::Path { parent: "killCursors", field: &field };
        ids.push(cursor.as_i64().ok_or_else(|| path.wrong_type(cursor, &["long"]))?);
    }
    let killed = ctx.shared.engine.kill_cursors(&namespace, &ids);
    let mut list = |name: &str, ids: &mut dyn Iterator<Item = i64>| {
        reply.begin_array(name);
        ids.for_each(|id| reply.push(id));
        reply.end();
    };
    list("cursorsKilled", &mut killed.iter().copied());
    list("cursorsNotFound", &mut ids.iter().copied().filter(|id| !killed.contains(id)));
    list("cursorsAlive", &mut std::iter::empty());
    list("cursorsUnknown", &mut std::iter::empty());
    Ok(())
}
