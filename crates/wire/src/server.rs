//! The server: listens, accepts, and stops without breaking off what runs.

use crate::config::{Config, ConfigError, Listen, Tls};
use crate::connection::{self, Registered};
use crate::readings::Counters;
use crate::session::SessionId;
use crate::state::{Shared, count};
use crate::stream::Stream;
use engine::Engine;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait after a failed accept (most likely: no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// When silent peers are first asked whether they are still there.
const KEEPALIVE: Duration = Duration::from_secs(120);
/// How often clients of long operations are looked after.
const CLIENT_WATCH: Duration = Duration::from_millis(500);
/// How often sessions are checked for their timeout.
const SESSION_SWEEP: Duration = Duration::from_secs(60);
/// The first byte of a TLS handshake.
const TLS_HANDSHAKE_BYTE: u8 = 0x16;

/// A server that listens but does not serve yet.
pub struct Server {
    shared: Arc<Shared>,
    listeners: Vec<Listener>,
    tls: Option<(TlsAcceptor, bool)>,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Server {
    /// Listens at every address of the configuration, to serve an engine.
    ///
    /// # Errors
    /// If an address can't be listened on, or the certificate or its key can't be used.
    pub async fn bind(config: Config, engine: Engine) -> Result<Server, ConfigError> {
        let tls = match &config.tls {
            Some(tls) => Some((tls.acceptor()?, tls.required)),
            None => None,
        };
        let mut listeners = Vec::new();
        for listen in &config.listen {
            let listener = match listen {
                Listen::Tcp { host, port } => {
                    let host = host.trim_matches(['[', ']']);
                    TcpListener::bind((host, *port)).await.map(Listener::Tcp)
                }
                Listen::Unix(path) => bind_unix(path).map(|listener| Listener::Unix(listener, path.clone())),
            };
            listeners.push(listener.map_err(|error| ConfigError::Listen(listen.clone(), error))?);
        }
        let shared = Shared::new(config, engine).map_err(ConfigError::Users)?;
        Ok(Server { shared: Arc::new(shared), listeners, tls })
    }

    /// The addresses that are listened on, with the ports that were chosen.
    pub fn addresses(&self) -> Vec<Address> {
        let address = |listener: &Listener| match listener {
            Listener::Tcp(listener) => listener.local_addr().ok().map(Address::Tcp),
            Listener::Unix(_, path) => Some(Address::Unix(path.clone())),
        };
        self.listeners.iter().filter_map(address).collect()
    }

    /// The server's counters.
    pub fn counters(&self) -> Counters {
        Counters { shared: self.shared.clone() }
    }

    /// Serves until `stop` is ready; then accepts nobody, lets running operations finish, and closes.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let shared = self.shared;
        let accepting: Vec<_> = self
            .listeners
            .into_iter()
            .map(|listener| tokio::spawn(accept(shared.clone(), listener, self.tls.clone())))
            .collect();
        let sweeper = tokio::spawn(sweep_sessions(shared.clone()));
        let watcher = tokio::spawn(watch_clients(shared.clone()));
        stop.await;
        tracing::info!(
            connections = shared.connection_count(),
            "stopping: running operations finish, nobody new comes in"
        );
        shared.stopping.store(true, Ordering::Relaxed);
        for task in accepting {
            task.abort();
            let _ = task.await;
        }
        sweeper.abort();
        watcher.abort();
        shared.stop.notify_waiters();
        drain(&shared).await;
    }
}

/// Cuts idle connections, waits for busy ones, and cuts those too once their time is over.
async fn drain(shared: &Shared) {
    const POLL: Duration = Duration::from_millis(10);
    let until = Instant::now() + shared.config.stop_timeout;
    while shared.connection_count() > 0 && Instant::now() < until {
        shared.connections().iter().for_each(|info| info.cut_if_idle());
        sleep(POLL).await;
    }
    for info in shared.connections() {
        tracing::warn!(connection = info.id, "cut while busy: its operation took too long to finish");
        if let Some(operation) = info.operation.lock().as_ref() {
            operation.interrupt(engine::Code::INTERRUPTED_AT_SHUTDOWN);
        }
        info.cut();
    }
}

/// Looks now and then for running operations that nobody waits for any more.
async fn watch_clients(shared: Arc<Shared>) {
    loop {
        sleep(CLIENT_WATCH).await;
        shared.interrupt_deserted(CLIENT_WATCH);
    }
}

async fn sweep_sessions(shared: Arc<Shared>) {
    loop {
        sleep(SESSION_SWEEP).await;
        let expired = shared.sessions.expire();
        let in_engine: Vec<engine::SessionId> = expired.iter().map(SessionId::in_engine).collect();
        shared.engine.end_sessions(&in_engine);
        if !expired.is_empty() {
            tracing::debug!(sessions = expired.len(), "sessions timed out");
        }
    }
}

async fn accept(shared: Arc<Shared>, listener: Listener, tls: Option<(TlsAcceptor, bool)>) {
    /// Removes the socket's file when the listener ends.
    struct Remove<'p>(&'p Path);
    impl Drop for Remove<'_> {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(self.0);
        }
    }
    let _remove = match &listener {
        Listener::Unix(_, path) => Some(Remove(path)),
        Listener::Tcp(_) => None,
    };
    loop {
        let accepted = match &listener {
            Listener::Tcp(tcp) => tcp.accept().await.map(|(stream, remote)| {
                let local = stream.local_addr().map_or_else(|_| String::new(), |address| address.to_string());
                let is_local = remote.ip().to_canonical().is_loopback();
                (Stream::Tcp(stream), remote.to_string(), local, is_local)
            }),
            Listener::Unix(unix, path) => unix.accept().await.map(|(stream, _)| {
                (Stream::Unix(stream), "anonymous unix socket".to_owned(), path.display().to_string(), true)
            }),
        };
        match accepted {
            Ok((stream, remote, local, is_local)) => admit(&shared, stream, remote, local, is_local, tls.clone()),
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Starts the task of a new connection, unless there are too many.
fn admit(
    shared: &Arc<Shared>,
    stream: Stream,
    remote: String,
    local: String,
    is_local: bool,
    tls: Option<(TlsAcceptor, bool)>,
) {
    let open = shared.connection_count();
    if open >= shared.config.max_connections {
        count(&shared.metrics.connections_rejected, 1);
        tracing::warn!(%remote, open, limit = shared.config.max_connections, "connection refused: too many are open");
        return;
    }
    count(&shared.metrics.connections_created, 1);
    let info = shared.register(remote, local, is_local);
    tracing::debug!(connection = info.id, remote = %info.remote, "connection accepted");
    let registered = Registered { shared: shared.clone(), info: info.clone() };
    let task = tokio::spawn(async move {
        match secure(stream, tls).await {
            Ok(stream) => connection::serve(&registered, stream).await,
            Err(error) => {
                let Registered { info, .. } = &registered;
                tracing::warn!(connection = info.id, remote = %info.remote, %error, "connection closed: no TLS session");
            }
        }
    });
    *info.abort.lock() = Some(task.abort_handle());
}

/// Sets the socket's options and makes the TLS handshake where there is one to make.
async fn secure(stream: Stream, tls: Option<(TlsAcceptor, bool)>) -> std::io::Result<Stream> {
    let Stream::Tcp(tcp) = stream else { return Ok(stream) };
    tcp.set_nodelay(true)?;
    let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE);
    socket2::SockRef::from(&tcp).set_tcp_keepalive(&keepalive)?;
    let Some((acceptor, required)) = tls else { return Ok(Stream::Tcp(tcp)) };
    let handshake = async {
        if !required && !starts_handshake(&tcp).await? {
            return Ok(Stream::Tcp(tcp));
        }
        acceptor.accept(tcp).await.map(|tls| Stream::Tls(Box::new(tls)))
    };
    match timeout(HANDSHAKE_TIMEOUT, handshake).await {
        Ok(stream) => stream,
        Err(_) => Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "the handshake took too long")),
    }
}

async fn starts_handshake(tcp: &TcpStream) -> std::io::Result<bool> {
    let mut first = [0];
    Ok(tcp.peek(&mut first).await? == 1 && first[0] == TLS_HANDSHAKE_BYTE)
}

impl Tls {
    /// What makes the handshakes, for this server and for others beside it.
    ///
    /// # Errors
    /// A file without a certificate or key, and those that don't fit.
    pub fn acceptor(&self) -> Result<TlsAcceptor, ConfigError> {
        let path = &self.certificate_key_file;
        let failed = |reason: String| ConfigError::Tls(path.clone(), reason);
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|error| failed(format!("no certificate: {error}")))?;
        let key = PrivateKeyDer::from_pem_file(path).map_err(|error| failed(format!("no private key: {error}")))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| failed(error.to_string()))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Listens on a Unix socket; a file that a dead server left behind is removed first.
fn bind_unix(path: &Path) -> std::io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}
