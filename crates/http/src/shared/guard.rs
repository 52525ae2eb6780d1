//! Each route's policy, enforced before its handler runs: who, how often, for how long, once.

use crate::shared::auth::{Role, bearer, unauthenticated};
use crate::shared::core::Core;
use crate::shared::idempotency::{by_domain, key_of, once, read};
use crate::shared::problem::{FORBIDDEN, INTERNAL, Kind, OVERLOADED, Problem, RATE_LIMITED, Result, TIMEOUT};
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::OwnedSemaphorePermit;

/// Who may call a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody.
    Public,
    /// Callers with one of these roles.
    Roles(Vec<Role>),
    /// Whoever signs the message; the handler checks that, and the domain takes each message once.
    Webhook,
}

/// What holds for a route, as its description says.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) access: Access,
    /// Whether its answer is a stream without an end.
    pub(crate) stream: bool,
    /// Whether the domain alone knows what was asked for under a key.
    pub(crate) once_by_domain: bool,
    /// The largest body, if it is not the general one.
    pub(crate) body_size_bytes: Option<usize>,
    /// The statuses that it is described to answer.
    pub(crate) statuses: BTreeSet<u16>,
    /// The problems that it is described to answer.
    pub(crate) problems: BTreeSet<&'static str>,
}

/// The policies by method and path.
pub(crate) type Policies = BTreeMap<(String, String), Policy>;

/// What the layer needs.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) core: Arc<Core>,
    pub(crate) policies: Arc<Policies>,
}

/// The peer of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The layer: enforces the route's policy and checks that the route keeps to its description.
pub(crate) async fn guard(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let method = if request.method() == Method::HEAD { "GET" } else { request.method().as_str() };
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let policy = path.and_then(|path| guard.policies.get(&(method.to_owned(), path)));
    // Without a policy there is no route: the fallbacks say so.
    let Some(policy) = policy else { return next.run(request).await };
    let response = enforce(&guard.core, policy, request, next).await.unwrap_or_else(IntoResponse::into_response);
    check(policy, &response);
    response
}

/// In tests, a route that answers what its description does not say fails.
fn check(policy: &Policy, response: &Response) {
    let status = response.status().as_u16();
    debug_assert!(policy.statuses.contains(&status), "status {status} is not described");
    if let Some(kind) = response.extensions().get::<&'static Kind>() {
        debug_assert!(policy.problems.contains(kind.slug), "problem {} is not described", kind.slug);
    }
}

async fn enforce(core: &Arc<Core>, policy: &Policy, mut request: Request, next: Next) -> Result<Response> {
    let peer = request.extensions().get::<Peer>().map_or_else(String::new, |peer| peer.0.to_string());
    match &policy.access {
        Access::Public => run(core, policy, request, next).await,
        Access::Roles(roles) => {
            let caller = match bearer(request.headers()) {
                Some(token) => core.tokens.verify(token).await?,
                None => None,
            };
            let Some(caller) = caller else {
                // Guessing is slowed down, too.
                limit_rate(core, &format!("peer {peer}"))?;
                return Err(unauthenticated());
            };
            limit_rate(core, &caller.token)?;
            if !caller.is_any(roles) {
                let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
                return Err(Problem::new(&FORBIDDEN, format!("this needs one of the roles: {}", names.join(", "))));
            }
            let scope = format!("subject {}", caller.subject);
            request.extensions_mut().insert(caller);
            if is_safe(request.method()) {
                return run(core, policy, request, next).await;
            }
            let key = key_of(request.headers())?;
            let permit = admit(core)?;
            let limit = policy.body_size_bytes.unwrap_or(core.limits.body_size_bytes);
            if policy.once_by_domain {
                return by_domain(core.clone(), &scope, &key, permit, request, limit, next).await;
            }
            once(core.clone(), &scope, &key, permit, request, limit, next).await
        }
        Access::Webhook => {
            limit_rate(core, &format!("peer {peer}"))?;
            let permit = admit(core)?;
            let (parts, body) = request.into_parts();
            let body = read(core, &parts, body, core.limits.body_size_bytes).await?;
            let request = Request::from_parts(parts, Body::from(body));
            // It comes to its end also when the sender goes away.
            let call = core.work.spawn(async move {
                let response = next.run(request).await;
                drop(permit);
                response
            });
            call.await.map_err(|_| Problem::new(&INTERNAL, "the server failed while it was at work on the message"))
        }
    }
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn limit_rate(core: &Core, caller: &str) -> Result<()> {
    core.rate.take(caller, Instant::now()).map_err(|wait| {
        core.metrics.rate_limited.fetch_add(1, Ordering::Relaxed);
        let limit = core.limits.rate_per_second;
        Problem::new(&RATE_LIMITED, format!("at most {limit} calls a second; wait before the next"))
            .with("limitPerSecond", limit)
            .retry_after(wait.as_secs_f64().ceil() as u64)
    })
}

fn admit(core: &Core) -> Result<OwnedSemaphorePermit> {
    core.calls.clone().try_acquire_owned().map_err(|_| overloaded(core))
}

fn overloaded(core: &Core) -> Problem {
    core.metrics.overloaded.fetch_add(1, Ordering::Relaxed);
    Problem::new(&OVERLOADED, "too many calls are at work; try again").retry_after(1)
}

/// Runs a safe call.
async fn run(core: &Arc<Core>, policy: &Policy, request: Request, next: Next) -> Result<Response> {
    if policy.stream {
        return stream(core, request, next).await;
    }
    let _permit = admit(core)?;
    tokio::time::timeout(core.limits.call_timeout, next.run(request))
        .await
        .map_err(|_| Problem::new(&TIMEOUT, "the call took too long; ask for less, or try again").retry_after(1))
}

/// Runs a call whose answer is a stream: it ends with the client, or when the server stops.
async fn stream(core: &Arc<Core>, request: Request, next: Next) -> Result<Response> {
    let permit = core.streams.clone().try_acquire_owned().map_err(|_| overloaded(core))?;
    let response = next.run(request).await;
    let (parts, body) = response.into_parts();
    let core = core.clone();
    let stopping = core.stopping.clone().cancelled_owned();
    let body = async_body(core, permit, body);
    Ok(Response::from_parts(parts, Body::from_stream(body.take_until(Box::pin(stopping)))))
}

/// A body's data, which holds a permit and is counted while it flows.
fn async_body(
    core: Arc<Core>,
    permit: OwnedSemaphorePermit,
    body: Body,
) -> impl futures_util::Stream<Item = std::result::Result<bytes::Bytes, axum::Error>> {
    struct Open {
        core: Arc<Core>,
        _permit: OwnedSemaphorePermit,
    }
    impl Drop for Open {
        fn drop(&mut self) {
            self.core.metrics.streams.fetch_sub(1, Ordering::Relaxed);
        }
    }
    core.metrics.streams.fetch_add(1, Ordering::Relaxed);
    let open = Open { core, _permit: permit };
    body.into_data_stream().map(move |data| {
        let _held = &open;
        data
    })
}
