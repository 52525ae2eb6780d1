//! An order's detail: one document with all that a page shows, the same from six collections by five `$lookup`s, and from
//! six tables of PostgreSQL by five joins; each over connections on loopback, which ask again when they have the answer.

use crate::rival::Postgres;
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};
use sheafdb_bench::Dice;
use sheafdb_bench::load::run;
use sheafdb_bench::message::{SLOT, Template, is_ok};
use sheafdb_bench::server::Server;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

const CONNECTIONS: [usize; 2] = [1, 16];
const TIME: Duration = Duration::from_secs(3);
const ITEMS: i64 = 3;
const EVENTS: &str = "left the depot in Lyon, arrived at the depot in Porto, is on the way to you";

/// What is stored of an order, part by part.
struct Parts {
    user: RawDocumentBuf,
    address: RawDocumentBuf,
    payment: RawDocumentBuf,
    parcel: RawDocumentBuf,
    items: Vec<RawDocumentBuf>,
}

fn parts(number: i64) -> Parts {
    let mut dice = Dice::new(number as u64);
    let item = |line: i64, dice: &mut Dice| {
        rawdoc! {
            "_id": number * ITEMS + line, "orderId": number, "sku": dice.below(10_000) as i64,
            "name": "Desk lamp, brass, with a long neck", "image": "https://img.example/lamps/brass-17.jpg",
            "price": dice.below(10_000) as i64, "quantity": 1 + dice.below(4) as i64,
        }
    };
    Parts {
        user: rawdoc! { "_id": number, "name": format!("buyer {number}"), "phone": "+33 1 23 45 67 89", "level": "gold" },
        address: rawdoc! {
            "_id": number, "receiver": format!("buyer {number}"), "city": "Lyon", "street": "12 rue de la Republique",
            "code": "69002",
        },
        payment: rawdoc! { "_id": number, "orderId": number, "method": "card", "amount": 12_000_i64, "status": "captured" },
        parcel: rawdoc! { "_id": number, "orderId": number, "carrier": "post", "tracking": format!("T{number:012}"), "events": EVENTS },
        items: (0..ITEMS).map(|line| item(line, &mut dice)).collect(),
    }
}

fn head(number: i64) -> RawDocumentBuf {
    rawdoc! {
        "_id": number, "number": format!("2026-{number:09}"), "status": "shipped", "total": 12_000_i64, "currency": "EUR",
        "created": bson::DateTime::from_millis(1_700_000_000_000 + number * 1000), "userId": number, "addressId": number,
    }
}

fn embedded(number: i64) -> RawDocumentBuf {
    let (mut order, parts) = (head(number), parts(number));
    order.append(bson::raw::cstr!("user"), parts.user);
    order.append(bson::raw::cstr!("address"), parts.address);
    order.append(bson::raw::cstr!("payment"), parts.payment);
    order.append(bson::raw::cstr!("parcel"), parts.parcel);
    order.append(bson::raw::cstr!("items"), parts.items.into_iter().collect::<RawArrayBuf>());
    order
}

/// Measures and prints the table.
pub fn measure(place: &Path, rival: &Postgres, orders: i64) {
    let folder = tempfile::tempdir_in(place).unwrap();
    let server = Server::start(folder.path(), true);
    fill(&server, orders);
    fill_rival(rival, orders);
    println!("detail of one of {orders} orders, {ITEMS} items each; microseconds over loopback");
    println!("{:48} {:>5} {:>9} {:>9} {:>9}", "", "conns", "reads/s", "p50", "p99");
    for connections in CONNECTIONS {
        let found = sheaf(&server, "Sheaf, embedded: find by _id", &by_id("details"), connections, orders);
        let joined = sheaf(&server, "Sheaf, five $lookups", &lookups(), connections, orders);
        let rows = sql(rival, "PostgreSQL, five joins", JOINS, ITEMS as usize, connections, orders);
        let jsonb =
            sql(rival, "PostgreSQL, one jsonb", "SELECT doc FROM details WHERE id = $1", 1, connections, orders);
        println!(
            "  embedded: {:.1} times as fast as five $lookups, {:.1} as five joins, {:.1} as one jsonb (p50); five $lookups \
             against five joins {:.1}",
            joined / found,
            rows / found,
            jsonb / found,
            rows / joined,
        );
    }
}

fn show(name: &str, connections: usize, rate: f64, p50: Duration, p99: Duration) -> f64 {
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    println!("{name:48} {connections:5} {rate:9.0} {:9.0} {:9.0}", us(p50), us(p99));
    us(p50)
}

fn sheaf(server: &Server, name: &str, template: &Template, connections: usize, orders: i64) -> f64 {
    let mut dice = Dice::new(connections as u64);
    let outcome = run(server.address, connections, TIME, |_, out| {
        template.write(out, |_| dice.below(orders as u64) as i64);
    });
    show(name, connections, outcome.per_second(), outcome.percentile(0.5), outcome.percentile(0.99))
}

fn by_id(collection: &str) -> Template {
    Template::new(&rawdoc! { "find": collection, "filter": { "_id": SLOT }, "limit": 1_i64, "$db": "shop" })
}

fn lookups() -> Template {
    let mut pipeline = RawArrayBuf::new();
    pipeline.push(rawdoc! { "$match": { "_id": SLOT } });
    let parts = [
        ("users", "userId", "_id"),
        ("addresses", "addressId", "_id"),
        ("payments", "_id", "orderId"),
        ("parcels", "_id", "orderId"),
        ("items", "_id", "orderId"),
    ];
    for (from, local, foreign) in parts {
        let lookup = rawdoc! { "from": from, "localField": local, "foreignField": foreign, "as": from };
        pipeline.push(rawdoc! { "$lookup": lookup });
    }
    Template::new(&rawdoc! { "aggregate": "orders", "pipeline": pipeline, "cursor": {}, "$db": "shop" })
}

const JOINS: &str = "SELECT o.*, u.name, u.phone, u.level, a.receiver, a.city, a.street, a.code, p.method, p.amount, p.status, \
    l.carrier, l.tracking, l.events, i.sku, i.name, i.image, i.price, i.quantity FROM orders o \
    JOIN users u ON u.id = o.user_id JOIN addresses a ON a.id = o.address_id JOIN payments p ON p.order_id = o.id \
    JOIN parcels l ON l.order_id = o.id JOIN items i ON i.order_id = o.id WHERE o.id = $1";

fn sql(rival: &Postgres, name: &str, query: &str, rows: usize, connections: usize, orders: i64) -> f64 {
    let begun = Instant::now();
    let mut waits: Vec<Duration> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..connections)
            .map(|number| {
                scope.spawn(move || {
                    let (mut client, mut dice) = (rival.client(), Dice::new(number as u64));
                    let statement = client.prepare(query).unwrap();
                    let (mut waits, until) = (Vec::new(), Instant::now() + TIME);
                    while Instant::now() < until {
                        let asked = Instant::now();
                        let found = client.query(&statement, &[&(dice.below(orders as u64) as i64)]).unwrap();
                        waits.push(asked.elapsed());
                        assert_eq!(found.len(), rows);
                    }
                    waits
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let rate = waits.len() as f64 / begun.elapsed().as_secs_f64();
    waits.sort_unstable();
    let at = |part: f64| waits[(waits.len() as f64 * part) as usize];
    show(name, connections, rate, at(0.5), at(0.99))
}

fn insert(server: &Server, collection: &str, documents: &[RawDocumentBuf]) {
    for documents in documents.chunks(1000) {
        let documents: Vec<&RawDocument> = documents.iter().map(|document| &**document).collect();
        let mut request = Vec::new();
        let command = rawdoc! { "insert": collection, "ordered": true, "$db": "shop" };
        Template::with_documents(&command, "documents", &documents).write(&mut request, |_| 0);
        assert!(is_ok(&server.client().send(&request)));
    }
}

fn fill(server: &Server, orders: i64) {
    for start in (0..orders).step_by(1000) {
        let numbers = start..(start + 1000).min(orders);
        let all: Vec<Parts> = numbers.clone().map(parts).collect();
        let of = |part: fn(&Parts) -> &RawDocumentBuf| all.iter().map(|parts| part(parts).clone()).collect::<Vec<_>>();
        insert(server, "users", &of(|parts| &parts.user));
        insert(server, "addresses", &of(|parts| &parts.address));
        insert(server, "payments", &of(|parts| &parts.payment));
        insert(server, "parcels", &of(|parts| &parts.parcel));
        insert(server, "items", &all.iter().flat_map(|parts| parts.items.clone()).collect::<Vec<_>>());
        insert(server, "orders", &numbers.clone().map(head).collect::<Vec<_>>());
        insert(server, "details", &numbers.map(embedded).collect::<Vec<_>>());
    }
    let mut client = server.client();
    for collection in ["payments", "parcels", "items"] {
        let index = rawdoc! { "key": { "orderId": 1 }, "name": "order" };
        client.run(&rawdoc! { "createIndexes": collection, "indexes": [index], "$db": "shop" });
    }
    client.run(&rawdoc! { "fsync": 1, "$db": "admin" });
}

fn fill_rival(rival: &Postgres, orders: i64) {
    let mut client = rival.client();
    let script = "CREATE TABLE users (id bigint PRIMARY KEY, name text, phone text, level text); \
        CREATE TABLE addresses (id bigint PRIMARY KEY, receiver text, city text, street text, code text); \
        CREATE TABLE orders (id bigint PRIMARY KEY, number text, status text, total bigint, currency text, created bigint, \
            user_id bigint, address_id bigint); \
        CREATE TABLE payments (id bigint PRIMARY KEY, order_id bigint, method text, amount bigint, status text); \
        CREATE TABLE parcels (id bigint PRIMARY KEY, order_id bigint, carrier text, tracking text, events text); \
        CREATE TABLE items (id bigint PRIMARY KEY, order_id bigint, sku bigint, name text, image text, price bigint, quantity bigint); \
        CREATE TABLE details (id bigint PRIMARY KEY, doc jsonb);";
    client.batch_execute(script).unwrap();
    let of = |table: &str, part: &dyn Fn(i64) -> Vec<RawDocumentBuf>| {
        let mut client = rival.client();
        let mut copy = client.copy_in(&format!("COPY {table} FROM STDIN")).unwrap();
        for row in (0..orders).flat_map(part) {
            let fields: Vec<String> = row.iter().map(|field| text(field.unwrap().1)).collect();
            writeln!(copy, "{}", fields.join("\t")).unwrap();
        }
        copy.finish().unwrap();
    };
    of("users", &|number| vec![parts(number).user]);
    of("addresses", &|number| vec![parts(number).address]);
    of("payments", &|number| vec![parts(number).payment]);
    of("parcels", &|number| vec![parts(number).parcel]);
    of("items", &|number| parts(number).items);
    of("orders", &|number| vec![head(number)]);
    let mut copy = client.copy_in("COPY details FROM STDIN").unwrap();
    for number in 0..orders {
        writeln!(copy, "{number}\t{}", sheafdb_bench::json(&embedded(number))).unwrap();
    }
    copy.finish().unwrap();
    for table in ["payments", "parcels", "items"] {
        client.batch_execute(&format!("CREATE INDEX ON {table} (order_id)")).unwrap();
    }
    client.batch_execute("VACUUM ANALYZE").unwrap();
}

fn text(value: bson::RawBsonRef<'_>) -> String {
    match value {
        bson::RawBsonRef::Int64(number) => number.to_string(),
        bson::RawBsonRef::DateTime(time) => time.timestamp_millis().to_string(),
        bson::RawBsonRef::String(text) => text.to_owned(),
        other => panic!("{other:?} is in no table"),
    }
}
