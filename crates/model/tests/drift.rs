//! Many writers, every kind of write, kills in between: afterwards the audit finds nothing.
//!
//! Every other round is played by a process of its own, through the driver, which is killed at some write; what it has left
//! is opened and audited here. `SHEAF_DRIFT_WRITES` sets how many writes there are (4,000 without), `SHEAF_DRIFT_ROUNDS` in how
//! many rounds (4 without).

use bson::{Document, doc};
use engine::Options;
use model::audit::Auditor;
use model::keep::active;
use model::keep::service::Service;
use model::problem::Sources;
use model::{Model, apply};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{Aggregate, BulkWrite, FindOneAndUpdate, Store, Update, WriteModel};
use wire::{Address, Config, Listen, Server};

const MODEL: &str = r#"
entity user collection=users id=int {
  field name string
  ref bestId to=product on-delete=nullify
  count orderCount of=order by=userId { where status paid shipped }
  sum spent of=order by=userId field=total { where status paid shipped }
  sum exact of=order by=userId field=weight
  max largest of=order by=userId field=total
  min smallest of=order by=userId field=total { where status paid }
  latest lastOrder of=order by=userId order=at { fields status total }
  recent recentOrders 3 of=order by=userId order=at { fields total }
  count sessionCount of=session by=userId
  bucket history of=order by=userId order=at items=5 bytes=2_000 collection=history { fields total status }
}
entity product collection=products id=int {
  field name string
  field price long
  count reviewCount of=review by=productId
}
entity order collection=orders id=int {
  ref userId to=user on-delete=cascade
  live buyer via=userId { fields name }
  enum status created paid shipped
  field total long
  field weight decimal
  field at int
  field city string
  embed items many max=4 key=line {
    field line int
    ref productId to=product
    snapshot via=productId { fields price; field productName from=name }
    field quantity int
  }
}
entity review collection=reviews id=int {
  ref orderId to=order
  ref productId to=product on-delete=restrict
  field at int
  live via=orderId { field buyerName from="buyer.name" }
  live product via=productId { fields name reviewCount }
}
entity article collection=articles id=int {
  ref productId to=product on-delete=cascade
  field body string
  field note string
  field quantity int
  split rest collection=articleRests { fields note }
  compress body above=100
}
entity sku collection=skus id=int { stock available kept ledger=ledger holds=holds held=held hold-for="10m" }
entity session collection=sessions id=int {
  ref userId to=user on-delete=cascade
  field expiresAt date
  expire expiresAt
}
edge friends from=user to=user mutual collection=friends count-from=friendCount { enum kind close far; where kind close }
edge follows from=user to=product directed collection=follows count-from=followingCount count-to=followerCount
timeline shelf along=follows of=article by=productId order=quantity cap=3 mode=hybrid threshold=6 collection=shelves { fields quantity }
rollup byCity of=order collection=byCity {
  by city; where status paid shipped; count orders; sum sales field=total; min least field=total; max last field=at
}
rollup byProduct of=order collection=byProduct unwind=items {
  by "items.productId"; sum units field="items.quantity"; max most field="items.quantity"; min first field=at
}
"#;

const THREADS: u64 = 8;
const USERS: u64 = 30;
const PRODUCTS: u64 = 8;
const ORDERS: u64 = 400;

// Nobody waits longer for what follows in batches.
const SETTLE: Duration = Duration::from_secs(120);

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> i32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound) as i32
    }

    fn status(&mut self) -> &'static str {
        ["created", "paid", "shipped"][self.below(3) as usize]
    }

    fn order(&mut self) -> Document {
        let items: Vec<Document> = (0..self.below(4))
            .map(|line| doc! { "line": line, "productId": self.below(PRODUCTS), "quantity": self.below(5) })
            .collect();
        let city = ["Lyon", "Porto", "Ghent"][self.below(3) as usize];
        let weight: bson::Decimal128 = format!("{}.{}", self.below(50), self.below(100)).parse().expect("a decimal");
        doc! {
            "_id": self.below(ORDERS), "userId": self.below(USERS), "status": self.status(),
            "total": i64::from(self.below(100)), "weight": weight, "at": self.below(50),
            "city": city, "items": items,
        }
    }
}

fn parsed() -> Model {
    model::parse(Sources::single("model.sheaf.kdl", MODEL)).unwrap_or_else(|problems| panic!("{problems}")).model
}

/// One random write. What is refused (a duplicate id, a conflict, a restricted delete) is part of the game.
async fn write(store: &Store, dice: &mut Dice) -> store::Result<()> {
    let collection = |name: &str| store.collection("drift", name);
    let (users, products, orders) = (collection("users"), collection("products"), collection("orders"));
    let (user, product, id) = (dice.below(USERS), dice.below(PRODUCTS), dice.below(ORDERS));
    let name = format!("name {}", dice.below(1_000));
    match dice.below(30) {
        0 => users.insert_one(doc! { "_id": user, "name": name, "bestId": product }, None).await?,
        1 | 2 => {
            users.update_one(doc! { "_id": user }, doc! { "$set": { "name": name } }, Update::default(), None).await?;
        }
        3 => {
            users.replace_one(doc! { "_id": user }, doc! { "name": name }, Update::default(), None).await?;
        }
        4 if dice.below(3) == 0 => {
            users.delete_one(doc! { "_id": user }, None).await?;
        }
        5 => products.insert_one(doc! { "_id": product, "name": name, "price": 5_i64 }, None).await?,
        6 => {
            let change = doc! { "$set": { "name": name }, "$inc": { "price": 1_i64 } };
            products.update_one(doc! { "_id": product }, change, Update::default(), None).await?;
        }
        7 => {
            products.delete_one(doc! { "_id": product }, None).await?;
        }
        8..=11 => orders.insert_one(dice.order(), None).await?,
        12 => {
            let change = doc! { "$set": { "status": dice.status() } };
            orders.update_many(doc! { "userId": user }, change, Update::default(), None).await?;
        }
        13 => {
            let change = doc! { "$set": { "userId": user, "at": dice.below(50) } };
            orders.update_one(doc! { "_id": id }, change, Update::default(), None).await?;
        }
        14 => {
            let change = doc! { "$inc": { "total": i64::from(dice.below(20)) }, "$set": { "city": "Turin" } };
            let options = FindOneAndUpdate { upsert: dice.below(2) == 0, ..FindOneAndUpdate::default() };
            orders.find_one_and_update(doc! { "_id": id }, change, options, None).await?;
        }
        15 => {
            let change = doc! { "$unset": { "userId": 1, "total": 1 }, "$pop": { "items": 1 } };
            orders.update_one(doc! { "_id": id }, change, Update::default(), None).await?;
        }
        16 => {
            orders.find_one_and_delete(doc! { "userId": user }, FindOneAndUpdate::default(), None).await?;
        }
        17 => {
            let mut order = dice.order();
            let id = order.remove("_id").expect("it has one");
            orders.replace_one(doc! { "_id": id }, order, Update::default(), None).await?;
        }
        18 => bulk(store, dice).await?,
        19 => merge(store, dice).await?,
        20 | 21 => transaction(store, dice).await?,
        22 => {
            let at = bson::DateTime::from_millis(1_000 + i64::from(dice.below(2)) * 4_000_000_000_000);
            let session = doc! { "_id": dice.below(200), "userId": user, "expiresAt": at };
            collection("sessions").insert_one(session, None).await?;
            if let (0, Some(engine)) = (dice.below(20), store.engine()) {
                engine.delete_expired()?;
            }
        }
        23 => {
            let review = doc! { "_id": dice.below(150), "orderId": id, "productId": product };
            collection("reviews").insert_one(review, None).await?;
        }
        24 if dice.below(2) == 0 => {
            let change = doc! { "$set": { "orderId": id, "productId": product } };
            let filter = doc! { "_id": dice.below(150) };
            collection("reviews").update_one(filter, change, Update::default(), None).await?;
        }
        24 => {
            collection("reviews").delete_one(doc! { "_id": dice.below(150) }, None).await?;
        }
        25 => {
            let kind = if dice.below(2) == 0 { "close" } else { "far" };
            let row = doc! { "from": user, "to": dice.below(USERS) };
            match dice.below(3) {
                0 => {
                    collection("friends").delete_one(row, None).await?;
                }
                1 => {
                    let change = doc! { "$set": { "kind": kind } };
                    collection("friends").update_one(row, change, Update::default(), None).await?;
                }
                _ => {
                    let mut row = row;
                    row.insert("kind", kind);
                    collection("friends").insert_one(row, None).await?;
                }
            }
        }
        26 | 27 => article(store, dice).await?,
        28 => stock(store, dice).await?,
        _ => {
            let row = doc! { "from": user, "to": product };
            match dice.below(3) {
                0 => {
                    collection("follows").delete_many(row, None).await?;
                }
                _ => collection("follows").insert_one(row, None).await?,
            }
        }
    }
    Ok(())
}

/// Articles are long, have a part of their own, and come onto the shelves of those who follow their product.
async fn article(store: &Store, dice: &mut Dice) -> store::Result<()> {
    let articles = store.collection("drift", "articles");
    let (id, product, quantity) = (dice.below(60), dice.below(PRODUCTS), dice.below(40));
    let body = format!("{} ", dice.below(1_000)).repeat(60);
    match dice.below(6) {
        0 => {
            articles.delete_one(doc! { "_id": id }, None).await?;
        }
        1 => {
            let change = doc! { "$set": { "productId": product, "note": body } };
            articles.update_one(doc! { "_id": id }, change, Update::default(), None).await?;
        }
        2 => {
            let change = doc! { "$set": { "quantity": quantity, "body": body } };
            articles.update_many(doc! { "productId": product }, change, Update::default(), None).await?;
        }
        3 => {
            let article = doc! { "productId": product, "quantity": quantity };
            articles.replace_one(doc! { "_id": id }, article, Update::default(), None).await?;
        }
        _ => {
            let article = doc! { "_id": id, "productId": product, "quantity": quantity, "body": body, "note": "n" };
            articles.insert_one(article, None).await?;
        }
    }
    Ok(())
}

/// Goods come and go, are set aside, sold, and let go again.
async fn stock(store: &Store, dice: &mut Dice) -> store::Result<()> {
    let collection = |name: &str| store.collection("drift", name);
    let (sku, id) = (dice.below(5), dice.below(200));
    match dice.below(8) {
        0 => collection("skus").insert_one(doc! { "_id": sku }, None).await?,
        1 => collection("ledger").insert_one(doc! { "item": sku, "quantity": dice.below(20) - 5 }, None).await?,
        2 => {
            let change = doc! { "$set": { "item": sku, "quantity": 1 + dice.below(3) } };
            collection("holds")
                .update_one(doc! { "_id": id, "sold": { "$ne": true } }, change, Update::default(), None)
                .await?;
        }
        3 => {
            let change = doc! { "$set": { "sold": true } };
            collection("holds")
                .update_many(doc! { "_id": { "$lt": 10 + id % 20 } }, change, Update::default(), None)
                .await?;
        }
        4 => {
            collection("holds").delete_one(doc! { "_id": id, "sold": { "$ne": true } }, None).await?;
        }
        5 => {
            let mut session = store.start_session().await?;
            session.start_transaction().await?;
            let line = doc! { "item": sku, "quantity": 1 + dice.below(5) };
            collection("ledger").insert_one(line, Some(&mut session)).await?;
            let hold = doc! { "_id": id, "item": sku, "quantity": 1 };
            collection("holds").insert_one(hold, Some(&mut session)).await?;
            session.commit_transaction().await?;
        }
        _ => {
            let hold = doc! { "_id": id, "item": sku, "quantity": 1 + dice.below(4) };
            collection("holds").insert_one(hold, None).await?;
        }
    }
    Ok(())
}

async fn bulk(store: &Store, dice: &mut Dice) -> store::Result<()> {
    let (a, b) = (dice.below(ORDERS), dice.below(ORDERS));
    let models = vec![
        WriteModel::Insert(dice.order()),
        WriteModel::update_one(doc! { "_id": a }, doc! { "$set": { "status": dice.status() } }),
        WriteModel::update_many(doc! { "userId": dice.below(USERS) }, doc! { "$inc": { "total": 1_i64 } }),
        WriteModel::delete_one(doc! { "_id": b }),
    ];
    let options = BulkWrite { ordered: dice.below(2) == 0, ..BulkWrite::default() };
    store.collection("drift", "orders").bulk_write(models, options, None).await?;
    Ok(())
}

async fn merge(store: &Store, dice: &mut Dice) -> store::Result<()> {
    let pipeline = vec![
        doc! { "$match": { "userId": dice.below(USERS) } },
        doc! { "$limit": 5 },
        doc! { "$project": { "at": { "$add": [{ "$ifNull": ["$at", 0] }, 1] }, "status": dice.status() } },
        doc! { "$merge": { "into": "orders", "whenMatched": "merge", "whenNotMatched": "discard" } },
    ];
    let cursor = store.collection("drift", "orders").aggregate(pipeline, Aggregate::default(), None).await?;
    cursor.collect(None).await?;
    Ok(())
}

/// A few writes in one transaction, which may be aborted.
async fn transaction(store: &Store, dice: &mut Dice) -> store::Result<()> {
    let mut session = store.start_session().await?;
    session.start_transaction().await?;
    for _ in 0..1 + dice.below(5) {
        let (users, orders) = (store.collection("drift", "users"), store.collection("drift", "orders"));
        let (user, id) = (dice.below(USERS), dice.below(ORDERS));
        let name = format!("name {}", dice.below(1_000));
        let session = Some(&mut session);
        let done = match dice.below(8) {
            6 => {
                let review = doc! { "_id": dice.below(150), "orderId": id, "productId": dice.below(PRODUCTS) };
                store.collection("drift", "reviews").insert_one(review, session).await
            }
            7 => {
                let reviews = store.collection("drift", "reviews");
                let change = doc! { "$set": { "orderId": id, "productId": dice.below(PRODUCTS) } };
                let filter = doc! { "_id": dice.below(150) };
                reviews.update_one(filter, change, Update::default(), session).await.map(|_| ())
            }
            0 => orders.insert_one(dice.order(), session).await,
            1 => {
                let change = doc! { "$set": { "status": dice.status(), "userId": user } };
                orders.update_one(doc! { "_id": id }, change, Update::default(), session).await.map(|_| ())
            }
            2 => orders.delete_one(doc! { "_id": id }, session).await.map(|_| ()),
            3 => {
                let change = doc! { "$set": { "name": name } };
                users.update_one(doc! { "_id": user }, change, Update::default(), session).await.map(|_| ())
            }
            4 => users.insert_one(doc! { "_id": user, "name": name }, session).await,
            _ => {
                let options = Update::default();
                users.replace_one(doc! { "_id": user }, doc! { "name": name }, options, session).await.map(|_| ())
            }
        };
        done?;
    }
    if dice.below(6) == 0 { session.abort_transaction().await } else { session.commit_transaction().await }
}

/// What a process of its own gets: the folder, the round, and how many writes it may make at most.
const CHILD: &str = "SHEAF_DRIFT_CHILD";

/// How many writes a child makes between two lines about them.
const TOLD_EVERY: u64 = 50;

/// The writers of a round; gives how many writes were done, and how many refused.
async fn writers(store: &Store, round: u64, writes: u64, done: &Arc<AtomicU64>) -> (u64, u64) {
    let mut tasks = Vec::new();
    for thread in 0..THREADS {
        let (store, all) = (store.clone(), done.clone());
        tasks.push(tokio::spawn(async move {
            let mut dice = Dice(round * 100 + thread);
            let (mut done, mut refused) = (0_u64, 0_u64);
            for _ in 0..writes / THREADS {
                match write(&store, &mut dice).await {
                    Ok(()) => done += 1,
                    Err(error) => {
                        let expected = matches!(error.code, Some(11000 | 112 | 121 | 251 | 20));
                        assert!(expected && !error.message.contains("nested"), "{error}");
                        refused += 1;
                    }
                }
                all.fetch_add(1, Ordering::Relaxed);
            }
            (done, refused)
        }));
    }
    let (mut done, mut refused) = (0, 0);
    for task in tasks {
        let (more_done, more_refused) = task.await.expect("the writer ends well");
        (done, refused) = (done + more_done, refused + more_refused);
    }
    (done, refused)
}

async fn round(folder: &Path, model: &Model, round: u64, writes: u64) -> (u64, u64) {
    let (engine, models) = active::open(folder, Options::system()).expect("the folder opens");
    let store = Store::embedded(engine.clone());
    let actions = apply::plan(&store, "drift", model, false).await.expect("a plan");
    assert!(round == 0 || actions.list.is_empty(), "{:?}", actions.list);
    apply::run(&store, "drift", model, &actions.list, &mut |_| {}).await.expect("is applied");
    let service = Service::start(&engine, &models).expect("starts");
    let written = writers(&store, round, writes, &Arc::default()).await;
    assert!(service.settle(&engine, &models, SETTLE).expect("settles"), "{:?}", service.status());
    drop(service);
    let mut auditor = Auditor::new(&store, "drift", model).expect("an audit");
    let findings = auditor.run().await.expect("is audited");
    for finding in &findings {
        assert_eq!((finding.drifted, finding.lagging), (0, 0), "round {round}: {finding:?}");
        assert!(finding.skipped.is_none(), "{finding:?}");
    }
    let checked: u64 = findings.iter().map(|finding| finding.checked).sum();
    assert!(checked > 500, "{findings:?}");
    engine.close().expect("closes");
    written
}

/// A round in a process of its own, which is killed once it has made some of its writes; gives how many it told of.
fn killed_round(folder: &Path, round: u64, writes: u64) -> u64 {
    let mut dice = Dice(round);
    let most = writes / 2 + dice.below(writes / 2) as u64;
    let given = format!("{}\n{round}\n{writes}", folder.display());
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "no_write_of_any_kind_from_many_threads_leaves_drift", "--nocapture"])
        .env(CHILD, given)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut told = 0;
    for line in BufReader::new(child.stdout.take().expect("its output")).lines() {
        let line = line.expect("text");
        if let Some(count) = line.strip_prefix("written ").and_then(|count| count.parse().ok()) {
            told = count;
        }
        if told >= most {
            break;
        }
    }
    child.kill().expect("it is killed");
    child.wait().expect("it is gone");
    assert!(told > 0, "the child wrote nothing");
    told
}

/// What the child does: it serves the folder and writes through the driver until it is killed.
#[allow(clippy::print_stdout, reason = "the process that kills it reads how far it is")]
async fn child(folder: &Path, round: u64, writes: u64) {
    let (engine, models) = active::open(folder, Options::system()).expect("the folder opens");
    let listen = vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }];
    let server = Server::bind(Config { listen, ..Config::default() }, engine.clone()).await.expect("binds");
    let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
    tokio::spawn(server.serve(std::future::pending()));
    let _service = Service::start(&engine, &models).expect("starts");
    let store = Store::connect(&format!("mongodb://{address}/?replicaSet=sheaf")).await.expect("connects");
    let done = Arc::new(AtomicU64::new(0));
    let told = done.clone();
    tokio::spawn(async move {
        let mut last = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let now = told.load(Ordering::Relaxed);
            if now >= last + TOLD_EVERY {
                println!("written {now}");
                last = now;
            }
        }
    });
    writers(&store, round, writes, &done).await;
    println!("written {}", done.load(Ordering::Relaxed));
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn no_write_of_any_kind_from_many_threads_leaves_drift() {
    if let Ok(given) = std::env::var(CHILD) {
        let parts: Vec<&str> = given.lines().collect();
        let number = |part: &str| part.parse().expect("a number");
        return child(Path::new(parts[0]), number(parts[1]), number(parts[2])).await;
    }
    let set =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default);
    let (writes, rounds) = (set("SHEAF_DRIFT_WRITES", 4_000), set("SHEAF_DRIFT_ROUNDS", 4));
    let folder = tempfile::tempdir().expect("a folder");
    let model = parsed();
    let begun = Instant::now();
    let (mut done, mut refused, mut killed) = (0, 0, 0);
    for number in 0..rounds {
        if number % 2 == 1 {
            killed += killed_round(folder.path(), number, writes / rounds);
            continue;
        }
        // What the killed process has left is audited by the round that follows it.
        let (more_done, more_refused) = round(folder.path(), &model, number, writes / rounds).await;
        (done, refused) = (done + more_done, refused + more_refused);
    }
    round(folder.path(), &model, rounds, THREADS).await;
    assert!(done > refused, "{done} done, {refused} refused");
    eprintln!(
        "{done} writes done, {refused} refused, {killed} more by {} processes that were killed, in {:?}",
        rounds / 2,
        begun.elapsed()
    );
}
