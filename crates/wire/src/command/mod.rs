//! The table of commands: what each is called, who may run it, and the function that does.
//!
//! A command is one file (or a family that belongs together) with a static [`Command`] and a line in [`TABLE`]; the table
//! alone drives the lookup, `listCommands`, the error for an unknown name and the generated compatibility list.

mod aggregate;
pub(crate) mod arguments;
mod backup;
mod bulk_write;
mod capped;
pub(crate) mod cluster_parameters;
mod coll_mod;
mod collections;
mod concern;
mod connection_status;
mod count;
mod create_options;
mod current_op;
mod databases;
mod db_hash;
mod default_concern;
mod delete;
mod diagnostic;
mod distinct;
mod documents;
mod drop_connections;
mod explain;
mod fail_point;
mod feature_version;
mod find;
mod find_and_modify;
mod generic;
mod get_more;
mod hello;
mod host_info;
mod indexes;
mod insert;
mod kept;
mod kill_cursors;
mod kill_op;
mod list_commands;
mod log;
mod maintenance;
pub(crate) mod parameters;
mod ping;
mod plan_cache;
mod profile;
pub(crate) mod query_settings;
mod replica_set;
mod reply;
mod roles;
mod sasl;
mod serve;
mod server_status;
mod sessions;
mod statistics;
mod top;
mod transactions;
pub mod unsupported;
mod update;
mod users;
mod validate;
mod validate_metadata;
pub(crate) mod write_block;

pub(crate) use arguments::{Arguments, Field, Fields, Flag, Path, arguments, number, type_name};
pub(crate) use documents::block;
pub(crate) use generic::Generic;
pub(crate) use serve::serve;

use crate::auth::Rights;
use crate::bson::Writer;
use crate::connection::Client;
use crate::message::Message;
use crate::operation::Operation;
use crate::state::Shared;
use ::bson::RawDocument;
use ::bson::raw::RawBsonRef;
use engine::{Code, Error, Result};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A command of the wire protocol.
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// What it does, in a sentence.
    pub help: &'static str,
    /// Whether it is part of the stable API, version 1.
    pub stable_api: bool,
    /// Whether it runs against the `admin` database only.
    pub(crate) admin_only: bool,
    /// Whether it may run within a transaction.
    pub(crate) in_transaction: bool,
    /// Whether it takes every `readConcern`.
    pub(crate) reads: bool,
    /// Whether it takes a `writeConcern`.
    pub(crate) writes: bool,
    /// Whether it may be retried by its `txnNumber`.
    pub(crate) retryable: bool,
    /// Whether unknown fields are passed over.
    pub(crate) ignores_unknown_fields: bool,
    /// Whether `maxTimeMS` is its own, and not the time it may take.
    pub(crate) own_time_limit: bool,
    /// The counter of `serverStatus` it adds to.
    pub(crate) counter: Counter,
    /// Who may run it.
    pub(crate) rights: Rights,
    /// What runs it.
    pub(crate) run: Run,
}

impl Command {
    /// What a command is unless it says otherwise.
    const DEFAULT: Command = Command {
        name: "",
        aliases: &[],
        help: "",
        stable_api: false,
        admin_only: false,
        in_transaction: false,
        reads: false,
        writes: false,
        retryable: false,
        ignores_unknown_fields: false,
        own_time_limit: false,
        counter: Counter::Command,
        rights: Rights::LoggedIn,
        run: Run::Now(|_, _| Err(Error::internal("a command without behaviour"))),
    };
}

/// The counters of `serverStatus`' `opcounters`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    Command,
    GetMore,
    Query,
    /// It counts its statements itself.
    None,
}

/// How a command runs: it writes its reply's fields, without `ok`, or fails.
pub(crate) enum Run {
    /// At once.
    Now(fn(&mut Context<'_>, &mut Writer) -> Result<()>),
    /// It may wait.
    Later(for<'x, 'c> fn(&'x mut Context<'c>, &'x mut Writer) -> Later<'x>),
}

/// A running command.
pub(crate) type Later<'x> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'x>>;

/// Everything a command runs with.
pub(crate) struct Context<'c> {
    pub(crate) shared: &'c Arc<Shared>,
    pub(crate) client: &'c mut Client,
    pub(crate) message: &'c Message,
    pub(crate) command: &'static Command,
    /// The name it was called by.
    pub(crate) called: &'c str,
    /// The arguments that every command takes.
    pub(crate) generic: Generic<'c>,
    pub(crate) operation: Arc<Operation>,
    /// The command's fields.
    pub(crate) fields: Fields<'c>,
    /// The command that `explain` explains, in the place of `explain` itself.
    pub(crate) explained: Option<&'c RawDocument>,
    /// Set by a command to send another reply, by running again, where the client takes several.
    pub(crate) more_to_come: bool,
}

impl<'c> Context<'c> {
    /// The command's document.
    pub(crate) fn body(&self) -> &'c RawDocument {
        self.explained.unwrap_or_else(|| self.message.body())
    }

    /// Puts a command in the place of the one that speaks of it, or that one in its own place again.
    pub(crate) fn explain(&mut self, command: Option<&'c RawDocument>) -> Result<()> {
        self.explained = command;
        self.fields = arguments::fields(self.body())?;
        Ok(())
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<RawBsonRef<'c>> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The value of the command's own field.
    pub(crate) fn value(&self) -> Result<RawBsonRef<'c>> {
        match self.fields.first() {
            Some((_, value)) => Ok(*value),
            None => Err(Error::internal("a command without a name came as far as its run")),
        }
    }

    /// The database it runs against.
    pub(crate) fn database(&self) -> &'c str {
        self.generic.database
    }
}

/// All commands, sorted by name.
pub static TABLE: &[&Command] = &[
    &transactions::ABORT,
    &aggregate::COMMAND,
    &diagnostic::BUILD_INFO,
    &bulk_write::COMMAND,
    &capped::CLONE,
    &coll_mod::COMMAND,
    &statistics::COLLECTION,
    &transactions::COMMIT,
    &fail_point::COMMAND,
    &diagnostic::CONN_POOL_STATS,
    &connection_status::COMMAND,
    &capped::CONVERT,
    &count::COMMAND,
    &collections::CREATE,
    &indexes::CREATE,
    &roles::CREATE,
    &users::CREATE,
    &current_op::COMMAND,
    &statistics::DATA,
    &db_hash::COMMAND,
    &statistics::DATABASE,
    &delete::COMMAND,
    &distinct::COMMAND,
    &collections::DROP,
    &roles::DROP_ALL,
    &users::DROP_ALL,
    &drop_connections::COMMAND,
    &databases::DROP,
    &indexes::DROP,
    &roles::DROP,
    &users::DROP,
    &sessions::END_SESSIONS,
    &explain::COMMAND,
    &diagnostic::FEATURES,
    &find::COMMAND,
    &find_and_modify::COMMAND,
    &maintenance::FSYNC,
    &maintenance::FSYNC_UNLOCK,
    &cluster_parameters::GET,
    &diagnostic::GET_CMD_LINE_OPTS,
    &default_concern::GET,
    &log::GET_LOG,
    &get_more::COMMAND,
    &parameters::GET_PARAMETER,
    &roles::GRANT_PRIVILEGES,
    &roles::GRANT_ROLES,
    &users::GRANT,
    &hello::HELLO,
    &host_info::COMMAND,
    &insert::COMMAND,
    &users::INVALIDATE,
    &hello::IS_MASTER,
    &sessions::KILL_ALL_SESSIONS,
    &sessions::KILL_ALL_SESSIONS_BY_PATTERN,
    &kill_cursors::COMMAND,
    &kill_op::COMMAND,
    &sessions::KILL_SESSIONS,
    &collections::LIST,
    &list_commands::COMMAND,
    &databases::LIST,
    &indexes::LIST,
    &diagnostic::LOCK_INFO,
    &log::LOG_ROTATE,
    &sasl::LOGOUT,
    &ping::COMMAND,
    &plan_cache::CLEAR,
    &plan_cache::CLEAR_FILTERS,
    &plan_cache::LIST_FILTERS,
    &plan_cache::SET_FILTER,
    &profile::COMMAND,
    &sessions::REFRESH_SESSIONS,
    &query_settings::REMOVE,
    &collections::RENAME,
    &replica_set::GET_CONFIG,
    &replica_set::GET_STATUS,
    &roles::REVOKE_PRIVILEGES,
    &roles::REVOKE_ROLES,
    &users::REVOKE,
    &roles::INFO,
    &sasl::CONTINUE,
    &sasl::START,
    &server_status::COMMAND,
    &cluster_parameters::SET,
    &default_concern::SET,
    &feature_version::COMMAND,
    &parameters::SET_PARAMETER,
    &query_settings::SET,
    &write_block::COMMAND,
    &backup::COMMAND,
    &sessions::START_SESSION,
    &top::COMMAND,
    &update::COMMAND,
    &roles::UPDATE,
    &users::UPDATE,
    &users::INFO,
    &validate::COMMAND,
    &validate_metadata::COMMAND,
    &diagnostic::WHATS_MY_URI,
];

/// The command of a name.
pub(crate) fn find(name: &str) -> Result<&'static Command> {
    if let Ok(found) = TABLE.binary_search_by(|command| command.name.cmp(name)) {
        return Ok(TABLE[found]);
    }
    if let Some(command) = TABLE.iter().find(|command| command.aliases.contains(&name)) {
        return Ok(command);
    }
    match unsupported::reason(name) {
        Some(reason) => Err(Error::new(Code::COMMAND_NOT_SUPPORTED, format!("{name} is not supported: {reason}"))),
        None => Err(Error::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{name}'"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_no_name_occurs_twice() {
        assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
        let mut names: Vec<&str> = TABLE.iter().flat_map(|c| c.aliases.iter().copied().chain([c.name])).collect();
        names.extend(unsupported::names());
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_command_says_what_it_does() {
        for command in TABLE {
            assert!(!command.help.is_empty(), "{}", command.name);
        }
    }

    #[test]
    fn unknown_and_unsupported_names_differ() {
        let code = |name| find(name).err().map(|error| error.code);
        assert_eq!(code("nonsense"), Some(Code::COMMAND_NOT_FOUND));
        assert_eq!(code("mapReduce"), Some(Code::COMMAND_NOT_SUPPORTED));
        assert_eq!(code("isMaster"), None);
    }
}
