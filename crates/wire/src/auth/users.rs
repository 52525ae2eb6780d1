//! Users and custom roles.

use super::built_in;
use super::rights::Privilege;
use super::scram::{Credentials, Mechanism};
use bson::RawDocumentBuf;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// A user's or role's name in its database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) database: String,
    pub(crate) name: String,
}

impl Name {
    /// A name in a database.
    pub(crate) fn new(name: &str, database: &str) -> Name {
        Name { database: database.to_owned(), name: name.to_owned() }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.name, self.database)
    }
}

/// A user.
#[derive(Clone, Debug)]
pub(crate) struct User {
    /// Tells it apart from an earlier user of the same name.
    pub(crate) id: [u8; 16],
    pub(crate) credentials: Vec<(Mechanism, Credentials)>,
    pub(crate) roles: Vec<Name>,
    pub(crate) custom_data: Option<RawDocumentBuf>,
}

/// A custom role.
#[derive(Clone, Debug, Default)]
pub(crate) struct Role {
    pub(crate) privileges: Vec<Privilege>,
    pub(crate) roles: Vec<Name>,
}

/// All users and custom roles.
#[derive(Default)]
pub(crate) struct Users {
    state: RwLock<State>,
    /// Grows with every change, so that connections know when what they remember is old.
    generation: AtomicU64,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) users: BTreeMap<Name, User>,
    pub(crate) roles: BTreeMap<Name, Role>,
}

impl Users {
    /// Grows with every change.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Looks at them.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read())
    }

    /// Changes them.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.write();
        let result = change(&mut state);
        self.generation.fetch_add(1, Ordering::AcqRel);
        result
    }
}

impl State {
    /// Whether a role exists.
    pub(crate) fn has_role(&self, role: &Name) -> bool {
        built_in(&role.name, &role.database).is_some() || self.roles.contains_key(role)
    }

    /// The roles themselves and all they inherit from, each once.
    pub(crate) fn inherited(&self, roles: &[Name]) -> BTreeSet<Name> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&Name> = roles.iter().collect();
        while let Some(role) = open.pop() {
            if found.insert(role.clone())
                && let Some(custom) = self.roles.get(role)
            {
                open.extend(&custom.roles);
            }
        }
        found
    }

    /// What roles allow, with all they inherit; privileges on the same resource are one.
    pub(crate) fn privileges(&self, roles: &[Name]) -> Vec<Privilege> {
        let mut merged: Vec<Privilege> = Vec::new();
        for role in self.inherited(roles) {
            let privileges = match built_in(&role.name, &role.database) {
                Some(privileges) => privileges,
                None => self.roles.get(&role).map(|custom| custom.privileges.clone()).unwrap_or_default(),
            };
            merge(&mut merged, privileges);
        }
        merged
    }
}

/// Adds privileges to those there are.
pub(crate) fn merge(into: &mut Vec<Privilege>, privileges: Vec<Privilege>) {
    for privilege in privileges {
        match into.iter_mut().find(|known| known.resource == privilege.resource) {
            Some(known) => known.actions = known.actions.union(privilege.actions),
            None => into.push(privilege),
        }
    }
}
