//! Users and roles as the documents of `admin.system.users` and `admin.system.roles`, in MongoDB's shape.

use super::rights::{Action, Actions, Privilege, Resource};
use super::scram::{Credentials, Mechanism};
use super::users::{Name, Role, User};
use crate::bson::Writer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::raw::RawBinaryRef;
use bson::spec::BinarySubtype;
use bson::{RawArray, RawDocument, RawDocumentBuf};
use engine::{Error, Result};

const MECHANISMS: [Mechanism; 2] = [Mechanism::Sha1, Mechanism::Sha256];

/// A user's document.
pub(crate) fn user_document(name: &Name, user: &User) -> RawDocumentBuf {
    let mut out = Writer::new();
    out.put("_id", format!("{}.{}", name.database, name.name).as_str());
    out.put("userId", RawBinaryRef { subtype: BinarySubtype::Uuid, bytes: &user.id });
    out.put("user", name.name.as_str());
    out.put("db", name.database.as_str());
    write_credentials(&mut out, user);
    out.put_some("customData", user.custom_data.as_ref());
    write_names(&mut out, "roles", "role", user.roles.iter());
    out.finish_document()
}

/// A user's keys, by mechanism.
pub(crate) fn write_credentials(out: &mut Writer, user: &User) {
    out.begin("credentials");
    for (mechanism, credentials) in &user.credentials {
        out.begin(mechanism.name());
        out.put("iterationCount", credentials.iterations as i32);
        out.put("salt", BASE64.encode(&credentials.salt).as_str());
        out.put("storedKey", BASE64.encode(&credentials.stored_key).as_str());
        out.put("serverKey", BASE64.encode(&credentials.server_key).as_str());
        out.end();
    }
    out.end();
}

/// An array of `{<kind>: name, db: database}`.
pub(crate) fn write_names<'n>(out: &mut Writer, key: &str, kind: &str, names: impl Iterator<Item = &'n Name>) {
    out.begin_array(key);
    for name in names {
        out.begin_element();
        out.put(kind, name.name.as_str());
        out.put("db", name.database.as_str());
        out.end();
    }
    out.end();
}

/// A user from its document.
pub(crate) fn parse_user(document: &RawDocument) -> Result<(Name, User)> {
    let name = Name::new(document.get_str("user")?, document.get_str("db")?);
    let id = document.get_binary("userId").ok().and_then(|id| id.bytes.try_into().ok()).unwrap_or_default();
    let mut credentials = Vec::new();
    let all = document.get_document("credentials")?;
    for mechanism in MECHANISMS {
        if let Ok(found) = all.get_document(mechanism.name()) {
            credentials.push((mechanism, parse_credentials(found)?));
        }
    }
    let custom_data = document.get_document("customData").ok().map(ToOwned::to_owned);
    let roles = parse_names(document.get_array("roles")?, "role", &name.database)?;
    Ok((name, User { id, credentials, roles, custom_data }))
}

fn parse_credentials(document: &RawDocument) -> Result<Credentials> {
    let bytes = |field: &str| -> Result<Vec<u8>> {
        let text = document.get_str(field)?;
        BASE64.decode(text).map_err(|_| Error::bad_value(format!("credentials: '{field}' is not base64")))
    };
    let iterations = document.get_i32("iterationCount")?;
    let iterations = u32::try_from(iterations).map_err(|_| Error::bad_value("credentials: negative iterationCount"))?;
    Ok(Credentials {
        salt: bytes("salt")?,
        iterations,
        stored_key: bytes("storedKey")?,
        server_key: bytes("serverKey")?,
    })
}

/// Names given as strings (of `database`) or as `{<kind>: name, db: database}`.
pub(crate) fn parse_names(array: &RawArray, kind: &str, database: &str) -> Result<Vec<Name>> {
    let mut names = Vec::new();
    for element in array {
        let element = element?;
        let name = match (element.as_str(), element.as_document()) {
            (Some(name), _) => Name::new(name, database),
            (None, Some(document)) => {
                let missing = |field: &str| {
                    Error::new(
                        engine::Code::NO_SUCH_KEY,
                        format!("Missing expected field \"{field}\" in a {kind}'s name"),
                    )
                };
                let name = document.get_str(kind).map_err(|_| missing(kind))?;
                Name::new(name, document.get_str("db").map_err(|_| missing("db"))?)
            }
            _ => return Err(Error::bad_value(format!("{kind} names must be either strings or objects"))),
        };
        if name.name.is_empty() {
            return Err(Error::bad_value(format!("{kind} names must be non-empty")));
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// A custom role's document.
pub(crate) fn role_document(name: &Name, role: &Role) -> RawDocumentBuf {
    let mut out = Writer::new();
    out.put("_id", format!("{}.{}", name.database, name.name).as_str());
    out.put("role", name.name.as_str());
    out.put("db", name.database.as_str());
    write_privileges(&mut out, "privileges", &role.privileges);
    write_names(&mut out, "roles", "role", role.roles.iter());
    out.finish_document()
}

/// A custom role from its document.
pub(crate) fn parse_role(document: &RawDocument) -> Result<(Name, Role)> {
    let name = Name::new(document.get_str("role")?, document.get_str("db")?);
    let privileges = parse_privileges(document.get_array("privileges")?)?;
    let roles = parse_names(document.get_array("roles")?, "role", &name.database)?;
    Ok((name, Role { privileges, roles }))
}

/// An array of privileges.
pub(crate) fn write_privileges(out: &mut Writer, key: &str, privileges: &[Privilege]) {
    out.begin_array(key);
    for privilege in privileges {
        out.begin_element();
        out.begin("resource");
        match &privilege.resource {
            Resource::Cluster => out.put("cluster", true),
            Resource::Any => out.put("anyResource", true),
            Resource::Namespace { database, collection } => {
                out.put("db", database.as_str());
                out.put("collection", collection.as_str());
            }
        }
        out.end();
        out.put_strings("actions", privilege.actions.iter().map(Action::name));
        out.end();
    }
    out.end();
}

/// Privileges from an array of `{resource, actions}`.
pub(crate) fn parse_privileges(array: &RawArray) -> Result<Vec<Privilege>> {
    let mut privileges = Vec::new();
    for element in array {
        let malformed =
            |reason: &str| Error::failed_to_parse(format!("a privilege is {{resource, actions}}: {reason}"));
        let document = element?.as_document().ok_or_else(|| malformed("it is no document"))?;
        let resource = document.get_document("resource").map_err(|_| malformed("it has no resource"))?;
        let actions = document.get_array("actions").map_err(|_| malformed("it has no actions"))?;
        let mut names = Vec::new();
        for action in actions {
            let name = action?.as_str().ok_or_else(|| malformed("actions are strings"))?;
            names.push(
                Action::by_name(name)
                    .ok_or_else(|| Error::bad_value(format!("Unrecognized action privilege string: {name}")))?,
            );
        }
        if names.is_empty() {
            return Err(malformed("it allows no action"));
        }
        privileges.push(Privilege { resource: parse_resource(resource)?, actions: Actions::of(&names) });
    }
    Ok(privileges)
}

fn parse_resource(document: &RawDocument) -> Result<Resource> {
    let is = |field: &str| document.get_bool(field).unwrap_or(false);
    let names = (document.get_str("db"), document.get_str("collection"));
    match (is("cluster"), is("anyResource"), names) {
        (true, false, (Err(_), Err(_))) => Ok(Resource::Cluster),
        (false, true, (Err(_), Err(_))) => Ok(Resource::Any),
        (false, false, (Ok(database), Ok(collection))) => Ok(Resource::namespace(database, collection)),
        _ => Err(Error::failed_to_parse(
            "a resource is one of {db, collection}, {cluster: true} and {anyResource: true}",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_roles_come_back_from_their_documents() {
        let keys = Credentials { salt: vec![1], iterations: 5, stored_key: vec![2, 3], server_key: vec![4] };
        let user = User {
            id: [9; 16],
            credentials: vec![(Mechanism::Sha256, keys)],
            roles: vec![Name::new("read", "shop"), Name::new("custom", "admin")],
            custom_data: None,
        };
        let name = Name::new("ann", "shop");
        let (read_name, read) = parse_user(&user_document(&name, &user)).expect("parses");
        assert_eq!((read_name, read.id, &read.roles), (name, user.id, &user.roles));
        assert_eq!(read.credentials, user.credentials);
        let role = Role {
            privileges: vec![
                Privilege { resource: Resource::Cluster, actions: Actions::of(&[Action::Top]) },
                Privilege { resource: Resource::namespace("shop", ""), actions: Actions::of(&[Action::Find]) },
            ],
            roles: vec![Name::new("read", "shop")],
        };
        let name = Name::new("custom", "admin");
        let (read_name, read) = parse_role(&role_document(&name, &role)).expect("parses");
        assert_eq!((read_name, read.privileges, read.roles), (name, role.privileges, role.roles));
    }
}
