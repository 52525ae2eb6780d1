//! What runs and who is there: the rows of `$currentOp`, `$listSessions` and `$listLocalSessions`, and of `currentOp`.

use crate::auth::{Name, user_digest};
use crate::bson::Writer;
use crate::operation::Operation;
use crate::profiler::{kind, redacted, target};
use crate::session::SessionId;
use crate::state::{ConnectionInfo, Shared};
use bson::raw::{RawBinaryRef, RawBsonRef};
use bson::spec::BinarySubtype;
use bson::{DateTime, RawDocument, RawDocumentBuf};
use engine::stage::Report;
use engine::{CursorInfo, OpenTransaction, Result, Tailing};
use std::sync::Arc;
use std::time::Duration;

/// Who looks.
#[derive(Clone)]
pub(crate) struct Viewer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) user: Option<Name>,
    /// The digest of the user.
    pub(crate) digest: [u8; 32],
    /// The server's address, as the viewer knows it.
    pub(crate) address: String,
}

/// Which operations are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Those of other users too.
    pub(crate) all_users: bool,
    /// Connections that run nothing.
    pub(crate) idle_connections: bool,
    /// Cursors that nobody reads right now.
    pub(crate) idle_cursors: bool,
    /// Transactions that run no operation right now.
    pub(crate) idle_sessions: bool,
}

impl Shown {
    /// From the options of `$currentOp`, which the stage has checked.
    fn of(options: &RawDocument) -> Shown {
        let option = |name: &str, default: bool| options.get_bool(name).unwrap_or(default);
        Shown {
            all_users: option("allUsers", false),
            idle_connections: option("idleConnections", false),
            idle_cursors: option("idleCursors", false),
            idle_sessions: option("idleSessions", true),
        }
    }
}

impl Viewer {
    /// The rows of a report, for a pipeline.
    pub(crate) fn report(&self, report: Report, options: &RawDocument) -> Result<Vec<RawDocumentBuf>> {
        Ok(match report {
            Report::Operations => self.operations(Shown::of(options)),
            Report::Sessions | Report::LocalSessions => self.sessions(options),
            Report::QuerySettings => crate::command::query_settings::rows(&self.shared, options),
            Report::Collection | Report::Indexes | Report::Plans | Report::Catalog => Vec::new(),
        })
    }

    /// What runs.
    pub(crate) fn operations(&self, shown: Shown) -> Vec<RawDocumentBuf> {
        let mut rows = Vec::new();
        let mut busy = Vec::new();
        for connection in self.shared.connections() {
            let operation = connection.operation.lock().clone();
            if let Some(operation) = &operation {
                busy.extend(lsid(operation));
            }
            let visible = shown.all_users || *connection.user.lock() == self.user;
            if visible && (operation.is_some() || shown.idle_connections) {
                rows.push(self.operation_row(&connection, operation.as_deref()));
            }
        }
        if shown.idle_sessions {
            for open in self.shared.engine.open_transactions() {
                let visible = shown.all_users || open.session.user == self.digest;
                if visible && !busy.contains(&open.session.client_id()) {
                    rows.push(self.transaction_row(&open));
                }
            }
        }
        if shown.idle_cursors {
            rows.extend(self.shared.engine.idle_cursors().iter().map(|cursor| self.cursor_row(cursor)));
        }
        rows
    }

    fn operation_row(&self, connection: &ConnectionInfo, operation: Option<&Operation>) -> RawDocumentBuf {
        let mut row = Writer::new();
        row.put("type", "op");
        row.put("host", self.address.as_str());
        row.put("desc", format!("conn{}", connection.id).as_str());
        row.put("connectionId", connection.id as i32);
        row.put("client", connection.remote.as_str());
        let metadata = connection.metadata.lock().clone();
        if let Some(metadata) = &metadata {
            let application = metadata.get_document("application").ok().and_then(|part| part.get_str("name").ok());
            row.put_some("appName", application);
            row.put("clientMetadata", metadata);
        }
        row.put("active", operation.is_some());
        put_now(&mut row);
        if let Some(user) = &*connection.user.lock() {
            row.begin_array("effectiveUsers");
            row.begin_element();
            row.put("user", user.name.as_str());
            row.put("db", user.database.as_str());
            row.end();
            row.end();
        }
        row.put("threaded", true);
        match operation {
            Some(operation) => write_operation(operation, &mut row),
            None => row.put("op", "none"),
        }
        row.finish_document()
    }

    fn transaction_row(&self, open: &OpenTransaction) -> RawDocumentBuf {
        let mut row = Writer::new();
        row.put("type", "idleSession");
        row.put("host", self.address.as_str());
        row.put("desc", "inactive transaction");
        row.put("active", false);
        put_now(&mut row);
        write_lsid(&mut row, "lsid", open.session.client_id(), &open.session.user);
        row.begin("transaction");
        row.begin("parameters");
        row.put("txnNumber", open.session.txn_number.unwrap_or_default());
        row.put("autocommit", false);
        row.end();
        row.put("startWallClockTime", since(open.open).try_to_rfc3339_string().unwrap_or_default().as_str());
        let open_us = open.open.as_micros() as i64;
        row.put("timeOpenMicros", open_us);
        row.put("timeInactiveMicros", open_us);
        row.end();
        row.put("waitingForLock", false);
        row.finish_document()
    }

    fn cursor_row(&self, cursor: &CursorInfo) -> RawDocumentBuf {
        let mut row = Writer::new();
        row.put("type", "idleCursor");
        row.put("host", self.address.as_str());
        row.put("ns", cursor.namespace.to_string().as_str());
        row.put_some("planSummary", cursor.plan_summary.as_deref());
        row.begin("cursor");
        row.put("cursorId", cursor.id);
        row.put("lastAccessDate", since(cursor.unused));
        row.put("noCursorTimeout", cursor.no_timeout);
        row.put("tailable", cursor.tailing != Tailing::No);
        row.put("awaitData", cursor.tailing == Tailing::Await);
        row.end();
        row.finish_document()
    }

    /// The sessions of the viewer, of the users asked for, or of all.
    fn sessions(&self, options: &RawDocument) -> Vec<RawDocumentBuf> {
        let all = options.get_bool("allUsers").unwrap_or(false);
        let mut digests = Vec::new();
        for user in options.get_array("users").into_iter().flatten().flatten() {
            let user = user.as_document().and_then(|user| Some((user.get_str("user").ok()?, user.get_str("db").ok()?)));
            digests.extend(user.map(|(user, database)| user_digest(user, database)));
        }
        if digests.is_empty() {
            digests.push(self.digest);
        }
        let sessions = self.shared.sessions.all();
        let wanted = |session: &SessionId| all || digests.contains(&session.user);
        let picked = sessions.into_iter().filter(|(session, _)| wanted(session));
        picked.map(|(session, unused)| self.session_row(&session, unused)).collect()
    }

    fn session_row(&self, session: &SessionId, unused: Duration) -> RawDocumentBuf {
        let mut row = Writer::new();
        write_lsid(&mut row, "_id", session.id, &session.user);
        row.put("lastUse", since(unused));
        let name = self.shared.users.read(|state| {
            let found = state.users.keys().find(|name| user_digest(&name.name, &name.database) == session.user);
            found.map(|name| format!("{}@{}", name.name, name.database))
        });
        row.put_some("user", name.as_deref());
        row.finish_document()
    }
}

fn since(past: Duration) -> DateTime {
    DateTime::from_millis(DateTime::now().timestamp_millis() - past.as_millis() as i64)
}

fn put_now(row: &mut Writer) {
    row.put("currentOpTime", DateTime::now().try_to_rfc3339_string().unwrap_or_default().as_str());
}

fn write_lsid(row: &mut Writer, field: &str, id: [u8; 16], user: &[u8]) {
    row.begin(field);
    row.put("id", RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &id });
    row.put("uid", RawBinaryRef { subtype: BinarySubtype::Generic, bytes: user });
    row.end();
}

/// The session that an operation names.
fn lsid(operation: &Operation) -> Option<[u8; 16]> {
    let body = RawDocument::from_bytes(&operation.body).ok()?;
    body.get_document("lsid").ok()?.get_binary("id").ok()?.bytes.try_into().ok()
}

/// What is shown of a running operation.
fn write_operation(operation: &Operation, row: &mut Writer) {
    let running = operation.started.elapsed();
    let body = RawDocument::from_bytes(&operation.body).expect("a running command has a body");
    row.put("opid", operation.id);
    if let Ok(Some(lsid)) = body.get("lsid") {
        row.put("lsid", lsid);
    }
    row.put("secs_running", running.as_secs() as i64);
    row.put("microsecs_running", running.as_micros() as i64);
    row.put("op", kind(operation.command));
    let (database, collection) = target(body);
    let collection = match operation.command {
        "aggregate" => collection.unwrap_or("$cmd.aggregate"),
        _ => collection.filter(|name| !name.is_empty()).unwrap_or("$cmd"),
    };
    row.put("ns", format!("{database}.{collection}").as_str());
    row.put("redacted", false);
    row.put("command", &redacted(body));
    let observed = operation.monitor.observed();
    row.put_some("planSummary", observed.plan_summary.as_deref());
    if matches!(body.get_bool("autocommit"), Ok(false)) {
        row.begin("transaction");
        row.begin("parameters");
        row.put_some("txnNumber", body.get("txnNumber").ok().flatten());
        row.put("autocommit", false);
        row.end();
        row.end();
    }
    if let (Some((done, total)), "createIndexes") = (operation.monitor.progress(), operation.command) {
        row.put("msg", format!("Index Build: scanning collection {done}/{total}").as_str());
        row.begin("progress");
        row.put("done", done as i64);
        row.put("total", total as i64);
        row.end();
    }
    if operation.is_interrupted() {
        row.put("killPending", true);
    }
    row.put("numYields", 0);
    for empty in ["locks", "lockStats", "flowControlStats"] {
        row.begin(empty);
        row.end();
    }
    row.put("waitingForLock", false);
    row.put("waitingForFlowControl", false);
    if let ("getMore", Some(Ok((_, RawBsonRef::Int64(id))))) = (operation.command, body.iter().next()) {
        row.begin("cursor");
        row.put("cursorId", id);
        row.end();
    }
}
