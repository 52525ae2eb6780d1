//! A request's way through the server: name, generic arguments, session, rights, run, reply.

use super::concern::WriteConcern;
use super::{Command, Context, Counter, Generic, Run, reply};
use crate::auth;
use crate::connection::{Client, compress_reply};
use crate::fail_points::{FailPoints, Hit, RetryableWrite};
use crate::message::Message;
use crate::operation::Operation;
use crate::profiler::{self, Target};
use crate::session::SessionId;
use crate::state::{ConnectionInfo, Shared, count};
use engine::{Code, Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often the use of a busy session is noted.
const SESSION_NOTE_INTERVAL: Duration = Duration::from_secs(30);
/// Commands whose replies are never compressed, since their content is secret or the compressors aren't agreed on yet.
const UNCOMPRESSED: &[&str] =
    &["authenticate", "createUser", "hello", "isMaster", "saslContinue", "saslStart", "updateUser"];

/// What a request is answered with.
pub(crate) struct Answer {
    /// The frame to send; none if the client wants none.
    pub(crate) frame: Option<Vec<u8>>,
    /// Its number.
    pub(crate) request_id: i32,
    /// Whether the request is to be run again for another reply.
    pub(crate) more_to_come: bool,
    /// Whether the connection is to be closed: a fault on purpose.
    pub(crate) closes: bool,
}

/// Takes a finished operation out of its connection's entry, however it ends.
struct Running<'i>(&'i ConnectionInfo);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.0.operation.lock() = None;
    }
}

/// Runs a request and builds its reply.
pub(crate) async fn serve(shared: &Arc<Shared>, client: &mut Client, message: &Message, response_to: i32) -> Answer {
    let mut writer = reply::begin(message);
    let mut ending = Ending::default();
    match run(shared, client, message, &mut writer, &mut ending).await {
        Ok(()) => {
            match ending.fault.as_ref().and_then(|fault| fault.write_concern_error.as_ref()) {
                Some(error) => write_fault(&mut writer, error, &ending),
                None => ending.write_concern.write_error(&mut writer),
            }
            reply::write_ok(&mut writer, shared);
        }
        Err(error) => {
            count(&shared.metrics.asserts_user, 1);
            tracing::debug!(connection = client.info.id, %error, "command failed");
            ending.more_to_come = false;
            let error = labelled(error, &ending);
            reply::write_error(&mut writer, &error, shared);
        }
    }
    let request_id = shared.next_message_id();
    let closes = ending.fault.as_ref().is_some_and(|fault| fault.closes);
    let Ending { more_to_come, secret, operation, .. } = ending;
    let mut frame = reply::finish(writer, message, request_id, response_to, more_to_come);
    if let Some((operation, target)) = operation {
        profiler::ended(shared, client, message, &operation, target, reply::document(&frame, message)).await;
    }
    if !secret {
        frame = compress_reply(frame, message, &client.compressors);
    }
    if message.more_to_come || closes {
        return Answer { frame: None, request_id, more_to_come: false, closes };
    }
    Answer { frame: Some(frame), request_id, more_to_come, closes }
}

/// What a run leaves to the reply's end.
#[derive(Default)]
struct Ending<'m> {
    more_to_come: bool,
    /// Not to be compressed.
    secret: bool,
    /// A write that the driver may run again.
    retryable: bool,
    write_concern: WriteConcern,
    /// What ran and what it was about, if it came as far.
    operation: Option<(Arc<Operation>, Target<'m>)>,
    /// Part of a transaction; and whether it ends it.
    in_transaction: bool,
    ends_transaction: bool,
    /// A `getMore`, perhaps of a change stream.
    reads_on: bool,
    /// A fault on purpose.
    fault: Option<Hit>,
}

/// An error with the labels that drivers branch on.
fn labelled(mut error: Error, ending: &Ending<'_>) -> Error {
    if let Some(labels) = ending.fault.as_ref().and_then(|fault| fault.labels.as_ref()) {
        return labels.iter().fold(error, |error, label| error.with_label(label));
    }
    let is_retryable = RETRYABLE.contains(&error.code);
    if ending.retryable && is_retryable {
        error = error.with_label("RetryableWriteError");
    }
    // Whoever reads another cursor does not look at this label.
    let of_cursor = ending.reads_on && ending.fault.as_ref().is_none_or(|fault| fault.of_cursor);
    if of_cursor && RESUMABLE.contains(&error.code) {
        error = error.with_label("ResumableChangeStreamError");
    }
    if error.code == Code::CHANGE_STREAM_FATAL_ERROR {
        error = error.with_label("NonResumableChangeStreamError");
    }
    let is_transient = TRANSIENT.contains(&error.code) || is_retryable && !ending.ends_transaction;
    if ending.in_transaction && is_transient && !error.labels().contains(&"TransientTransactionError") {
        error = error.with_label("TransientTransactionError");
    }
    error
}

/// A `writeConcernError` on purpose, with its labels.
fn write_fault(writer: &mut crate::bson::Writer, error: &bson::RawDocument, ending: &Ending<'_>) {
    writer.put("writeConcernError", error);
    let given = ending.fault.as_ref().and_then(|fault| fault.labels.clone());
    let code = error.get("code").ok().flatten().and_then(super::number).and_then(|code| i32::try_from(code).ok());
    let is_retryable = code.is_some_and(|code| RETRYABLE.contains(&Code(code)));
    let labels = given.unwrap_or_else(|| match ending.retryable && is_retryable {
        true => vec!["RetryableWriteError"],
        false => Vec::new(),
    });
    if !labels.is_empty() {
        writer.put_strings("errorLabels", labels);
    }
}

/// Errors after which a whole transaction is worth another try.
const TRANSIENT: &[Code] = &[
    Code::LOCK_TIMEOUT,
    Code::WRITE_CONFLICT,
    Code::SNAPSHOT_TOO_OLD,
    Code::SNAPSHOT_UNAVAILABLE,
    Code::NO_SUCH_TRANSACTION,
    Code::PREPARED_TRANSACTION_IN_PROGRESS,
];

/// Errors after which a change stream is worth being resumed; those of
/// <https://github.com/mongodb/specifications/blob/master/source/change-streams/change-streams.md>, "Resumable Error".
const RESUMABLE: &[Code] = &[
    Code::HOST_UNREACHABLE,
    Code::HOST_NOT_FOUND,
    Code(63), // StaleShardVersion
    Code::NETWORK_TIMEOUT,
    Code::SHUTDOWN_IN_PROGRESS,
    Code::FAILED_TO_SATISFY_READ_PREFERENCE,
    Code(150), // StaleEpoch
    Code::PRIMARY_STEPPED_DOWN,
    Code(234), // RetryChangeStream
    Code::EXCEEDED_TIME_LIMIT,
    Code::SOCKET_EXCEPTION,
    Code::NOT_WRITABLE_PRIMARY,
    Code::INTERRUPTED_AT_SHUTDOWN,
    Code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
    Code::STALE_CONFIG,
    Code::NOT_PRIMARY_NO_SECONDARY_OK,
    Code::NOT_PRIMARY_OR_SECONDARY,
];

/// Errors after which a retryable write is worth another try.
const RETRYABLE: &[Code] = &[
    Code::HOST_UNREACHABLE,
    Code::HOST_NOT_FOUND,
    Code::NETWORK_TIMEOUT,
    Code::SHUTDOWN_IN_PROGRESS,
    Code::PRIMARY_STEPPED_DOWN,
    Code::EXCEEDED_TIME_LIMIT,
    Code::INTERRUPTED_AT_SHUTDOWN,
    Code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE,
    Code::NOT_WRITABLE_PRIMARY,
    Code::NOT_PRIMARY_NO_SECONDARY_OK,
    Code::NOT_PRIMARY_OR_SECONDARY,
    Code::SOCKET_EXCEPTION,
    Code::READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET,
];

async fn run<'m>(
    shared: &Arc<Shared>,
    client: &mut Client,
    message: &'m Message,
    writer: &mut crate::bson::Writer,
    ending: &mut Ending<'m>,
) -> Result<()> {
    if let Some(error) = &message.invalid {
        return Err(reply::invalid_bson(error));
    }
    let fields = super::arguments::fields(message.body())?;
    let Some((called, _)) = fields.first().copied() else {
        return Err(Error::new(Code::COMMAND_NOT_FOUND, "no such command: ''"));
    };
    if message.legacy_database.is_some() && !is_hello(called) {
        let message = format!(
            "Unsupported OP_QUERY command: {called}. The client driver may require an upgrade; see \
             https://www.mongodb.com/docs/manual/legacy-opcodes/ for what replaced it"
        );
        return Err(Error::new(Code::UNSUPPORTED_OP_QUERY_COMMAND, message));
    }
    let command = super::find(called)?;
    ending.secret = UNCOMPRESSED.contains(&command.name);
    let generic = Generic::parse(message, &fields, command)?;
    ending.in_transaction = generic.in_transaction;
    ending.reads_on = command.name == "getMore";
    ending.ends_transaction = command.name.ends_with("Transaction");
    ending.retryable = generic.transaction_number.is_some()
        && (ending.ends_transaction || command.retryable && !generic.in_transaction);
    ending.write_concern = generic.write_concern.clone();
    count_operation(shared, command);
    if let Some(points) = &shared.fail_points {
        let write = match (generic.session, generic.transaction_number) {
            (Some(session), Some(number)) if command.retryable && !ending.in_transaction => {
                Some(RetryableWrite { session, number, statements: statements(message) })
            }
            _ => None,
        };
        meet_fail_points(points, client, command, called, write, ending).await?;
    }
    let id = shared.next_operation_id();
    let max_time_ms = generic.max_time_ms.or_else(|| default_time(shared, command)).filter(|_| !command.own_time_limit);
    let operation = Arc::new(Operation::start(id, command, message.body_bytes(), max_time_ms));
    ending.operation = Some((operation.clone(), profiler::target_of(&fields)));
    if shared.profiler.is_on() {
        operation.monitor.tell_statements();
    }
    let info = client.info.clone();
    *info.operation.lock() = Some(operation.clone());
    let _running = Running(&info);
    let mut context = Context {
        shared,
        client,
        message,
        command,
        called,
        generic,
        operation,
        fields,
        explained: None,
        more_to_come: false,
    };
    auth::authorize(&mut context)?;
    super::write_block::check(&context)?;
    note_session(&mut context)?;
    match command.run {
        Run::Now(run) => run(&mut context, writer)?,
        Run::Later(run) => run(&mut context, writer).await?,
    }
    ending.more_to_come = context.more_to_come && message.exhaust_allowed;
    Ok(())
}

/// How many statements a write has.
fn statements(message: &Message) -> usize {
    let lists = ["documents", "updates", "deletes", "ops"];
    let sequence = lists.iter().find_map(|list| message.sequence(list)).map(|sequence| sequence.count);
    let array =
        || lists.iter().find_map(|list| message.body().get_array(*list).ok()).map(|array| array.into_iter().count());
    sequence.or_else(array).unwrap_or(1)
}

/// The time that a read may take where it does not say.
fn default_time(shared: &Shared, command: &Command) -> Option<u64> {
    let default = shared.default_max_time_ms.load(Ordering::Relaxed);
    (command.reads && default > 0).then_some(default)
}

/// Lets the command meet the fault that it was told to meet.
async fn meet_fail_points(
    points: &FailPoints,
    client: &Client,
    command: &Command,
    called: &str,
    write: Option<RetryableWrite>,
    ending: &mut Ending<'_>,
) -> Result<()> {
    let metadata = client.info.metadata.lock().clone();
    let application = metadata.as_deref().and_then(|metadata| metadata.get_document("application").ok());
    let application = application.and_then(|application| application.get_str("name").ok());
    let Some(mut hit) = points.meet(command.name, called, application, write) else { return Ok(()) };
    if let Some(block) = hit.block {
        tokio::time::sleep(block).await;
    }
    let error = hit.error.take();
    let closes = hit.closes && !hit.runs;
    ending.fault = Some(hit);
    match error {
        Some(error) => Err(error),
        None if closes => Err(Error::new(Code::SOCKET_EXCEPTION, "the connection is closed on purpose")),
        None => Ok(()),
    }
}

fn is_hello(name: &str) -> bool {
    matches!(name, "hello" | "isMaster" | "ismaster")
}

fn count_operation(shared: &Shared, command: &Command) {
    let counter = match command.counter {
        Counter::Command => &shared.metrics.command,
        Counter::GetMore => &shared.metrics.getmore,
        Counter::Query => &shared.metrics.query,
        Counter::None => return,
    };
    count(counter, 1);
}

/// Notes the use of the command's session.
fn note_session(context: &mut Context<'_>) -> Result<()> {
    let Some(id) = context.generic.session else { return Ok(()) };
    let session = SessionId { id, user: context.client.login.digest() };
    let now = Instant::now();
    if let Some((noted, when)) = context.client.noted_session
        && noted == session
        && now.duration_since(when) < SESSION_NOTE_INTERVAL
    {
        return Ok(());
    }
    context.shared.sessions.touch(session)?;
    context.client.noted_session = Some((session, now));
    Ok(())
}
