//! `bulkWrite`: inserts, updates and deletes in several collections.

use super::arguments::Uuid;
use super::documents::{Documents, Hint, owned, to_owned, write_batch};
use super::{Command, Context, Counter, Flag, Later, Path, Run, arguments};
use crate::auth::{Action, Resource, Rights};
use crate::bson::Writer;
use crate::state::count;
use bson::raw::{RawBson, RawBsonRef};
use bson::{RawArray, RawDocument, RawDocumentBuf};
use engine::operation::{Delete, DeleteStatement, Insert, Query, Update, UpdateStatement};
use engine::storage::Ticket;
use engine::{Batch, Code, Error, Namespace, Result};

/// The command.
pub(crate) static COMMAND: Command = Command {
    name: "bulkWrite",
    help: "inserts, updates and deletes in several collections",
    stable_api: true,
    admin_only: true,
    in_transaction: true,
    writes: true,
    retryable: true,
    counter: Counter::None,
    rights: Rights::Custom(rights),
    run: Run::Later(run),
    ..Command::DEFAULT
};

arguments! {
    struct Arguments<'a> {
        operations: Documents<'a> = "ops",
        namespaces: Documents<'a> = "nsInfo",
        ordered: Option<bool> = "ordered",
        bypass: Flag = "bypassDocumentValidation",
        errors_only: Option<bool> = "errorsOnly",
        variables: Option<&'a RawDocument> = "let",
        cursor: Option<&'a RawDocument> = "cursor",
        statement_ids: Option<&'a RawArray> = "stmtIds",
    }
}

arguments! {
    struct NamespaceArguments<'a> {
        namespace: &'a str = "ns",
        uuid: Option<Uuid<'a>> = "collectionUUID",
    }
}

arguments! {
    struct InsertOperation<'a> {
        collection: i64 = "insert",
        document: &'a RawDocument = "document",
    }
}

arguments! {
    struct UpdateOperation<'a> {
        collection: i64 = "update",
        filter: &'a RawDocument = "filter",
        update: RawBsonRef<'a> = "updateMods",
        multi: Option<bool> = "multi",
        upsert: Option<bool> = "upsert",
        array_filters: Option<&'a RawArray> = "arrayFilters",
        collation: Option<&'a RawDocument> = "collation",
        hint: Option<Hint<'a>> = "hint",
        constants: Option<&'a RawDocument> = "constants",
        sort: Option<&'a RawDocument> = "sort",
        upsert_supplied: Option<bool> = "upsertSupplied",
    }
}

arguments! {
    struct DeleteOperation<'a> {
        collection: i64 = "delete",
        filter: &'a RawDocument = "filter",
        multi: Option<bool> = "multi",
        collation: Option<&'a RawDocument> = "collation",
        hint: Option<Hint<'a>> = "hint",
    }
}

/// One operation, parsed.
enum Operation {
    Insert(usize, RawDocumentBuf),
    /// With whether it has constants.
    Update(usize, Box<UpdateStatement>, bool),
    Delete(usize, Box<DeleteStatement>),
}

/// What became of one operation.
#[derive(Default)]
struct Done {
    n: usize,
    n_modified: Option<usize>,
    upserted: Option<RawBson>,
    error: Option<Error>,
}

#[derive(Default)]
struct Totals {
    errors: i32,
    inserted: i32,
    matched: i32,
    modified: i32,
    upserted: i32,
    deleted: i32,
}

fn namespaces<'a>(arguments: &Arguments<'a>) -> Result<Vec<(Namespace, Option<Uuid<'a>>)>> {
    let mut all = Vec::new();
    for document in arguments.namespaces.iter("bulkWrite", "nsInfo") {
        let NamespaceArguments { namespace: name, uuid, .. } =
            NamespaceArguments::parse_nested("bulkWrite.nsInfo", document?)?;
        let Some((database, collection)) = name.split_once('.') else {
            return Err(Error::new(
                Code::INVALID_NAMESPACE,
                format!("Invalid namespace specified for bulkWrite: '{name}'"),
            ));
        };
        let namespace = Namespace::new(database, collection)?;
        super::documents::refuse_reserved(&namespace)?;
        all.push((namespace, uuid));
    }
    Ok(all)
}

fn parse(document: &RawDocument, namespaces: usize, variables: Option<&RawDocument>) -> Result<Operation> {
    let kind = match document.iter().next() {
        Some(first) => first?.0.as_str(),
        None => "",
    };
    let checked = |index: i64| match usize::try_from(index) {
        Ok(index) if index < namespaces => Ok(index),
        _ => Err(Error::bad_value(format!("BulkWrite ops entry has an invalid nsInfo index: {index}"))),
    };
    match kind {
        "insert" => {
            let insert = InsertOperation::parse_nested("bulkWrite.ops", document)?;
            Ok(Operation::Insert(checked(insert.collection)?, insert.document.to_owned()))
        }
        "update" => {
            let update = UpdateOperation::parse_nested("bulkWrite.ops", document)?;
            let path = Path { parent: "bulkWrite.ops", field: "arrayFilters" };
            if !matches!(update.update, RawBsonRef::Document(_) | RawBsonRef::Array(_)) {
                return Err(Error::failed_to_parse("Update argument must be either an object or an array"));
            }
            if update.multi == Some(true) && update.sort.is_some() {
                return Err(Error::failed_to_parse("Cannot specify sort with multi=true"));
            }
            let statement = UpdateStatement {
                query: Query {
                    filter: update.filter.to_owned(),
                    sort: to_owned(update.sort),
                    hint: update.hint.and_then(Hint::to_owned),
                    collation: to_owned(update.collation),
                    variables: super::update::variables(variables, update.constants),
                    ..Query::default()
                },
                update: RawBson::from(update.update),
                multi: update.multi.unwrap_or(false),
                upsert: update.upsert.unwrap_or(false),
                array_filters: owned(update.array_filters, path)?,
            };
            Ok(Operation::Update(checked(update.collection)?, Box::new(statement), update.constants.is_some()))
        }
        "delete" => {
            let delete = DeleteOperation::parse_nested("bulkWrite.ops", document)?;
            let query = Query {
                filter: delete.filter.to_owned(),
                hint: delete.hint.and_then(Hint::to_owned),
                collation: to_owned(delete.collation),
                variables: to_owned(variables),
                ..Query::default()
            };
            let statement = DeleteStatement { query, multi: delete.multi.unwrap_or(false) };
            Ok(Operation::Delete(checked(delete.collection)?, Box::new(statement)))
        }
        other => Err(Path { parent: "bulkWrite.ops", field: other }.unknown()),
    }
}

fn rights(ctx: &Context<'_>) -> Result<Vec<(Action, Resource)>> {
    let arguments = Arguments::parse(ctx)?;
    let namespaces = namespaces(&arguments)?;
    let mut needed = Vec::new();
    for document in arguments.operations.iter("bulkWrite", "ops") {
        let (index, action) = match parse(document?, namespaces.len(), None)? {
            Operation::Insert(index, _) => (index, Action::Insert),
            Operation::Update(index, _, _) => (index, Action::Update),
            Operation::Delete(index, _) => (index, Action::Remove),
        };
        let Namespace { database, collection } = &namespaces[index].0;
        let need = (action, Resource::namespace(database, collection));
        if !needed.contains(&need) {
            needed.push(need);
        }
    }
    Ok(needed)
}

fn run<'x>(ctx: &'x mut Context<'_>, reply: &'x mut Writer) -> Later<'x> {
    Box::pin(async move {
        let arguments = Arguments::parse(ctx)?;
        let namespaces = namespaces(&arguments)?;
        let mut operations = Vec::with_capacity(arguments.operations.size_hint());
        for document in arguments.operations.iter("bulkWrite", "ops") {
            operations.push(parse(document?, namespaces.len(), arguments.variables)?);
        }
        let most = crate::frame::MAX_WRITE_BATCH;
        if operations.is_empty() || operations.len() > most {
            let count = operations.len();
            let message = format!("Write batch sizes must be between 1 and {most}. Got {count} operations.");
            return Err(Error::new(Code::INVALID_LENGTH, message));
        }
        let ids = super::documents::statement_ids(arguments.statement_ids)?;
        let context = ctx.engine_context();
        let mut totals = Totals::default();
        let mut results = Vec::new();
        let mut latest: Option<Ticket> = None;
        for (index, operation) in operations.into_iter().enumerate() {
            let id = ids.get(index).copied().unwrap_or(index as i32);
            let (namespace, uuid) = namespaces[operation.collection()].clone();
            let (done, ticket) = match ctx.check_uuid(&namespace, uuid).and_then(|()| operation.check()) {
                Ok(()) => execute(ctx, &context, operation, namespace, id, arguments.bypass.0, &mut totals)?,
                Err(error) => (Done { error: Some(error), ..Done::default() }, None),
            };
            if let Some(ticket) = ticket {
                ticket.keep_in(&mut latest);
            }
            let failed = done.error.is_some();
            if failed || !arguments.errors_only.unwrap_or(false) {
                results.push(result(index, &done));
            }
            totals.errors += i32::from(failed);
            if failed && arguments.ordered.unwrap_or(true) {
                break;
            }
        }
        if let Some(ticket) = latest {
            ticket.await?;
        }
        let batch_size = super::collections::batch_size(ctx, arguments.cursor)?;
        let name = Namespace { database: "admin".to_owned(), collection: "$cmd.bulkWrite".to_owned() };
        let batch = ctx.shared.engine.listing(&context, name, results, batch_size)?;
        write(reply, &batch, &totals)
    })
}

impl Operation {
    /// Refuses what MongoDB refuses only once it runs.
    fn check(&self) -> Result<()> {
        match self {
            Operation::Update(_, update, true) if !matches!(update.update, RawBson::Array(_)) => {
                Err(Error::location(51198, "Constant values may only be specified for pipeline updates"))
            }
            _ => Ok(()),
        }
    }

    fn collection(&self) -> usize {
        match self {
            Operation::Insert(index, _) | Operation::Update(index, _, _) | Operation::Delete(index, _) => *index,
        }
    }
}

/// Runs one operation. Its failure is part of its result, except in a transaction.
fn execute(
    ctx: &Context<'_>,
    context: &engine::Context,
    operation: Operation,
    namespace: Namespace,
    statement_id: i32,
    bypass: bool,
    totals: &mut Totals,
) -> Result<(Done, Option<Ticket>)> {
    let engine = &ctx.shared.engine;
    let metrics = &ctx.shared.metrics;
    let statement_ids = vec![statement_id];
    Ok(match operation {
        Operation::Insert(_, document) => {
            count(&metrics.insert, 1);
            let documents = vec![document];
            let bypass_document_validation = bypass;
            let insert = Insert { namespace, documents, ordered: true, bypass_document_validation, statement_ids };
            let written = engine.insert(context, insert)?;
            totals.inserted += written.reply.n as i32;
            let error = written.reply.errors.into_iter().next().map(|failed| failed.error);
            (Done { n: written.reply.n, error, ..Done::default() }, Some(written.ticket))
        }
        Operation::Update(_, statement, _) => {
            count(&metrics.update, 1);
            let update = Update {
                namespace,
                statements: vec![*statement],
                ordered: true,
                bypass_document_validation: bypass,
                statement_ids,
            };
            let written = engine.update(context, &update)?;
            let upserted = written.reply.upserted.into_iter().next().map(|entry| entry.1);
            totals.upserted += i32::from(upserted.is_some());
            totals.matched += written.reply.n as i32 - i32::from(upserted.is_some());
            totals.modified += written.reply.n_modified as i32;
            let error = written.reply.errors.into_iter().next().map(|failed| failed.error);
            let n_modified = Some(written.reply.n_modified);
            (Done { n: written.reply.n, n_modified, upserted, error }, Some(written.ticket))
        }
        Operation::Delete(_, statement) => {
            count(&metrics.delete, 1);
            let delete = Delete { namespace, statements: vec![*statement], ordered: true, statement_ids };
            let written = engine.delete(context, &delete)?;
            totals.deleted += written.reply.n as i32;
            let error = written.reply.errors.into_iter().next().map(|failed| failed.error);
            (Done { n: written.reply.n, error, ..Done::default() }, Some(written.ticket))
        }
    })
}

fn result(index: usize, done: &Done) -> RawDocumentBuf {
    let mut result = Writer::new();
    result.put("ok", if done.error.is_some() { 0.0 } else { 1.0 });
    result.put("idx", index as i32);
    if let Some(error) = &done.error {
        result.put("code", error.code.0);
        if let Some(details) = &error.details {
            if let Some(extra) = &details.extra {
                result.put_all(extra);
            }
            result.put_some("errInfo", details.info.as_ref());
        }
        result.put("errmsg", error.message.as_str());
    }
    result.put("n", done.n as i32);
    result.put_some("nModified", done.n_modified.filter(|_| done.error.is_none()).map(|n| n as i32));
    if let Some(id) = &done.upserted {
        result.begin("upserted");
        result.put("_id", id);
        result.end();
    }
    result.finish_document()
}

fn write(reply: &mut Writer, batch: &Batch, totals: &Totals) -> Result<()> {
    write_batch(reply, "firstBatch", batch)?;
    reply.put("nErrors", totals.errors);
    reply.put("nInserted", totals.inserted);
    reply.put("nMatched", totals.matched);
    reply.put("nModified", totals.modified);
    reply.put("nUpserted", totals.upserted);
    reply.put("nDeleted", totals.deleted);
    Ok(())
}
