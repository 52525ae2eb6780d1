//! Logical sessions: `startSession`, `refreshSessions`, `endSessions`, `killSessions`, `killAllSessions`,
//! `killAllSessionsByPattern`.

use super::arguments::is_null;
use super::generic::{session_id, uuid};
use super::{Command, Context, Path, Run, arguments};
use crate::auth::{Action, Rights};
use crate::bson::Writer;
use crate::session::{SESSION_TIMEOUT_MINUTES, SessionId};
use bson::RawArray;
use bson::raw::{RawBinaryRef, RawBsonRef};
use bson::spec::BinarySubtype;
use engine::{Code, Error, Result};

/// The most sessions one command may name.
const MAX_SESSIONS_PER_COMMAND: usize = 10_000;

/// `startSession`.
pub(crate) static START_SESSION: Command = Command {
    name: "startSession",
    help: "starts a logical session",
    ignores_unknown_fields: true,
    rights: Rights::Anyone,
    run: Run::Now(start),
    ..Command::DEFAULT
};

/// `refreshSessions`.
pub(crate) static REFRESH_SESSIONS: Command = Command {
    name: "refreshSessions",
    help: "puts off the timeout of sessions",
    stable_api: true,
    run: Run::Now(|ctx, _| named(ctx).and_then(|ids| ids.into_iter().try_for_each(|id| ctx.shared.sessions.touch(id)))),
    ..Command::DEFAULT
};

/// `endSessions`.
pub(crate) static END_SESSIONS: Command = Command {
    name: "endSessions",
    help: "ends sessions that are no longer needed",
    stable_api: true,
    rights: Rights::Anyone,
    run: Run::Now(|ctx, _| end(ctx)),
    ..Command::DEFAULT
};

/// `killSessions`.
pub(crate) static KILL_SESSIONS: Command = Command {
    name: "killSessions",
    help: "ends sessions of one's own with what they run",
    ignores_unknown_fields: true,
    run: Run::Now(|ctx, _| kill(ctx)),
    ..Command::DEFAULT
};

/// `killAllSessions`.
pub(crate) static KILL_ALL_SESSIONS: Command = Command {
    name: "killAllSessions",
    help: "ends all sessions, or those of some users, with what they run",
    ignores_unknown_fields: true,
    rights: Rights::Cluster(Action::KillAnySession),
    run: Run::Now(|ctx, _| kill_all(ctx)),
    ..Command::DEFAULT
};

/// `killAllSessionsByPattern`.
pub(crate) static KILL_ALL_SESSIONS_BY_PATTERN: Command = Command {
    name: "killAllSessionsByPattern",
    help: "ends the sessions that match a pattern, with what they run",
    ignores_unknown_fields: true,
    rights: Rights::Cluster(Action::KillAnySession),
    run: Run::Now(|ctx, _| kill_all(ctx)),
    ..Command::DEFAULT
};

arguments! {
    struct Session<'a> {
        id: RawBsonRef<'a> = "id",
        user: Option<RawBsonRef<'a>> = "uid",
        number: Option<RawBsonRef<'a>> = "txnNumber",
        uuid: Option<RawBsonRef<'a>> = "txnUUID",
    }
}

arguments! {
    struct User<'a> {
        user: &'a str = "user",
        database: &'a str = "db",
    }
}

/// The array that is the command's value.
fn list<'c>(ctx: &Context<'c>, path: Path<'_>) -> Result<&'c RawArray> {
    let value = ctx.value()?;
    if is_null(value) {
        return Err(path.missing());
    }
    value.as_array().ok_or_else(|| path.wrong_type(value, &["array"]))
}

fn start(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    super::diagnostic::NoArguments::parse(ctx)?;
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| Error::internal(format!("no randomness: {error}")))?;
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    ctx.shared.sessions.touch(SessionId { id, user: ctx.client.login.digest() })?;
    reply.begin("id");
    reply.put("id", RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &id });
    reply.end();
    reply.put("timeoutMinutes", SESSION_TIMEOUT_MINUTES as i32);
    Ok(())
}

/// The sessions that the command's value names.
fn named(ctx: &Context<'_>) -> Result<Vec<SessionId>> {
    let path = super::Path { parent: ctx.called, field: ctx.called };
    let list = list(ctx, path)?;
    super::diagnostic::NoArguments::parse(ctx)?;
    let mut ids = Vec::new();
    for element in list {
        let element = element?;
        if is_null(element) {
            continue;
        }
        let document = element.as_document().ok_or_else(|| path.wrong_type(element, &["object"]))?;
        if ids.len() == MAX_SESSIONS_PER_COMMAND {
            let message = format!("{} takes at most {MAX_SESSIONS_PER_COMMAND} sessions", ctx.called);
            return Err(Error::new(Code(40424), message));
        }
        let session = Session::parse_nested("LogicalSessionFromClient", document)?;
        let user = match session.user.and_then(|uid| uid.as_binary()) {
            Some(uid) => {
                uid.bytes.try_into().map_err(|_| Error::bad_value("a session's uid is a SHA-256 digest of 32 bytes"))?
            }
            None => ctx.client.login.digest(),
        };
        ids.push(SessionId { id: uuid(session.id)?, user });
    }
    Ok(ids)
}

fn end(ctx: &mut Context<'_>) -> Result<()> {
    let ids = named(ctx)?;
    forget(ctx, &ids);
    Ok(())
}

/// Ends sessions and interrupts what they run.
fn kill(ctx: &mut Context<'_>) -> Result<()> {
    let mut ids = named(ctx)?;
    if ids.is_empty() {
        let own = ctx.client.login.digest();
        ids = ctx.shared.sessions.all().into_iter().map(|(id, _)| id).filter(|id| id.user == own).collect();
    }
    end_and_interrupt(ctx, &ids);
    Ok(())
}

fn kill_all(ctx: &mut Context<'_>) -> Result<()> {
    let path = super::Path { parent: ctx.called, field: ctx.called };
    let list = list(ctx, path)?;
    super::diagnostic::NoArguments::parse(ctx)?;
    let mut users = Vec::new();
    let mut sessions = Vec::new();
    for element in list {
        let element = element?;
        if is_null(element) {
            continue;
        }
        let document = element.as_document().ok_or_else(|| path.wrong_type(element, &["object"]))?;
        if ctx.command.name == "killAllSessions" {
            let user = User::parse_nested("KillAllSessionsUser", document)?;
            users.push(crate::auth::user_digest(user.user, user.database));
        } else if let Some(session) = document.get("lsid")?.and_then(|session| session.as_document()) {
            sessions.push(session_id(session)?);
        }
    }
    let everything = users.is_empty() && sessions.is_empty();
    let all = ctx.shared.sessions.all();
    let wanted = |id: &SessionId| everything || users.contains(&id.user) || sessions.contains(&id.id);
    let ids: Vec<SessionId> = all.into_iter().map(|(id, _)| id).filter(wanted).collect();
    end_and_interrupt(ctx, &ids);
    Ok(())
}

/// Ends sessions here and in the engine, with their cursors and transactions.
fn forget(ctx: &mut Context<'_>, ids: &[SessionId]) {
    for id in ids {
        ctx.shared.sessions.end(id);
    }
    let in_engine: Vec<engine::SessionId> = ids.iter().map(SessionId::in_engine).collect();
    ctx.shared.engine.end_sessions(&in_engine);
    ctx.client.noted_session = None;
}

fn end_and_interrupt(ctx: &mut Context<'_>, ids: &[SessionId]) {
    forget(ctx, ids);
    for connection in ctx.shared.connections() {
        let running = connection.operation.lock().clone();
        let Some(operation) = running.filter(|operation| operation.id != ctx.operation.id) else { continue };
        let session = bson::RawDocument::from_bytes(&operation.body)
            .ok()
            .and_then(|body| body.get_document("lsid").ok())
            .and_then(|lsid| session_id(lsid).ok());
        if session.is_some_and(|session| ids.iter().any(|id| id.id == session)) {
            operation.interrupt(Code::INTERRUPTED);
        }
    }
}
