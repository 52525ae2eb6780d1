//! Users: `createUser`, `updateUser`, `dropUser`, `dropAllUsersFromDatabase`, `grantRolesToUser`, `revokeRolesFromUser`,
//! `usersInfo`, `invalidateUserCache`.

use super::{Command, Context, Flag, Run, arguments};
use crate::auth::{Action, Credentials, Mechanism, Name, Resource, Rights, State, User, may, record};
use crate::bson::Writer;
use bson::raw::{RawBinaryRef, RawBsonRef};
use bson::spec::BinarySubtype;
use bson::{RawArray, RawDocument};
use engine::{Code, Error, Result};

const MAX_USERS: usize = 100_000;

/// `createUser`.
pub(crate) static CREATE: Command = Command {
    name: "createUser",
    help: "creates a user",
    rights: Rights::Database(Action::CreateUser),
    run: Run::Now(create),
    ..Command::DEFAULT
};

/// `updateUser`.
pub(crate) static UPDATE: Command = Command {
    name: "updateUser",
    help: "changes a user's password, roles or data",
    run: Run::Now(update),
    ..Command::DEFAULT
};

/// `dropUser`.
pub(crate) static DROP: Command = Command {
    name: "dropUser",
    help: "removes a user",
    rights: Rights::Database(Action::DropUser),
    run: Run::Now(drop_one),
    ..Command::DEFAULT
};

/// `dropAllUsersFromDatabase`.
pub(crate) static DROP_ALL: Command = Command {
    name: "dropAllUsersFromDatabase",
    help: "removes all users of a database",
    rights: Rights::Database(Action::DropUser),
    run: Run::Now(drop_all),
    ..Command::DEFAULT
};

/// `grantRolesToUser`.
pub(crate) static GRANT: Command = Command {
    name: "grantRolesToUser",
    help: "gives a user roles",
    run: Run::Now(|ctx, _| change_roles(ctx, Action::GrantRole)),
    ..Command::DEFAULT
};

/// `revokeRolesFromUser`.
pub(crate) static REVOKE: Command = Command {
    name: "revokeRolesFromUser",
    help: "takes roles from a user",
    run: Run::Now(|ctx, _| change_roles(ctx, Action::RevokeRole)),
    ..Command::DEFAULT
};

/// `usersInfo`.
pub(crate) static INFO: Command =
    Command { name: "usersInfo", help: "describes users", run: Run::Now(info), ..Command::DEFAULT };

/// `invalidateUserCache`.
pub(crate) static INVALIDATE: Command = Command {
    name: "invalidateUserCache",
    help: "accepted; changes of users take effect at once",
    admin_only: true,
    rights: Rights::Cluster(Action::InvalidateUserCache),
    run: Run::Now(|ctx, _| super::diagnostic::NoArguments::parse(ctx).map(|_| ())),
    ..Command::DEFAULT
};

arguments! {
    struct UserFields<'a> {
        password: Option<&'a str> = "pwd",
        roles: Option<&'a RawArray> = "roles",
        custom_data: Option<&'a RawDocument> = "customData",
        mechanisms: Option<&'a RawArray> = "mechanisms",
        restrictions: Option<&'a RawArray> = "authenticationRestrictions",
        digest_password: Option<bool> = "digestPassword",
    }
}

arguments! {
    struct RoleList<'a> {
        roles: &'a RawArray = "roles",
    }
}

arguments! {
    struct UsersInfo<'a> {
        show_credentials: Flag = "showCredentials",
        show_custom_data: Option<bool> = "showCustomData",
        show_privileges: Flag = "showPrivileges",
        show_restrictions: Option<bool> = "showAuthenticationRestrictions",
        filter: Option<&'a RawDocument> = "filter",
    }
}

/// The user that the command's value names.
fn named(ctx: &Context<'_>) -> Result<Name> {
    let path = super::Path { parent: ctx.called, field: ctx.called };
    let value = ctx.value()?;
    let name = value.as_str().ok_or_else(|| path.wrong_type(value, &["string"]))?;
    if name.is_empty() {
        return Err(Error::bad_value("User document needs 'user' field to be non-empty"));
    }
    Ok(Name::new(name, ctx.database()))
}

fn not_found(user: &Name) -> Error {
    Error::new(Code::USER_NOT_FOUND, format!("User \"{user}\" not found"))
}

/// Refuses roles that don't exist, and roles that the caller may not give or take.
pub(crate) fn check_roles(ctx: &mut Context<'_>, roles: &[Name], action: Action) -> Result<()> {
    let missing = ctx.shared.users.read(|state| roles.iter().find(|role| !state.has_role(role)).cloned());
    if let Some(role) = missing {
        return Err(Error::new(Code::ROLE_NOT_FOUND, format!("Could not find role: {role}")));
    }
    // Whoever creates the first user is not logged in yet.
    if ctx.client.login.user().is_none() {
        return Ok(());
    }
    for role in roles {
        if !may(ctx, action, &Resource::namespace(&role.database, "")) {
            let verb = if action == Action::GrantRole { "grant" } else { "revoke" };
            return Err(Error::new(Code::UNAUTHORIZED, format!("Not authorized to {verb} role: {role}")));
        }
    }
    Ok(())
}

fn credentials(fields: &UserFields<'_>, user: &str, password: &str) -> Result<Vec<(Mechanism, Credentials)>> {
    if password.is_empty() {
        return Err(Error::new(Code(50687), "Password cannot be empty"));
    }
    if fields.digest_password == Some(false) {
        return Err(Error::bad_value("passwords are digested by the server: leave out digestPassword"));
    }
    let mut mechanisms = vec![Mechanism::Sha1, Mechanism::Sha256];
    if let Some(wanted) = fields.mechanisms {
        mechanisms.clear();
        for name in wanted {
            let name = name?;
            let mechanism = name
                .as_str()
                .and_then(Mechanism::by_name)
                .ok_or_else(|| Error::bad_value(format!("Unknown auth mechanism '{}'", name.as_str().unwrap_or(""))))?;
            mechanisms.push(mechanism);
        }
        if mechanisms.is_empty() {
            return Err(Error::bad_value("mechanisms field must not be empty"));
        }
    }
    mechanisms.into_iter().map(|mechanism| Ok((mechanism, Credentials::new(mechanism, user, password)?))).collect()
}

fn refuse_restrictions(restrictions: Option<&RawArray>) -> Result<()> {
    match restrictions {
        Some(restrictions) if !restrictions.is_empty() => Err(Error::new(
            Code::COMMAND_NOT_SUPPORTED,
            "authenticationRestrictions are not supported; restrict addresses with a firewall",
        )),
        _ => Ok(()),
    }
}

fn create(ctx: &mut Context<'_>, _reply: &mut Writer) -> Result<()> {
    let name = named(ctx)?;
    let fields = UserFields::parse(ctx)?;
    let roles = fields.roles.ok_or_else(|| super::Path { parent: ctx.called, field: "roles" }.missing())?;
    refuse_restrictions(fields.restrictions)?;
    if matches!(name.database.as_str(), "local" | "$external") {
        return Err(Error::bad_value(format!("Cannot create users in the {} database", name.database)));
    }
    let Some(password) = fields.password else {
        let message =
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db";
        return Err(Error::bad_value(message));
    };
    let roles = record::parse_names(roles, "role", &name.database)?;
    check_roles(ctx, &roles, Action::GrantRole)?;
    let credentials = credentials(&fields, &name.name, password)?;
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| Error::internal(format!("no randomness: {error}")))?;
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    let user = User { id, credentials, roles, custom_data: fields.custom_data.map(ToOwned::to_owned) };
    ctx.shared.users.write(|state| {
        if state.users.contains_key(&name) {
            return Err(Error::location(51003, format!("User \"{name}\" already exists")));
        }
        if state.users.len() >= MAX_USERS {
            return Err(Error::bad_value(format!("there may be at most {MAX_USERS} users")));
        }
        tracing::info!(user = %name, "user created");
        state.users.insert(name, user);
        Ok(())
    })
}

fn update(ctx: &mut Context<'_>, _reply: &mut Writer) -> Result<()> {
    let name = named(ctx)?;
    let fields = UserFields::parse(ctx)?;
    refuse_restrictions(fields.restrictions)?;
    if fields.password.is_none()
        && fields.roles.is_none()
        && fields.custom_data.is_none()
        && fields.mechanisms.is_none()
    {
        return Err(Error::bad_value("Must specify at least one field to update in updateUser"));
    }
    let own = ctx.client.login.user() == Some(&name);
    let need = |ctx: &mut Context<'_>, any: Action, of_own: Action| {
        let on = Resource::namespace(&name.database, "");
        match may(ctx, any, &on) || own && may(ctx, of_own, &on) {
            true => Ok(()),
            false => Err(Error::new(Code::UNAUTHORIZED, format!("Not authorized to change user: {name}"))),
        }
    };
    if fields.password.is_some() || fields.mechanisms.is_some() {
        need(ctx, Action::ChangePassword, Action::ChangeOwnPassword)?;
    }
    if fields.custom_data.is_some() {
        need(ctx, Action::ChangeCustomData, Action::ChangeOwnCustomData)?;
    }
    let roles = match fields.roles {
        Some(roles) => {
            need(ctx, Action::RevokeRole, Action::RevokeRole)?;
            let roles = record::parse_names(roles, "role", &name.database)?;
            check_roles(ctx, &roles, Action::GrantRole)?;
            Some(roles)
        }
        None => None,
    };
    let credentials = fields.password.map(|password| credentials(&fields, &name.name, password)).transpose()?;
    if credentials.is_none() && fields.mechanisms.is_some() {
        return Err(Error::bad_value("give the password too, to change the mechanisms"));
    }
    ctx.shared.users.write(|state| {
        let user = state.users.get_mut(&name).ok_or_else(|| not_found(&name))?;
        if let Some(credentials) = credentials {
            user.credentials = credentials;
        }
        if let Some(roles) = roles {
            user.roles = roles;
        }
        if let Some(custom_data) = fields.custom_data {
            user.custom_data = Some(custom_data.to_owned());
        }
        Ok(())
    })
}

fn drop_one(ctx: &mut Context<'_>, _reply: &mut Writer) -> Result<()> {
    let name = named(ctx)?;
    super::diagnostic::NoArguments::parse(ctx)?;
    ctx.shared.users.write(|state| match state.users.remove(&name) {
        Some(_) => Ok(()),
        None => Err(not_found(&name)),
    })
}

fn drop_all(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    super::diagnostic::NoArguments::parse(ctx)?;
    let dropped = ctx.shared.users.write(|state| {
        let before = state.users.len();
        state.users.retain(|name, _| name.database != ctx.generic.database);
        Ok(before - state.users.len())
    })?;
    reply.put("n", dropped as i32);
    Ok(())
}

fn change_roles(ctx: &mut Context<'_>, action: Action) -> Result<()> {
    let name = named(ctx)?;
    let roles = record::parse_names(RoleList::parse(ctx)?.roles, "role", &name.database)?;
    check_roles(ctx, &roles, action)?;
    ctx.shared.users.write(|state| {
        let user = state.users.get_mut(&name).ok_or_else(|| not_found(&name))?;
        user.roles.retain(|role| !roles.contains(role));
        if action == Action::GrantRole {
            user.roles.extend(roles);
        }
        Ok(())
    })
}

/// Which users `usersInfo` is about.
enum Wanted {
    Everywhere,
    Database,
    Named(Vec<Name>),
}

fn wanted(ctx: &Context<'_>) -> Result<Wanted> {
    let database = ctx.database();
    let one = |value: RawBsonRef<'_>| -> Result<Vec<Name>> {
        let mut holder = bson::RawArrayBuf::new();
        holder.push(bson::raw::RawBson::from(value));
        record::parse_names(&holder, "user", database)
    };
    match ctx.value()? {
        RawBsonRef::Document(document) if document.get_bool("forAllDBs").unwrap_or(false) => Ok(Wanted::Everywhere),
        value @ (RawBsonRef::Document(_) | RawBsonRef::String(_)) => one(value).map(Wanted::Named),
        RawBsonRef::Array(array) => record::parse_names(array, "user", database).map(Wanted::Named),
        value if super::number(value) == Some(1) => Ok(Wanted::Database),
        _ => Err(Error::bad_value("usersInfo takes 1, a user's name, a list of names or {forAllDBs: true}")),
    }
}

fn info(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let wanted = wanted(ctx)?;
    let arguments = UsersInfo::parse(ctx)?;
    let database = ctx.database();
    let own = ctx.client.login.user().cloned();
    let only_own = matches!(&wanted, Wanted::Named(names) if names.iter().all(|name| Some(name) == own.as_ref()));
    let everywhere = matches!(wanted, Wanted::Everywhere);
    if !only_own && !may(ctx, Action::ViewUser, &Resource::namespace(if everywhere { "" } else { database }, "")) {
        return Err(Error::new(
            Code::UNAUTHORIZED,
            format!("not authorized on {database} to execute command usersInfo"),
        ));
    }
    ctx.shared.users.read(|state| {
        reply.begin_array("users");
        for (name, user) in &state.users {
            let listed = match &wanted {
                Wanted::Everywhere => true,
                Wanted::Database => name.database == database,
                Wanted::Named(names) => names.contains(name),
            };
            if listed {
                write_user(reply, state, name, user, &arguments);
            }
        }
        reply.end();
    });
    Ok(())
}

fn write_user(reply: &mut Writer, state: &State, name: &Name, user: &User, show: &UsersInfo<'_>) {
    reply.begin_element();
    reply.put("_id", format!("{}.{}", name.database, name.name).as_str());
    reply.put("userId", RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &user.id });
    reply.put("user", name.name.as_str());
    reply.put("db", name.database.as_str());
    if show.show_credentials.0 {
        record::write_credentials(reply, user);
    }
    if show.show_custom_data != Some(false) {
        reply.put_some("customData", user.custom_data.as_ref());
    }
    record::write_names(reply, "roles", "role", user.roles.iter());
    if show.show_privileges.0 {
        let inherited = state.inherited(&user.roles);
        record::write_names(reply, "inheritedRoles", "role", inherited.iter());
        record::write_privileges(reply, "inheritedPrivileges", &state.privileges(&user.roles));
    }
    reply.put_strings("mechanisms", user.credentials.iter().map(|entry| entry.0.name()));
    reply.end();
}
