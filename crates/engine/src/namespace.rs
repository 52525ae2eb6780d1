//! A database's name with a collection's.

use crate::error::{Code, Error, Result};
use std::fmt;

/// The longest namespace, in bytes.
pub const MAX_NAMESPACE_BYTES: usize = 255;

/// `database.collection`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Namespace {
    /// The database.
    pub database: String,
    /// The collection; it may hold dots.
    pub collection: String,
}

impl Namespace {
    /// Checks and joins the two names.
    ///
    /// # Errors
    /// `InvalidNamespace` (73) for empty names, forbidden characters and names that are too long.
    pub fn new(database: &str, collection: &str) -> Result<Namespace> {
        check_database(database)?;
        let namespace = Namespace { database: database.to_owned(), collection: collection.to_owned() };
        let problem = if collection.is_empty() || collection.starts_with('.') || collection.ends_with('.') {
            "the collection's name may not be empty, nor begin or end with a dot"
        } else if collection.contains('\0') {
            "the collection's name may not contain a null byte"
        } else if collection.contains('$') && !collection.starts_with("$cmd") {
            "the collection's name may not contain '$'"
        } else if database.len() + 1 + collection.len() > MAX_NAMESPACE_BYTES {
            "the namespace is longer than 255 bytes"
        } else {
            return Ok(namespace);
        };
        Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{namespace}': {problem}")))
    }

    /// Whether it belongs to the server itself (`system.…`).
    pub fn is_system(&self) -> bool {
        self.collection.starts_with("system.")
    }
}

/// Refuses a name that no database may have.
///
/// # Errors
/// `InvalidNamespace` (73).
pub fn check_database(name: &str) -> Result<()> {
    let bad = |c: char| matches!(c, '/' | '\\' | '.' | ' ' | '"' | '$' | '\0');
    if name.is_empty() || name.len() > 63 || (name.contains(bad) && name != "$external") {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid database name: '{name}'")));
    }
    Ok(())
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.collection)
    }
}
