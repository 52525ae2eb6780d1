//! What the store's tests share: stores of both kinds, and a proxy that loses replies.

#![allow(dead_code, unreachable_pub)]

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wire::{Address, Config, Listen, Server};

/// Defines each test for both kinds of store: `async fn name(store: Store)`.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(store::Store::in_memory().expect("opens")).await;
            })*
        }
        mod cluster {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::support::cluster().await).await;
            })*
        }
    };
}

/// Serves an engine in memory; `advertise` is the address to name in `hello`.
pub async fn serve(advertise: Option<String>) -> SocketAddr {
    let config =
        Config { listen: vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }], advertise, ..Config::default() };
    let engine = engine::Engine::in_memory(engine::Options::system()).expect("opens");
    let server = Server::bind(config, engine).await.expect("binds");
    let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    tokio::spawn(server.serve(pending()));
    address
}

/// A store on a server of its own in this process, through the driver.
pub async fn cluster() -> Store {
    let address = serve(None).await;
    Store::connect(&format!("mongodb://{address}/?replicaSet=sheaf")).await.expect("connects")
}

/// A proxy that loses the replies to requests which hold certain bytes.
pub struct Proxy {
    pub address: SocketAddr,
    losses: Arc<AtomicUsize>,
}

impl Proxy {
    /// A proxy before a server of its own; loses replies to requests that hold `needle`.
    pub async fn start(needle: &'static [u8]) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("bound");
        let server = serve(Some(address.to_string())).await;
        let losses = Arc::new(AtomicUsize::new(0));
        let shared = losses.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server, needle, shared.clone()));
            }
        });
        Proxy { address, losses }
    }

    /// Loses the next `count` replies.
    pub fn lose(&self, count: usize) {
        self.losses.store(count, Ordering::SeqCst);
    }

    /// How many replies are still to be lost.
    pub fn left(&self) -> usize {
        self.losses.load(Ordering::SeqCst)
    }
}

async fn forward(mut client: TcpStream, server: SocketAddr, needle: &[u8], losses: Arc<AtomicUsize>) {
    let mut server = TcpStream::connect(server).await.expect("connects");
    let (mut from_client, mut from_server) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut lose = false;
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(read @ 1..) = read else { return };
                let holds = from_client[..read].windows(needle.len()).any(|part| part == needle);
                let decrement = |left: usize| left.checked_sub(1);
                lose |= holds && losses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement).is_ok();
                if server.write_all(&from_client[..read]).await.is_err() { return }
            }
            read = server.read(&mut from_server) => {
                let Ok(read @ 1..) = read else { return };
                if lose {
                    return; // the server has done it, the client never learns
                }
                if client.write_all(&from_server[..read]).await.is_err() { return }
            }
        }
    }
}
