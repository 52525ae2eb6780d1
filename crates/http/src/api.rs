//! The API: its routes, with what surrounds them.

use crate::commerce::{self, Commerce};
use crate::config::Config;
use crate::shared::core::Core;
use crate::shared::guard::{Guard, guard};
use crate::shared::observe::observe;
use crate::shared::openapi::describe;
use crate::shared::problem::{METHOD_NOT_ALLOWED, NOT_FOUND, Problem};
use crate::shared::token::Tokens;
use crate::social::{self, Social};
use crate::{health, tokens};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::from_fn_with_state;
use bytes::Bytes;
use std::sync::Arc;
use store::Store;
use tokio::task::JoinSet;
use tower_http::cors::CorsLayer;
use utoipa::openapi::{InfoBuilder, License, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

/// The API of a store's backends.
pub struct Api {
    router: Router,
    core: Arc<Core>,
    commerce: Option<Arc<Commerce>>,
    social: Option<Arc<Social>>,
}

impl Api {
    /// The API on a store; creates the indexes of its own collections.
    ///
    /// # Errors
    /// A store that fails.
    ///
    /// # Panics
    /// When a route's description is not complete; a test calls this.
    pub async fn new(store: &Store, config: &Config) -> Result<Api, store::Error> {
        let core = Arc::new(Core::new(store, config));
        core.tokens.ensure_indexes().await?;
        core.records.ensure_indexes().await?;
        let own = health::routes().merge(tokens::routes()).with_state(core.clone());
        let mut routes = OpenApiRouter::with_openapi(head()).merge(own);
        let shop = config.commerce.clone();
        let commerce =
            shop.map(|shop| Commerce::new(shop, config.provider.clone(), config.redis.clone(), core.clone()));
        if let Some(commerce) = &commerce {
            routes = routes.merge(commerce::routes().with_state(commerce.clone()));
        }
        let social = config.social.clone().map(|network| Social::new(network, core.clone()));
        if let Some(social) = &social {
            routes = routes.merge(social::routes().with_state(social.clone()));
        }
        if let Some(blog) = &config.blog {
            routes = routes.merge(social::blog_routes(blog.clone(), config.social.clone()));
        }
        if let Some(metrics) = &config.metrics {
            routes = routes.merge(social::machine_routes(metrics.clone()));
        }
        let (router, openapi) = routes.split_for_parts();
        let described = describe(&openapi, &core.limits);
        let text = Bytes::from(described.document.to_string());
        core.description.set(text).expect("it is set here only");
        let guarding = Guard { core: core.clone(), policies: Arc::new(described.policies) };
        let mut router = router
            .fallback(nothing_here)
            .method_not_allowed_fallback(no_such_method)
            // Bodies are read and bounded before the handlers, by their routes' policies.
            .layer(DefaultBodyLimit::disable())
            .layer(from_fn_with_state(guarding, guard));
        if let Some(cors) = cors(&config.cors_origins) {
            router = router.layer(cors);
        }
        Ok(Api { router: router.layer(from_fn_with_state(core.clone(), observe)), core, commerce, social })
    }

    /// The routes as a service.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// The tokens that it knows.
    pub fn tokens(&self) -> Tokens {
        self.core.tokens.clone()
    }

    /// Its description: OpenAPI 3.1 as JSON.
    pub fn description(&self) -> &[u8] {
        self.core.description.get().map_or(&[], |text| text)
    }

    /// Starts what has to go on while the server is there; it ends when the server stops.
    pub(crate) fn start_background(&self, tasks: &mut JoinSet<()>) {
        if let Some(commerce) = &self.commerce {
            tasks.spawn(commerce.clone().background());
        }
        if let Some(social) = &self.social {
            tasks.spawn(social.clone().background());
        }
    }

    pub(crate) fn core(&self) -> Arc<Core> {
        self.core.clone()
    }
}

fn head() -> OpenApi {
    let about = "Commerce and social on Sheaf. Every refusal is a problem of RFC 9457; every unsafe call needs an \
                 Idempotency-Key; lists go on by the cursor of their last page, which is also in Link with rel=next; \
                 times are RFC 3339 in UTC; amounts of money are integers in minor units.";
    let info = InfoBuilder::new()
        .title("Sheaf")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(about))
        .license(Some(License::new("MIT OR Apache-2.0")))
        .build();
    OpenApiBuilder::new().info(info).build()
}

async fn nothing_here() -> Problem {
    Problem::new(&NOT_FOUND, "there is no such path; /openapi.json describes those that there are")
}

async fn no_such_method() -> Problem {
    Problem::new(&METHOD_NOT_ALLOWED, "the path is there, but not with this method; Allow says with which")
}

/// What lets web pages of some origins call; nothing by default.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    if origins.is_empty() {
        return None;
    }
    let asked = [
        header::AUTHORIZATION,
        header::CONTENT_TYPE,
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::RANGE,
        HeaderName::from_static("idempotency-key"),
        HeaderName::from_static("last-event-id"),
    ];
    let shown = [header::ETAG, header::LINK, header::LOCATION, header::RETRY_AFTER];
    let methods = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    Some(CorsLayer::new().allow_origin(origins).allow_methods(methods).allow_headers(asked).expose_headers(shown))
}
