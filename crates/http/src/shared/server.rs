//! The sockets: connections are bounded in number, head size and time, and end in order.

use crate::api::Api;
use crate::config::Limits;
use crate::shared::core::Core;
use crate::shared::guard::Peer;
use crate::shared::observe::Gauge;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// How often records that are over are deleted.
const PURGE_PERIOD: Duration = Duration::from_secs(60);
/// How a TLS connection begins: the type of a handshake record.
const TLS_HANDSHAKE_BYTE: u8 = 0x16;
/// How long to wait after the system refuses a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why the server can't listen.
#[derive(Debug)]
pub struct BindError {
    address: SocketAddr,
    error: std::io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can't listen for HTTP on {}: {}", self.address, self.error)
    }
}

impl std::error::Error for BindError {}

/// An API on its sockets.
pub struct Server {
    listeners: Vec<TcpListener>,
    router: Router,
    core: Arc<Core>,
    background: JoinSet<()>,
    tls: Option<Tls>,
}

/// What makes TLS handshakes.
#[derive(Clone)]
struct Tls {
    acceptor: TlsAcceptor,
    /// Whether plain connections are refused; else the first byte decides.
    required: bool,
}

impl Server {
    /// Listens; connections wait until [`Server::serve`].
    ///
    /// # Errors
    /// An address that is taken or not ours.
    pub async fn bind(addresses: &[SocketAddr], api: &Api) -> Result<Server, BindError> {
        let mut listeners = Vec::new();
        for address in addresses {
            let failed = |error| BindError { address: *address, error };
            listeners.push(TcpListener::bind(address).await.map_err(failed)?);
        }
        let mut background = JoinSet::new();
        api.start_background(&mut background);
        background.spawn(purge(api.core()));
        Ok(Server { listeners, router: api.router(), core: api.core(), background, tls: None })
    }

    /// Speaks TLS; unless it is `required`, plain connections are served too.
    #[must_use]
    pub fn with_tls(mut self, acceptor: TlsAcceptor, required: bool) -> Server {
        self.tls = Some(Tls { acceptor, required });
        self
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Serves until `stop` is ready; then takes no more calls, and waits for those at work.
    pub async fn serve(mut self, stop: impl Future<Output = ()>) {
        let core = self.core;
        let slots = Arc::new(Semaphore::new(core.limits.connections));
        let mut tasks = JoinSet::new();
        for listener in self.listeners {
            tasks.spawn(accept(listener, self.router.clone(), core.clone(), slots.clone(), self.tls.clone()));
        }
        stop.await;
        core.stopping.cancel();
        let limit = core.limits.stop_timeout;
        core.work.close();
        let ended = async {
            while let Some(accepted) = tasks.join_next().await {
                if let Ok(connections) = accepted {
                    connections.shutdown().await;
                }
            }
            core.work.wait().await;
            while self.background.join_next().await.is_some() {}
        };
        if tokio::time::timeout(limit, ended).await.is_err() {
            tracing::warn!("some HTTP calls were still at work when the server stopped");
        }
    }
}

async fn purge(core: Arc<Core>) {
    loop {
        tokio::select! {
            () = core.stopping.cancelled() => return,
            () = tokio::time::sleep(PURGE_PERIOD) => {}
        }
        if let Err(error) = core.records.purge().await {
            tracing::warn!(%error, "idempotency records that are over could not be deleted");
        }
    }
}

/// Accepts connections until the server stops; gives those that are still open.
async fn accept(
    listener: TcpListener,
    router: Router,
    core: Arc<Core>,
    slots: Arc<Semaphore>,
    tls: Option<Tls>,
) -> GracefulShutdown {
    let open = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            () = core.stopping.cancelled() => return open,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Ok(slot) = slots.clone().try_acquire_owned() else { continue };
                let (router, core, watcher, tls) = (router.clone(), core.clone(), open.watcher(), tls.clone());
                tokio::spawn(async move {
                    secure(stream, peer.ip(), router, &core, watcher, tls).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Makes the TLS handshake where there is one to make, and serves the connection.
async fn secure(stream: TcpStream, peer: IpAddr, router: Router, core: &Core, watcher: Watcher, tls: Option<Tls>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection could not be set up");
    }
    let Some(tls) = tls else { return connection(stream, peer, router, core, watcher).await };
    let handshake = async {
        let mut first = [0];
        let secured = tls.required || (stream.peek(&mut first).await? == 1 && first[0] == TLS_HANDSHAKE_BYTE);
        Ok::<_, std::io::Error>(match secured {
            true => Ok(tls.acceptor.accept(stream).await?),
            false => Err(stream),
        })
    };
    match tokio::time::timeout(core.limits.head_timeout, handshake).await {
        Ok(Ok(Ok(secured))) => connection(secured, peer, router, core, watcher).await,
        Ok(Ok(Err(plain))) => connection(plain, peer, router, core, watcher).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection without a TLS session was closed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn connection<S>(stream: S, peer: IpAddr, router: Router, core: &Core, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let _open = Gauge::new(&core.metrics.connections);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer));
        let call = router.clone().oneshot(request);
        async move { Ok::<Response, Infallible>(call.await.unwrap_or_else(|never| match never {})) }
    });
    let served = http(&core.limits).serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(served).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn http(limits: &Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.head_size_bytes.max(8 << 10))
        .max_headers(limits.header_fields);
    http
}
