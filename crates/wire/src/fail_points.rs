//! Fail points: faults on purpose, for drivers' own tests. They exist only where the server was started with
//! `--enable-test-commands`.
//!
//! Three are known: `failCommand` meets commands by name, `failGetMoreAfterCursorCheckout` meets `getMore`,
//! `onPrimaryTransactionalWrite` meets the statements of retryable writes: their connection is closed without a reply, after
//! the write or, with `failBeforeCommitExceptionCode`, in its place. Sources:
//! <https://github.com/mongodb/mongo/wiki/The-failCommand-fail-point>, and for the last
//! <https://github.com/mongodb/specifications/blob/master/source/retryable-writes/tests/README.md>.

use bson::raw::RawBsonRef;
use bson::{RawDocument, RawDocumentBuf};
use engine::{Code, Error, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

/// The fail points there are.
const KNOWN: &[&str] = &["failCommand", "failGetMoreAfterCursorCheckout", "onPrimaryTransactionalWrite"];

/// The labels that an error may be given.
const LABELS: &[&str] = &[
    "NoWritesPerformed",
    "ResumableChangeStreamError",
    "RetryableError",
    "RetryableWriteError",
    "SystemOverloadedError",
    "TransientTransactionError",
    "UnknownTransactionCommitResult",
];

/// All fail points by name.
#[derive(Default)]
pub(crate) struct FailPoints {
    points: Mutex<HashMap<&'static str, FailPoint>>,
    /// The last retryable write of each session that was done and lost its reply: its retry finds it done, and writes nothing.
    done: Mutex<HashMap<[u8; 16], i64>>,
}

/// A retryable write.
#[derive(Clone, Copy)]
pub(crate) struct RetryableWrite {
    /// `lsid.id`.
    pub(crate) session: [u8; 16],
    /// `txnNumber`.
    pub(crate) number: i64,
    /// How many statements it has.
    pub(crate) statements: usize,
}

#[derive(Default)]
struct FailPoint {
    mode: Mode,
    data: RawDocumentBuf,
    /// How often it was met.
    count: i64,
}

#[derive(Default, Clone, Copy)]
enum Mode {
    #[default]
    Off,
    AlwaysOn,
    /// So many times.
    Times(i64),
    /// Always, after so many times.
    Skip(i64),
}

/// What a fail point does to a command.
#[derive(Default, Debug)]
pub(crate) struct Hit {
    /// How long the command waits first.
    pub(crate) block: Option<Duration>,
    /// Whether the connection is closed without a reply.
    pub(crate) closes: bool,
    /// Whether the command runs before that.
    pub(crate) runs: bool,
    /// Whether it is `getMore`'s own: its error comes from the cursor, not from before the command.
    pub(crate) of_cursor: bool,
    /// What the command fails with.
    pub(crate) error: Option<Error>,
    /// The labels that the reply gets, in place of those that it would have.
    pub(crate) labels: Option<Vec<&'static str>>,
    /// What stands beside the result of the command, which runs.
    pub(crate) write_concern_error: Option<RawDocumentBuf>,
}

impl FailPoints {
    /// Configures a fail point; how often it was met before.
    ///
    /// # Errors
    /// `FailPointSetFailed` for an unknown name, `BadValue` for a mode that is none.
    pub(crate) fn configure(&self, name: &str, mode: RawBsonRef<'_>, data: Option<&RawDocument>) -> Result<i64> {
        let known = KNOWN.iter().find(|known| **known == name).ok_or_else(|| {
            Error::new(Code(9), format!("there is no fail point {name}; those known are {}", KNOWN.join(", ")))
        })?;
        let mode = parse_mode(mode)?;
        let mut points = self.points.lock();
        let point = points.entry(known).or_default();
        let count = point.count;
        *point = FailPoint { mode, data: data.map(ToOwned::to_owned).unwrap_or_default(), count };
        Ok(count)
    }

    /// What becomes of a command.
    pub(crate) fn meet(
        &self,
        command: &str,
        called: &str,
        application: Option<&str>,
        write: Option<RetryableWrite>,
    ) -> Option<Hit> {
        let mut points = self.points.lock();
        for (name, point) in points.iter_mut() {
            if *name == "onPrimaryTransactionalWrite" {
                let write = write.filter(|write| self.done.lock().get(&write.session) != Some(&write.number));
                let Some(write) = write else { continue };
                let Some(hit) = point.meet_statements(write.statements) else { continue };
                if hit.runs {
                    self.done.lock().insert(write.session, write.number);
                }
                return Some(hit);
            }
            let fits = match *name {
                "failGetMoreAfterCursorCheckout" => command == "getMore",
                _ => names(&point.data, command, called),
            };
            let of_application = point.data.get_str("appName").map_or(true, |wanted| application == Some(wanted));
            if fits && of_application && point.enter() {
                return Some(Hit { of_cursor: *name == "failGetMoreAfterCursorCheckout", ..hit(&point.data) });
            }
        }
        None
    }
}

fn names(data: &RawDocument, command: &str, called: &str) -> bool {
    let listed = data.get_array("failCommands").into_iter().flatten().flatten();
    listed.filter_map(|name| name.as_str()).any(|name| name == command || name == called)
}

fn parse_mode(mode: RawBsonRef<'_>) -> Result<Mode> {
    let wrong = || Error::bad_value("mode has to be 'off', 'alwaysOn', {times: n} or {skip: n}");
    match mode {
        RawBsonRef::String("off") => Ok(Mode::Off),
        RawBsonRef::String("alwaysOn") => Ok(Mode::AlwaysOn),
        RawBsonRef::Document(document) => {
            let number = |name: &str| document.get(name).ok().flatten().and_then(crate::command::number);
            match (number("times"), number("skip")) {
                (Some(times), _) => Ok(Mode::Times(times)),
                (None, Some(skip)) => Ok(Mode::Skip(skip)),
                (None, None) => Err(wrong()),
            }
        }
        _ => Err(wrong()),
    }
}

impl FailPoint {
    /// What becomes of a retryable write of so many statements.
    fn meet_statements(&mut self, statements: usize) -> Option<Hit> {
        let fails = self.data.get("failBeforeCommitExceptionCode").ok().flatten().is_some();
        let mut met = false;
        for _ in 0..statements {
            met |= self.enter();
            if met && fails {
                break;
            }
        }
        let closes = fails || self.data.get_bool("closeConnection").unwrap_or(true);
        met.then(|| Hit { closes, runs: !fails, ..Hit::default() })
    }

    /// Counts a command that fits; whether it is met.
    fn enter(&mut self) -> bool {
        let met = match &mut self.mode {
            Mode::Off => return false,
            Mode::AlwaysOn => true,
            Mode::Times(left) if *left > 0 => {
                *left -= 1;
                true
            }
            Mode::Times(_) => {
                self.mode = Mode::Off;
                return false;
            }
            Mode::Skip(left) if *left > 0 => {
                *left -= 1;
                false
            }
            Mode::Skip(_) => true,
        };
        self.count += i64::from(met);
        met
    }
}

fn hit(data: &RawDocument) -> Hit {
    let number = |name: &str| data.get(name).ok().flatten().and_then(crate::command::number);
    let flag = |name: &str| data.get_bool(name).unwrap_or(false);
    let labels = data.get_array("errorLabels").ok().map(|labels| {
        let given = labels.into_iter().flatten().filter_map(|label| label.as_str());
        given.filter_map(|label| LABELS.iter().copied().find(|known| *known == label)).collect()
    });
    let error = number("errorCode").and_then(|code| i32::try_from(code).ok()).map(|code| {
        Error::new(Code(code), format!("Failing command via 'failCommand' failpoint: {}", Code(code).name()))
    });
    let block = flag("blockConnection").then(|| number("blockTimeMS").unwrap_or(0).max(0) as u64);
    Hit {
        block: block.map(Duration::from_millis),
        closes: flag("closeConnection"),
        runs: false,
        of_cursor: false,
        error,
        labels,
        write_concern_error: data.get_document("writeConcernError").ok().map(ToOwned::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn a_fail_point_is_met_as_often_as_it_was_told() {
        let points = FailPoints::default();
        let data = rawdoc! { "failCommands": ["insert"], "errorCode": 91, "errorLabels": ["RetryableWriteError"] };
        let mode = rawdoc! { "times": 2 };
        points.configure("failCommand", RawBsonRef::Document(&mode), Some(&data)).expect("known");
        assert!(points.meet("find", "find", None, None).is_none());
        for _ in 0..2 {
            let hit = points.meet("insert", "insert", None, None).expect("on");
            assert_eq!(hit.error.expect("an error").code, Code::SHUTDOWN_IN_PROGRESS);
            assert_eq!(hit.labels, Some(vec!["RetryableWriteError"]));
        }
        assert!(points.meet("insert", "insert", None, None).is_none());
        let met = points.configure("failCommand", RawBsonRef::String("off"), None).expect("known");
        assert_eq!(met, 2);
        let data = rawdoc! { "failBeforeCommitExceptionCode": 1 };
        let mode = rawdoc! { "skip": 2 };
        points.configure("onPrimaryTransactionalWrite", RawBsonRef::Document(&mode), Some(&data)).expect("known");
        let write = |number, statements| Some(RetryableWrite { session: [1; 16], number, statements });
        assert!(points.meet("insert", "insert", None, None).is_none(), "not retryable");
        assert!(points.meet("insert", "insert", None, write(1, 1)).is_none());
        let hit = points.meet("insert", "insert", None, write(2, 2)).expect("the third statement");
        assert!(hit.closes && !hit.runs);
        points.configure("onPrimaryTransactionalWrite", RawBsonRef::String("alwaysOn"), None).expect("known");
        assert!(points.meet("insert", "insert", None, write(2, 2)).is_some_and(|hit| hit.closes && hit.runs));
        assert!(points.meet("insert", "insert", None, write(2, 2)).is_none(), "its retry");
        assert!(points.meet("insert", "insert", None, write(3, 2)).is_some());
        assert!(points.configure("nonsense", RawBsonRef::String("off"), None).is_err());
    }
}
