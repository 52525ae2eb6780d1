//! What the network refuses, as problems.

use crate::shared::problem::{
    ALREADY_EXISTS, ALREADY_FRIENDS, BLOCKED, CORRUPT, INVALID_BODY, INVALID_CURSOR, Kind, NO_PENDING_REQUEST,
    NOT_ALLOWED, PRECONDITION_FAILED, Problem, REQUEST_PENDING, SELF_RELATION, TOO_DEEP,
};
use social::Error;

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let said = error.to_string();
        let because = |kind: &'static Kind| Problem::new(kind, said);
        match error {
            Error::UnknownUser(_)
            | Error::UnknownPost(_)
            | Error::UnknownComment(_)
            | Error::UnknownConversation(_)
            | Error::UnknownMessage(_)
            | Error::UnknownFile(_)
            | Error::UnknownServer(_) => Problem::not_found(),
            Error::NameTaken(_) => because(&ALREADY_EXISTS),
            Error::SelfRelation => because(&SELF_RELATION),
            Error::Blocked => because(&BLOCKED),
            Error::RequestPending { .. } => because(&REQUEST_PENDING),
            Error::AlreadyFriends => because(&ALREADY_FRIENDS),
            Error::NoPendingRequest => because(&NO_PENDING_REQUEST),
            Error::NotAllowed(_) => because(&NOT_ALLOWED),
            Error::TooDeep { max } => because(&TOO_DEEP).with("max", max),
            Error::Invalid(_) => because(&INVALID_BODY),
            Error::InvalidCursor(_) => because(&INVALID_CURSOR),
            Error::Corrupt { .. } => because(&CORRUPT),
            Error::Changed => because(&PRECONDITION_FAILED),
            Error::Store(error) => error.into(),
        }
    }
}
