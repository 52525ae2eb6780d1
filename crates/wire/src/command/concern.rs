//! `readConcern` and `writeConcern`: parsed, and refused where they make no sense.
//!
//! Every acknowledged write is flushed and every read sees flushed data only, so all levels and all of `w: 1`, `w: "majority"`
//! and `j` mean the same here. More than the one member can't be waited for: the reply then says so beside the result.

use super::arguments::{is_null, number};
use super::{Command, Path};
use crate::bson::Writer;
use bson::RawDocument;
use bson::raw::RawBsonRef;
use engine::{Code, Error, Result, SnapshotRead};

/// The most members a replica set may have.
const MAX_MEMBERS: i64 = 50;

/// What a write waits for.
#[derive(Clone, Default)]
pub(crate) struct WriteConcern {
    /// `w: 0`: nothing is waited for or reported.
    pub(crate) unacknowledged: bool,
    /// Why it can't be fulfilled.
    problem: Option<Error>,
}

impl WriteConcern {
    /// Parses a `writeConcern`.
    pub(crate) fn parse(document: &RawDocument) -> Result<WriteConcern> {
        let mut problem = None;
        let mut unacknowledged = false;
        for element in document {
            let (key, value) = element?;
            let path = Path { parent: "writeConcern", field: key.as_str() };
            match key.as_str() {
                "w" => {
                    problem = members(value)?;
                    unacknowledged = number(value) == Some(0);
                }
                "j" | "fsync" => check_flag(path, value)?,
                "wtimeout" => {
                    if number(value).is_some_and(|ms| ms > i64::from(i32::MAX)) {
                        return Err(Error::failed_to_parse("wtimeout must be a 32-bit number of milliseconds"));
                    }
                }
                "wOpTime" | "wElectionId" | "getLastError" => {}
                "provenance" => check_provenance(path, value)?,
                _ => return Err(path.unknown()),
            }
        }
        Ok(WriteConcern { unacknowledged, problem })
    }

    /// Why it can't be fulfilled.
    pub(crate) fn into_problem(self) -> Option<Error> {
        self.problem
    }

    /// `writeConcernError`, if it can't be fulfilled.
    pub(crate) fn write_error(&self, reply: &mut Writer) {
        let Some(error) = &self.problem else { return };
        reply.begin("writeConcernError");
        reply.put("code", error.code.0);
        reply.put("codeName", error.code.name().as_str());
        reply.put("errmsg", error.message.as_str());
        reply.begin("errInfo");
        reply.begin("writeConcern");
        reply.put("provenance", "clientSupplied");
        reply.end();
        reply.end();
        reply.end();
    }
}

fn check_flag(path: Path<'_>, value: RawBsonRef<'_>) -> Result<()> {
    if matches!(value, RawBsonRef::Boolean(_)) || number(value).is_some() || is_null(value) {
        return Ok(());
    }
    Err(path.wrong_type(value, &["bool", "long", "int", "decimal", "double"]))
}

fn check_provenance(path: Path<'_>, value: RawBsonRef<'_>) -> Result<()> {
    let known = ["clientSupplied", "implicitDefault", "customDefault", "getLastErrorDefaults", "internalWriteDefault"];
    match value.as_str() {
        Some(name) if known.contains(&name) => Ok(()),
        Some(name) => {
            Err(Error::bad_value(format!("Enumeration value '{name}' for field '{path}' is not a valid value.")))
        }
        None if is_null(value) => Ok(()),
        None => Err(path.wrong_type(value, &["string"])),
    }
}

/// `w`: fine, or the error why it can't be fulfilled.
fn members(value: RawBsonRef<'_>) -> Result<Option<Error>> {
    let wrong = || {
        Error::failed_to_parse(format!(
            "w has to be a number, string, or object of tags; numbers go from 0 to {MAX_MEMBERS}"
        ))
    };
    let unknown_mode = |mode: &str| {
        let message = format!("No write concern mode named '{mode}' found in replica set configuration");
        Error::new(Code::UNKNOWN_REPL_WRITE_CONCERN, message)
    };
    match value {
        RawBsonRef::String("majority") => Ok(None),
        RawBsonRef::String(mode) => Ok(Some(unknown_mode(mode))),
        RawBsonRef::Null => Ok(Some(unknown_mode(""))),
        RawBsonRef::Document(tags) => {
            let mut count = 0;
            for tag in tags {
                number(tag?.1).ok_or_else(wrong)?;
                count += 1;
            }
            if count == 0 { Err(wrong()) } else { Ok(Some(unknown_mode("tags"))) }
        }
        RawBsonRef::Double(number) if !number.is_finite() => Err(wrong()),
        RawBsonRef::Decimal128(number) if !number.to_string().parse::<f64>().is_ok_and(f64::is_finite) => Err(wrong()),
        value => match number(value) {
            Some(0 | 1) => Ok(None),
            Some(2..=MAX_MEMBERS) => {
                Ok(Some(Error::new(Code::UNSATISFIABLE_WRITE_CONCERN, "Not enough data-bearing nodes")))
            }
            _ => Err(wrong()),
        },
    }
}

/// The level of a concern that has nothing else; none for an empty one.
pub(crate) fn level_of(document: &RawDocument) -> Result<Option<&str>> {
    let mut level = None;
    for element in document {
        let (key, value) = element?;
        let path = Path { parent: "readConcern", field: key.as_str() };
        match key.as_str() {
            "level" => level = Some(value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?),
            _ => return Err(path.unknown()),
        }
    }
    Ok(level)
}

/// Checks a `readConcern` for a command; the read of a snapshot that it asks for, outside of transactions.
pub(crate) fn check_read_concern(
    document: &RawDocument,
    command: &Command,
    starts_transaction: bool,
) -> Result<Option<SnapshotRead>> {
    let mut level = "local";
    let mut at = None;
    for element in document {
        let (key, value) = element?;
        let path = Path { parent: "readConcern", field: key.as_str() };
        match key.as_str() {
            "level" if is_null(value) => {}
            "level" => level = value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?,
            "afterClusterTime" | "atClusterTime" => {
                let time = value.as_timestamp().ok_or_else(|| path.wrong_type(value, &["timestamp"]))?;
                if time.time == 0 {
                    let message = format!("{path} cannot be a null timestamp");
                    return Err(Error::new(Code::INVALID_OPTIONS, message));
                }
                at = at.or(Some(time).filter(|_| key.as_str() == "atClusterTime"));
            }
            "afterOpTime" => {}
            "provenance" => check_provenance(path, value)?,
            "allowTransactionTableSnapshot" | "waitLastStableRecoveryTimestamp" => {}
            _ => return Err(path.unknown()),
        }
    }
    if !matches!(level, "local" | "available" | "majority" | "linearizable" | "snapshot") {
        let message = format!("Enumeration value '{level}' for field 'readConcern.level' is not a valid value.");
        return Err(Error::bad_value(message));
    }
    if level != "local" && !command.reads && !starts_transaction {
        let message = format!("Command {} does not support {{ readConcern: {{ level: \"{level}\" }} }}", command.name);
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    if level == "snapshot" && !starts_transaction && command.name == "count" {
        let message = "Command count does not support { readConcern: { level: \"snapshot\" } } outside of transactions; \
                       an aggregate with $count does";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    if starts_transaction && matches!(level, "available" | "linearizable") {
        let message = format!(
            "The readConcern level must be either 'local', 'majority' or 'snapshot' in a transaction, not '{level}'"
        );
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    if at.is_some() && level != "snapshot" {
        let message = "readConcern atClusterTime can only be used with readConcern level 'snapshot'";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let is_snapshot = level == "snapshot" && !starts_transaction && command.name != "getMore";
    Ok(is_snapshot.then(|| SnapshotRead::new(at)))
}
