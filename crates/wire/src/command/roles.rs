//! Custom roles: `createRole`, `updateRole`, `dropRole`, `dropAllRolesFromDatabase`, `grantPrivilegesToRole`,
//! `revokePrivilegesFromRole`, `grantRolesToRole`, `revokeRolesFromRole`, `rolesInfo`.

use super::users::check_roles;
use super::{Command, Context, Flag, Run, arguments};
use crate::auth::{
    Action, Name, Privilege, Resource, Rights, Role, State, built_in, built_in_names, may, merge, record,
};
use crate::bson::Writer;
use bson::RawArray;
use bson::raw::RawBsonRef;
use engine::{Code, Error, Result};

const MAX_ROLES: usize = 10_000;

/// `createRole`.
pub(crate) static CREATE: Command = Command {
    name: "createRole",
    help: "creates a role",
    rights: Rights::Database(Action::CreateRole),
    run: Run::Now(create),
    ..Command::DEFAULT
};

/// `updateRole`.
pub(crate) static UPDATE: Command = Command {
    name: "updateRole",
    help: "replaces a role's privileges or the roles it inherits from",
    rights: Rights::Database(Action::GrantRole),
    run: Run::Now(update),
    ..Command::DEFAULT
};

/// `dropRole`.
pub(crate) static DROP: Command = Command {
    name: "dropRole",
    help: "removes a role, also from those who have it",
    rights: Rights::Database(Action::DropRole),
    run: Run::Now(drop_one),
    ..Command::DEFAULT
};

/// `dropAllRolesFromDatabase`.
pub(crate) static DROP_ALL: Command = Command {
    name: "dropAllRolesFromDatabase",
    help: "removes all custom roles of a database",
    rights: Rights::Database(Action::DropRole),
    run: Run::Now(drop_all),
    ..Command::DEFAULT
};

/// `grantPrivilegesToRole`.
pub(crate) static GRANT_PRIVILEGES: Command = Command {
    name: "grantPrivilegesToRole",
    help: "adds privileges to a role",
    rights: Rights::Database(Action::GrantRole),
    run: Run::Now(|ctx, _| change_privileges(ctx, Action::GrantRole)),
    ..Command::DEFAULT
};

/// `revokePrivilegesFromRole`.
pub(crate) static REVOKE_PRIVILEGES: Command = Command {
    name: "revokePrivilegesFromRole",
    help: "takes privileges from a role",
    rights: Rights::Database(Action::RevokeRole),
    run: Run::Now(|ctx, _| change_privileges(ctx, Action::RevokeRole)),
    ..Command::DEFAULT
};

/// `grantRolesToRole`.
pub(crate) static GRANT_ROLES: Command = Command {
    name: "grantRolesToRole",
    help: "lets a role inherit from others",
    run: Run::Now(|ctx, _| change_roles(ctx, Action::GrantRole)),
    ..Command::DEFAULT
};

/// `revokeRolesFromRole`.
pub(crate) static REVOKE_ROLES: Command = Command {
    name: "revokeRolesFromRole",
    help: "ends what a role inherits from others",
    run: Run::Now(|ctx, _| change_roles(ctx, Action::RevokeRole)),
    ..Command::DEFAULT
};

/// `rolesInfo`.
pub(crate) static INFO: Command =
    Command { name: "rolesInfo", help: "describes roles", run: Run::Now(info), ..Command::DEFAULT };

arguments! {
    struct RoleFields<'a> {
        privileges: Option<&'a RawArray> = "privileges",
        roles: Option<&'a RawArray> = "roles",
        restrictions: Option<&'a RawArray> = "authenticationRestrictions",
    }
}

arguments! {
    struct RolesInfo<'a> {
        show_privileges: Flag = "showPrivileges",
        show_built_in: Flag = "showBuiltinRoles",
        show_restrictions: Option<bool> = "showAuthenticationRestrictions",
    }
}

/// The role that the command's value names.
fn named(ctx: &Context<'_>) -> Result<Name> {
    let path = super::Path { parent: ctx.called, field: ctx.called };
    let value = ctx.value()?;
    let name = value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?;
    if name.is_empty() {
        return Err(Error::bad_value("Role name must be non-empty"));
    }
    Ok(Name::new(name, ctx.database()))
}

fn not_found(role: &Name) -> Error {
    Error::new(Code::ROLE_NOT_FOUND, format!("Role {role} not found"))
}

fn refuse_built_in(role: &Name) -> Result<()> {
    match built_in(&role.name, &role.database) {
        Some(_) => Err(Error::new(
            Code::INVALID_ROLE_MODIFICATION,
            format!("{role} is a built-in role and cannot be modified"),
        )),
        None => Ok(()),
    }
}

/// The privileges of an argument; the caller must be allowed to give them.
fn privileges(ctx: &mut Context<'_>, array: &RawArray, role: &Name) -> Result<Vec<Privilege>> {
    let mut merged = Vec::new();
    merge(&mut merged, record::parse_privileges(array)?);
    for privilege in &merged {
        let database = match &privilege.resource {
            Resource::Namespace { database, .. } => database.clone(),
            Resource::Cluster | Resource::Any => String::new(),
        };
        if role.database != "admin" && database != role.database {
            let message = "Roles on the admin database alone may have privileges on other databases or the cluster";
            return Err(Error::new(Code::INVALID_ROLE_MODIFICATION, message));
        }
        if ctx.client.login.user().is_some() && !may(ctx, Action::GrantRole, &Resource::namespace(&database, "")) {
            return Err(Error::new(Code::UNAUTHORIZED, "Not authorized to grant privileges on this resource"));
        }
    }
    Ok(merged)
}

/// Refuses roles to inherit from that don't exist, are in another database, or lead back to the role.
fn check_inherited(ctx: &mut Context<'_>, role: &Name, roles: &[Name], action: Action) -> Result<()> {
    check_roles(ctx, roles, action)?;
    if role.database != "admin" && roles.iter().any(|inherited| inherited.database != role.database) {
        let message = "Roles on the admin database alone may inherit from roles of other databases";
        return Err(Error::new(Code::INVALID_ROLE_MODIFICATION, message));
    }
    if action == Action::GrantRole && ctx.shared.users.read(|state| state.inherited(roles)).contains(role) {
        let message = format!("Granting these roles to {role} would introduce a cycle in the role graph");
        return Err(Error::new(Code::INVALID_ROLE_MODIFICATION, message));
    }
    Ok(())
}

fn create(ctx: &mut Context<'_>, _reply: &mut Writer) -> Result<()> {
    let name = named(ctx)?;
    let fields = RoleFields::parse(ctx)?;
    let missing = |field| super::Path { parent: "createRole", field }.missing();
    if built_in(&name.name, &name.database).is_some() {
        return Err(Error::bad_value("Cannot create roles with the same name as a built-in role"));
    }
    let privileges = privileges(ctx, fields.privileges.ok_or_else(|| missing("privileges"))?, &name)?;
    let roles = record::parse_names(fields.roles.ok_or_else(|| missing("roles"))?, "role", &name.database)?;
    check_inherited(ctx, &name, &roles, Action::GrantRole)?;
    ctx.shared.users.write(|state| {
        if state.roles.contains_key(&name) {
            return Err(Error::location(51002, format!("Role \"{name}\" already exists")));
        }
        if state.roles.len() >= MAX_ROLES {
            return Err(Error::bad_value(format!("there may be at most {MAX_ROLES} custom roles")));
        }
        state.roles.insert(name, Role { privileges, roles });
        Ok(())
    })
}

fn update(ctx: &mut Context<'_>, _reply: &mut Writer) -> Result<()> {
    let name = named(ctx)?;
    refuse_built_in(&name)?;
    let fields = RoleFields::parse(ctx)?;
    if fields.privileges.is_none() && fields.roles.is_none() && fields.restrictions.is_none() {
        return Err(Error::bad_value("Must specify at least one field to update in updateRole"));
    }
    let privileges = fields.privileges.map(|array| privileges(ctx, array, &name)).transpose()?;
    let roles = fields.roles.map(|array| record::parse_names(array, "role", &name.database)).transpose()?;
    if let Some(roles) = &roles {
        check_inherited(ctx, &name, roles, Action::GrantRole)?;
    }
    change(ctx, &name, |role| {
        if let Some(privileges) = privileges {
            role.privileges = privileges;
        }
        if let Some(roles) = roles {
            role.roles = roles;
        }
    })
}

fn change(ctx: &Context<'_>, name: &Name, change: impl FnOnce(&mut Role)) -> Result<()> {
    ctx.shared.users.write(|state| {
        change(state.roles.get_mut(name).ok_or_else(|| not_found(name))?);
        Ok(())
    })
}

fn drop_one(ctx: &mut Context<'_>, _reply: &mut Writer) -> Result<()> {
    let name = named(ctx)?;
    refuse_built_in(&name)?;
    super::diagnostic::NoArguments::parse(ctx)?;
    ctx.shared.users.write(|state| match remove(state, &name) {
        true => Ok(()),
        false => Err(not_found(&name)),
    })
}

/// Removes a role, also from the users and roles that have it.
fn remove(state: &mut State, name: &Name) -> bool {
    let was_there = state.roles.remove(name).is_some();
    state.users.values_mut().for_each(|user| user.roles.retain(|role| role != name));
    state.roles.values_mut().for_each(|other| other.roles.retain(|role| role != name));
    was_there
}

fn drop_all(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    super::diagnostic::NoArguments::parse(ctx)?;
    let database = ctx.database();
    let dropped = ctx.shared.users.write(|state| {
        let names: Vec<Name> = state.roles.keys().filter(|name| name.database == database).cloned().collect();
        Ok(names.iter().filter(|name| remove(state, name)).count())
    })?;
    reply.put("n", dropped as i32);
    Ok(())
}

fn change_privileges(ctx: &mut Context<'_>, action: Action) -> Result<()> {
    let name = named(ctx)?;
    refuse_built_in(&name)?;
    let fields = RoleFields::parse(ctx)?;
    let path = super::Path { parent: ctx.called, field: "privileges" };
    let array = fields.privileges.ok_or_else(|| path.missing())?;
    let privileges = match action {
        Action::GrantRole => privileges(ctx, array, &name)?,
        _ => record::parse_privileges(array)?,
    };
    change(ctx, &name, |role| {
        if action == Action::GrantRole {
            merge(&mut role.privileges, privileges);
            return;
        }
        for gone in privileges {
            for kept in role.privileges.iter_mut().filter(|kept| kept.resource == gone.resource) {
                kept.actions = kept.actions.without(gone.actions);
            }
        }
        role.privileges.retain(|privilege| !privilege.actions.is_empty());
    })
}

fn change_roles(ctx: &mut Context<'_>, action: Action) -> Result<()> {
    let name = named(ctx)?;
    refuse_built_in(&name)?;
    let fields = RoleFields::parse(ctx)?;
    let path = super::Path { parent: ctx.called, field: "roles" };
    let roles = record::parse_names(fields.roles.ok_or_else(|| path.missing())?, "role", &name.database)?;
    check_inherited(ctx, &name, &roles, action)?;
    change(ctx, &name, |role| {
        role.roles.retain(|inherited| !roles.contains(inherited));
        if action == Action::GrantRole {
            role.roles.extend(roles);
        }
    })
}

fn info(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let database = ctx.database();
    let arguments = RolesInfo::parse(ctx)?;
    if !may(ctx, Action::ViewRole, &Resource::namespace(database, "")) {
        return Err(Error::new(
            Code::UNAUTHORIZED,
            format!("not authorized on {database} to execute command rolesInfo"),
        ));
    }
    let value = ctx.value()?;
    ctx.shared.users.read(|state| {
        let names: Vec<Name> = match value {
            RawBsonRef::Array(array) => record::parse_names(array, "role", database)?,
            RawBsonRef::String(_) | RawBsonRef::Document(_) => {
                let mut one = bson::RawArrayBuf::new();
                one.push(bson::raw::RawBson::from(value));
                record::parse_names(&one, "role", database)?
            }
            other if super::number(other) == Some(1) => {
                let custom = state.roles.keys().filter(|name| name.database == database).cloned();
                let built_in = built_in_names(database).map(|name| Name::new(name, database));
                let built_in = built_in.filter(|_| arguments.show_built_in.0);
                custom.chain(built_in).collect()
            }
            _ => return Err(Error::bad_value("rolesInfo takes 1, a role's name or a list of names")),
        };
        reply.begin_array("roles");
        for name in names.iter().filter(|name| state.has_role(name)) {
            write_role(reply, state, name, arguments.show_privileges.0);
        }
        reply.end();
        Ok(())
    })
}

fn write_role(reply: &mut Writer, state: &State, name: &Name, show_privileges: bool) {
    let custom = state.roles.get(name).cloned();
    let is_built_in = custom.is_none();
    let role = custom.unwrap_or_else(|| Role {
        privileges: built_in(&name.name, &name.database).unwrap_or_default(),
        roles: Vec::new(),
    });
    reply.begin_element();
    reply.put("_id", format!("{}.{}", name.database, name.name).as_str());
    reply.put("role", name.name.as_str());
    reply.put("db", name.database.as_str());
    reply.put("isBuiltin", is_built_in);
    record::write_names(reply, "roles", "role", role.roles.iter());
    let inherited = state.inherited(&role.roles);
    record::write_names(reply, "inheritedRoles", "role", inherited.iter());
    if show_privileges {
        record::write_privileges(reply, "privileges", &role.privileges);
        record::write_privileges(reply, "inheritedPrivileges", &state.privileges(std::slice::from_ref(name)));
    }
    reply.end();
}
