//! Load on the shop over HTTP: a flash sale, and orders at a fixed rate.
//!
//! ```text
//! sheaf token issue --store data --subject ops --role operator,merchant      (prints TOKEN)
//! sheaf serve --data data --http-port 8080 --http-rate 0
//! http_shop 127.0.0.1:8080 TOKEN flash  BUYERS UNITS CONNECTIONS
//! http_shop 127.0.0.1:8080 TOKEN orders RATE SECONDS CONNECTIONS
//! ```
//!
//! `flash`: each buyer has a token of their own and orders one unit once; as many at a time as there are connections.
//! `orders`: an open loop: call number n is due at n / RATE seconds, and its latency counts from then, whether or not a
//! connection was free.

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A connection to the API.
struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

static KEY: AtomicU64 = AtomicU64::new(0);

impl Client {
    async fn open(host: &str) -> Result<Client, Failure> {
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Client { sender, host: host.to_owned() })
    }

    async fn call(&mut self, method: &str, path: &str, token: &str, body: &Value) -> Result<(u16, Value), Failure> {
        let key = format!("{}-{}", std::process::id(), KEY.fetch_add(1, Ordering::Relaxed));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.host)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .body(Full::new(Bytes::from(body.to_string())))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    async fn made(&mut self, path: &str, token: &str, body: &Value) -> Result<Value, Failure> {
        match self.call("POST", path, token, body).await? {
            (200..300, made) => Ok(made),
            (status, problem) => Err(format!("POST {path}: {status} {problem}").into()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [host, token, mode, rest @ ..] = arguments.as_slice() else { return Err("see the head of this file".into()) };
    let numbers: Vec<u64> = rest.iter().map(|number| number.parse()).collect::<Result<_, _>>()?;
    match (mode.as_str(), numbers.as_slice()) {
        ("flash", [buyers, units, connections]) => flash(host, token, *buyers, *units, *connections).await,
        ("orders", [rate, seconds, connections]) => orders(host, token, *rate, *seconds, *connections).await,
        _ => Err("see the head of this file".into()),
    }
}

/// Puts a product of one SKU on the shelf, and signs buyers up; gives the SKU and the buyers' tokens.
async fn prepare(host: &str, token: &str, buyers: u64, units: u64) -> Result<(String, Vec<String>), Failure> {
    let run = format!("{}", std::process::id());
    let mut client = Client::open(host).await?;
    let sku = format!("sku-{run}");
    let product =
        json!({ "id": format!("p-{run}"), "name": "Lamp", "price": { "amountMinor": 100, "currency": "EUR" } });
    client.made("/v1/products", token, &product).await?;
    let variant = json!({ "id": sku, "priceMinor": 100, "quantity": units });
    client.made(&format!("/v1/products/p-{run}/skus"), token, &variant).await?;
    let next = Arc::new(AtomicU64::new(0));
    let mut workers = Vec::new();
    for _ in 0..32 {
        let (host, token, run, next) = (host.to_owned(), token.to_owned(), run.clone(), next.clone());
        workers.push(tokio::spawn(async move {
            let (mut client, mut tokens) = (Client::open(&host).await?, Vec::new());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= buyers {
                    return Ok::<_, Failure>(tokens);
                }
                let id = format!("buyer-{run}-{number}");
                let buyer = json!({ "id": id, "username": id, "defaultAddress": { "city": "Lyon" } });
                client.made("/v1/buyers", &token, &buyer).await?;
                let issued = client.made("/v1/tokens", &token, &json!({ "subject": id, "roles": ["buyer"] })).await?;
                tokens.push(issued["secret"].as_str().ok_or("no secret")?.to_owned());
            }
        }));
    }
    let mut tokens = Vec::new();
    for worker in workers {
        tokens.extend(worker.await??);
    }
    Ok((sku, tokens))
}

fn percentiles(what: &str, mut latencies: Vec<Duration>) {
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0;
    println!("{what}: p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, max {:.2} ms", at(0.5), at(0.99), at(0.999), at(1.0));
}

async fn flash(host: &str, token: &str, buyers: u64, units: u64, connections: u64) -> Result<(), Failure> {
    let (sku, tokens) = prepare(host, token, buyers, units).await?;
    let (tokens, next) = (Arc::new(tokens), Arc::new(AtomicU64::new(0)));
    let body = json!({ "lines": [{ "sku": sku, "quantity": 1 }] });
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(Client::open(host).await?);
    }
    let begun = Instant::now();
    let mut workers = Vec::new();
    for mut client in clients {
        let (tokens, next, body) = (tokens.clone(), next.clone(), body.clone());
        workers.push(tokio::spawn(async move {
            let (mut sold, mut refused, mut latencies) = (0_u64, 0_u64, Vec::new());
            while let Some(token) = tokens.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                let called = Instant::now();
                match client.call("POST", "/v1/orders", token, &body).await? {
                    (201, _) => sold += 1,
                    (409, problem) if problem["left"] == 0 => refused += 1,
                    (status, problem) => return Err(Failure::from(format!("{status} {problem}"))),
                }
                latencies.push(called.elapsed());
            }
            Ok((sold, refused, latencies))
        }));
    }
    let (mut sold, mut refused, mut latencies) = (0, 0, Vec::new());
    for worker in workers {
        let done = worker.await??;
        (sold, refused) = (sold + done.0, refused + done.1);
        latencies.extend(done.2);
    }
    let took = begun.elapsed();
    let mut client = Client::open(host).await?;
    let (_, level) = client.call("GET", &format!("/v1/skus/{sku}/stock"), token, &json!({})).await?;
    println!("flash sale: {buyers} buyers, {units} units, {connections} connections: {sold} sold, {refused} refused");
    println!("in {:.3} s: {:.0} calls/s; stock now {level}", took.as_secs_f64(), buyers as f64 / took.as_secs_f64());
    percentiles("latency", latencies);
    if sold == units.min(buyers) { Ok(()) } else { Err("sold another number than there was".into()) }
}

async fn orders(host: &str, token: &str, rate: u64, seconds: u64, connections: u64) -> Result<(), Failure> {
    let (sku, tokens) = prepare(host, token, 1_000, 1_000_000_000).await?;
    let (tokens, next) = (Arc::new(tokens), Arc::new(AtomicU64::new(0)));
    let body = json!({ "lines": [{ "sku": sku, "quantity": 1 }] });
    let (total, begun) = (rate * seconds, Instant::now() + Duration::from_millis(200));
    let mut workers = Vec::new();
    for _ in 0..connections {
        let (tokens, next, body, mut client) = (tokens.clone(), next.clone(), body.clone(), Client::open(host).await?);
        workers.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= total {
                    return Ok::<_, Failure>(latencies);
                }
                let due = begun + Duration::from_secs_f64(number as f64 / rate as f64);
                tokio::time::sleep_until(due.into()).await;
                let token = &tokens[(number % tokens.len() as u64) as usize];
                let (status, problem) = client.call("POST", "/v1/orders", token, &body).await?;
                if status != 201 {
                    return Err(format!("{status} {problem}").into());
                }
                latencies.push(due.elapsed());
            }
        }));
    }
    let mut latencies = Vec::new();
    for worker in workers {
        latencies.extend(worker.await??);
    }
    let took = begun.elapsed().as_secs_f64();
    println!(
        "orders: {rate}/s wanted for {seconds} s, {:.0}/s done over {connections} connections",
        total as f64 / took
    );
    percentiles("latency from when each was due", latencies);
    Ok(())
}
