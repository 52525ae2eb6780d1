//! The protocol against a running server in this process: raw bytes in, raw bytes out.

mod support;

use bson::doc;
use support::*;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wire::frame::{Compressor, HEADER_BYTES, MAX_MESSAGE_BYTES, OP_COMPRESSED, OP_MSG, OP_QUERY, OP_REPLY, compress};
use wire::{Address, Config, Listen, Server};

#[tokio::test]
async fn ping_is_answered_with_times() {
    let mut stream = connect().await;
    let reply = run(&mut stream, doc! { "ping": 1, "$db": "admin" }).await;
    assert_eq!(reply.get_f64("ok").ok(), Some(1.0));
    assert!(reply.get_timestamp("operationTime").is_ok());
    assert!(reply.get_document("$clusterTime").is_ok_and(|time| time.get_timestamp("clusterTime").is_ok()));
}

#[tokio::test]
async fn a_bulk_write_is_answered_once_all_of_it_is_durable_also_if_its_last_statement_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = engine::Engine::open(folder.path(), engine::Options::system()).expect("opens");
    let server = Server::bind(config(), engine).await.expect("binds");
    let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    tokio::spawn(server.serve(std::future::pending()));
    let (mut writer, mut reader) =
        (TcpStream::connect(address).await.expect("connects"), TcpStream::connect(address).await.expect("connects"));
    for id in 0..50 {
        let operations = vec![
            doc! { "insert": 0, "document": { "_id": id } },
            doc! { "delete": 0, "filter": { "$expr": { "$eq": ["$_id", "$$nobody"] } } },
        ];
        let command =
            doc! { "bulkWrite": 1, "ops": operations, "nsInfo": [{ "ns": "test.c" }], "ordered": true, "$db": "admin" };
        let reply = run(&mut writer, command).await;
        let done = (reply.get_i32("nInserted").ok(), reply.get_i32("nErrors").ok());
        assert_eq!(done, (Some(1), Some(1)), "{reply}");
        // Whatever is acknowledged is flushed, and what is flushed is seen.
        let found = run(&mut reader, doc! { "find": "c", "filter": { "_id": id }, "$db": "test" }).await;
        let batch = found.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch")).expect("a batch");
        assert_eq!(batch.len(), 1, "document {id}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let mut stream = connect().await;
    let mut all = Vec::new();
    for number in 0..50 {
        let mut one = message(0, &doc! { "ping": 1, "$db": "admin" });
        one[4..8].copy_from_slice(&i32::to_le_bytes(number));
        all.extend(one);
    }
    stream.write_all(&all).await.expect("sent");
    for number in 0..50 {
        assert_eq!(read(&mut stream).await.0.response_to, number);
    }
}

#[tokio::test]
async fn hello_presents_a_primary_at_the_address_the_client_used() {
    let mut stream = connect().await;
    let address = stream.peer_addr().expect("connected").to_string();
    let reply = run(&mut stream, doc! { "hello": 1, "helloOk": true, "$db": "admin" }).await;
    assert_eq!(reply.get_str("me").ok(), Some(address.as_str()));
    assert_eq!(reply.get_str("primary").ok(), Some(address.as_str()));
    assert_eq!(reply.get_bool("isWritablePrimary").ok(), Some(true));
    assert_eq!(reply.get_i32("maxWireVersion").ok(), Some(25));
    assert_eq!(reply.get_i32("maxMessageSizeBytes").ok(), Some(48_000_000));
    assert_eq!(reply.get_bool("helloOk").ok(), Some(true));
}

#[tokio::test]
async fn the_legacy_hello_is_answered_and_other_queries_are_refused() {
    let mut stream = connect().await;
    for (command, ok) in [(doc! { "isMaster": 1 }, 1.0), (doc! { "find": "c" }, 0.0)] {
        let mut body = vec![0; 4];
        body.extend(b"admin.$cmd\0");
        body.extend([0; 4]);
        body.extend((-1_i32).to_le_bytes());
        body.extend(bytes(&command));
        stream.write_all(&frame(OP_QUERY, &body)).await.expect("sent");
        let (header, rest) = read(&mut stream).await;
        assert_eq!(header.op_code, OP_REPLY);
        assert_eq!(document(&rest[20..]).get_f64("ok").ok(), Some(ok));
    }
}

#[tokio::test]
async fn an_awaited_hello_comes_again_and_again_where_exhaust_is_allowed() {
    let mut stream = connect().await;
    let first = run(&mut stream, doc! { "hello": 1, "$db": "admin" }).await;
    let version = first.get_document("topologyVersion").expect("there").clone();
    let awaiting = doc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 30, "$db": "admin" };
    stream.write_all(&message(1 << 16, &awaiting)).await.expect("sent");
    let mut response_to = 77;
    for _ in 0..3 {
        let (header, rest) = read(&mut stream).await;
        assert_eq!(header.response_to, response_to);
        assert_eq!(rest[0], 2, "moreToCome");
        response_to = header.request_id;
    }
}

#[tokio::test]
async fn a_message_that_wants_no_reply_gets_none() {
    let mut stream = connect().await;
    stream.write_all(&message(2, &doc! { "ping": 1, "$db": "admin" })).await.expect("sent");
    let reply = run(&mut stream, doc! { "whatsmyuri": 1, "$db": "admin" }).await;
    assert!(reply.contains_key("you"));
}

#[tokio::test]
async fn replies_are_compressed_as_agreed() {
    for compressor in [Compressor::Snappy, Compressor::Zlib, Compressor::Zstd] {
        let mut stream = connect().await;
        let hello = doc! { "hello": 1, "compression": ["unknown", compressor.name()], "$db": "admin" };
        let reply = run(&mut stream, hello).await;
        assert_eq!(reply.get_array("compression").map(Vec::len).ok(), Some(1));
        let ping = message(0, &doc! { "ping": 1, "$db": "admin" });
        stream.write_all(&compress(&ping, compressor)).await.expect("sent");
        let (header, rest) = read(&mut stream).await;
        assert_eq!((header.op_code, rest[8]), (OP_COMPRESSED, compressor as u8));
    }
}

#[tokio::test]
async fn errors_have_mongodbs_shape() {
    let mut stream = connect().await;
    let reply = run(&mut stream, doc! { "nonsense": 1, "$db": "admin" }).await;
    assert_eq!(reply.get_f64("ok").ok(), Some(0.0));
    assert_eq!(reply.get_str("errmsg").ok(), Some("no such command: 'nonsense'"));
    assert_eq!(reply.get_i32("code").ok(), Some(59));
    assert_eq!(reply.get_str("codeName").ok(), Some("CommandNotFound"));
    assert!(reply.contains_key("$clusterTime"));
    let reply = run(&mut stream, doc! { "ping": 1 }).await;
    assert_eq!(reply.get_i32("code").ok(), Some(40571));
}

#[tokio::test]
async fn invalid_bson_inside_a_sound_frame_is_answered_and_the_connection_lives() {
    let mut stream = connect().await;
    let mut broken = message(0, &doc! { "ping": 1, "$db": "admin" });
    broken[HEADER_BYTES + 4 + 1 + 4] = 0x99;
    stream.write_all(&broken).await.expect("sent");
    let (_, rest) = read(&mut stream).await;
    assert_eq!(document(&rest[5..]).get_i32("code").ok(), Some(22));
    let mut deep = doc! {};
    for _ in 0..250 {
        deep = doc! { "a": deep };
    }
    let reply = run(&mut stream, doc! { "ping": 1, "x": deep, "$db": "admin" }).await;
    assert_eq!(reply.get_i32("code").ok(), Some(15));
    assert_eq!(run(&mut stream, doc! { "ping": 1, "$db": "admin" }).await.get_f64("ok").ok(), Some(1.0));
}

#[tokio::test]
async fn hostile_frames_close_the_connection() {
    let mut too_long = message(0, &doc! { "ping": 1, "$db": "admin" });
    too_long[0..4].copy_from_slice(&(MAX_MESSAGE_BYTES as i32 + 1).to_le_bytes());
    let mut negative = too_long.clone();
    negative[0..4].copy_from_slice(&(-5_i32).to_le_bytes());
    let mut checksum = message(1, &doc! { "ping": 1, "$db": "admin" });
    checksum.extend([0; 4]);
    let length = checksum.len() as i32;
    checksum[0..4].copy_from_slice(&length.to_le_bytes());
    let bomb = {
        let mut body = OP_MSG.to_le_bytes().to_vec();
        body.extend(40_000_000_i32.to_le_bytes());
        body.push(1);
        body.extend([0xFF, 0xFF, 0xFF, 0x12, 0]);
        frame(OP_COMPRESSED, &body)
    };
    let http = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec();
    for hostile in [too_long, negative, checksum, bomb, frame(2002, b"old"), frame(OP_MSG, b""), http] {
        let mut stream = connect().await;
        stream.write_all(&hostile).await.expect("sent");
        assert_closed(&mut stream).await;
    }
}

#[tokio::test]
async fn a_frame_that_never_ends_closes_the_connection_but_an_idle_one_stays() {
    let address = start(config()).await;
    let mut idle = TcpStream::connect(address).await.expect("connects");
    for part in [8, 30] {
        let mut slow = TcpStream::connect(address).await.expect("connects");
        slow.write_all(&message(0, &doc! { "ping": 1, "$db": "admin" })[..part]).await.expect("sent");
        assert_closed(&mut slow).await;
    }
    assert_eq!(run(&mut idle, doc! { "ping": 1, "$db": "admin" }).await.get_f64("ok").ok(), Some(1.0));
}

#[tokio::test]
async fn large_requests_wait_for_memory_instead_of_taking_it() {
    let address = start(Config { request_memory_bytes: 1 << 20, read_timeout: PATIENCE, ..config() }).await;
    let large = message(0, &doc! { "ping": 1, "comment": "y".repeat(900_000), "$db": "admin" });
    let clients: Vec<JoinHandle<Option<i32>>> = (0..8)
        .map(|_| {
            let large = large.clone();
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.expect("connects");
                stream.write_all(&large).await.expect("sent");
                let (_, rest) = read(&mut stream).await;
                document(&rest[5..]).get_i32("code").ok()
            })
        })
        .collect();
    for client in clients {
        assert_eq!(client.await.expect("answered"), None);
    }
}

#[tokio::test]
async fn too_many_connections_are_closed_at_once() {
    let address = start(Config { max_connections: 2, ..config() }).await;
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).await.expect("connects");
        run(&mut stream, doc! { "ping": 1, "$db": "admin" }).await;
        kept.push(stream);
    }
    let mut third = TcpStream::connect(address).await.expect("connects");
    assert_closed(&mut third).await;
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_ends() {
    let server = Server::bind(config(), engine()).await.expect("binds");
    let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async move { stopped.await.unwrap_or(()) }));
    let mut stream = TcpStream::connect(address).await.expect("connects");
    run(&mut stream, doc! { "ping": 1, "$db": "admin" }).await;
    stop.send(()).expect("serving");
    timeout(PATIENCE, serving).await.expect("ends in time").expect("no panic");
    assert_closed(&mut stream).await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_unix_socket_serves_and_its_file_goes_with_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sheaf.sock");
    std::os::unix::net::UnixListener::bind(&path).expect("binds");
    let server = Server::bind(Config { listen: vec![Listen::Unix(path.clone())], ..config() }, engine())
        .await
        .expect("replaces it");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async move { stopped.await.unwrap_or(()) }));
    let mut stream = UnixStream::connect(&path).await.expect("connects");
    assert_eq!(run(&mut stream, doc! { "ping": 1, "$db": "admin" }).await.get_f64("ok").ok(), Some(1.0));
    stop.send(()).expect("serving");
    serving.await.expect("no panic");
    assert!(!path.exists());
}
