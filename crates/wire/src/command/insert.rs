//! `insert`: new documents.

use super::arguments::Uuid;
use super::documents::{Documents, statement_ids, write_errors};
use super::{Command, Context, Counter, Flag, Later, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::state::count;
use bson::RawArray;
use engine::operation::{Insert, InsertReply};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "insert",
    help: "inserts documents",
    stable_api: true,
    in_transaction: true,
    writes: true,
    retryable: true,
    counter: Counter::None,
    rights: Rights::Collection(Action::Insert),
    run: Run::Later(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        documents: Documents<'a> = "documents",
        ordered: Option<bool> = "ordered",
        bypass: Flag = "bypassDocumentValidation",
        statement_ids: Option<&'a RawArray> = "stmtIds",
        uuid: Option<Uuid<'a>> = "collectionUUID",
        raw_data: Flag = "rawData",
    }
}

fn run<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let namespace = ctx.written_collection()?;
        let arguments = Arguments::parse(ctx)?;
        ctx.check_uuid(&namespace, arguments.uuid)?;
        let mut documents = Vec::with_capacity(arguments.documents.size_hint());
        for document in arguments.documents.iter("insert", "documents") {
            documents.push(document?.to_owned());
        }
        count(&ctx.shared.metrics.insert, documents.len() as u64);
        let insert = Insert {
            namespace,
            documents,
            ordered: arguments.ordered.unwrap_or(true),
            bypass_document_validation: arguments.bypass.0,
            statement_ids: statement_ids(arguments.statement_ids)?,
        };
        let written = ctx.shared.engine.insert(&ctx.engine_context(), insert)?;
        let InsertReply { n, errors } = written.durable().await?;
        reply.put("n", n as i32);
        write_errors(ctx, reply, &errors);
        Ok(())
    })
}
