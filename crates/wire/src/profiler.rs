//! The profiler: slow operations in the log, and profiled ones in their database's `system.profile`.
//!
//! Every operation ends here. Most are not worth a second look, which one comparison tells: only where a database is profiled at
//! level 2 or by a filter, or where the operation was slow, its entry is made, from the command, the reply and what the engine
//! says it looked at. The entry is durable before the operation's reply is sent.

use crate::bson::Writer;
use crate::command::arguments::{self, Fields};
use crate::connection::Client;
use crate::message::Message;
use crate::operation::Operation;
use crate::state::Shared;
use bson::raw::RawBsonRef;
use bson::{RawDocument, RawDocumentBuf};
use engine::{Observed, StatementObserved};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Commands longer than this are cut in entries.
const MAX_COMMAND_BYTES: usize = 50 * 1024;
/// Commands longer than this are cut in the log.
const MAX_LOGGED_CHARS: usize = 2048;
/// Commands that open, keep and close connections: they say nothing about a database's load.
const IGNORED: &[&str] = &["hello", "isMaster", "saslStart", "saslContinue", "logout", "endSessions"];
/// Fields whose values are secrets, whatever command they stand in.
const SECRETS: &[&str] = &["pwd", "payload", "speculativeAuthenticate"];

/// What `profile` was told.
pub(crate) struct Profiler {
    settings: RwLock<Settings>,
    /// From how many microseconds on an operation is looked at.
    attention_us: AtomicU64,
    /// Whether some database is profiled.
    is_on: AtomicBool,
}

/// What `profile` was told, for the whole server and by database.
pub(crate) struct Settings {
    /// From how many milliseconds on an operation is slow.
    pub(crate) slow_ms: i64,
    /// The share of slow operations that is noted.
    pub(crate) sample_rate: f64,
    /// The databases that `profile` was told something about.
    pub(crate) databases: HashMap<String, DatabaseSettings>,
}

/// What a database is profiled for.
#[derive(Clone, Default)]
pub(crate) struct DatabaseSettings {
    /// 0: nothing, 1: slow operations or those that the filter picks, 2: everything.
    pub(crate) level: i32,
    /// What entries must match, in place of being slow.
    pub(crate) filter: Option<RawDocumentBuf>,
}

impl Default for Profiler {
    fn default() -> Profiler {
        let settings = Settings { slow_ms: 100, sample_rate: 1.0, databases: HashMap::new() };
        let attention_us = AtomicU64::new(attention_us(&settings));
        Profiler { settings: RwLock::new(settings), attention_us, is_on: AtomicBool::new(false) }
    }
}

fn attention_us(settings: &Settings) -> u64 {
    if settings.databases.values().any(|database| database.level == 2 || database.filter.is_some()) {
        return 0;
    }
    settings.slow_ms.max(0).saturating_mul(1000) as u64
}

impl Profiler {
    /// Changes the settings.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.settings.write();
        change(&mut settings);
        self.attention_us.store(attention_us(&settings), Ordering::Relaxed);
        self.is_on.store(settings.databases.values().any(|database| database.level > 0), Ordering::Relaxed);
    }

    /// A database's level.
    pub(crate) fn level(&self, database: &str) -> i32 {
        self.settings.read().databases.get(database).map_or(0, |settings| settings.level)
    }

    /// Whether some database is profiled, so that the statements of a batch are told apart.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }
}

/// What becomes of an operation.
struct Verdict {
    logged: bool,
    profiled: bool,
}

/// An operation that has ended.
struct Ended<'e> {
    shared: &'e Shared,
    client: &'e Client,
    message: &'e Message,
    operation: &'e Operation,
    /// Its reply; none where the client wants none.
    reply: &'e RawDocument,
    reply_bytes: usize,
    took: Duration,
}

/// Looks at an operation that has ended; `reply` is the document of its reply.
pub(crate) async fn ended(
    shared: &Shared,
    client: &mut Client,
    message: &Message,
    operation: &Operation,
    (database, collection): Target<'_>,
    reply: &RawDocument,
) {
    let took = operation.worked();
    // A name with a null byte is no collection's, and can't be a field's in the reply of `top`.
    if let Some(collection) = collection.filter(|name| !name.is_empty() && !name.contains('\0')) {
        shared.usage.count(&mut client.used, database, collection, operation.command, took);
    }
    if (took.as_micros() as u64) < shared.profiler.attention_us.load(Ordering::Relaxed)
        || IGNORED.contains(&operation.command)
    {
        return;
    }
    let reply_bytes = reply.as_bytes().len();
    let entries = Ended { shared, client, message, operation, reply, reply_bytes, took }.entries();
    if entries.is_empty() {
        return;
    }
    let written = match shared.engine.profile(database, &entries) {
        Ok(written) => written.durable().await,
        Err(error) => Err(error),
    };
    if let Err(error) = written {
        tracing::warn!(database, %error, "an operation can't be noted in system.profile");
    }
}

/// The database and the collection that a command is about.
pub(crate) type Target<'m> = (&'m str, Option<&'m str>);

/// What a command is about.
pub(crate) fn target(body: &RawDocument) -> Target<'_> {
    arguments::fields(body).map_or(("admin", None), |fields| target_of(&fields))
}

/// What the command with these fields is about.
pub(crate) fn target_of<'m>(fields: &Fields<'m>) -> Target<'m> {
    let string = |name: &str| fields.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.as_str());
    let collection = match fields.first().copied() {
        Some(("getMore", RawBsonRef::Int64(_))) => string("collection"),
        Some(("explain", RawBsonRef::Document(inner))) => target(inner).1,
        Some((name, RawBsonRef::String(collection))) if !takes_a_name(name) => Some(collection),
        _ => None,
    };
    (string("$db").unwrap_or("admin"), collection)
}

/// Whether a command's value is a string that names no collection.
fn takes_a_name(command: &str) -> bool {
    let is_access = ["User", "Role", "Roles", "PrivilegesToRole", "RolesToUser", "RolesToRole", "Info"];
    is_access.iter().any(|end| command.ends_with(end))
        || matches!(command, "getLog" | "renameCollection" | "dataSize" | "getParameter" | "logRotate")
}

/// A command without its secrets, and not longer than an entry takes.
pub(crate) fn redacted(body: &RawDocument) -> RawDocumentBuf {
    let mut shown = Writer::new();
    for (name, value) in body.iter().flatten() {
        if SECRETS.contains(&name.as_str()) {
            shown.put(name.as_str(), "xxx");
        } else {
            shown.put(name.as_str(), value);
        }
    }
    let shown = shown.finish_document();
    if shown.as_bytes().len() <= MAX_COMMAND_BYTES {
        return shown;
    }
    let mut text = engine::document::text(&shown);
    truncate(&mut text, MAX_COMMAND_BYTES);
    let mut cut = Writer::new();
    cut.put("$truncated", text.replace('\0', "\\0").as_str());
    cut.put_some("comment", shown.get("comment").ok().flatten());
    cut.finish_document()
}

fn truncate(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        let end = (0..=bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
}

impl Ended<'_> {
    /// Logs what is slow; the entries to be written.
    fn entries(&self) -> Vec<RawDocumentBuf> {
        let (database, _) = target(self.message.body());
        let statements = self.operation.monitor.statements();
        let whole = self.operation.monitor.observed();
        let mut entries = Vec::new();
        let mut consider = |entry: RawDocumentBuf, took: Duration, observed: &Observed| {
            let verdict = self.judge(database, &entry, took);
            if verdict.logged {
                log(&entry, observed);
            }
            if verdict.profiled {
                entries.push(entry);
            }
        };
        match &statements[..] {
            [] => consider(self.entry(&whole), self.took, &whole),
            [only] => consider(self.statement_entry(only, self.took), self.took, &only.observed),
            several => {
                for statement in several {
                    let entry = self.statement_entry(statement, statement.elapsed);
                    consider(entry, statement.elapsed, &statement.observed);
                }
            }
        }
        entries
    }

    fn judge(&self, database: &str, entry: &RawDocument, took: Duration) -> Verdict {
        let settings = self.shared.profiler.settings.read();
        let of_database = settings.databases.get(database);
        let level = of_database.map_or(0, |database| database.level);
        if let Some(filter) = of_database.and_then(|database| database.filter.as_ref()) {
            let found = self.shared.engine.matching(filter, vec![entry.to_owned()]);
            let picked = found.is_ok_and(|found| !found.is_empty());
            return Verdict { logged: picked, profiled: level == 2 || level == 1 && picked };
        }
        let is_slow = took.as_micros() as i64 > settings.slow_ms.saturating_mul(1000);
        let noted = is_slow && sampled(settings.sample_rate);
        Verdict { logged: noted, profiled: level == 2 || level == 1 && noted }
    }

    /// The entry of a whole command.
    fn entry(&self, observed: &Observed) -> RawDocumentBuf {
        let body = self.message.body();
        let mut entry = Writer::new();
        entry.put("op", kind(self.operation.command));
        entry.put("ns", self.namespace().as_str());
        entry.put("command", &redacted(body));
        let cursor = self.reply.get_document("cursor").ok();
        let id = cursor.and_then(|cursor| cursor.get_i64("id").ok());
        match id {
            Some(0) => entry.put("cursorExhausted", true),
            Some(id) => entry.put("cursorid", id),
            None => {}
        }
        write_observed(&mut entry, observed);
        self.write_results(&mut entry, cursor);
        self.write_end(&mut entry, observed, self.took);
        entry.finish_document()
    }

    /// The entry of one statement of an update or a delete.
    fn statement_entry(&self, statement: &StatementObserved, took: Duration) -> RawDocumentBuf {
        let is_update = self.operation.command == "update";
        let field = if is_update { "updates" } else { "deletes" };
        let Some(document) = self.statement(field, statement.index) else { return self.entry(&statement.observed) };
        let mut entry = Writer::new();
        entry.put("op", kind(self.operation.command));
        entry.put("ns", self.namespace().as_str());
        entry.put("command", &redacted(document));
        write_observed(&mut entry, &statement.observed);
        if is_update {
            entry.put("nMatched", statement.matched as i32);
            entry.put("nModified", statement.modified as i32);
        } else {
            entry.put("ndeleted", statement.matched as i32);
        }
        self.write_end(&mut entry, &statement.observed, took);
        entry.finish_document()
    }

    /// A statement of a batch, wherever the client put it.
    fn statement(&self, field: &str, index: usize) -> Option<&RawDocument> {
        match self.message.sequence(field) {
            Some(sequence) => sequence.iter().nth(index),
            None => self.message.body().get_array(field).ok()?.into_iter().nth(index)?.ok()?.as_document(),
        }
    }

    fn namespace(&self) -> String {
        let (database, collection) = target(self.message.body());
        format!("{database}.{}", collection.filter(|name| !name.is_empty()).unwrap_or("$cmd"))
    }

    /// How many documents were given, inserted, changed and deleted, as the reply says.
    fn write_results(&self, entry: &mut Writer, cursor: Option<&RawDocument>) {
        let number = |name: &str| self.reply.get(name).ok().flatten().and_then(crate::command::number);
        match self.operation.command {
            "insert" => entry.put("ninserted", number("n").unwrap_or(0) as i32),
            "update" => {
                entry.put("nMatched", number("n").unwrap_or(0) as i32);
                entry.put("nModified", number("nModified").unwrap_or(0) as i32);
            }
            "delete" => entry.put("ndeleted", number("n").unwrap_or(0) as i32),
            _ => {}
        }
        let batch =
            cursor.and_then(|cursor| ["firstBatch", "nextBatch"].iter().find_map(|name| cursor.get_array(name).ok()));
        let values = self.reply.get_array("values").ok();
        let returned = batch.or(values).map(|batch| batch.into_iter().count());
        entry.put_some("nreturned", returned.map(|count| count as i32));
    }

    fn write_end(&self, entry: &mut Writer, observed: &Observed, took: Duration) {
        entry.put("numYield", 0);
        if self.reply.get("ok").ok().flatten().and_then(crate::command::number) == Some(0) {
            entry.put("ok", 0.0);
            entry.put_some("errMsg", self.reply.get_str("errmsg").ok());
            entry.put_some("errName", self.reply.get_str("codeName").ok());
            entry.put_some("errCode", self.reply.get_i32("code").ok());
        }
        entry.put("responseLength", self.reply_bytes as i32);
        entry.put("protocol", if self.message.legacy_database.is_some() { "op_query" } else { "op_msg" });
        entry.put("millis", i32::try_from(took.as_millis()).unwrap_or(i32::MAX));
        entry.put("durationMicros", took.as_micros() as i64);
        entry.put_some("planSummary", observed.plan_summary.as_deref());
        entry.put("ts", bson::DateTime::now());
        let info = &self.client.info;
        let address = info.remote.rsplit_once(':').map_or(info.remote.as_str(), |(address, _)| address);
        entry.put("client", address);
        let metadata = info.metadata.lock().clone();
        let application = metadata.as_deref().and_then(|metadata| metadata.get_document("application").ok());
        entry.put_some("appName", application.and_then(|application| application.get_str("name").ok()));
        entry.begin_array("allUsers");
        let user = self.client.login.user();
        if let Some(user) = user {
            entry.begin_element();
            entry.put("user", user.name.as_str());
            entry.put("db", user.database.as_str());
            entry.end();
        }
        entry.end();
        let user = user.map(|user| format!("{}@{}", user.name, user.database)).unwrap_or_default();
        entry.put("user", user.as_str());
    }
}

fn write_observed(entry: &mut Writer, observed: &Observed) {
    if observed.plan_summary.is_some() {
        entry.put("keysExamined", observed.keys_examined as i64);
        entry.put("docsExamined", observed.docs_examined as i64);
    }
    if observed.has_sort_stage {
        entry.put("hasSortStage", true);
    }
}

/// Writes a slow operation to the log.
fn log(entry: &RawDocument, observed: &Observed) {
    let mut command = entry.get_document("command").map(engine::document::text).unwrap_or_default();
    truncate(&mut command, MAX_LOGGED_CHARS);
    tracing::info!(
        ns = entry.get_str("ns").unwrap_or_default(),
        op = entry.get_str("op").unwrap_or_default(),
        millis = entry.get_i32("millis").unwrap_or_default(),
        plan = observed.plan_summary.as_deref().unwrap_or_default(),
        keys_examined = observed.keys_examined,
        docs_examined = observed.docs_examined,
        nreturned = entry.get_i32("nreturned").ok(),
        client = entry.get_str("client").unwrap_or_default(),
        command,
        "slow operation"
    );
}

/// Whether one operation of many is noted.
fn sampled(rate: f64) -> bool {
    if rate >= 1.0 {
        return true;
    }
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).is_ok() && f64::from(u32::from_le_bytes(bytes)) < rate * f64::from(u32::MAX)
}

/// What a command is called in entries.
pub(crate) fn kind(command: &str) -> &'static str {
    match command {
        "find" => "query",
        "getMore" => "getmore",
        "insert" => "insert",
        "update" => "update",
        "delete" => "remove",
        _ => "command",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn secrets_and_excess_are_left_out() {
        let shown = redacted(&rawdoc! { "createUser": "u", "pwd": "geheim", "roles": [] });
        assert_eq!(shown.get_str("pwd").expect("there"), "xxx");
        let long = redacted(&rawdoc! { "find": "c", "filter": { "a": "ä".repeat(60_000) }, "comment": "why" });
        assert!(long.get_str("$truncated").expect("cut").len() <= MAX_COMMAND_BYTES + 3);
        assert_eq!(long.get_str("comment").expect("kept"), "why");
    }

    #[test]
    fn a_command_says_what_it_is_about() {
        assert_eq!(target(&rawdoc! { "find": "c", "$db": "d" }), ("d", Some("c")));
        assert_eq!(target(&rawdoc! { "getMore": 5_i64, "collection": "c", "$db": "d" }), ("d", Some("c")));
        assert_eq!(target(&rawdoc! { "aggregate": 1, "$db": "d" }), ("d", None));
        assert_eq!(target(&rawdoc! { "explain": { "find": "c" }, "$db": "d" }), ("d", Some("c")));
        assert_eq!(target(&rawdoc! { "createUser": "u", "$db": "d" }), ("d", None));
        assert_eq!(target(&rawdoc! { "renameCollection": "a.b", "$db": "admin" }), ("admin", None));
    }

    #[test]
    fn one_comparison_passes_over_what_nobody_asks_for() {
        let profiler = Profiler::default();
        assert_eq!(profiler.attention_us.load(Ordering::Relaxed), 100_000);
        profiler.change(|settings| {
            settings.databases.insert("shop".to_owned(), DatabaseSettings { level: 2, filter: None });
        });
        assert_eq!(profiler.attention_us.load(Ordering::Relaxed), 0);
        assert!(profiler.is_on());
    }
}
