//! What the server may be told, and the bounds it keeps.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How the server listens and whom it lets in.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen.
    pub listen: Vec<Listen>,
    /// Certificate and key for TLS on TCP; none for plain TCP.
    pub tls: Option<Tls>,
    /// Whether clients must authenticate also where only loopback is listened on. Beyond loopback they always must.
    pub auth: bool,
    /// `host:port` to name in `hello` in place of the address the client used.
    pub advertise: Option<String>,
    /// The replica set's name in `hello`.
    pub set_name: String,
    /// The most connections at once; further ones are closed at once.
    pub max_connections: usize,
    /// The most memory for requests that are being read or run, beyond small ones. Who wants more waits.
    pub request_memory_bytes: usize,
    /// How long a started frame may take, plus a second for each 64 KiB of it.
    pub read_timeout: Duration,
    /// How long a peer may take no byte of a reply.
    pub write_timeout: Duration,
    /// How long running operations may take to finish once the server stops.
    pub stop_timeout: Duration,
    /// Whether there is `configureFailPoint`, by which drivers' tests make commands fail. Never in production.
    pub test_commands: bool,
    /// The command line, for `getCmdLineOpts`.
    pub arguments: Vec<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 27017 }],
            tls: None,
            auth: false,
            advertise: None,
            set_name: "sheaf".to_owned(),
            max_connections: 20_000,
            request_memory_bytes: 512 * 1024 * 1024,
            read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(10),
            test_commands: false,
            arguments: Vec::new(),
        }
    }
}

impl Config {
    /// Whether clients must authenticate.
    pub fn requires_auth(&self) -> bool {
        self.auth || self.listen.iter().any(|listen| !listen.is_local())
    }
}

/// A place to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A TCP port of a host name or address.
    Tcp {
        /// Name or address of the interface.
        host: String,
        /// The port; 0 for any free one.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl Listen {
    /// Whether only this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Listen::Unix(_) => true,
            Listen::Tcp { host, .. } => match host.trim_matches(['[', ']']).parse::<IpAddr>() {
                Ok(address) => address.is_loopback(),
                Err(_) => host == "localhost",
            },
        }
    }
}

/// TLS on TCP.
#[derive(Debug, Clone)]
pub struct Tls {
    /// A PEM file with the certificate chain and the private key.
    pub certificate_key_file: PathBuf,
    /// Whether plain connections are refused; else the first byte decides.
    pub required: bool,
}

/// Why the server could not start.
#[derive(Debug)]
pub enum ConfigError {
    /// An address that could not be listened on.
    Listen(Listen, std::io::Error),
    /// Users that can't be read from the engine.
    Users(engine::Error),
    /// A certificate or key that could not be used; says why.
    Tls(PathBuf, String),
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConfigError::Listen(Listen::Tcp { host, port }, error) => {
                write!(f, "can't listen on {host}:{port}: {error}")
            }
            ConfigError::Listen(Listen::Unix(path), error) => {
                write!(f, "can't listen on the Unix socket {}: {error}", path.display())
            }
            ConfigError::Users(error) => write!(f, "can't read the users: {error}"),
            ConfigError::Tls(path, reason) => write!(f, "can't use {} for TLS: {reason}", path.display()),
        }
    }
}

impl std::error::Error for ConfigError {}
