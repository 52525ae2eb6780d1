//! A client over real sockets, and a server for it.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]
#![allow(dead_code, reason = "each test uses what it needs")]

pub(crate) mod conformance;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use http::{Api, Config, Limits, NewToken, Role, Server, Tokens};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
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
    description: Arc<Value>,
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
    description: Arc<Value>,
    method: String,
    path: String,
}

impl<'a> Call<'a> {
    pub(crate) fn token(mut self, token: &'a str) -> Call<'a> {
        self.token = Some(token);
        self
    }

    /// With a token that does not live as long as the call.
    pub(crate) fn token_of(self, token: &str) -> Call<'a> {
        self.header("authorization", format!("Bearer {token}"))
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
        let (description, method, path) = (self.description.clone(), self.method.clone(), self.path.clone());
        let (parts, body) = self.open().await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        if let Some(operation) = conformance::operation(&description, &method, &path)
            && parts.status != 431
        {
            let media_type = parts.headers.get("content-type").map_or("", |value| value.to_str().unwrap());
            conformance::check(&description, operation, parts.status.as_u16(), media_type, &body);
        }
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
        let description = Arc::new(serde_json::from_slice(api.description()).unwrap());
        Running { address, store, tokens: api.tokens(), description, stop: Some(stop), served }
    }

    pub(crate) async fn token(&self, subject: &str, roles: &[Role]) -> String {
        let new = NewToken { subject: subject.into(), roles: roles.to_vec(), ..NewToken::default() };
        self.tokens.issue(&new).await.unwrap().secret
    }

    pub(crate) fn call<'a>(&self, method: &str, path: &str) -> Call<'a> {
        let request = Request::builder().method(method).uri(path);
        Call {
            address: self.address,
            request,
            body: Vec::new(),
            token: None,
            description: self.description.clone(),
            method: method.to_owned(),
            path: path.to_owned(),
        }
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

/// A stream of events.
pub(crate) struct Events {
    body: hyper::body::Incoming,
    text: String,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) data: Value,
}

impl Events {
    pub(crate) async fn open(call: Call<'_>) -> Events {
        let response = call.open().await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { body: response.into_body(), text: String::new() }
    }

    /// The next event, within ten seconds; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Received> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim();
                if !field("data:").is_empty() {
                    let data = serde_json::from_str(field("data:")).unwrap();
                    return Some(Received { id: field("id:").to_owned(), data });
                }
                continue;
            }
            let frame = tokio::time::timeout(std::time::Duration::from_secs(10), self.body.frame()).await;
            let data = frame.expect("an event comes in time")?.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }
}
