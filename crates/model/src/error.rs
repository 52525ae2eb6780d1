//! The crate's one error, named by whose fault it is.

use crate::problem::Problems;
use std::path::PathBuf;
use std::{fmt, io};

/// What the crate's fallible functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a model could not be had.
#[derive(Debug)]
pub enum Error {
    /// A file or folder could not be read.
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder holds no `*.sheaf.kdl` file.
    NoModel {
        /// Which folder.
        path: PathBuf,
    },
    /// The model was read and refused.
    Refused(Problems),
    /// A canonical JSON text is not one of ours, or of a later version.
    BadJson(String),
    /// The store refused or failed.
    Store(store::Error),
    /// A document or filter that can't be evaluated.
    Engine(engine::Error),
    /// A table of thresholds or constants is not valid.
    BadTable(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unreadable { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Error::NoModel { path } => {
                write!(f, "{} holds no model: put your declarations into files named *.sheaf.kdl", path.display())
            }
            Error::Refused(problems) => fmt::Display::fmt(problems, f),
            Error::BadJson(message) => write!(f, "not a model in canonical JSON: {message}"),
            Error::BadTable(message) => f.write_str(message),
            Error::Store(error) => fmt::Display::fmt(error, f),
            Error::Engine(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Error {
    /// Whether trying again may help: another transaction was in the way.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Error::Store(error) if error.has_label("TransientTransactionError") || error.code == Some(112))
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        Error::Store(error)
    }
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Error {
        Error::Engine(error)
    }
}

impl From<bson::error::Error> for Error {
    fn from(error: bson::error::Error) -> Error {
        Error::Engine(error.into())
    }
}
