//! The shop over HTTP: routes on the `commerce` crate. Who owns what is decided here, on the caller's subject; everything
//! else is the domain's.

mod aftersales;
mod buyers;
mod cart;
mod catalogue;
mod coupons;
mod error;
mod events;
mod flash;
mod logistics;
mod orders;
mod payments;
mod reports;
mod reviews;
mod schema;
mod stock;
mod webhooks;

use crate::shared::auth::{Caller, Role};
use crate::shared::core::Core;
use crate::shared::cursor::{Page, Paging};
use crate::shared::problem::{INVALID_BODY, Problem, Result};
use axum::http::{HeaderValue, Uri};
use commerce::{Provider, Shop};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

/// How often the shop's housekeeping is called.
const HOUSEKEEPING_PERIOD: Duration = Duration::from_secs(1);

/// What the routes share.
pub(crate) struct Commerce {
    pub(crate) shop: Shop,
    pub(crate) changes: events::Changes,
    /// Who moves the money; without one, somebody else asks for it and only the callbacks come here.
    pub(crate) provider: Option<Arc<dyn Provider>>,
    pub(crate) sales: flash::Sales,
    pub(crate) core: Arc<Core>,
}

impl Commerce {
    pub(crate) fn new(
        shop: Shop,
        provider: Option<Arc<dyn Provider>>,
        redis: Option<String>,
        core: Arc<Core>,
    ) -> Arc<Commerce> {
        let (changes, sales) = (events::Changes::default(), flash::Sales::new(redis));
        Arc::new(Commerce { changes, shop, provider, sales, core })
    }

    /// What has to go on while the server is there.
    pub(crate) async fn background(self: Arc<Commerce>) {
        let housekeeping = async {
            loop {
                tokio::time::sleep(HOUSEKEEPING_PERIOD).await;
                if let Err(error) = self.shop.housekeeping().await {
                    tracing::warn!(%error, "the shop's housekeeping failed; it is called again");
                }
                if let Some(provider) = &self.provider
                    && let Err(error) = self.shop.settle_payments(&**provider).await
                {
                    tracing::warn!(%error, "payments could not be settled; it is tried again");
                }
            }
        };
        tokio::select! {
            () = self.core.stopping.cancelled() => {}
            () = housekeeping => {}
            () = self.changes.follow(&self.shop) => {}
            () = webhooks::tell(&self.shop) => {}
            () = self.sales.go_on(&self.shop) => {}
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<Arc<Commerce>> {
    OpenApiRouter::default()
        .merge(buyers::routes())
        .merge(catalogue::routes())
        .merge(stock::routes())
        .merge(flash::routes())
        .merge(cart::routes())
        .merge(coupons::routes())
        .merge(orders::routes())
        .merge(payments::routes())
        .merge(logistics::routes())
        .merge(aftersales::routes())
        .merge(reviews::routes())
        .merge(reports::routes())
        .merge(events::routes())
        .merge(webhooks::routes())
}

/// Refuses who is neither the owner nor one of the shop's staff, as if there were nothing.
fn owned(caller: &Caller, owner: &str) -> Result<()> {
    let staff = caller.is_any(&[Role::Merchant, Role::Operator]);
    if staff || caller.subject == owner { Ok(()) } else { Err(Problem::not_found()) }
}

/// The domain's paging of a request.
fn paging(paging: &Paging, uri: &Uri) -> Result<commerce::Paging> {
    let limit = usize::try_from(paging.limit()?).expect("a limit is positive");
    Ok(commerce::Paging { after: paging.after(uri)?, limit: Some(limit) })
}

/// A page of the domain's as the API gives it.
fn page<T>(uri: &Uri, paging: &Paging, found: commerce::Page<T>) -> Result<Page<T>> {
    Ok(Page::new(uri, paging.limit()?, found.items, found.next))
}

/// Refuses a text that is shorter or longer than allowed.
fn bounded(field: &str, text: &str, min: usize, max: usize) -> Result<()> {
    let length = text.chars().count();
    if (min..=max).contains(&length) && !text.contains('\0') {
        return Ok(());
    }
    let why = format!("'{field}' must have {min} to {max} characters, none of them zero");
    Err(Problem::new(&INVALID_BODY, why).with("field", field))
}

/// All of something of which there are few.
#[derive(Serialize, ToSchema)]
struct All<T> {
    items: Vec<T>,
}

/// Where something new is.
fn location(list: &str, id: &str) -> HeaderValue {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~:@".contains(&byte);
    let mut path = format!("{list}/");
    for byte in id.bytes() {
        if plain(byte) { path.push(char::from(byte)) } else { path.push_str(&format!("%{byte:02X}")) }
    }
    HeaderValue::from_str(&path).expect("what is not plain was encoded")
}
