//! `sheaf demo`: a shop and a social scene on the embedded store, with their models kept, then the MongoDB port.

use crate::serve::{self, Failure};
use bson::{DateTime, doc};
use clap::Args;
use commerce::{Address, Faults, Line, Money, NewProduct, NewSku, OrderRequest, Settings, Shop, Simulator};
use engine::Engine;
use model::Model;
use model::keep::active;
use model::problem::Sources;
use social::{Network, NewPost, PageRequest};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use store::{Find, Store, Update};

/// The shop's model, as it stands in `models/`.
const SHOP: [(&str, &str); 2] = [
    ("catalogue.sheaf.kdl", include_str!("../../../../models/shop/catalogue.sheaf.kdl")),
    ("orders.sheaf.kdl", include_str!("../../../../models/shop/orders.sheaf.kdl")),
];

const BUYERS: usize = 200;
const UNITS: i64 = 50;
const FOLLOWERS: usize = 1_000;
const POSTS: usize = 10;
/// Readers who arrive at once.
const AT_ONCE: usize = 64;
/// How long the demo's token lives.
const TOKEN_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// The flags.
#[derive(Args, Debug, Clone)]
pub(crate) struct Arguments {
    /// End after the scene instead of serving
    #[arg(long)]
    exit: bool,
    /// Keep the data in this folder (default: in memory)
    #[arg(long, value_name = "DIR", env = "SHEAF_DATA")]
    data: Option<PathBuf>,
    /// TCP port (0 takes any free one)
    #[arg(long, value_name = "N", env = "SHEAF_PORT", default_value_t = 27017)]
    port: u16,
    /// Port of the HTTP API (0 takes any free one)
    #[arg(long, value_name = "N", env = "SHEAF_HTTP_PORT", default_value_t = 8080)]
    http_port: u16,
}

/// A line of the table: what happened, how much of it, how fast.
struct Row {
    what: String,
    result: String,
    took: Duration,
    count: u64,
}

/// Plays the scene, prints it, and serves.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let options = engine::Options::system();
    let (engine, temporary) = match &arguments.data {
        Some(folder) => {
            let (engine, _) = active::open(folder, options).map_err(|error| Failure::Engine(folder.clone(), error))?;
            (engine, None)
        }
        None => {
            let folder = std::env::temp_dir().join(format!("sheaf-demo-{}", std::process::id()));
            let (engine, _) = active::open(&folder, options).map_err(|error| Failure::Engine(folder.clone(), error))?;
            (engine, Some(folder))
        }
    };
    for (database, sources) in [("shop", &SHOP[..]), ("social", &social::MODEL[..])] {
        active::activate(&engine, database, &parsed(sources)?).map_err(|error| Failure::Demo(error.to_string()))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let rows = runtime.block_on(scene(&Store::embedded(engine.clone())));
    let outcome = rows.map_err(|error| Failure::Demo(error.to_string())).and_then(|rows| {
        print(&rows);
        if arguments.exit { Ok(()) } else { serve_on(&runtime, engine.clone(), &arguments) }
    });
    engine.close().map_err(Failure::Close)?;
    if let Some(folder) = temporary {
        std::fs::remove_dir_all(folder)?;
    }
    outcome
}

fn parsed(files: &[(&str, &str)]) -> Result<Model, Failure> {
    let mut sources = Sources::default();
    for (name, text) in files {
        sources.push((*name).to_owned(), (*text).to_owned());
    }
    let checked = model::parse(sources).map_err(|problems| Failure::Demo(format!("{problems:?}")))?;
    Ok(checked.model)
}

async fn scene(store: &Store) -> Outcome<Vec<Row>> {
    let run = format!("{:x}", DateTime::now().timestamp_millis());
    let mut rows = shop_scene(store, &run).await?;
    rows.extend(social_scene(store, &run).await?);
    Ok(rows)
}

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn shop_scene(store: &Store, run: &str) -> Outcome<Vec<Row>> {
    let settings = Settings { callback_secret: run.as_bytes().to_vec(), ..Settings::for_store(store) };
    let provider = Simulator::new(1, Faults::NONE, run.as_bytes(), settings.clock.clone());
    let shop = Shop::with(store.clone(), "shop", settings);
    shop.ensure_indexes().await?;
    let mut rows = Vec::new();
    let begun = Instant::now();
    let buyers: Vec<_> = (0..BUYERS)
        .map(|buyer| {
            let id = format!("{run}-buyer-{buyer}");
            doc! { "_id": id, "username": format!("{run} buyer {buyer}"), "phone": "", "createdAt": DateTime::now() }
        })
        .collect();
    store.collection("shop", "users").insert_many(buyers, None).await?;
    rows.push(row("buyers signed up", format!("{BUYERS} users"), begun, BUYERS as u64));

    let (product, sku) = (format!("{run}-lamp"), format!("{run}-lamp-brass"));
    let price = Money::new(4_900, "EUR".parse()?);
    let image_url = "https://example.com/lamp.jpg".to_owned();
    shop.add_product(&NewProduct { image_url, ..NewProduct::new(&product, "Desk lamp", price) }).await?;
    let brass = [("finish".to_owned(), "brass".to_owned())].into();
    let lamp =
        NewSku { id: sku.clone(), product_id: product, price_minor: 4_900, quantity: UNITS, ..NewSku::default() };
    shop.add_sku(&NewSku { attributes: brass, ..lamp }).await?;

    let sold = sell(&shop, run, &sku, &mut rows).await?;
    let order = settle(&shop, &provider, &sku, &sold, &mut rows).await?;
    history_stands(store, &shop, &order, &mut rows).await?;
    Ok(rows)
}

/// All buyers want one lamp at once; the orders that came about.
async fn sell(shop: &Shop, run: &str, sku: &str, rows: &mut Vec<Row>) -> Outcome<Vec<String>> {
    let begun = Instant::now();
    let mut orders = tokio::task::JoinSet::new();
    for buyer in 0..BUYERS {
        let city = ["Lyon", "Porto", "Ghent"][buyer % 3].to_owned();
        let request = OrderRequest {
            buyer: format!("{run}-buyer-{buyer}"),
            lines: vec![Line { sku: sku.to_owned(), quantity: 1 }],
            address: Some(Address { city, ..Address::default() }),
            ..OrderRequest::default()
        };
        let shop = shop.clone();
        orders.spawn(async move { shop.place_order(&request).await });
    }
    let (mut sold, mut refused) = (Vec::new(), 0);
    while let Some(outcome) = orders.join_next().await {
        match outcome? {
            Ok(order) => sold.push(order.id),
            Err(commerce::Error::OutOfStock { .. }) => refused += 1,
            Err(other) => return Err(other.into()),
        }
    }
    let left = shop.stock(sku).await?;
    let result =
        format!("{} sold, {refused} refused, {} left, {} held until paid", sold.len(), left.available, left.held);
    rows.push(row(&format!("{BUYERS} buyers at once for {UNITS} lamps"), result, begun, BUYERS as u64));
    Ok(sold)
}

/// The orders are paid; one of them, and what the ledger says.
async fn settle(shop: &Shop, provider: &Simulator, sku: &str, sold: &[String], rows: &mut Vec<Row>) -> Outcome<String> {
    let begun = Instant::now();
    for order in sold {
        shop.pay(order, "card", None, provider).await?;
    }
    let mut paid = tokio::task::JoinSet::new();
    for callback in provider.due() {
        let shop = shop.clone();
        paid.spawn(async move { shop.accept_callback(&callback).await });
    }
    while let Some(outcome) = paid.join_next().await {
        outcome??;
    }
    let order = shop.order(sold.first().ok_or("nothing was sold")?).await?;
    let user = shop.user(&order.user_id).await?;
    let spent = user.total_spent.map_or(0, |spent| spent.amount_minor);
    let kept = format!("kept on the buyer: {} order, {spent} cents", user.order_count);
    rows.push(row("orders paid by signed callbacks", kept, begun, sold.len() as u64));
    let found = shop.reconcile(false).await?;
    rows.push(Row {
        what: "the stock ledger, folded".into(),
        result: format!(
            "{} SKU, {} differ; ledger says {} left",
            found.skus,
            found.discrepancies.len(),
            shop.ledger_total(sku).await?
        ),
        took: Duration::ZERO,
        count: 0,
    });
    Ok(order.id)
}

/// What an order says stays, and its state moves as its model allows.
async fn history_stands(store: &Store, shop: &Shop, order: &str, rows: &mut Vec<Row>) -> Outcome<()> {
    store
        .collection("shop", "products")
        .update_many(doc! {}, doc! { "$set": { "price": 5_900_i64 } }, Update::default(), None)
        .await?;
    let order = shop.order(order).await?;
    let price = order.items.first().map_or(0, |item| item.unit_price);
    rows.push(Row {
        what: "the lamp now costs 5900".into(),
        result: format!("the order still says {price}"),
        took: Duration::ZERO,
        count: 0,
    });

    let by_hand = doc! { "$set": { "status": "signed" } };
    let orders = store.collection("shop", "orders");
    let refusal = orders.update_one(doc! { "_id": &order.id }, by_hand, Update::default(), None).await;
    let said = refusal.err().map_or("was let through".to_owned(), |error| error.message);
    rows.push(Row {
        what: "signing an order by hand that was not shipped".into(),
        result: said,
        took: Duration::ZERO,
        count: 0,
    });
    Ok(())
}

async fn social_scene(store: &Store, run: &str) -> Outcome<Vec<Row>> {
    let network = Network::new(store.clone(), "social");
    network.ensure_indexes().await?;
    let mut rows = Vec::new();
    let author = network.add_user(&format!("{run} ada")).await?;
    let begun = Instant::now();
    let mut reader = author;
    let mut arriving = tokio::task::JoinSet::new();
    for number in 0..FOLLOWERS {
        if arriving.len() == AT_ONCE
            && let Some(arrived) = arriving.join_next().await
        {
            reader = arrived??;
        }
        let (network, name) = (network.clone(), format!("{run} reader {number}"));
        arriving.spawn(async move {
            let reader = network.add_user(&name).await?;
            network.follow(reader, author).await?;
            network.join(reader).await?;
            Ok::<_, social::Error>(reader)
        });
    }
    while let Some(arrived) = arriving.join_next().await {
        reader = arrived??;
    }
    let ada = store.collection("social", "users").find_one(doc! { "_id": author }, None).await?.unwrap_or_default();
    let kept = format!("kept on the author: {} followers", number_of(&ada, "followerCount"));
    rows.push(row("users who follow ada", kept, begun, 2 * FOLLOWERS as u64));
    let begun = Instant::now();
    for number in 0..POSTS {
        network.post(author, &NewPost::text(format!("post number {number}"))).await?;
    }
    let pushed = network.work(u64::MAX).await?.pushed;
    rows.push(row(&format!("{POSTS} posts pushed to their readers"), format!("{pushed} inbox entries"), begun, pushed));
    let begun = Instant::now();
    let feed = network.feed(reader, &PageRequest::first(3)).await?;
    let titles: Vec<_> = feed.items.iter().map(|post| post.content.as_str()).collect();
    rows.push(row("a reader's feed, newest first", titles.join(", "), begun, 1));
    let page = Find { limit: 1, ..Find::default() };
    store.collection("social", "posts").find(doc! { "authorId": author }, page, None).await?;
    Ok(rows)
}

fn number_of(document: &bson::Document, field: &str) -> i64 {
    match document.get(field) {
        Some(bson::Bson::Int32(number)) => i64::from(*number),
        Some(bson::Bson::Int64(number)) => *number,
        _ => 0,
    }
}

fn row(what: &str, result: String, begun: Instant, count: u64) -> Row {
    Row { what: what.to_owned(), result, took: begun.elapsed(), count }
}

#[expect(clippy::print_stdout, reason = "the demo's purpose")]
fn print(rows: &[Row]) {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header(["what", "result", "took", "a second"]);
    for row in rows {
        let took =
            if row.took.is_zero() { String::new() } else { format!("{:.1} ms", row.took.as_secs_f64() * 1000.0) };
        let rate =
            if row.count > 1 { format!("{:.0}", row.count as f64 / row.took.as_secs_f64()) } else { String::new() };
        table.add_row([&row.what, &row.result, &took, &rate]);
    }
    println!("{table}");
    println!("Every write above was flushed to disk before it was acknowledged.");
}

#[expect(clippy::print_stdout, reason = "the demo's purpose")]
fn serve_on(runtime: &tokio::runtime::Runtime, engine: Engine, arguments: &Arguments) -> Result<(), Failure> {
    let (port, http_port) = (arguments.port, arguments.http_port);
    let tokens = http::Tokens::new(&Store::embedded(engine.clone()), http::DEFAULT_DATABASE);
    let new = http::NewToken {
        subject: "demo".into(),
        roles: http::Role::ALL.to_vec(),
        lives: Some(TOKEN_LIFE),
        label: "demo".into(),
    };
    let issued = runtime.block_on(tokens.issue(&new)).map_err(|error| Failure::Demo(error.to_string()))?;
    println!("Look around:  mongosh mongodb://127.0.0.1:{port}/shop     (Ctrl-C ends the demo)");
    println!("Over HTTP:    http://127.0.0.1:{http_port}/openapi.json");
    println!("              with Authorization: Bearer {}", issued.secret);
    runtime.block_on(serve::serve_loopback(engine, port, http_port))
}
