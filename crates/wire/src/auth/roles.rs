//! The built-in roles.
//!
//! Documented at <https://www.mongodb.com/docs/manual/reference/built-in-roles/>. A role of one database may be granted in every
//! database; the `…AnyDatabase` ones, those of the cluster, `backup`, `restore` and `root` in `admin` only.

use super::rights::Action::{self, *};
use super::rights::{Actions, Privilege, Resource};

const READ: &[Action] =
    &[ChangeStream, CollStats, DbHash, DbStats, Find, KillCursors, ListCollections, ListIndexes, PlanCacheRead];
const WRITE: &[Action] = &[
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DropCollection,
    DropIndex,
    Insert,
    Remove,
    RenameCollectionSameDb,
    Update,
];
const ADMINISTER: &[Action] = &[
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    EnableProfiler,
    IndexStats,
    ListCollections,
    ListIndexes,
    PlanCacheIndexFilter,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDb,
    StorageDetails,
    Validate,
];
const ADMINISTER_USERS: &[Action] = &[
    ChangeCustomData,
    ChangePassword,
    CreateRole,
    CreateUser,
    DropRole,
    DropUser,
    GrantRole,
    RevokeRole,
    SetAuthenticationRestriction,
    ViewRole,
    ViewUser,
];
const MONITOR: &[Action] = &[
    ConnPoolStats,
    GetClusterParameter,
    GetCmdLineOpts,
    GetDefaultRwConcern,
    GetLog,
    GetParameter,
    HostInfo,
    Inprog,
    ListDatabases,
    ListSessions,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ServerStatus,
    Top,
];
const MANAGE: &[Action] = &[
    AppendOplogNote,
    Fsync,
    GetClusterParameter,
    GetDefaultRwConcern,
    ReplSetGetConfig,
    QuerySettings,
    ReplSetGetStatus,
    SetClusterParameter,
    SetDefaultRwConcern,
    SetFeatureCompatibilityVersion,
    SetParameter,
    SetUserWriteBlockMode,
    ListSessions,
];
const MANAGE_HOST: &[Action] = &[
    ApplyOps,
    ConnPoolStats,
    Fsync,
    InvalidateUserCache,
    KillAnyCursor,
    KillAnySession,
    Killop,
    LogRotate,
    SetParameter,
    Shutdown,
    Unlock,
];

/// The privileges of a built-in role granted in `database`; none if there is no such role there.
pub(crate) fn built_in(role: &str, database: &str) -> Option<Vec<Privilege>> {
    let on = |database: &str, collection: &str, actions: &[Action]| Privilege {
        resource: Resource::namespace(database, collection),
        actions: Actions::of(actions),
    };
    let cluster = |actions: &[Action]| Privilege { resource: Resource::Cluster, actions: Actions::of(actions) };
    let of_database = |role: &str, database: &str| -> Option<Vec<Privilege>> {
        Some(match role {
            "read" => vec![on(database, "", READ), on(database, "system.js", READ)],
            "readWrite" => vec![on(database, "", READ), on(database, "", WRITE), on(database, "system.js", READ)],
            "dbAdmin" => vec![
                on(database, "", ADMINISTER),
                on(database, "system.profile", READ),
                on(database, "system.profile", &[ConvertToCapped, CreateCollection, DropCollection]),
            ],
            "userAdmin" => vec![on(database, "", ADMINISTER_USERS)],
            _ => return None,
        })
    };
    let together = |parts: &[&str], database: &str| -> Vec<Privilege> {
        parts.iter().flat_map(|part| of_database(part, database).unwrap_or_default()).collect()
    };
    if let Some(privileges) = of_database(role, database) {
        return Some(privileges);
    }
    if role == "dbOwner" {
        return Some(together(&["readWrite", "dbAdmin", "userAdmin"], database));
    }
    if database != "admin" {
        return None;
    }
    let list = cluster(&[ListDatabases]);
    let with_list = |parts: &[&str]| together(parts, "").into_iter().chain([list.clone()]).collect();
    Some(match role {
        "readAnyDatabase" => with_list(&["read"]),
        "readWriteAnyDatabase" => with_list(&["readWrite"]),
        "dbAdminAnyDatabase" => with_list(&["dbAdmin"]),
        "userAdminAnyDatabase" => {
            [with_list(&["userAdmin"]), vec![user_collections(READ), cluster(&[InvalidateUserCache])]].concat()
        }
        "clusterMonitor" => vec![cluster(MONITOR), on("", "", &[CollStats, DbStats, IndexStats, UseUuid])],
        "clusterManager" => vec![cluster(MANAGE)],
        "hostManager" => vec![cluster(MANAGE_HOST), on("", "", &[KillCursors])],
        "clusterAdmin" => vec![
            cluster(MONITOR),
            cluster(MANAGE),
            cluster(MANAGE_HOST),
            on("", "", &[CollStats, DbStats, DropDatabase, IndexStats, KillCursors, UseUuid]),
        ],
        "backup" => vec![
            on("", "", &[ChangeStream, CollStats, Find, ListCollections, ListIndexes]),
            Privilege { resource: Resource::Any, actions: Actions::of(&[Find, ListCollections, ListIndexes]) },
            cluster(&[AppendOplogNote, GetParameter, ListDatabases, ServerStatus, SetParameter]),
        ],
        "restore" => vec![
            Privilege {
                resource: Resource::Any,
                actions: Actions::of(WRITE).union(Actions::of(&[
                    BypassDocumentValidation,
                    ChangeCustomData,
                    ChangePassword,
                    CollMod,
                    CreateRole,
                    CreateUser,
                    DropRole,
                    DropUser,
                    Find,
                    GrantRole,
                    ListCollections,
                    RevokeRole,
                    ViewRole,
                    ViewUser,
                ])),
            },
            cluster(&[GetParameter, ListDatabases]),
        ],
        "root" | "__system" => vec![Privilege { resource: Resource::Any, actions: Actions::all() }],
        _ => return None,
    })
}

/// The collection that holds the users.
fn user_collections(actions: &[Action]) -> Privilege {
    Privilege { resource: Resource::namespace("admin", "system.users"), actions: Actions::of(actions) }
}

/// The names of the built-in roles that `database` has.
pub(crate) fn names(database: &str) -> impl Iterator<Item = &'static str> {
    const ALL: &[&str] = &[
        "backup",
        "clusterAdmin",
        "clusterManager",
        "clusterMonitor",
        "dbAdmin",
        "dbAdminAnyDatabase",
        "dbOwner",
        "hostManager",
        "read",
        "readAnyDatabase",
        "readWrite",
        "readWriteAnyDatabase",
        "restore",
        "root",
        "userAdmin",
        "userAdminAnyDatabase",
    ];
    ALL.iter().copied().filter(move |name| built_in(name, database).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(role: &str, database: &str, action: Action, on: Resource) -> bool {
        built_in(role, database).expect("built in").iter().any(|privilege| privilege.allows(action, &on))
    }

    #[test]
    fn roles_allow_what_they_are_for_and_no_more() {
        let orders = || Resource::namespace("shop", "orders");
        assert!(may("read", "shop", Find, orders()));
        assert!(!may("read", "shop", Insert, orders()));
        assert!(may("readWrite", "shop", Insert, orders()));
        assert!(!may("readWrite", "other", Insert, orders()));
        assert!(!may("dbAdmin", "shop", Find, orders()));
        assert!(may("dbAdmin", "shop", DropDatabase, Resource::namespace("shop", "")));
        assert!(may("dbOwner", "shop", CreateUser, Resource::namespace("shop", "")));
        assert!(may("readAnyDatabase", "admin", Find, orders()));
        assert!(may("readAnyDatabase", "admin", ListDatabases, Resource::Cluster));
        assert!(!may("clusterMonitor", "admin", Find, orders()));
        assert!(may("clusterMonitor", "admin", ServerStatus, Resource::Cluster));
        assert!(may("root", "admin", Find, Resource::namespace("admin", "system.users")));
        assert!(built_in("root", "shop").is_none());
    }

    #[test]
    fn every_listed_role_exists() {
        assert_eq!(names("admin").count(), 16);
        assert_eq!(names("shop").collect::<Vec<_>>(), ["dbAdmin", "dbOwner", "read", "readWrite", "userAdmin"]);
    }
}
