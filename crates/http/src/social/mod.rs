//! The network over HTTP: routes on the `social` crate. The caller's subject is the user who asks; who may see what is the
//! domain's to say, and what may not be seen is answered as what is not there.

mod articles;
mod authors;
mod chat;
mod comments;
mod error;
mod files;
mod friends;
mod machines;
mod moderation;
mod notifications;
mod operations;
mod posts;
mod relations;
mod schema;
mod users;

use crate::shared::auth::{Caller, unauthenticated};
use crate::shared::core::Core;
use crate::shared::cursor::{Page, Paging};
use crate::shared::extract::Query;
use crate::shared::problem::{FORBIDDEN, Problem, Result};
use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use social::{Blog, Id, Metrics, Network, PageRequest};
use std::sync::Arc;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;

/// How long to wait before background work that failed goes on.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What the routes share.
pub(crate) struct Social {
    pub(crate) network: Network,
    pub(crate) core: Arc<Core>,
}

impl Social {
    pub(crate) fn new(network: Network, core: Arc<Core>) -> Arc<Social> {
        Arc::new(Social { network, core })
    }

    /// What has to go on while the server is there.
    pub(crate) async fn background(self: Arc<Social>) {
        while !self.core.stopping.is_cancelled() {
            if let Err(error) = self.network.run(self.core.stopping.cancelled()).await {
                tracing::warn!(%error, "the network's background work failed; it goes on");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<Arc<Social>> {
    OpenApiRouter::default()
        .merge(users::routes())
        .merge(operations::routes())
        .merge(relations::routes())
        .merge(friends::routes())
        .merge(posts::routes())
        .merge(comments::routes())
        .merge(moderation::routes())
        .merge(notifications::routes())
        .merge(chat::routes())
        .merge(files::routes())
}

/// The blog's routes; a network's users comment by their names there.
pub(crate) fn blog_routes(blog: Blog, network: Option<Network>) -> OpenApiRouter {
    let writing = Arc::new(authors::Writing { blog, network });
    OpenApiRouter::default().merge(authors::routes()).merge(articles::routes()).with_state(writing)
}

/// The routes of machines' readings and logs.
pub(crate) fn machine_routes(metrics: Metrics) -> OpenApiRouter {
    machines::routes().with_state(metrics)
}

/// The user who asks.
fn user(caller: &Caller) -> Result<Id> {
    let refused = || Problem::new(&FORBIDDEN, "the token's subject is not a user of the network");
    caller.subject.parse().map_err(|_| refused())
}

/// The user who asks, as a handler's argument.
struct Me(Id);

impl<S: Send + Sync> FromRequestParts<S> for Me {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Me> {
        user(parts.extensions.get::<Caller>().ok_or_else(unauthenticated)?).map(Me)
    }
}

/// Which page of which list is asked for.
struct Listing {
    uri: Uri,
    limit: i64,
    wanted: PageRequest,
}

impl Listing {
    fn new(uri: &Uri, paging: &Paging) -> Result<Listing> {
        let limit = paging.limit()?;
        let size = u32::try_from(limit).expect("a limit is small and positive");
        Ok(Listing { uri: uri.clone(), limit, wanted: PageRequest { after: paging.after(uri)?, limit: size } })
    }

    /// A page of the domain's as the API gives it.
    fn page<T>(&self, found: social::Page<T>) -> Page<T> {
        Page::new(&self.uri, self.limit, found.items, found.next)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Listing {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Listing> {
        let Query(paging) = Query::<Paging>::from_request_parts(parts, state).await?;
        Listing::new(&parts.uri, &paging)
    }
}

/// Refuses with nothing what belongs to somebody with whom there is a block.
async fn unblocked(social: &Social, viewer: Id, other: Id) -> Result<()> {
    if viewer == other {
        return Ok(());
    }
    let standings = social.network.standings(viewer, &[other]).await?;
    if standings.get(&other).is_some_and(|standing| standing.blocked) { Err(Problem::not_found()) } else { Ok(()) }
}
