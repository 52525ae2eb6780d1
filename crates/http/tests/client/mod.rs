//! A client over real sockets, and a server for it.

#![allow(dead_code, reason = "each test uses what it needs")]

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use http::{Api, Config, Limits, NewToken, Role, Server, Tokens};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use store::Store;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server at work.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) store: Store,
    pub(crate) tokens: Tokens,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: bytes::Bytes,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The last part of a problem's type.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status, "{body}");
        assert!(body["title"].is_string() && body["detail"].is_string(), "{body}");
        body["type"].as_str().unwrap().rsplit('#').next().unwrap().to_owned()
    }

    pub(crate) fn expect(self, status: u16) -> Reply {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self
    }

    pub(crate) fn expect_problem(self, status: u16, slug: &str) -> Reply {
        assert_eq!((self.status, self.problem().as_str()), (status, slug), "{}", String::from_utf8_lossy(&self.body));
        self
    }
}

/// A call.
pub(crate) struct Call<'a> {
    address: SocketAddr,
    request: axum::http::request::Builder,
    body: Vec<u8>,
    token: Option<&'a str>,
}

impl<'a> Call<'a> {
    pub(crate) fn token(mut self, token: &'a str) -> Call<'a> {
        self.token = Some(token);
        self
    }

    pub(crate) fn header(mut self, name: &str, value: impl AsRef<str>) -> Call<'a> {
        self.request = self.request.header(name, value.as_ref());
        self
    }

    pub(crate) fn key(self, key: &str) -> Call<'a> {
        self.header("idempotency-key", key)
    }

    /// With a key that no other call has.
    pub(crate) fn once(self) -> Call<'a> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let key = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.key(&key)
    }

    pub(crate) fn json(mut self, body: &Value) -> Call<'a> {
        self.body = body.to_string().into_bytes();
        self.header("content-type", "application/json")
    }

    pub(crate) fn bytes(mut self, body: impl Into<Vec<u8>>) -> Call<'a> {
        self.body = body.into();
        self
    }

    pub(crate) async fn open(self) -> axum::http::Response<hyper::body::Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = self.request.header("host", "localhost");
        if let Some(token) = self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        sender.send_request(request.body(Body::from(self.body)).unwrap()).await.unwrap()
    }

    pub(crate) async fn send(self) -> Reply {
        let (parts, body) = self.open().await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }
}

impl Running {
    pub(crate) async fn start() -> Running {
        Running::with(Config::default()).await
    }

    pub(crate) async fn limited(limits: Limits) -> Running {
        Running::with(Config { limits, ..Config::default() }).await
    }

    pub(crate) async fn with(config: Config) -> Running {
        Running::on(Store::in_memory().unwrap(), config).await
    }

    pub(crate) async fn on(store: Store, config: Config) -> Running {
        let api = Api::new(&store, &config).await.unwrap();
        let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], &api).await.unwrap();
        let address = server.addresses()[0];
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        Running { address, store, tokens: api.tokens(), stop: Some(stop), served }
    }

    pub(crate) async fn token(&self, subject: &str, roles: &[Role]) -> String {
        let new = NewToken { subject: subject.into(), roles: roles.to_vec(), ..NewToken::default() };
        self.tokens.issue(&new).await.unwrap().secret
    }

    pub(crate) fn call<'a>(&self, method: &str, path: &str) -> Call<'a> {
        let request = Request::builder().method(method).uri(path);
        Call { address: self.address, request, body: Vec::new(), token: None }
    }

    pub(crate) fn get<'a>(&self, path: &str) -> Call<'a> {
        self.call("GET", path)
    }

    pub(crate) fn post<'a>(&self, path: &str) -> Call<'a> {
        self.call("POST", path)
    }

    /// Stops the server and waits until it has.
    pub(crate) async fn stop(mut self) -> Store {
        let _ = self.stop.take().unwrap().send(());
        self.served.await.unwrap();
        self.store
    }

    /// Tells the server to stop.
    pub(crate) fn begin_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }
}
