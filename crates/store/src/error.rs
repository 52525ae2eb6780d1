//! What can go wrong in a store: the same shape for both kinds.

use std::fmt;

/// What the store's fallible functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A refusal or failure.
#[derive(Clone, Debug)]
pub struct Error {
    /// MongoDB's code; `None` when no server spoke (a broken connection, a document that can't be encoded).
    pub code: Option<i32>,
    /// What was wrong.
    pub message: String,
    labels: Vec<String>,
}

impl Error {
    /// An error with a code, for refusals of whoever uses the store inside a transaction's body.
    pub fn new(code: i32, message: impl Into<String>) -> Error {
        Error { code: Some(code), message: message.into(), labels: Vec::new() }
    }

    pub(crate) fn unsupported(what: &str) -> Error {
        Error { code: Some(115), message: format!("this kind of store does not support {what}"), labels: Vec::new() }
    }

    pub(crate) fn labelled(code: Option<i32>, message: String, labels: Vec<String>) -> Error {
        Error { code, message, labels }
    }

    /// Whether it carries a label such as `TransientTransactionError`.
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|known| known == label)
    }

    /// Whether it says that a unique key is taken.
    pub fn is_duplicate_key(&self) -> bool {
        self.code == Some(11000)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{} (code {code})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Error {
        let labels = error.labels().iter().map(|label| (*label).to_owned()).collect();
        Error { code: Some(error.code.0), message: error.message, labels }
    }
}

impl From<bson::error::Error> for Error {
    fn from(error: bson::error::Error) -> Error {
        Error { code: None, message: error.to_string(), labels: Vec::new() }
    }
}
