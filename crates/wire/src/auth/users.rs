//! Users and custom roles.

use super::built_in;
use super::rights::Privilege;
use super::scram::{Credentials, Mechanism};
use bson::RawDocumentBuf;
use engine::{Engine, Result};
use parking_lot::{Mutex, RwLock};
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
pub(crate) struct Users {
    engine: Engine,
    state: RwLock<State>,
    /// Held while a change is made, written and put in place.
    changing: Mutex<()>,
    /// Grows with every change, so that connections know when what they remember is old.
    generation: AtomicU64,
}

/// The users and roles as of one moment.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) users: BTreeMap<Name, User>,
    pub(crate) roles: BTreeMap<Name, Role>,
}

impl Users {
    /// Those that an engine holds.
    ///
    /// # Errors
    /// A failing storage, a document that can't be read.
    pub(crate) fn load(engine: Engine) -> Result<Users> {
        let state = RwLock::new(super::storage::load(&engine)?);
        Ok(Users { engine, state, changing: Mutex::new(()), generation: AtomicU64::new(0) })
    }

    /// Grows with every change.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Looks at them.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read())
    }

    /// Changes them; the change is durable before anybody sees it.
    ///
    /// # Errors
    /// What the change refuses, a failing storage.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let _changing = self.changing.lock();
        let old = self.state.read().clone();
        let mut new = old.clone();
        let result = change(&mut new)?;
        let mut saved = Ok(());
        crate::command::block(&mut || saved = super::storage::save(&self.engine, &old, &new));
        saved?;
        *self.state.write() = new;
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(result)
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
