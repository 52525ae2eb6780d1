//! Who a client is, and what it may do.
//!
//! ```text
//! scram    the two SCRAM mechanisms, as pure functions
//! login    a connection's conversation and who is logged in on it
//! users    users and custom roles             record  their documents     storage  where these lie
//! rights   actions, resources, privileges      roles   the built-in roles
//! ```
//!
//! Authentication is required as soon as the server listens beyond loopback, or where it was asked for. While there is no
//! user yet, a client on this machine may create the first one (the localhost exception).

mod login;
pub(crate) mod record;
mod rights;
mod roles;
mod scram;
mod storage;
mod users;

pub(crate) use login::{Login, authorize, may, resume, speculate, start, write_mechanisms, write_status};
pub(crate) use rights::{Action, Privilege, Resource, Rights};
pub(crate) use roles::{built_in, names as built_in_names};
pub(crate) use scram::{Credentials, Mechanism, SCRAM_SHA_1_ITERATIONS, SCRAM_SHA_256_ITERATIONS};
pub(crate) use storage::is_reserved;
pub(crate) use users::{Name, Role, State, User, Users, merge};

use sha2::{Digest, Sha256};

/// What sessions of a user are told apart by.
pub(crate) fn user_digest(user: &str, database: &str) -> [u8; 32] {
    Sha256::digest(format!("{user}@{database}")).into()
}
