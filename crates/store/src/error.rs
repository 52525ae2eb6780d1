//! What can go wrong in a store: the same shape for both kinds.

use bson::Document;
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
    info: Option<Box<Document>>,
}

impl Error {
    /// An error with a code, for refusals of whoever uses the store inside a transaction's body.
    pub fn new(code: i32, message: impl Into<String>) -> Error {
        Error::labelled(Some(code), message.into(), Vec::new())
    }

    pub(crate) fn unsupported(what: &str) -> Error {
        Error::new(115, format!("this kind of store does not support {what}"))
    }

    pub(crate) fn labelled(code: Option<i32>, message: String, labels: Vec<String>) -> Error {
        Error { code, message, labels, info: None }
    }

    pub(crate) fn with_info(mut self, info: Option<Document>) -> Error {
        self.info = info.map(Box::new);
        self
    }

    /// Whether it carries a label such as `TransientTransactionError`.
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|known| known == label)
    }

    /// Its labels.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// `errInfo`: what a validator found wrong, and the like.
    pub fn info(&self) -> Option<&Document> {
        self.info.as_deref()
    }

    /// Whether it says that a unique key is taken.
    pub fn is_duplicate_key(&self) -> bool {
        self.code == Some(11000)
    }

    /// Whether it says that a resume token is none that the store gave: BadValue, FailedToParse, TypeMismatch,
    /// InvalidResumeToken, KeyNotFound.
    pub fn is_invalid_resume_token(&self) -> bool {
        matches!(self.code, Some(2 | 9 | 14 | 260 | 50811 | 40647 | 40649))
    }

    /// Whether it says that somebody stopped the operation or the cursor (`Interrupted` 11601, `CursorKilled` 237,
    /// `CursorNotFound` 43): a change stream can be opened again where it was.
    pub fn is_killed(&self) -> bool {
        matches!(self.code, Some(11601 | 237 | 43))
    }

    /// Whether it says that a change stream can't be resumed there any more.
    pub fn is_history_lost(&self) -> bool {
        matches!(self.code, Some(286 | 280)) || self.has_label("NonResumableChangeStreamError")
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
        let info = error.details.as_ref().and_then(|details| details.info.as_deref());
        let info = info.and_then(|info| Document::try_from(info).ok());
        Error::labelled(Some(error.code.0), error.message, labels).with_info(info)
    }
}

impl From<bson::error::Error> for Error {
    fn from(error: bson::error::Error) -> Error {
        Error::labelled(None, error.to_string(), Vec::new())
    }
}
