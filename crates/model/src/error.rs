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
