//! TLS on the HTTP port: required, or beside plain connections.

#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use axum::body::Body;
use axum::http::Request;
use http::{Api, Config, Server};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::sync::Arc;
use store::Store;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A certificate of this test's own for `localhost`, and its key.
const PEM: &[u8] = include_bytes!("../testdata/localhost.pem");

fn certificate() -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(PEM).unwrap()
}

async fn serving(required: bool) -> SocketAddr {
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate()], PrivateKeyDer::from_pem_slice(PEM).unwrap())
        .unwrap();
    let api = Api::new(&Store::in_memory().unwrap(), &Config::default()).await.unwrap();
    let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], &api).await.unwrap();
    let server = server.with_tls(TlsAcceptor::from(Arc::new(config)), required);
    let address = server.addresses()[0];
    tokio::spawn(server.serve(std::future::pending()));
    address
}

/// The status of `/healthz` over a connection.
async fn health<S>(stream: S) -> Result<u16, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get("/healthz").header("host", "localhost").body(Body::empty()).unwrap();
    Ok(sender.send_request(request).await?.status().as_u16())
}

async fn over_tls(address: SocketAddr) -> u16 {
    let mut roots = RootCertStore::empty();
    roots.add(certificate()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(address).await.unwrap();
    health(connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()).await.unwrap()
}

async fn plain(address: SocketAddr) -> Result<u16, hyper::Error> {
    health(TcpStream::connect(address).await.unwrap()).await
}

#[tokio::test]
async fn where_tls_is_required_plain_connections_are_closed() {
    let address = serving(true).await;
    assert_eq!(over_tls(address).await, 200);
    assert!(plain(address).await.is_err());
}

#[tokio::test]
async fn where_tls_is_optional_the_first_byte_decides() {
    let address = serving(false).await;
    assert_eq!((over_tls(address).await, plain(address).await.unwrap()), (200, 200));
}
