//! What the protocol tests share: a server in this process, and a client that speaks raw frames.

#![allow(dead_code, unreachable_pub)]

use bson::{Document, RawDocumentBuf};
use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use wire::frame::{HEADER_BYTES, Header, OP_MSG};
use wire::{Address, Config, Listen, Server};

pub const PATIENCE: Duration = Duration::from_secs(5);

pub fn config() -> Config {
    Config {
        listen: vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }],
        read_timeout: Duration::from_millis(300),
        stop_timeout: Duration::from_secs(2),
        ..Config::default()
    }
}

/// An engine in memory.
pub fn engine() -> engine::Engine {
    let clock = || std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_millis() as i64;
    let random = || {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("random bytes");
        u64::from_le_bytes(bytes)
    };
    let storage = engine::storage::Options::default();
    let options = engine::Options { storage, clock: std::sync::Arc::new(clock), random: std::sync::Arc::new(random) };
    engine::Engine::in_memory(options).expect("opens")
}

pub async fn start(config: Config) -> SocketAddr {
    let server = Server::bind(config, engine()).await.expect("binds");
    let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    tokio::spawn(server.serve(pending()));
    address
}

pub async fn connect() -> TcpStream {
    TcpStream::connect(start(config()).await).await.expect("connects")
}

pub fn bytes(document: &Document) -> Vec<u8> {
    RawDocumentBuf::try_from(document).expect("serializes").into_bytes()
}

pub fn frame(op_code: i32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; HEADER_BYTES];
    out.extend_from_slice(body);
    Header { length_bytes: out.len(), request_id: 77, response_to: 0, op_code }.write_over(&mut out);
    out
}

pub fn message(flags: u32, command: &Document) -> Vec<u8> {
    let mut body = flags.to_le_bytes().to_vec();
    body.push(0);
    body.extend(bytes(command));
    frame(OP_MSG, &body)
}

pub async fn read(stream: &mut (impl AsyncReadExt + Unpin)) -> (Header, Vec<u8>) {
    let mut head = [0; HEADER_BYTES];
    timeout(PATIENCE, stream.read_exact(&mut head)).await.expect("in time").expect("a reply");
    let int = |at: usize| i32::from_le_bytes(head[at..at + 4].try_into().expect("four"));
    let header = Header { length_bytes: int(0) as usize, request_id: int(4), response_to: int(8), op_code: int(12) };
    let mut rest = vec![0; header.length_bytes - HEADER_BYTES];
    stream.read_exact(&mut rest).await.expect("whole");
    (header, rest)
}

pub fn document(raw: &[u8]) -> Document {
    Document::try_from(RawDocumentBuf::from_bytes(raw.to_vec()).expect("BSON")).expect("BSON")
}

pub async fn run(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), command: Document) -> Document {
    stream.write_all(&message(0, &command)).await.expect("sent");
    let (header, rest) = read(stream).await;
    assert_eq!((header.op_code, header.response_to), (OP_MSG, 77));
    document(&rest[5..])
}

pub async fn assert_closed(stream: &mut TcpStream) {
    let mut byte = [0];
    let read = timeout(PATIENCE, stream.read(&mut byte)).await.expect("closed in time");
    assert!(matches!(read, Ok(0) | Err(_)), "nothing is answered");
}
