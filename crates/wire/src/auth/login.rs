//! A connection's login: the SASL conversation, who is logged in, and whether they may.

use super::rights::{Action, Privilege, Resource, Rights};
use super::scram::{self, ClientFirst, Exchange, Mechanism};
use super::users::Name;
use super::{record, user_digest};
use crate::bson::Writer;
use crate::command::Context;
use crate::state::{Shared, count};
use base64::Engine as _;
use bson::RawDocument;
use bson::raw::{RawBinaryRef, RawBsonRef};
use bson::spec::BinarySubtype;
use engine::{Code, Error, Result};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What a connection keeps about its login.
pub(crate) struct Login {
    user: Option<Name>,
    conversation: Option<Conversation>,
    last_conversation: i32,
    digest: [u8; 32],
    /// What the user may do, and the generation of the users it was computed from.
    privileges: Option<(u64, Arc<Vec<Privilege>>)>,
}

impl Default for Login {
    fn default() -> Login {
        Login {
            user: None,
            conversation: None,
            last_conversation: 0,
            digest: Sha256::digest([]).into(),
            privileges: None,
        }
    }
}

impl Login {
    /// What sessions of this user are told apart by.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Who is logged in.
    pub(crate) fn user(&self) -> Option<&Name> {
        self.user.as_ref()
    }

    /// Ends the login.
    pub(crate) fn log_out(&mut self) {
        *self = Login { last_conversation: self.last_conversation, ..Login::default() };
    }

    /// What the user may do; nothing without one, or once the user was dropped.
    fn privileges(&mut self, shared: &Shared) -> Arc<Vec<Privilege>> {
        let generation = shared.users.generation();
        if let Some((known, privileges)) = &self.privileges
            && *known == generation
        {
            return privileges.clone();
        }
        let user = self.user.as_ref();
        let privileges = Arc::new(shared.users.read(|state| {
            user.and_then(|name| state.users.get(name)).map(|user| state.privileges(&user.roles)).unwrap_or_default()
        }));
        self.privileges = Some((generation, privileges.clone()));
        privileges
    }
}

struct Conversation {
    id: i32,
    user: Name,
    mechanism: Mechanism,
    skips_empty_exchange: bool,
    step: Step,
}

enum Step {
    Final(Box<Exchange>),
    Empty,
}

/// `saslStart`, of a command or within `hello`; `database` is where the user lives.
pub(crate) fn start(ctx: &mut Context<'_>, start: &RawDocument, database: &str, reply: &mut Writer) -> Result<()> {
    ctx.client.login.conversation = None;
    let name = start.get_str("mechanism").map_err(|_| Error::bad_value("saslStart names its mechanism"))?;
    let Some(mechanism) = Mechanism::by_name(name) else {
        let message =
            format!("Received authentication for mechanism {name} which is unknown or not enabled; use SCRAM-SHA-256");
        return Err(Error::new(Code::BAD_VALUE, message));
    };
    count(received(ctx.shared, mechanism), 1);
    let first = ClientFirst::parse(&payload(start)?)?;
    let user = Name::new(&first.user, database);
    let found = ctx.shared.users.read(|state| {
        let credentials = &state.users.get(&user)?.credentials;
        credentials.iter().find(|entry| entry.0 == mechanism).map(|entry| entry.1.clone())
    });
    let Some(credentials) = found else {
        tracing::warn!(connection = ctx.client.info.id, %user, mechanism = name, "login failed: no such user or mechanism");
        return Err(scram::failed());
    };
    let options = start.get("options")?.and_then(|options| options.as_document());
    let skips = options.and_then(|options| options.get_bool("skipEmptyExchange").ok()).unwrap_or(false);
    let (exchange, server_first) = Exchange::start(mechanism, first, credentials)?;
    let login = &mut ctx.client.login;
    login.last_conversation += 1;
    let id = login.last_conversation;
    let step = Step::Final(Box::new(exchange));
    login.conversation = Some(Conversation { id, user, mechanism, skips_empty_exchange: skips, step });
    write_step(reply, id, false, server_first.as_bytes());
    Ok(())
}

/// `saslContinue`.
pub(crate) fn resume(ctx: &mut Context<'_>, reply: &mut Writer) -> Result<()> {
    let Some(mut conversation) = ctx.client.login.conversation.take() else {
        return Err(Error::new(Code::PROTOCOL_ERROR, "No SASL session state found; start with saslStart"));
    };
    let id = ctx.body().get("conversationId")?.and_then(crate::command::number);
    if id != Some(i64::from(conversation.id)) {
        return Err(Error::new(Code::PROTOCOL_ERROR, "sasl: Mismatched conversation id"));
    }
    let payload = payload(ctx.body())?;
    match conversation.step {
        Step::Final(exchange) => {
            let server_final = exchange.finish(&payload).inspect_err(|error| {
                let user = &conversation.user;
                tracing::warn!(connection = ctx.client.info.id, %user, reason = %error.message, "login failed");
            })?;
            write_step(reply, conversation.id, conversation.skips_empty_exchange, server_final.as_bytes());
            if conversation.skips_empty_exchange {
                log_in(ctx, conversation.user, conversation.mechanism);
            } else {
                conversation.step = Step::Empty;
                ctx.client.login.conversation = Some(conversation);
            }
        }
        Step::Empty => {
            if !payload.is_empty() {
                return Err(Error::new(Code::PROTOCOL_ERROR, "the conversation ends with an empty message"));
            }
            write_step(reply, conversation.id, true, b"");
            log_in(ctx, conversation.user, conversation.mechanism);
        }
    }
    Ok(())
}

fn log_in(ctx: &mut Context<'_>, user: Name, mechanism: Mechanism) {
    let counter = match mechanism {
        Mechanism::Sha1 => &ctx.shared.metrics.scram_sha_1_successful,
        Mechanism::Sha256 => &ctx.shared.metrics.scram_sha_256_successful,
    };
    count(counter, 1);
    tracing::debug!(connection = ctx.client.info.id, %user, "logged in");
    let login = &mut ctx.client.login;
    login.digest = user_digest(&user.name, &user.database);
    login.privileges = None;
    login.user = Some(user.clone());
    *ctx.client.info.user.lock() = Some(user);
}

fn received(shared: &Shared, mechanism: Mechanism) -> &std::sync::atomic::AtomicU64 {
    match mechanism {
        Mechanism::Sha1 => &shared.metrics.scram_sha_1_received,
        Mechanism::Sha256 => &shared.metrics.scram_sha_256_received,
    }
}

fn payload(document: &RawDocument) -> Result<Vec<u8>> {
    match document.get("payload")? {
        Some(RawBsonRef::Binary(binary)) => Ok(binary.bytes.to_vec()),
        Some(RawBsonRef::String(text)) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|_| Error::bad_value("the payload is not base64")),
        _ => Err(Error::bad_value("the payload is binary or base64")),
    }
}

fn write_step(reply: &mut Writer, id: i32, done: bool, payload: &[u8]) {
    reply.put("conversationId", id);
    reply.put("done", done);
    reply.put("payload", RawBinaryRef { subtype: BinarySubtype::Generic, bytes: payload });
}

/// `hello` with `speculativeAuthenticate`: the first step of a conversation, without one more round trip. Where it can't be
/// taken, nothing is said about it and the client starts as usual.
pub(crate) fn speculate(ctx: &mut Context<'_>, document: &RawDocument, reply: &mut Writer) {
    if document.get("saslStart").ok().flatten().is_none() {
        return;
    }
    let database = document.get_str("db").unwrap_or("admin");
    let mut step = Writer::new();
    if start(ctx, document, database, &mut step).is_ok() {
        reply.put("speculativeAuthenticate", &step.finish_document());
    }
}

/// `hello` with `saslSupportedMechs`: the mechanisms that a user (`database.name`) has credentials for.
pub(crate) fn write_mechanisms(ctx: &Context<'_>, user: &str, reply: &mut Writer) {
    let Some((database, name)) = user.split_once('.') else { return };
    let name = Name::new(name, database);
    let mechanisms: Option<Vec<&'static str>> = ctx
        .shared
        .users
        .read(|state| state.users.get(&name).map(|user| user.credentials.iter().map(|entry| entry.0.name()).collect()));
    if let Some(mechanisms) = mechanisms {
        reply.put_strings("saslSupportedMechs", mechanisms);
    }
}

/// `connectionStatus`' reply.
pub(crate) fn write_status(ctx: &mut Context<'_>, show_privileges: bool, reply: &mut Writer) {
    let user = ctx.client.login.user().cloned();
    let roles = user.as_ref().map(|name| {
        ctx.shared.users.read(|state| match state.users.get(name) {
            Some(user) => state.inherited(&user.roles).into_iter().collect(),
            None => Vec::new(),
        })
    });
    reply.begin("authInfo");
    reply.begin_array("authenticatedUsers");
    if let Some(user) = &user {
        reply.begin_element();
        reply.put("user", user.name.as_str());
        reply.put("db", user.database.as_str());
        reply.end();
    }
    reply.end();
    reply.begin_array("authenticatedUserRoles");
    for role in roles.iter().flatten() {
        reply.begin_element();
        reply.put("role", role.name.as_str());
        reply.put("db", role.database.as_str());
        reply.end();
    }
    reply.end();
    if show_privileges {
        let privileges = ctx.client.login.privileges(ctx.shared);
        record::write_privileges(reply, "authenticatedUserPrivileges", &privileges);
    }
    reply.end();
}

/// Whether a command may run; the error that refuses it.
pub(crate) fn authorize(ctx: &mut Context<'_>) -> Result<()> {
    if !ctx.shared.requires_auth || matches!(ctx.command.rights, Rights::Anyone) {
        return Ok(());
    }
    let name = ctx.command.name;
    if ctx.client.login.user().is_none() {
        return match is_localhost_exception(ctx) {
            true => Ok(()),
            false => Err(Error::new(Code::UNAUTHORIZED, format!("Command {name} requires authentication"))),
        };
    }
    let database = ctx.database();
    let needed = match &ctx.command.rights {
        Rights::Anyone | Rights::LoggedIn => return Ok(()),
        Rights::Cluster(action) => vec![(*action, Resource::Cluster)],
        Rights::Database(action) => vec![(*action, Resource::namespace(database, ""))],
        Rights::Collection(action) => {
            // Without a collection's name the command itself refuses, with a better message.
            let Some(collection) = ctx.value()?.as_str() else { return Ok(()) };
            vec![(*action, Resource::namespace(database, collection))]
        }
        Rights::Custom(rights) => rights(ctx)?,
    };
    for (action, resource) in &needed {
        if !may(ctx, *action, resource) {
            let message =
                format!("not authorized on {database} to execute command {name}: '{}' is not granted", action.name());
            return Err(Error::new(Code::UNAUTHORIZED, message));
        }
    }
    Ok(())
}

/// Whether whoever is logged in may take an action; always where no login is required.
pub(crate) fn may(ctx: &mut Context<'_>, action: Action, on: &Resource) -> bool {
    let shared = ctx.shared;
    !shared.requires_auth || ctx.client.login.privileges(shared).iter().any(|privilege| privilege.allows(action, on))
}

/// Whether this is the creation of the first user, from this machine.
fn is_localhost_exception(ctx: &Context<'_>) -> bool {
    let creates = matches!(ctx.command.name, "createUser" | "createRole") && ctx.database() == "admin";
    creates && ctx.client.info.is_local && ctx.shared.users.read(|state| state.users.is_empty())
}
