//! The arguments that every command takes: database, session and transaction, concerns, time limit, API version.

use super::arguments::{Fields, is_null, number, type_name, whole};
use super::concern::{WriteConcern, check_read_concern};
use super::{Command, Path};
use crate::message::Message;
use bson::RawDocument;
use bson::raw::RawBsonRef;
use bson::spec::BinarySubtype;
use engine::{Code, Error, Result, SnapshotRead};
use std::sync::Arc;

/// Database names longer than this are refused.
const MAX_DATABASE_NAME_BYTES: usize = 63;

/// A command's generic arguments.
#[derive(Clone, Default)]
pub(crate) struct Generic<'a> {
    /// `$db`.
    pub(crate) database: &'a str,
    /// `lsid.id`.
    pub(crate) session: Option<[u8; 16]>,
    /// `txnNumber`.
    pub(crate) transaction_number: Option<i64>,
    /// `autocommit: false`: part of a transaction.
    pub(crate) in_transaction: bool,
    /// `startTransaction: true`.
    pub(crate) starts_transaction: bool,
    /// `stmtId`.
    pub(crate) statement_id: Option<i32>,
    /// `writeConcern`.
    pub(crate) write_concern: WriteConcern,
    /// `maxTimeMS`.
    pub(crate) max_time_ms: Option<u64>,
    /// `comment`.
    pub(crate) comment: Option<RawBsonRef<'a>>,
    /// `apiStrict: true`.
    pub(crate) api_strict: bool,
    /// `$readPreference`.
    pub(crate) read_preference: Option<&'a RawDocument>,
    /// The snapshot that is read, where `readConcern` asks for one.
    pub(crate) snapshot: Option<Arc<SnapshotRead>>,
    read_concern: Option<&'a RawDocument>,
    has_write_concern: bool,
    api_version: Option<&'a str>,
    api_deprecation: bool,
    autocommit: Option<bool>,
}

impl<'a> Generic<'a> {
    /// Parses them from a request's fields, and refuses those that make no sense together or for this command.
    pub(crate) fn parse(message: &'a Message, fields: &Fields<'a>, command: &Command) -> Result<Generic<'a>> {
        let mut generic = Generic { database: message.legacy_database.as_deref().unwrap_or(""), ..Generic::default() };
        let mut has_database = message.legacy_database.is_some();
        for (key, value) in fields.iter().skip(1).copied() {
            let path = Path { parent: command.name, field: key };
            match key {
                "$db" => {
                    generic.database = value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?;
                    has_database = true;
                }
                _ if is_null(value) => {}
                field => generic.take(field, path, value)?,
            }
        }
        if !has_database {
            return Err(Error::location(40571, "OP_MSG requests require a $db argument"));
        }
        check_database(generic.database)?;
        generic.check_api(command)?;
        generic.check_transaction(command)?;
        if command.admin_only && generic.database != "admin" {
            let message = format!("{} may only be run against the admin database.", command.name);
            return Err(Error::new(Code::UNAUTHORIZED, message));
        }
        generic.check_concerns(command)?;
        Ok(generic)
    }

    fn take(&mut self, field: &str, path: Path<'_>, value: RawBsonRef<'a>) -> Result<()> {
        let document = || value.as_document().ok_or_else(|| path.wrong_type(value, &["object"]));
        let boolean = || value.as_bool().ok_or_else(|| path.wrong_type(value, &["bool"]));
        match field {
            "lsid" => self.session = Some(session_id(document()?)?),
            "txnNumber" => {
                self.transaction_number = Some(value.as_i64().ok_or_else(|| path.wrong_type(value, &["long"]))?)
            }
            "autocommit" => self.autocommit = Some(boolean()?),
            "startTransaction" => {
                if !boolean()? {
                    return Err(Error::new(Code::INVALID_OPTIONS, "Specifying startTransaction=false is not allowed."));
                }
                self.starts_transaction = true;
            }
            "readConcern" => self.read_concern = Some(document()?),
            "writeConcern" => {
                self.write_concern = WriteConcern::parse(document()?)?;
                self.has_write_concern = true;
            }
            "stmtId" => self.statement_id = number(value).and_then(|number| i32::try_from(number).ok()),
            "maxTimeMS" => self.max_time_ms = Some(max_time_ms(value)?),
            "comment" => self.comment = Some(value),
            "apiVersion" => self.api_version = Some(value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?),
            "apiStrict" => self.api_strict = boolean()?,
            "apiDeprecationErrors" => self.api_deprecation = boolean()?,
            "$readPreference" => self.read_preference = Some(document()?),
            "$clusterTime" => {
                document()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn check_api(&self, command: &Command) -> Result<()> {
        match self.api_version {
            Some("1") => {}
            Some(other) => {
                return Err(Error::new(
                    Code::API_MISMATCH_ERROR,
                    format!("API version must be \"1\", it is \"{other}\""),
                ));
            }
            None if self.api_strict || self.api_deprecation => {
                let message =
                    "Provided apiStrict or apiDeprecationErrors without passing apiVersion; pass both or neither";
                return Err(Error::new(Code(4886600), message));
            }
            None => {}
        }
        if self.api_strict && !command.stable_api {
            let message = format!(
                "Provided apiStrict:true, but the command {} is not in API Version 1. Leave out apiStrict to run it",
                command.name
            );
            return Err(Error::new(Code::API_STRICT_ERROR, message));
        }
        Ok(())
    }

    fn check_concerns(&mut self, command: &Command) -> Result<()> {
        let refuse = |message: String| Err(Error::new(Code::INVALID_OPTIONS, message));
        if let Some(concern) = self.read_concern {
            self.snapshot = check_read_concern(concern, command, self.starts_transaction)?.map(Arc::new);
            if self.in_transaction && !self.starts_transaction && !concern.is_empty() {
                return refuse("Only the first command in a transaction may specify a readConcern".to_owned());
            }
        }
        if self.has_write_concern && !command.writes {
            return refuse(format!("Command {} does not support writeConcern", command.name));
        }
        if self.has_write_concern && self.in_transaction && !command.name.ends_with("Transaction") {
            let message =
                "writeConcern is not allowed within a multi-statement transaction; give it to commitTransaction";
            return refuse(message.to_owned());
        }
        Ok(())
    }

    fn check_transaction(&mut self, command: &Command) -> Result<()> {
        let refuse = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
        if self.transaction_number.is_some() && self.session.is_none() {
            return refuse("Transaction number requires a session ID to also be specified");
        }
        if self.transaction_number.is_some_and(|number| number < 0) {
            return refuse("Transaction number cannot be negative");
        }
        match self.autocommit {
            None if self.starts_transaction => {
                return refuse("'startTransaction' field requires 'autocommit' field to also be specified");
            }
            None if self.transaction_number.is_some() && !command.retryable => {
                let message = format!(
                    "txnNumber may only be provided for multi-document transactions and retryable write commands. \
                     autocommit:false was not provided, and {} is not a retryable write command.",
                    command.name
                );
                return Err(Error::location(50768, message));
            }
            None => return Ok(()),
            Some(true) => return refuse("Specifying autocommit=true is not allowed."),
            Some(false) => {}
        }
        if self.transaction_number.is_none() {
            return refuse("'autocommit' field requires a transaction number to also be specified");
        }
        self.in_transaction = true;
        if command.retryable && matches!(self.database, "config" | "local") {
            let message = format!("Cannot run command against the '{}' database in a transaction", self.database);
            return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message));
        }
        let first = self.starts_transaction && matches!(command.name, "killCursors" | "getMore");
        if !command.in_transaction || first {
            let message = format!("Cannot run '{}' in a multi-document transaction.", command.name);
            return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message));
        }
        Ok(())
    }
}

/// The id of an `lsid` document.
pub(crate) fn session_id(document: &RawDocument) -> Result<[u8; 16]> {
    let path = Path { parent: "LogicalSessionFromClient", field: "id" };
    uuid(document.get("id")?.ok_or_else(|| path.missing())?)
}

/// The bytes of a session's UUID.
pub(crate) fn uuid(value: RawBsonRef<'_>) -> Result<[u8; 16]> {
    let path = Path { parent: "LogicalSessionFromClient", field: "id" };
    if is_null(value) {
        return Err(path.missing());
    }
    let Some(binary) = value.as_binary() else {
        return Err(path.wrong_type(value, &["binData"]));
    };
    if binary.subtype != BinarySubtype::Uuid {
        let message = format!("BSON field '{path}' is the wrong binData type, expected type 'UUID'");
        return Err(Error::type_mismatch(message));
    }
    let wrong_length = |_| Error::new(Code::INVALID_UUID, "uuid must be a 16-byte binary field with UUID (4) subtype");
    binary.bytes.try_into().map_err(wrong_length)
}

fn max_time_ms(value: RawBsonRef<'_>) -> Result<u64> {
    let Some(milliseconds) = whole(value, "maxTimeMS")? else {
        let message = format!(
            "BSON field 'maxTimeMS' is the wrong type '{}', expected types '[long, int, decimal, double']",
            type_name(value.element_type())
        );
        return Err(Error::type_mismatch(message));
    };
    if !(0..=i64::from(i32::MAX)).contains(&milliseconds) {
        let message = format!("{milliseconds} value for maxTimeMS is out of range [0, {}]", i32::MAX);
        return Err(Error::bad_value(message));
    }
    Ok(milliseconds as u64)
}

/// Refuses names that no database can have.
pub(crate) fn check_database(name: &str) -> Result<()> {
    let invalid = name.is_empty()
        || name.len() > MAX_DATABASE_NAME_BYTES
        || name.contains(['/', '\\', '.', ' ', '"', '$', '\0']) && name != "$external";
    if invalid {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid database name: '{name}'")));
    }
    Ok(())
}
