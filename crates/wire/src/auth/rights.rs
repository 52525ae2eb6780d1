//! Actions, the resources they are allowed on, and the rights a command asks for.

use crate::command::Context;
use engine::Result;

macro_rules! actions {
    ($($action:ident $name:literal)*) => {
        /// Something that a privilege allows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(clippy::enum_variant_names, reason = "anyAction is MongoDB's name")]
        #[repr(u8)]
        pub(crate) enum Action { $(#[doc = concat!("`", $name, "`")] #[allow(dead_code)] $action),* }

        impl Action {
            const ALL: &'static [Action] = &[$(Action::$action),*];

            /// Its name in a privilege.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Action::$action => $name),* }
            }

            /// The action of a name.
            pub(crate) fn by_name(name: &str) -> Option<Action> {
                match name { $($name => Some(Action::$action),)* _ => None }
            }
        }
    };
}

actions! {
    AnyAction "anyAction"
    AppendOplogNote "appendOplogNote"
    ApplyOps "applyOps"
    BypassDocumentValidation "bypassDocumentValidation"
    ChangeCustomData "changeCustomData"
    ChangeOwnCustomData "changeOwnCustomData"
    ChangeOwnPassword "changeOwnPassword"
    ChangePassword "changePassword"
    ChangeStream "changeStream"
    CollMod "collMod"
    CollStats "collStats"
    Compact "compact"
    ConnPoolStats "connPoolStats"
    ConvertToCapped "convertToCapped"
    CreateCollection "createCollection"
    CreateIndex "createIndex"
    CreateRole "createRole"
    CreateUser "createUser"
    DbHash "dbHash"
    DbStats "dbStats"
    DropCollection "dropCollection"
    DropDatabase "dropDatabase"
    DropIndex "dropIndex"
    DropRole "dropRole"
    DropUser "dropUser"
    EnableProfiler "enableProfiler"
    Find "find"
    Fsync "fsync"
    GetClusterParameter "getClusterParameter"
    GetCmdLineOpts "getCmdLineOpts"
    GetDefaultRwConcern "getDefaultRWConcern"
    GetLog "getLog"
    GetParameter "getParameter"
    GrantRole "grantRole"
    HostInfo "hostInfo"
    IndexStats "indexStats"
    Inprog "inprog"
    Insert "insert"
    InvalidateUserCache "invalidateUserCache"
    KillAnyCursor "killAnyCursor"
    KillAnySession "killAnySession"
    KillCursors "killCursors"
    Killop "killop"
    ListCollections "listCollections"
    ListDatabases "listDatabases"
    ListIndexes "listIndexes"
    ListSessions "listSessions"
    LogRotate "logRotate"
    PlanCacheIndexFilter "planCacheIndexFilter"
    PlanCacheRead "planCacheRead"
    PlanCacheWrite "planCacheWrite"
    QuerySettings "querySettings"
    ReIndex "reIndex"
    Remove "remove"
    RenameCollection "renameCollection"
    RenameCollectionSameDb "renameCollectionSameDB"
    ReplSetGetConfig "replSetGetConfig"
    ReplSetGetStatus "replSetGetStatus"
    RevokeRole "revokeRole"
    ServerStatus "serverStatus"
    SetAuthenticationRestriction "setAuthenticationRestriction"
    SetClusterParameter "setClusterParameter"
    SetDefaultRwConcern "setDefaultRWConcern"
    SetFeatureCompatibilityVersion "setFeatureCompatibilityVersion"
    SetParameter "setParameter"
    SetUserWriteBlockMode "setUserWriteBlockMode"
    Shutdown "shutdown"
    StorageDetails "storageDetails"
    Top "top"
    Unlock "unlock"
    Update "update"
    UseUuid "useUUID"
    Validate "validate"
    ViewRole "viewRole"
    ViewUser "viewUser"
}

/// A set of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Actions(u128);

impl Actions {
    /// A set of the given ones.
    pub(crate) fn of(actions: &[Action]) -> Actions {
        actions.iter().fold(Actions::default(), |set, action| Actions(set.0 | 1 << *action as u8))
    }

    /// All there are.
    pub(crate) fn all() -> Actions {
        Actions::of(Action::ALL)
    }

    /// Both sets together.
    pub(crate) fn union(self, other: Actions) -> Actions {
        Actions(self.0 | other.0)
    }

    /// This set without the other.
    pub(crate) fn without(self, other: Actions) -> Actions {
        Actions(self.0 & !other.0)
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the action is allowed.
    pub(crate) fn contains(self, action: Action) -> bool {
        self.0 & (1 << action as u8 | 1 << Action::AnyAction as u8) != 0
    }

    /// The actions, in the order of their names.
    pub(crate) fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.iter().copied().filter(move |action| self.0 & 1 << *action as u8 != 0)
    }
}

/// What a privilege is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// The server as a whole.
    Cluster,
    /// Everything there is, system collections included.
    Any,
    /// Databases and their collections: an empty name stands for every one but system collections.
    Namespace {
        /// The database, or empty.
        database: String,
        /// The collection, or empty.
        collection: String,
    },
}

impl Resource {
    /// A collection, or with an empty name all of a database.
    pub(crate) fn namespace(database: &str, collection: &str) -> Resource {
        Resource::Namespace { database: database.to_owned(), collection: collection.to_owned() }
    }

    /// Whether a privilege on this resource covers `wanted`, which names a database (empty collection), a collection or
    /// the cluster.
    fn covers(&self, wanted: &Resource) -> bool {
        match (self, wanted) {
            (Resource::Any, _) | (Resource::Cluster, Resource::Cluster) => true,
            (
                Resource::Namespace { database, collection },
                Resource::Namespace { database: in_database, collection: in_collection },
            ) => {
                (database.is_empty() || database == in_database)
                    && if collection.is_empty() {
                        !in_collection.starts_with("system.")
                    } else {
                        collection == in_collection
                    }
            }
            _ => false,
        }
    }
}

/// Actions on a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Privilege {
    pub(crate) resource: Resource,
    pub(crate) actions: Actions,
}

impl Privilege {
    /// Whether it allows an action on a resource.
    pub(crate) fn allows(&self, action: Action, on: &Resource) -> bool {
        self.actions.contains(action) && self.resource.covers(on)
    }
}

/// Actions with what they are to be taken on.
pub(crate) type Needs = Vec<(Action, Resource)>;

/// What a command asks for.
pub(crate) enum Rights {
    /// Nothing, not even a login.
    Anyone,
    /// A login; or the command checks what its arguments need.
    LoggedIn,
    /// An action on the collection that the command's value names.
    Collection(Action),
    /// An action on the command's database.
    Database(Action),
    /// An action on the server.
    Cluster(Action),
    /// What the command's arguments need.
    Custom(fn(&Context<'_>) -> Result<Needs>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_fit_their_set() {
        assert!(Action::ALL.len() <= 128);
        assert!(Action::ALL.is_sorted_by(|a, b| a.name().to_lowercase() < b.name().to_lowercase()));
        for action in Action::ALL {
            assert_eq!(Action::by_name(action.name()), Some(*action));
        }
        let set = Actions::of(&[Action::Find, Action::ViewUser]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Action::Find, Action::ViewUser]);
        assert!(!set.contains(Action::Insert));
    }

    #[test]
    fn a_database_privilege_leaves_system_collections_out() {
        let on = |database: &str, collection: &str| Resource::namespace(database, collection);
        let read = |resource| Privilege { resource, actions: Actions::of(&[Action::Find]) };
        assert!(read(on("shop", "")).allows(Action::Find, &on("shop", "orders")));
        assert!(!read(on("shop", "")).allows(Action::Find, &on("other", "orders")));
        assert!(!read(on("shop", "")).allows(Action::Find, &on("shop", "system.users")));
        assert!(read(on("shop", "system.users")).allows(Action::Find, &on("shop", "system.users")));
        assert!(read(on("", "")).allows(Action::Find, &on("other", "orders")));
        assert!(!read(on("", "")).allows(Action::Find, &Resource::Cluster));
        assert!(read(Resource::Any).allows(Action::Find, &on("shop", "system.users")));
    }
}
