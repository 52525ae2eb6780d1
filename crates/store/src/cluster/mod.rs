//! A MongoDB deployment through the official driver.
//!
//! Reads and writes go through the driver's typed verbs, which it repeats once after a failed connection or a changed primary;
//! definitions are commands, which it does not repeat.

mod admin;
mod bulk;
mod read;
mod session;
mod watch;
mod write;

pub(crate) use session::{ClusterSession, as_cluster};

use crate::Capabilities;
use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::options::Freshness;
use bson::{Bson, Document, doc};
use mongodb::Client;
use mongodb::error::{BulkWriteError, ErrorKind, WriteFailure};
use mongodb::options::{ClientOptions, Collation, Hint, ReadPreference, ReadPreferenceOptions, SelectionCriteria};

#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    capabilities: Capabilities,
    default_database: Option<String>,
}

impl From<mongodb::error::Error> for Error {
    fn from(error: mongodb::error::Error) -> Error {
        let mut info = None;
        let code = match &*error.kind {
            ErrorKind::Command(command) => Some(command.code),
            ErrorKind::Write(WriteFailure::WriteError(write)) => {
                info.clone_from(&write.details);
                Some(write.code)
            }
            ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => Some(concern.code),
            ErrorKind::InsertMany(many) => {
                many.write_errors.as_ref().and_then(|errors| errors.first()).map(|error| error.code)
            }
            ErrorKind::BulkWrite(BulkWriteError { write_errors, .. }) => {
                write_errors.iter().min_by_key(|failed| failed.0).map(|failed| failed.1.code)
            }
            _ => None,
        };
        let message = match &*error.kind {
            ErrorKind::Command(command) => command.message.clone(),
            ErrorKind::Write(WriteFailure::WriteError(write)) => write.message.clone(),
            kind => kind.to_string(),
        };
        Error::labelled(code, message, error.labels().iter().cloned().collect()).with_info(info)
    }
}

impl Cluster {
    pub(crate) async fn connect(url: &str) -> Result<Cluster> {
        let mut options = ClientOptions::parse(url).await?;
        options.app_name.get_or_insert_with(|| "sheaf".to_owned());
        let default_database = options.default_database.clone();
        let client = Client::with_options(options)?;
        let admin = client.database("admin");
        let hello = admin.run_command(doc! { "hello": 1 }).await?;
        let build = admin.run_command(doc! { "buildInfo": 1 }).await.unwrap_or_default();
        let capabilities = probed(&hello, &build);
        Ok(Cluster { client, capabilities, default_database })
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    pub(crate) fn default_database(&self) -> Option<&str> {
        self.default_database.as_deref()
    }

    fn of(&self, collection: &Collection) -> mongodb::Collection<Document> {
        self.client.database(&collection.database).collection(&collection.name)
    }
}

/// What a deployment says of itself.
fn probed(hello: &Document, build: &Document) -> Capabilities {
    let sharded = hello.get_str("msg").ok() == Some("isdbgrid");
    let replicated = sharded || hello.contains_key("setName");
    Capabilities {
        transactions: replicated,
        change_streams: replicated,
        retryable_writes: replicated && hello.contains_key("logicalSessionTimeoutMinutes"),
        sharded,
        hooks: false,
        sheaf: build.contains_key("sheafVersion"),
        wire_version: hello.get_i32("maxWireVersion").unwrap_or(0),
    }
}

/// Runs an action of the driver, in a session where there is one.
macro_rules! run {
    ($action:expr, $session:expr) => {
        match $session {
            Some(session) => $action.session(&mut session.session).await?,
            None => $action.await?,
        }
    };
}
use run;

fn hint(hint: Option<Bson>) -> Option<Hint> {
    match hint? {
        Bson::Document(keys) => Some(Hint::Keys(keys)),
        Bson::String(name) => Some(Hint::Name(name)),
        other => Some(Hint::Name(other.to_string())),
    }
}

fn collation(collation: Option<Document>) -> Result<Option<Collation>> {
    Ok(collation.map(bson::deserialize_from_document).transpose()?)
}

fn selection(freshness: Freshness) -> Option<SelectionCriteria> {
    match freshness {
        Freshness::Latest => None,
        Freshness::Within(lag) => {
            let options = ReadPreferenceOptions::builder().max_staleness(lag).build();
            let preference = ReadPreference::SecondaryPreferred { options: Some(options) };
            Some(SelectionCriteria::ReadPreference(preference))
        }
    }
}
