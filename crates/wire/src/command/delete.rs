//! `delete`: documents that match go.

use super::arguments::Uuid;
use super::documents::{Documents, Hint, statement_ids, to_owned, write_errors};
use super::{Command, Context, Counter, Flag, Later, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::state::count;
use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument};
use engine::operation::{Delete, DeleteReply, DeleteStatement, Query};
use engine::{Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "delete",
    help: "deletes documents",
    stable_api: true,
    in_transaction: true,
    writes: true,
    retryable: true,
    counter: Counter::None,
    rights: Rights::Collection(Action::Remove),
    run: Run::Later(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        deletes: Documents<'a> = "deletes",
        ordered: Option<bool> = "ordered",
        variables: Option<&'a RawDocument> = "let",
        statement_ids: Option<&'a RawArray> = "stmtIds",
        uuid: Option<Uuid<'a>> = "collectionUUID",
        bypass: Flag = "bypassDocumentValidation",
        raw_data: Flag = "rawData",
    }
}

arguments! {
    struct Statement<'a> {
        query: &'a RawDocument = "q",
        limit: i64 = "limit",
        collation: Option<&'a RawDocument> = "collation",
        hint: Option<Hint<'a>> = "hint",
        sample: Option<RawBsonRef<'a>> = "sampleId",
    }
}

fn statement(document: &RawDocument, variables: Option<&RawDocument>) -> Result<DeleteStatement> {
    let statement = Statement::parse_nested("delete.deletes", document)?;
    if !matches!(statement.limit, 0 | 1) {
        let message = format!("The limit field in delete objects must be 0 or 1. Got {}", statement.limit);
        return Err(Error::failed_to_parse(message));
    }
    Ok(DeleteStatement {
        query: Query {
            filter: statement.query.to_owned(),
            hint: statement.hint.and_then(Hint::to_owned),
            collation: to_owned(statement.collation),
            variables: to_owned(variables),
            ..Query::default()
        },
        multi: statement.limit == 0,
    })
}

/// A `delete` from a command's arguments.
pub(super) fn delete(ctx: &Context<'_>) -> Result<Delete> {
    let namespace = ctx.written_collection()?;
    let arguments = Arguments::parse(ctx)?;
    ctx.check_uuid(&namespace, arguments.uuid)?;
    let mut statements = Vec::with_capacity(arguments.deletes.size_hint());
    for delete in arguments.deletes.iter("delete", "deletes") {
        statements.push(statement(delete?, arguments.variables)?);
    }
    Ok(Delete {
        namespace,
        statements,
        ordered: arguments.ordered.unwrap_or(true),
        statement_ids: statement_ids(arguments.statement_ids)?,
    })
}

fn run<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let delete = delete(ctx)?;
        count(&ctx.shared.metrics.delete, delete.statements.len() as u64);
        let written = ctx.shared.engine.delete(&ctx.engine_context(), &delete)?;
        let DeleteReply { n, errors } = written.durable().await?;
        reply.put("n", n as i32);
        write_errors(ctx, reply, &errors);
        Ok(())
    })
}
