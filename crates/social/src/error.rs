//! What the network refuses, as facts of its business.

use crate::id::Id;
use std::fmt;

/// What the network's fallible functions return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A refusal, or a failure of the store.
#[derive(Clone, Debug)]
pub enum Error {
    /// There is no such user.
    UnknownUser(Id),
    /// There is no such post, or the asking user may not see it.
    UnknownPost(Id),
    /// There is no such comment.
    UnknownComment(Id),
    /// There is no such conversation, or the asking user is not in it.
    UnknownConversation(Id),
    /// There is no such message.
    UnknownMessage(i64),
    /// There is no such file or upload, or the asking user may not have it.
    UnknownFile(String),
    /// There is no such machine.
    UnknownServer(String),
    /// The name belongs to another user.
    NameTaken(String),
    /// A relation of a user to the same user.
    SelfRelation,
    /// One of the two has blocked the other.
    Blocked,
    /// A friend request between the two is open already.
    RequestPending {
        /// Who asked.
        from: Id,
    },
    /// The two are friends already.
    AlreadyFriends,
    /// There is no open friend request of that user.
    NoPendingRequest,
    /// The asking user may not do this.
    NotAllowed(&'static str),
    /// The thread is as deep as it may get.
    TooDeep {
        /// The bound.
        max: u32,
    },
    /// Something is empty, too long, too many, or malformed.
    Invalid(String),
    /// A page's cursor that this network did not give.
    InvalidCursor(String),
    /// The content's checksum is another one.
    Corrupt {
        /// What was expected.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The document changed since it was read.
    Changed,
    /// The store failed.
    Store(store::Error),
}

impl Error {
    /// Whether it is a duplicate key of the store.
    pub(crate) fn is_duplicate_key(&self) -> bool {
        matches!(self, Error::Store(error) if error.is_duplicate_key())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownUser(id) => write!(f, "there is no user {id}"),
            Error::UnknownPost(id) => write!(f, "there is no post {id}"),
            Error::UnknownComment(id) => write!(f, "there is no comment {id}"),
            Error::UnknownConversation(id) => write!(f, "there is no conversation {id}"),
            Error::UnknownMessage(number) => write!(f, "there is no message {number} in the conversation"),
            Error::UnknownFile(id) => write!(f, "there is no file {id}"),
            Error::UnknownServer(id) => write!(f, "there is no server {id}"),
            Error::NameTaken(name) => write!(f, "the name {name} is taken"),
            Error::SelfRelation => f.write_str("a user has no relation to himself or herself"),
            Error::Blocked => f.write_str("one of the two users has blocked the other"),
            Error::RequestPending { from } => write!(f, "a friend request by {from} is open already"),
            Error::AlreadyFriends => f.write_str("the two users are friends already"),
            Error::NoPendingRequest => f.write_str("there is no open friend request between the two users"),
            Error::NotAllowed(what) => write!(f, "the user may not {what}"),
            Error::TooDeep { max } => write!(f, "replies are nested {max} deep at most"),
            Error::Invalid(why) => f.write_str(why),
            Error::InvalidCursor(cursor) => write!(f, "{cursor} is not a cursor of this list"),
            Error::Corrupt { expected, found } => {
                write!(f, "the content has the checksum {found}, {expected} was expected")
            }
            Error::Changed => f.write_str("it was changed meanwhile; read it again"),
            Error::Store(error) => write!(f, "the store failed: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        Error::Store(error)
    }
}
