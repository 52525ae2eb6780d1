//! `sheaf serve`: the MongoDB port over a folder.
//!
//! A setting comes from, in this order: the command line, the environment (`SHEAF_…`), the configuration file (TOML, keys as
//! the flags are called), the default.

use crate::log::{self, Format};
use crate::memory;
use crate::metrics::{self, Pages, Sources};
use crate::web;
use clap::Args;
use engine::Engine;
use futures_util::FutureExt;
use model::keep::active;
use model::keep::service::Service;
use serde::Deserialize;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use store::Store;
use tokio::signal::unix::{SignalKind, signal};
use wire::{Address, Config, Listen, Server, Tls};

const DEFAULT_DATA: &str = "data";
const DEFAULT_PORT: u16 = 27017;
const DEFAULT_BIND: &str = "127.0.0.1";
const DEFAULT_LOG_LEVEL: &str = "info";

/// The flags.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Arguments {
    /// Folder that holds the data (default: ./data)
    #[arg(long, value_name = "DIR", env = "SHEAF_DATA")]
    data: Option<PathBuf>,
    /// Serve the HTTP API alone, on a MongoDB deployment by its URL instead of a folder. Several processes may serve one
    /// deployment
    #[arg(long, value_name = "URL", env = "SHEAF_STORE", conflicts_with = "data", requires = "http_port")]
    store: Option<String>,
    /// TCP port (default: 27017; 0 takes any free one)
    #[arg(long, value_name = "N", env = "SHEAF_PORT")]
    port: Option<u16>,
    /// Addresses to listen on, with commas between (default: 127.0.0.1). Beyond loopback, clients must authenticate
    #[arg(long, value_name = "ADDRESS", env = "SHEAF_BIND", value_delimiter = ',')]
    bind: Vec<String>,
    /// Unix socket to listen on as well
    #[arg(long, value_name = "PATH", env = "SHEAF_UNIX_SOCKET")]
    unix_socket: Option<PathBuf>,
    /// Require authentication on loopback too
    #[arg(long, env = "SHEAF_AUTH")]
    auth: bool,
    /// PEM file with certificate and private key; turns on TLS
    #[arg(long, value_name = "FILE", env = "SHEAF_TLS_CERT_KEY_FILE")]
    tls_cert_key_file: Option<PathBuf>,
    /// Accept plain connections beside TLS ones
    #[arg(long, env = "SHEAF_TLS_OPTIONAL")]
    tls_optional: bool,
    /// host:port that clients shall use (default: the address they came by)
    #[arg(long, value_name = "HOST:PORT", env = "SHEAF_ADVERTISE")]
    advertise: Option<String>,
    /// Name of the one-member replica set (default: sheaf)
    #[arg(long, value_name = "NAME", env = "SHEAF_SET_NAME")]
    set_name: Option<String>,
    /// Most connections at once (default: 20000)
    #[arg(long, value_name = "N", env = "SHEAF_MAX_CONNECTIONS")]
    max_connections: Option<usize>,
    /// Port for Prometheus (/metrics) and health (/health), on the first address listened on (0 takes any free one)
    #[arg(long, value_name = "N", env = "SHEAF_METRICS_PORT")]
    metrics_port: Option<u16>,
    /// Size of a document, in bytes, from which on it is too near to the limit of 16 MiB (default: 12582912)
    #[arg(long, value_name = "BYTES", env = "SHEAF_DOCUMENT_ALARM")]
    document_alarm: Option<u64>,
    /// Memory for the caches of the tables, in bytes (default: a quarter of the memory there is, at least 320 MiB)
    #[arg(long, value_name = "BYTES", env = "SHEAF_CACHE_BYTES", value_parser = clap::value_parser!(u64).range(16 << 20..))]
    cache_bytes: Option<u64>,
    /// The change log is kept up to this size, in bytes, for change streams and backups (default: 1 GiB)
    #[arg(long, value_name = "BYTES", env = "SHEAF_LOG_RETAIN_BYTES")]
    log_retain_bytes: Option<u64>,
    /// And at most for so many seconds (default: no limit). Older resume tokens are refused with 286
    #[arg(long, value_name = "SECONDS", env = "SHEAF_LOG_RETAIN_SECONDS")]
    log_retain_seconds: Option<u32>,
    /// Log lines for people or as JSON (default: human)
    #[arg(long, value_name = "FORMAT", env = "SHEAF_LOG_FORMAT")]
    log_format: Option<Format>,
    /// Enable configureFailPoint, for drivers' own tests
    #[arg(long, hide = true, env = "SHEAF_ENABLE_TEST_COMMANDS")]
    enable_test_commands: bool,
    /// What is logged, e.g. info or wire=debug,engine=info (default: info)
    #[arg(long, value_name = "FILTER", env = "SHEAF_LOG")]
    log_level: Option<String>,
    /// Model to keep, and for which database (default: what the file or folder is called); may be given several times.
    /// A model that was applied before is kept without it
    #[arg(long, value_name = "PATH[=DATABASE]")]
    model: Vec<String>,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE", env = "SHEAF_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    web: web::Arguments,
}

/// The configuration file.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct File {
    data: Option<PathBuf>,
    port: Option<u16>,
    bind: Vec<String>,
    unix_socket: Option<PathBuf>,
    auth: bool,
    tls_cert_key_file: Option<PathBuf>,
    tls_optional: bool,
    advertise: Option<String>,
    set_name: Option<String>,
    max_connections: Option<usize>,
    metrics_port: Option<u16>,
    document_alarm: Option<u64>,
    cache_bytes: Option<u64>,
    log_retain_bytes: Option<u64>,
    log_retain_seconds: Option<u32>,
    log_format: Option<Format>,
    log_level: Option<String>,
    http: web::Arguments,
    model: Vec<String>,
}

/// Why serving could not start.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration file can't be used.
    ConfigFile(PathBuf, String),
    /// The log can't be started.
    Log(String),
    /// The folder can't be opened.
    Engine(PathBuf, engine::Error),
    /// The folder could not be closed in order.
    Close(engine::Error),
    /// The server can't be started.
    Server(wire::ConfigError),
    /// The HTTP API can't be started.
    Http(String),
    /// A model can't be kept.
    Model(String, String),
    /// The demo's scene went wrong.
    Demo(String),
    /// The system refuses something we need.
    System(std::io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::ConfigFile(path, reason) => write!(f, "configuration file {}: {reason}", path.display()),
            Failure::Log(reason) => write!(f, "logging: {reason}"),
            Failure::Engine(folder, error) => write!(f, "can't open the folder {}: {error}", folder.display()),
            Failure::Close(error) => write!(f, "the folder could not be closed in order: {error}"),
            Failure::Model(model, reason) => write!(f, "the model {model} can't be kept: {reason}"),
            Failure::Demo(reason) => write!(f, "the demo failed: {reason}"),
            Failure::Http(reason) => f.write_str(reason),
            Failure::Server(error) => write!(f, "{error}"),
            Failure::System(error) => write!(f, "{error}"),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::System(error)
    }
}

impl Arguments {
    /// Fills what was not given from the configuration file.
    fn with_file(mut self) -> Result<Arguments, Failure> {
        let Some(path) = &self.config else { return Ok(self) };
        let file = read_file(path)?;
        self.data = self.data.or(file.data);
        self.port = self.port.or(file.port);
        if self.bind.is_empty() {
            self.bind = file.bind;
        }
        self.unix_socket = self.unix_socket.or(file.unix_socket);
        self.auth |= file.auth;
        self.tls_cert_key_file = self.tls_cert_key_file.or(file.tls_cert_key_file);
        self.tls_optional |= file.tls_optional;
        self.advertise = self.advertise.or(file.advertise);
        self.set_name = self.set_name.or(file.set_name);
        self.max_connections = self.max_connections.or(file.max_connections);
        self.metrics_port = self.metrics_port.or(file.metrics_port);
        self.document_alarm = self.document_alarm.or(file.document_alarm);
        self.cache_bytes = self.cache_bytes.or(file.cache_bytes);
        self.log_retain_bytes = self.log_retain_bytes.or(file.log_retain_bytes);
        self.log_retain_seconds = self.log_retain_seconds.or(file.log_retain_seconds);
        self.log_format = self.log_format.or(file.log_format);
        self.log_level = self.log_level.or(file.log_level);
        self.web.with_file(file.http);
        if self.model.is_empty() {
            self.model = file.model;
        }
        Ok(self)
    }

    fn server_config(&self) -> Config {
        let port = self.port.unwrap_or(DEFAULT_PORT);
        let tcp = |host: &str| Listen::Tcp { host: host.to_owned(), port };
        let mut listen: Vec<Listen> = self.bind.iter().map(|host| tcp(host)).collect();
        if listen.is_empty() {
            listen.push(tcp(DEFAULT_BIND));
        }
        listen.extend(self.unix_socket.clone().map(Listen::Unix));
        let default = Config::default();
        Config {
            listen,
            tls: self
                .tls_cert_key_file
                .clone()
                .map(|certificate_key_file| Tls { certificate_key_file, required: !self.tls_optional }),
            auth: self.auth,
            advertise: self.advertise.clone(),
            set_name: self.set_name.clone().unwrap_or(default.set_name),
            max_connections: self.max_connections.unwrap_or(default.max_connections),
            test_commands: self.enable_test_commands,
            arguments: std::env::args().collect(),
            ..Config::default()
        }
    }
}

fn read_file(path: &Path) -> Result<File, Failure> {
    let failed = |reason: String| Failure::ConfigFile(path.to_owned(), reason);
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    toml::from_str(&text).map_err(|error| failed(error.to_string()))
}

/// Serves until the process is told to stop.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let arguments = arguments.with_file()?;
    let level = arguments.log_level.as_deref().unwrap_or(DEFAULT_LOG_LEVEL);
    log::start(arguments.log_format.unwrap_or_default(), level).map_err(Failure::Log)?;
    if let Some(url) = &arguments.store {
        return serve_deployment(&arguments, url);
    }
    let folder = arguments.data.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_DATA));
    let opened = active::open(&folder, engine_options(&arguments));
    let (engine, models) = opened.map_err(|error| Failure::Engine(folder, error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let store = store::Store::embedded(engine.clone());
    for model in &arguments.model {
        runtime.block_on(apply_model(&store, model)).map_err(|reason| Failure::Model(model.clone(), reason))?;
    }
    let service =
        Service::start(&engine, &models).map_err(|error| Failure::Model("sheaf.models".into(), error.to_string()))?;
    let kept = models.databases();
    let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
    let service = Some(Arc::new(service));
    runtime.block_on(serve(arguments, engine.clone(), &kept, service.clone()))?;
    drop(runtime);
    drop(service);
    engine.close().map_err(Failure::Close)
}

/// Serves the HTTP API on a deployment until the process is told to stop.
fn serve_deployment(arguments: &Arguments, url: &str) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = stop_signal()?;
        let failed = |error: store::Error| Failure::Http(format!("can't reach the deployment of --store: {error}"));
        let store = store::Store::connect(url).await.map_err(failed)?;
        if let Some(web) = arguments.web.bind(&store, &[]).await.map_err(Failure::Http)? {
            web.serve(stop).await;
        }
        tracing::info!("stopped");
        Ok(())
    })
}

/// Applies a model that was given as `PATH[=DATABASE]`: all but what drops something.
async fn apply_model(store: &store::Store, given: &str) -> Result<(), String> {
    let (path, database) = match given.rsplit_once('=') {
        Some((path, database)) => (PathBuf::from(path), Some(database.to_owned())),
        None => (PathBuf::from(given), None),
    };
    let checked = model::load(&path).map_err(|error| error.to_string())?;
    let database = database.or_else(|| crate::command::place::stem(&path)).ok_or("name the database: PATH=DATABASE")?;
    let actions =
        model::apply::plan(store, &database, &checked.model, false).await.map_err(|error| error.to_string())?;
    for note in &actions.notes {
        tracing::info!(database = database.as_str(), "{note}");
    }
    // What is to be filled is filled while clients are served.
    let now: Vec<_> =
        actions.list.into_iter().filter(|action| !matches!(action, model::apply::Action::Fill { .. })).collect();
    let mut tell = |event: model::apply::Event<'_>| {
        if let model::apply::Event::Done(action) = event {
            tracing::info!(database = database.as_str(), "{action}");
        }
    };
    let done = model::apply::define(store, &database, &checked.model, &now, &mut tell).await;
    done.map(|_| ()).map_err(|error| error.to_string())
}

/// The engine's clock and randomness, from the system, and how long its log is kept.
fn engine_options(arguments: &Arguments) -> engine::Options {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let random = || {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        u64::from_le_bytes(bytes)
    };
    let mut storage = engine::storage::Options::default();
    let cache_bytes = arguments.cache_bytes.unwrap_or_else(memory::default_cache_bytes);
    (storage.cache_bytes, storage.point_bytes) = memory::split(cache_bytes);
    if let Some(bytes) = arguments.log_retain_bytes {
        storage.retain_bytes = bytes;
    }
    if let Some(seconds) = arguments.log_retain_seconds {
        // A commit's time has its seconds in the upper half.
        storage.retain_age = u64::from(seconds) << 32;
    }
    engine::Options { storage, clock: Arc::new(clock), random: Arc::new(random) }
}

async fn serve(
    arguments: Arguments,
    engine: Engine,
    kept: &[&str],
    service: Option<Arc<Service>>,
) -> Result<(), Failure> {
    let stop = stop_signal()?;
    let config = arguments.server_config();
    if config.requires_auth() && !arguments.auth {
        tracing::info!("clients must authenticate, since the server listens beyond loopback");
    }
    let web = arguments.web.bind(&Store::embedded(engine.clone()), kept).await.map_err(Failure::Http)?;
    if let Some(bytes) = arguments.document_alarm {
        engine.set_document_alarm(bytes);
    }
    let server = Server::bind(config, engine.clone()).await.map_err(Failure::Server)?;
    if let Some(port) = arguments.metrics_port {
        let host = arguments.bind.first().map_or(DEFAULT_BIND, String::as_str);
        let sources = Sources { engine, counters: server.counters(), service };
        let address = metrics::start(host, port, Pages::of_server(sources)).await?;
        tracing::info!(%address, "metrics: http://{address}/metrics");
    }
    for address in server.addresses() {
        match address {
            Address::Tcp(address) => tracing::info!(%address, "listening: mongodb://{address}/"),
            Address::Unix(path) => tracing::info!(path = %path.display(), "listening"),
        }
    }
    let stop = stop.shared();
    let web = async {
        if let Some(web) = web {
            web.serve(stop.clone()).await;
        }
    };
    tokio::join!(server.serve(stop.clone()), web);
    tracing::info!("stopped");
    Ok(())
}

/// Serves an engine on a port of the loopback interface until the process is told to stop.
pub(crate) async fn serve_loopback(engine: Engine, port: u16, http_port: u16) -> Result<(), Failure> {
    let web = web::Arguments { http_port: Some(http_port), ..web::Arguments::default() };
    serve(Arguments { port: Some(port), web, ..Arguments::default() }, engine, &[web::SHOP, web::SOCIAL], None).await
}

/// Ready once the process gets SIGTERM or SIGINT.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
