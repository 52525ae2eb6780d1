//! The HTTP API beside the MongoDB port: its flags and its start.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::doc;
use clap::Args;
use commerce::Shop;
use http::{Api, Config, Server};
use serde::Deserialize;
use social::{Blog, Metrics, Network};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use store::{Find, Store};
use wire::Tls;

/// The shop's database.
pub(crate) const SHOP: &str = "shop";
/// The network's database.
pub(crate) const SOCIAL: &str = "social";
/// The blog's database.
const BLOG: &str = "blog";
/// The database of machines' readings and logs.
const METRICS: &str = "metrics";
/// How long readings and lines are kept, where no applied model says it.
const KEEP_METRICS: Duration = Duration::from_secs(30 * 24 * 3600);
const DEFAULT_BIND: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// The flags of the HTTP API; in the configuration file, the table `[http]`.
#[derive(Args, Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[group(id = "http")]
pub(crate) struct Arguments {
    /// Serve the HTTP API of commerce and social on this port (0 takes any free one)
    #[arg(long, value_name = "N", env = "SHEAF_HTTP_PORT")]
    #[serde(rename = "port")]
    pub(crate) http_port: Option<u16>,
    /// Addresses of the HTTP API, with commas between (default: 127.0.0.1)
    #[arg(long, value_name = "ADDRESS", env = "SHEAF_HTTP_BIND", value_delimiter = ',')]
    #[serde(rename = "bind")]
    pub(crate) http_bind: Vec<IpAddr>,
    /// Speak TLS on the HTTP port, with this PEM file of certificate chain and private key
    #[arg(long, value_name = "FILE", env = "SHEAF_HTTP_TLS_CERT_KEY_FILE")]
    #[serde(rename = "tls-cert-key-file")]
    pub(crate) http_tls_cert_key_file: Option<PathBuf>,
    /// Serve plain connections on the HTTP port beside those with TLS
    #[arg(long, env = "SHEAF_HTTP_TLS_OPTIONAL")]
    #[serde(rename = "tls-optional")]
    pub(crate) http_tls_optional: bool,
    /// Web origins whose pages may call the HTTP API, with commas between (default: none)
    #[arg(long, value_name = "ORIGIN", env = "SHEAF_HTTP_CORS_ORIGIN", value_delimiter = ',')]
    #[serde(rename = "cors-origin")]
    pub(crate) http_cors_origin: Vec<String>,
    /// Calls a second that one caller may make (default: 200; 0 for any number)
    #[arg(long, value_name = "N", env = "SHEAF_HTTP_RATE")]
    #[serde(rename = "rate")]
    pub(crate) http_rate: Option<u32>,
    /// Redis in front of flash sales, e.g. redis://127.0.0.1:6379 (default: none; the embedded store needs none)
    #[arg(long, value_name = "URL", env = "SHEAF_REDIS", hide_env_values = true)]
    #[serde(rename = "redis")]
    pub(crate) redis: Option<String>,
    /// Secret of the payment provider's callbacks: whsec_ and base64 (Standard Webhooks); without it none is accepted
    #[arg(long, value_name = "SECRET", env = "SHEAF_WEBHOOK_SECRET", hide_env_values = true)]
    #[serde(rename = "webhook-secret")]
    pub(crate) webhook_secret: Option<String>,
}

impl Arguments {
    /// Fills what was not given from the configuration file.
    pub(crate) fn with_file(&mut self, file: Arguments) {
        self.http_port = self.http_port.or(file.http_port);
        self.http_rate = self.http_rate.or(file.http_rate);
        self.http_tls_cert_key_file = self.http_tls_cert_key_file.take().or(file.http_tls_cert_key_file);
        self.http_tls_optional |= file.http_tls_optional;
        self.redis = self.redis.take().or(file.redis);
        self.webhook_secret = self.webhook_secret.take().or(file.webhook_secret);
        if self.http_cors_origin.is_empty() {
            self.http_cors_origin = file.http_cors_origin;
        }
        if self.http_bind.is_empty() {
            self.http_bind = file.http_bind;
        }
    }

    fn addresses(&self, port: u16) -> Vec<SocketAddr> {
        let hosts = if self.http_bind.is_empty() { vec![DEFAULT_BIND] } else { self.http_bind.clone() };
        hosts.into_iter().map(|host| SocketAddr::new(host, port)).collect()
    }

    /// The API on a store; `kept` are the databases whose models the store keeps by itself.
    fn config(&self, store: &Store, kept: &BTreeSet<String>) -> Result<Config, String> {
        let mut config = Config { cors_origins: self.http_cors_origin.clone(), ..Config::default() };
        if let Some(rate) = self.http_rate {
            config.limits.rate_per_second = rate;
            config.limits.rate_burst = rate.saturating_mul(2);
        }
        config.redis = self.redis.clone();
        let secret = self.webhook_secret.as_deref().map(secret).transpose()?;
        let keeps = |database: &str| kept.contains(database);
        let mut shop = commerce::Settings::for_store(store);
        shop.keeping = if keeps(SHOP) { commerce::Keeping::Model } else { commerce::Keeping::Shop };
        shop.callback_secret = secret.unwrap_or_default();
        let keeping = |database: &str| if keeps(database) { social::Keeping::Model } else { social::Keeping::Service };
        let network = social::Settings::new(keeping(SOCIAL));
        config.commerce = Some(Shop::with(store.clone(), SHOP, shop));
        config.social = Some(Network::with_settings(store.clone(), SOCIAL, network));
        config.blog = Some(Blog::new(store.clone(), BLOG, keeping(BLOG)));
        config.metrics = Some(Metrics::new(store, METRICS));
        Ok(config)
    }

    /// Listens for HTTP, if a port was given. `kept` are databases with models beside those that were activated.
    pub(crate) async fn bind(&self, store: &Store, kept: &[&str]) -> Result<Option<Server>, String> {
        let Some(port) = self.http_port else { return Ok(None) };
        // Where the server is not Sheaf, a model that was applied is kept by nobody within a write: the backends do it.
        let mut all = BTreeSet::new();
        if store.capabilities().sheaf {
            all = active_models(store).await.map_err(|error| error.to_string())?;
        }
        all.extend(kept.iter().map(|database| (*database).to_owned()));
        let config = self.config(store, &all)?;
        if let Some(shop) = &config.commerce {
            shop.ensure_indexes().await.map_err(|error| error.to_string())?;
        }
        if let Some(network) = &config.social {
            network.ensure_indexes().await.map_err(|error| error.to_string())?;
        }
        if let Some(blog) = &config.blog {
            blog.ensure_indexes().await.map_err(|error| error.to_string())?;
        }
        if let Some(metrics) = &config.metrics {
            metrics.ensure(KEEP_METRICS).await.map_err(|error| error.to_string())?;
        }
        let api = Api::new(store, &config).await.map_err(|error| error.to_string())?;
        let mut server = Server::bind(&self.addresses(port), &api).await.map_err(|error| error.to_string())?;
        let mut scheme = "http";
        if let Some(file) = &self.http_tls_cert_key_file {
            let tls = Tls { certificate_key_file: file.clone(), required: !self.http_tls_optional };
            server = server.with_tls(tls.acceptor().map_err(|error| error.to_string())?, tls.required);
            scheme = "https";
        }
        for address in server.addresses() {
            tracing::info!(%address, "listening: {scheme}://{address}/openapi.json");
        }
        Ok(Some(server))
    }
}

/// The bytes of a webhook secret.
fn secret(text: &str) -> Result<Vec<u8>, String> {
    let bytes = text.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
    bytes.filter(|bytes| !bytes.is_empty()).ok_or_else(|| "a webhook secret is whsec_ and base64".to_owned())
}

/// The databases whose models are active: the store keeps what those declare, and the backends must not.
async fn active_models(store: &Store) -> store::Result<BTreeSet<String>> {
    let order = Find { sort: Some(doc! { "_id": 1 }), ..Find::default() };
    let mut active = BTreeSet::new();
    for activation in store.collection("sheaf", "models").find(doc! {}, order, None).await? {
        let database = activation.get_document("_id").and_then(|id| id.get_str("database")).unwrap_or_default();
        if activation.get("model").is_none_or(|model| model.as_null().is_some()) {
            active.remove(database);
        } else {
            active.insert(database.to_owned());
        }
    }
    Ok(active)
}
