//! The HTTP API beside the MongoDB port: its flags and its start.

use clap::Args;
use http::{Api, Config, Server};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use store::Store;

const DEFAULT_BIND: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// The flags of the HTTP API; in the configuration file, the table `[http]`.
#[derive(Args, Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Arguments {
    /// Serve the HTTP API of commerce and social on this port (0 takes any free one)
    #[arg(long, value_name = "N", env = "SHEAF_HTTP_PORT")]
    #[serde(rename = "port")]
    pub(crate) http_port: Option<u16>,
    /// Addresses of the HTTP API, with commas between (default: 127.0.0.1). It speaks no TLS: put a proxy in front
    #[arg(long, value_name = "ADDRESS", env = "SHEAF_HTTP_BIND", value_delimiter = ',')]
    #[serde(rename = "bind")]
    pub(crate) http_bind: Vec<IpAddr>,
    /// Web origins whose pages may call the HTTP API, with commas between (default: none)
    #[arg(long, value_name = "ORIGIN", env = "SHEAF_HTTP_CORS_ORIGIN", value_delimiter = ',')]
    #[serde(rename = "cors-origin")]
    pub(crate) http_cors_origin: Vec<String>,
    /// Calls a second that one caller may make (default: 200; 0 for any number)
    #[arg(long, value_name = "N", env = "SHEAF_HTTP_RATE")]
    #[serde(rename = "rate")]
    pub(crate) http_rate: Option<u32>,
    /// Secret of a webhook's sender: NAME=whsec_… (Standard Webhooks), with commas between
    #[arg(
        long,
        value_name = "NAME=SECRET",
        env = "SHEAF_WEBHOOK_SECRET",
        value_delimiter = ',',
        hide_env_values = true
    )]
    #[serde(rename = "webhook-secret")]
    pub(crate) webhook_secret: Vec<String>,
}

impl Arguments {
    /// Fills what was not given from the configuration file.
    pub(crate) fn with_file(&mut self, file: Arguments) {
        self.http_port = self.http_port.or(file.http_port);
        self.http_rate = self.http_rate.or(file.http_rate);
        for (ours, theirs) in
            [(&mut self.http_cors_origin, file.http_cors_origin), (&mut self.webhook_secret, file.webhook_secret)]
        {
            if ours.is_empty() {
                *ours = theirs;
            }
        }
        if self.http_bind.is_empty() {
            self.http_bind = file.http_bind;
        }
    }

    fn addresses(&self, port: u16) -> Vec<SocketAddr> {
        let hosts = if self.http_bind.is_empty() { vec![DEFAULT_BIND] } else { self.http_bind.clone() };
        hosts.into_iter().map(|host| SocketAddr::new(host, port)).collect()
    }

    fn config(&self) -> Result<Config, String> {
        let mut config = Config { cors_origins: self.http_cors_origin.clone(), ..Config::default() };
        if let Some(rate) = self.http_rate {
            config.limits.rate_per_second = rate;
            config.limits.rate_burst = rate.saturating_mul(2);
        }
        for given in &self.webhook_secret {
            let secret = given.split_once('=').filter(|(name, secret)| !name.is_empty() && http::is_secret(secret));
            let (name, secret) =
                secret.ok_or_else(|| "a webhook secret is given as NAME=whsec_ and base64".to_owned())?;
            config.webhook_secrets.push((name.to_owned(), secret.to_owned()));
        }
        config.commerce = Some("shop".to_owned());
        config.social = Some("social".to_owned());
        Ok(config)
    }

    /// Listens for HTTP, if a port was given.
    pub(crate) async fn bind(&self, store: &Store) -> Result<Option<Server>, String> {
        let Some(port) = self.http_port else { return Ok(None) };
        let config = self.config()?;
        let api = Api::new(store, &config).await.map_err(|error| error.to_string())?;
        let server = Server::bind(&self.addresses(port), &api).await.map_err(|error| error.to_string())?;
        for address in server.addresses() {
            tracing::info!(%address, "listening: http://{address}/openapi.json");
        }
        Ok(Some(server))
    }
}
