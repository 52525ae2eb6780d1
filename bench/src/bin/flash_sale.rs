//! A flash sale of one SKU: durable guarded deductions with a ledger entry each, against Redis with the usual script, which
//! has no ledger. 50 connections each, over loopback, one thread of load; and in process.
//!
//! `cargo run --release --bin flash_sale -- [seconds a line] [folder]`: needs `redis-server` (Debian's package).
//!
//! - **MongoDB port**: a sale is one `insert` of a ledger line. A model keeps the SKU's `available` as the sum of its
//!   lines, in the same write, and the collection's validator refuses a line that would take it below zero.
//! - **till**: `Shop::write_off`, through the shop's till.
//! - First each way is shown to sell exactly what there is.

use bson::{RawDocument, doc, rawdoc};
use commerce::{Error, NewProduct, NewSku, Settings, Shop};
use sheafdb_bench::load::{Outcome, run_checked, run_framed};
use sheafdb_bench::message::{SLOT, Template, body};
use sheafdb_bench::server::Server;
use sheafdb_bench::{cpu, cpu_of};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::Store;

/// The allocator of the `sheaf` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONNECTIONS: usize = 50;
const PIPELINED: usize = 16;
const PLENTY: i64 = 1_000_000_000;
const FEW: i64 = 1_000;

const MODEL: &str = r#"
entity sku collection=skus id=string {
  expect count=1_000
  field name string size=12
  sum available of=movement by=skuId field=quantity
}
entity movement collection=movements id=long {
  expect count=1_000_000
  ref skuId to=sku required
  field quantity long required
  field buyer long
}
"#;

const SCRIPT: &str = "local left = tonumber(redis.call('GET', KEYS[1])) \
if left >= tonumber(ARGV[1]) then return redis.call('DECRBY', KEYS[1], ARGV[1]) end return -1";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let time = Duration::from_secs(arguments.next().map_or(5, |text| text.parse().expect("seconds")));
    let place = arguments.next().unwrap_or_else(|| ".".to_owned());
    let place = Path::new(&place);
    println!("{CONNECTIONS} connections, {} s a line, deductions/s:", time.as_secs());
    let always = redis(place, true, 1, time);
    let always_pipelined = redis(place, true, PIPELINED, time);
    let never = redis(place, false, 1, time);
    let never_pipelined = redis(place, false, PIPELINED, time);
    let port = mongo(place, 1, time);
    let port_batched = mongo(place, PIPELINED, time);
    let till = till(place, time);
    println!("MongoDB port / Redis always {:.2}, / Redis without persistence {:.2}", port / always, port / never);
    println!(
        "in batches of {PIPELINED}: / always {:.2}, / without {:.2}",
        port_batched / always_pipelined,
        port_batched / never_pipelined
    );
    println!(
        "till / Redis always pipelined {:.2}, / without persistence pipelined {:.2}",
        till / always_pipelined,
        till / never_pipelined
    );
}

/// Prints a line; `cpu` is what the server used for it.
fn show(name: &str, outcome: &Outcome, deductions: usize, cpu: Duration) -> f64 {
    let rate = outcome.per_second() * deductions as f64;
    let us = |part: f64| outcome.percentile(part).as_secs_f64() * 1e6;
    let each = cpu.as_secs_f64() * 1e6 / (outcome.count as f64 * deductions as f64);
    println!("{name:52} {rate:9.0}/s  p50 {:6.0} us  p99 {:6.0} us  server {each:5.1} us each", us(0.5), us(0.99));
    rate
}

struct Redis(Child, SocketAddr);

impl Redis {
    fn start(folder: &Path, durable: bool) -> Redis {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new("redis-server")
            .args(["--port", &address.port().to_string(), "--save", "", "--appendfsync", "always"])
            .args(["--appendonly", if durable { "yes" } else { "no" }])
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is there: apt-get install redis-server");
        for _ in 0..200 {
            if TcpStream::connect(address).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Redis(child, address)
    }

    fn call(&self, parts: &[&str]) -> String {
        let mut stream = TcpStream::connect(self.1).unwrap();
        stream.write_all(&command(parts)).unwrap();
        let mut reply = [0; 256];
        let count = stream.read(&mut reply).unwrap();
        String::from_utf8_lossy(&reply[..count]).into_owned()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(parts: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", parts.len()).into_bytes();
    parts.iter().for_each(|part| out.extend(format!("${}\r\n{part}\r\n", part.len()).into_bytes()));
    out
}

fn redis(place: &Path, durable: bool, pipelined: usize, time: Duration) -> f64 {
    let folder = tempfile::tempdir_in(place).unwrap();
    let redis = Redis::start(folder.path(), durable);
    let loaded = redis.call(&["SCRIPT", "LOAD", SCRIPT]);
    let sha = loaded.lines().nth(1).expect("a hash").to_owned();
    let request = command(&["EVALSHA", &sha, "1", "stock", "1"]).repeat(pipelined);
    let whole = |reply: &[u8]| reply.iter().filter(|byte| **byte == b'\n').count() >= pipelined;
    let sold = Cell::new(0_i64);
    let run = |stock: i64, time: Duration| {
        redis.call(&["SET", "stock", &stock.to_string()]);
        sold.set(0);
        let started = Instant::now();
        let count = |_: usize, reply: &[u8]| {
            let taken =
                reply.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b":") && line[1] != b'-').count();
            sold.set(sold.get() + taken as i64);
        };
        run_framed(redis.1, CONNECTIONS, || started.elapsed() >= time, |_, out| out.extend(&request), count, whole)
    };
    run(FEW, Duration::from_millis(500));
    assert_eq!(sold.get(), FEW, "Redis sells what there is");
    let used = cpu_of(&redis.0.id().to_string());
    let outcome = run(PLENTY, time);
    let used = cpu_of(&redis.0.id().to_string()) - used;
    let durability = if durable { "appendfsync always" } else { "no persistence" };
    show(&format!("Redis EVALSHA, no ledger, {durability}, pipelined {pipelined}"), &outcome, pipelined, used)
}

fn mongo(place: &Path, batch: usize, time: Duration) -> f64 {
    let folder = tempfile::tempdir_in(place).unwrap();
    let model = folder.path().join("sale.sheaf.kdl");
    std::fs::write(&model, MODEL).unwrap();
    let server = Server::start_with(&folder.path().join("data"), true, Some(&model));
    let mut client = server.client();
    let guard = rawdoc! { "$or": [{ "available": { "$gte": 0 } }, { "available": { "$exists": false } }] };
    client.run(&rawdoc! { "create": "skus", "validator": guard, "$db": "shop" });
    for (sku, units) in [("few", FEW), ("plenty", PLENTY)] {
        client.run(&rawdoc! { "insert": "skus", "documents": [{ "_id": sku, "name": "lamp" }], "$db": "shop" });
        let line = rawdoc! { "_id": -units, "skuId": sku, "quantity": units };
        client.run(&rawdoc! { "insert": "movements", "documents": [line], "$db": "shop" });
    }
    let (number, sold) = (Cell::new(0_i64), Cell::new(0_i64));
    let run = |sku: &str, time: Duration| {
        let line = rawdoc! { "_id": SLOT, "skuId": sku, "quantity": -1_i64, "buyer": SLOT };
        let line: &RawDocument = &line;
        let lines = vec![line; batch];
        let command = rawdoc! { "insert": "movements", "ordered": false, "$db": "shop" };
        let template = Template::with_documents(&command, "documents", &lines);
        sold.set(0);
        let next = |_: usize, out: &mut Vec<u8>| {
            template.write(out, |_| {
                number.set(number.get() + 1);
                number.get()
            });
        };
        let count = |_: usize, frame: &[u8]| {
            sold.set(sold.get() + i64::from(body(frame).get_i32("n").expect("an insert's reply")));
        };
        run_checked(server.address, CONNECTIONS, time, next, count)
    };
    run("few", Duration::from_secs(1));
    let left = client.run(&rawdoc! { "find": "skus", "filter": { "_id": "few", "available": 0 }, "$db": "shop" });
    let left = bson::Document::try_from(&*left).unwrap();
    let sold_out = !left.get_document("cursor").unwrap().get_array("firstBatch").unwrap().is_empty();
    let lines = client.run(&rawdoc! { "count": "movements", "query": { "skuId": "few" }, "$db": "shop" });
    assert_eq!(
        (sold.get(), sold_out, lines.get_i32("n").unwrap()),
        (FEW, true, FEW as i32 + 1),
        "the port sells what there is"
    );
    let used = server.cpu();
    let outcome = run("plenty", time);
    let name = format!("Sheaf, MongoDB port, ledger, durable, {batch} an insert");
    show(&name, &outcome, batch, server.cpu() - used)
}

fn till(place: &Path, time: Duration) -> f64 {
    let folder = tempfile::tempdir_in(place).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (rate, each) = runtime.block_on(async {
        let store = Store::open(folder.path()).unwrap();
        let shop = Shop::with(store.clone(), "shop", Settings::for_store(&store));
        shop.ensure_indexes().await.unwrap();
        let price = commerce::Money::new(100, "EUR".parse().unwrap());
        shop.add_product(&NewProduct::new("lamp", "Lamp", price)).await.unwrap();
        for (id, quantity) in [("few", FEW), ("plenty", PLENTY)] {
            let sku =
                NewSku { id: id.into(), product_id: "lamp".into(), price_minor: 100, quantity, ..NewSku::default() };
            shop.add_sku(&sku).await.unwrap();
        }
        let sold = sell(&shop, "few", Duration::from_secs(60), FEW as u64 * 2).await;
        let lines = store.collection("shop", "stockLedger").count(doc! { "skuId": "few" }, None).await.unwrap();
        assert_eq!((sold, lines), (FEW as u64, FEW as u64 + 1), "the till sells what there is");
        let (begun, used) = (Instant::now(), cpu());
        let sold = sell(&shop, "plenty", time, u64::MAX).await as f64;
        (sold / begun.elapsed().as_secs_f64(), (cpu() - used).as_secs_f64() * 1e6 / sold)
    });
    let name = "Sheaf, in process, the shop's till, ledger, durable";
    println!("{name:52} {rate:9.0}/s  process {each:.1} us each");
    rate
}

/// A thousand buyers at a time, for a while or until so many have asked; gives how many got one.
async fn sell(shop: &Shop, sku: &'static str, time: Duration, most: u64) -> u64 {
    let (asked, sold, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Instant::now() + time);
    let mut buyers = tokio::task::JoinSet::new();
    for _ in 0..1_000 {
        let (shop, asked, sold) = (shop.clone(), asked.clone(), sold.clone());
        buyers.spawn(async move {
            while Instant::now() < over {
                let number = asked.fetch_add(1, Ordering::Relaxed);
                if number >= most {
                    return;
                }
                match shop.write_off(sku, 1, &format!("{number}"), "bench").await {
                    Ok(_) => drop(sold.fetch_add(1, Ordering::Relaxed)),
                    Err(Error::OutOfStock { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        });
    }
    buyers.join_all().await;
    sold.load(Ordering::Relaxed)
}
