//! `update`: documents changed by operators, a replacement or a pipeline.

use super::arguments::Uuid;
use super::documents::{Documents, Hint, owned, statement_ids, to_owned, write_errors};
use super::{Command, Context, Counter, Flag, Later, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::state::count;
use bson::raw::{RawBson, RawBsonRef};
use bson::{RawArray, RawDocument};
use engine::operation::{Query, Update, UpdateReply, UpdateStatement};
use engine::{Error, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "update",
    help: "changes documents",
    stable_api: true,
    in_transaction: true,
    writes: true,
    retryable: true,
    counter: Counter::None,
    rights: Rights::Collection(Action::Update),
    run: Run::Later(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        updates: Documents<'a> = "updates",
        ordered: Option<bool> = "ordered",
        bypass: Flag = "bypassDocumentValidation",
        variables: Option<&'a RawDocument> = "let",
        statement_ids: Option<&'a RawArray> = "stmtIds",
        uuid: Option<Uuid<'a>> = "collectionUUID",
        raw_data: Flag = "rawData",
    }
}

arguments! {
    struct Statement<'a> {
        query: &'a RawDocument = "q",
        update: RawBsonRef<'a> = "u",
        constants: Option<&'a RawDocument> = "c",
        multi: Option<bool> = "multi",
        upsert: Option<bool> = "upsert",
        array_filters: Option<&'a RawArray> = "arrayFilters",
        collation: Option<&'a RawDocument> = "collation",
        hint: Option<Hint<'a>> = "hint",
        sort: Option<&'a RawDocument> = "sort",
        upsert_supplied: Option<bool> = "upsertSupplied",
        sample: Option<RawBsonRef<'a>> = "sampleId",
    }
}

/// `let` of the command with `c` of a statement.
pub(super) fn variables(
    command: Option<&RawDocument>,
    constants: Option<&RawDocument>,
) -> Option<bson::RawDocumentBuf> {
    let Some(constants) = constants else { return to_owned(command) };
    let mut all = Writer::new();
    if let Some(command) = command {
        all.put_all(command);
    }
    all.put_all(constants);
    Some(all.finish_document())
}

fn statement(document: &RawDocument, variables: Option<&RawDocument>) -> Result<UpdateStatement> {
    let statement = Statement::parse_nested("update.updates", document)?;
    let multi = statement.multi.unwrap_or(false);
    if multi && statement.sort.is_some() {
        return Err(Error::failed_to_parse("Cannot specify sort with multi=true"));
    }
    if !matches!(statement.update, RawBsonRef::Document(_) | RawBsonRef::Array(_)) {
        return Err(Error::failed_to_parse("Update argument must be either an object or an array"));
    }
    if statement.constants.is_some() && !matches!(statement.update, RawBsonRef::Array(_)) {
        return Err(Error::location(51198, "Constant values may only be specified for pipeline updates"));
    }
    let path = Path { parent: "update.updates", field: "arrayFilters" };
    Ok(UpdateStatement {
        query: Query {
            filter: statement.query.to_owned(),
            sort: to_owned(statement.sort),
            hint: statement.hint.and_then(Hint::to_owned),
            collation: to_owned(statement.collation),
            variables: self::variables(variables, statement.constants),
            ..Query::default()
        },
        update: RawBson::from(statement.update),
        multi,
        upsert: statement.upsert.unwrap_or(false),
        array_filters: owned(statement.array_filters, path)?,
    })
}

/// An `update` from a command's arguments.
pub(super) fn update(ctx: &Context<'_>) -> Result<Update> {
    let namespace = ctx.written_collection()?;
    let arguments = Arguments::parse(ctx)?;
    ctx.check_uuid(&namespace, arguments.uuid)?;
    let mut statements = Vec::with_capacity(arguments.updates.size_hint());
    for update in arguments.updates.iter("update", "updates") {
        statements.push(statement(update?, arguments.variables)?);
    }
    Ok(Update {
        namespace,
        statements,
        ordered: arguments.ordered.unwrap_or(true),
        bypass_document_validation: arguments.bypass.0,
        statement_ids: statement_ids(arguments.statement_ids)?,
    })
}

fn run<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let update = update(ctx)?;
        count(&ctx.shared.metrics.update, update.statements.len() as u64);
        let written = ctx.shared.engine.update(&ctx.engine_context(), &update)?;
        let UpdateReply { n, n_modified, upserted, errors } = written.durable().await?;
        reply.put("n", n as i32);
        if !upserted.is_empty() {
            reply.begin_array("upserted");
            for (index, id) in &upserted {
                reply.begin_element();
                reply.put("index", *index as i32);
                reply.put("_id", id);
                reply.end();
            }
            reply.end();
        }
        reply.put("nModified", n_modified as i32);
        write_errors(ctx, reply, &errors);
        Ok(())
    })
}
