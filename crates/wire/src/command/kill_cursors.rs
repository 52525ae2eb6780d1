//! `killCursors`: closes cursors.

use super::{Command, Context, Run, arguments};
use crate::bson::Writer;
use bson::RawArray;
use bson::raw::RawBsonRef;
use engine::{Code, Error, Namespace, Result};

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
    match value {
        RawBsonRef::String(name) if name.starts_with('$') => {}
        RawBsonRef::String(name) => {
            Namespace::new(ctx.database(), name)?;
        }
        other => {
            let kind = super::type_name(other.element_type());
            return Err(Error::new(Code::INVALID_NAMESPACE, format!("collection name has invalid type {kind}")));
        }
    }
    let arguments = Arguments::parse(ctx)?;
    let mut ids = Vec::new();
    for (index, cursor) in arguments.cursors.into_iter().enumerate() {
        let cursor = cursor?;
        if super::arguments::is_null(cursor) {
            continue;
        }
        let field = format!("cursors.{index}");
        let path = super::Path { parent: "killCursors", field: &field };
        ids.push(cursor.as_i64().ok_or_else(|| path.wrong_type(cursor, &["long"]))?);
    }
    // Each id closes at most once: what comes again is not found.
    let (mut killed, mut not_found) = (Vec::new(), Vec::new());
    for id in ids {
        let list = if ctx.shared.engine.kill_cursor(id) { &mut killed } else { &mut not_found };
        list.push(id);
    }
    let mut list = |name: &str, ids: &mut dyn Iterator<Item = i64>| {
        reply.begin_array(name);
        ids.for_each(|id| reply.push(id));
        reply.end();
    };
    list("cursorsKilled", &mut killed.iter().copied());
    list("cursorsNotFound", &mut not_found.iter().copied());
    list("cursorsAlive", &mut std::iter::empty());
    list("cursorsUnknown", &mut std::iter::empty());
    Ok(())
}
