//! Flash sales whose stock is cached in Redis, for a shop on a deployment.
//!
//! On the embedded store a flash sale needs none of this: its till serves thousands of buyers of one SKU. On a deployment
//! each batch of the till is a transaction over the network, and many processes get in each other's way. Here Redis says
//! at once who gets a unit, and the orders are written down behind it.
//!
//! ```text
//!   open ─────> the store sets units aside: a hold of the sale, which expires by itself ──> Redis: `left` = those units
//!   reserve ──> Redis, one script: left − n, the buyer's count + n, the reservation is noted ──> the buyer's answer
//!   write down: noted reservations ──> orders in the store, out of the sale's hold ──> Redis: settled, or units back
//!   close ────> what is left of the hold can be sold again
//! ```
//!
//! Why nothing is lost or leaks, wherever a process ends:
//!
//! - **The units are held in the store** before Redis offers them, so a reservation is a promise that the store can keep,
//!   whatever else is sold meanwhile. If Redis and everybody else disappear, the hold expires as holds do, and the units
//!   are on the shelf again.
//! - **A reservation is taken and noted by one script.** It stays noted until its order is in the store, and is written
//!   down again after a crash in between. Its order's id is made of the buyer and the key, so it is placed once.
//! - **It is settled once**: only the script that removes the note counts it as written down, or gives its units back.
//! - **The answer may get lost**: the same buyer, key and request get the same answer again, before and after settling.
//! - **Redis may forget** what it was not asked to keep (`appendfsync always` keeps all). Then reservations that were not
//!   written down are gone, and `reconcile` makes what is left what the store says: at rest
//!   `left + noted = the sale's hold`. Nothing is oversold in any case: the store's hold is what orders are placed from.

mod script;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::fields::{Fields, element};
use crate::order::{Order, OrderRequest, order_id, place, reads, sum_lines};
use crate::shop::Shop;
use crate::stock::{Movement, Reason, end, shift};
use crate::time::Time;
use crate::unit::Unit;
use bson::{Document, doc};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Script, ScriptInvocation};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use store::Find;

/// The most reservations that are written down together.
pub const MAX_WRITTEN: usize = 1_000;

/// The most sales that are listed.
pub const MAX_OPEN_SALES: usize = 100;

/// How long after its end a sale's reservations can still be written down.
pub const WRITE_DOWN_GRACE: Duration = Duration::from_secs(5 * 60);

/// How long Redis remembers a sale after its end.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

/// How long an answer of Redis may take.
const REDIS_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a reconciliation looks again because something moved meanwhile.
const LOOKS: usize = 20;

/// A flash sale to open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewFlashSale {
    /// Its id: letters, digits, `-` and `_`; used once.
    pub id: String,
    /// What is sold. Its limit per buyer is the sale's.
    pub sku: String,
    /// How many.
    pub quantity: i64,
    /// Until when.
    pub until: Time,
    /// Who opens it, for the ledger.
    pub operator: String,
}

/// What the store knows of a sale that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenSale {
    /// Its id.
    pub id: String,
    /// What is sold.
    pub sku: String,
    /// How many were set aside.
    pub quantity: i64,
    /// How many of them have no order yet.
    pub left: i64,
    /// Until when it is open.
    pub until: Time,
}

impl OpenSale {
    fn of(hold: &Document) -> OpenSale {
        let line = hold.parts("lines").into_iter().next().cloned().unwrap_or_default();
        OpenSale {
            id: hold.text("_id").trim_start_matches(HOLD_PREFIX).to_owned(),
            sku: line.text("skuId").to_owned(),
            quantity: hold.long("total"),
            left: line.long("quantity"),
            until: hold.time("until").unwrap_or_default().minus(WRITE_DOWN_GRACE),
        }
    }
}

/// A unit that is promised to a buyer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// The id that its order has, or will have.
    pub order: String,
    /// Whether it was promised before, under the same key.
    pub known: bool,
}

/// What became of a reservation.
#[derive(Clone, Debug, PartialEq)]
pub enum Reserved {
    /// Its order is being written down.
    Waiting,
    /// Its order.
    Placed(Box<Order>),
    /// The store refused its order; the [code](Error::code) of the refusal. Its units can be reserved again.
    Refused(String),
}

/// What was written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Reservations that became orders.
    pub placed: usize,
    /// Reservations that the store refused; their units are back.
    pub refused: usize,
}

/// What a sale's reconciliation found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SaleLevel {
    /// What Redis would let through.
    pub left: i64,
    /// What it should be, by the store's hold and the reservations that are not written down.
    pub expected: i64,
}

/// A flash sale. Clones are the same sale.
#[derive(Clone)]
pub struct FlashSale {
    shop: Shop,
    redis: ConnectionManager,
    /// The id of its hold in the store.
    hold: Arc<str>,
    sku: Arc<str>,
    until: Time,
    keys: Arc<[String; 4]>,
}

/// What the ids of sales' holds begin with; orders' ids never do.
pub(crate) const HOLD_PREFIX: &str = "sale:";

impl Shop {
    /// Opens a flash sale: sets its units aside in the store, and loads them into Redis (`redis://host:port`). Any number
    /// of processes may open the same sale; it is opened once.
    ///
    /// # Errors
    /// [`Error::OutOfStock`], [`Error::NotFound`], [`Error::Invalid`], [`Error::KeyReused`] for the id of another sale,
    /// [`Error::IllegalMove`] for one that is over, [`Error::Cache`] for a Redis that does not answer.
    pub async fn open_flash_sale(&self, redis: &str, sale: &NewFlashSale) -> Result<FlashSale> {
        check(sale)?;
        let redis = connect(redis).await?;
        let hold = format!("{HOLD_PREFIX}{}", sale.id);
        let (new, id) = (sale.clone(), hold.clone());
        let opened = self.run(move |unit| {
            let (new, id) = (new.clone(), id.clone());
            Box::pin(async move { set_aside(unit, &id, &new).await })
        });
        let (remaining, limit) = match opened.await {
            // Its first entry in the ledger is there, its hold is not any more.
            Err(Error::Store(error)) if error.is_duplicate_key() => return Err(over(&sale.id)),
            opened => opened?,
        };
        let opened = self.sale(redis, &sale.id, &sale.sku, sale.until);
        opened.load(remaining, limit).await?;
        Ok(opened)
    }

    fn sale(&self, redis: ConnectionManager, id: &str, sku: &str, until: Time) -> FlashSale {
        let key = |part: &str| format!("sheaf:{{{}/{id}}}:{part}", self.database());
        FlashSale {
            shop: self.clone(),
            redis,
            hold: format!("{HOLD_PREFIX}{id}").into(),
            sku: sku.into(),
            until,
            keys: Arc::new([key("sale"), key("buyers"), key("waiting"), key("settled")]),
        }
    }

    /// Takes up a sale that was opened before, here or elsewhere.
    ///
    /// # Errors
    /// [`Error::NotFound`] for one that never was or is over, [`Error::Cache`] for a Redis that does not answer.
    pub async fn flash_sale(&self, redis: &str, id: &str) -> Result<FlashSale> {
        let known = self.open_sale(id).await?;
        Ok(self.sale(connect(redis).await?, id, &known.sku, known.until))
    }

    /// What the store knows of a sale.
    ///
    /// # Errors
    /// [`Error::NotFound`] for one that never was or is over.
    pub async fn open_sale(&self, id: &str) -> Result<OpenSale> {
        let hold = self.collection("stockHolds").find_one(doc! { "_id": format!("{HOLD_PREFIX}{id}") }, None).await?;
        Ok(OpenSale::of(&hold.ok_or_else(|| Error::missing("flash sale", id))?))
    }

    /// The sales that are not over, up to [`MAX_OPEN_SALES`].
    ///
    /// # Errors
    /// A store that fails.
    pub async fn open_sales(&self) -> Result<Vec<OpenSale>> {
        // `;` follows `:`, so that these are the ids with the prefix.
        let of_sales = doc! { "_id": { "$gte": HOLD_PREFIX, "$lt": "sale;" } };
        let options = Find { sort: Some(doc! { "_id": 1 }), limit: MAX_OPEN_SALES as i64, ..Find::default() };
        let holds = self.collection("stockHolds").find(of_sales, options, None).await?;
        Ok(holds.iter().map(OpenSale::of).collect())
    }
}

async fn connect(redis: &str) -> Result<ConnectionManager> {
    let config = ConnectionManagerConfig::new()
        .set_response_timeout(Some(REDIS_TIMEOUT))
        .set_connection_timeout(Some(REDIS_TIMEOUT));
    Ok(ConnectionManager::new_with_config(Client::open(redis)?, config).await?)
}

fn check(sale: &NewFlashSale) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if sale.id.is_empty() || sale.id.len() > crate::id::MAX_ID_BYTES || !sale.id.bytes().all(plain) {
        return Err(Error::invalid("id", "a sale's id is made of letters, digits, - and _"));
    }
    match (1..=crate::MAX_QUANTITY).contains(&sale.quantity) {
        true => Ok(()),
        false => Err(Error::invalid("quantity", format!("it is from 1 to {}", crate::MAX_QUANTITY))),
    }
}

fn over(sale: &str) -> Error {
    let (what, id) = ("flash sale", sale.to_owned());
    Error::IllegalMove { what, id, from: "over".to_owned(), to: "open".to_owned() }
}

/// Sets a sale's units aside, if they are not; gives what is left of them, and the limit of a buyer.
async fn set_aside(unit: &mut Unit<'_>, hold: &str, sale: &NewFlashSale) -> Result<(i64, i64)> {
    if let Some(known) = unit.get("stockHolds", hold).await?.cloned() {
        return match element(&known, "lines", "skuId", &sale.sku) {
            Some(line) if known.long("total") == sale.quantity => Ok((line.long("quantity"), known.long("limit"))),
            _ => Err(Error::KeyReused { key: sale.id.clone() }),
        };
    }
    if sale.until <= unit.now {
        return Err(over(&sale.id));
    }
    let limit = unit.need("skus", "sku", &sale.sku).await?.long("perBuyer");
    let reason = Reason { reference: hold, order: None, why: "set aside for a flash sale", operator: &sale.operator };
    shift(unit, Movement::Hold, &sale.sku, sale.quantity, reason).await?;
    let held = doc! {
        "_id": hold,
        "lines": [{ "skuId": &sale.sku, "quantity": sale.quantity }],
        "total": sale.quantity,
        "limit": limit,
        "until": sale.until.plus(WRITE_DOWN_GRACE),
        "createdAt": unit.now,
    };
    unit.insert("stockHolds", "flash sale", held).await?;
    Ok((sale.quantity, limit))
}

impl FlashSale {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.hold[HOLD_PREFIX.len()..]
    }

    /// What is sold.
    pub fn sku(&self) -> &str {
        &self.sku
    }

    /// How long Redis keeps what it knows of the sale, from now on.
    fn life_ms(&self) -> i64 {
        (self.until.millis() - self.shop.now().millis()).max(0) + REMEMBERED.as_millis() as i64
    }

    fn on_keys(&self, invocation: &mut ScriptInvocation<'_>) {
        for key in self.keys.iter() {
            invocation.key(key);
        }
    }

    async fn load(&self, remaining: i64, limit: i64) -> Result<()> {
        let (script, mut redis) = (Script::new(script::LOAD), self.redis.clone());
        let mut invocation = script.prepare_invoke();
        self.on_keys(&mut invocation);
        invocation.arg(remaining).arg(limit).arg(self.until.millis()).arg(self.life_ms());
        let _: i64 = invocation.invoke_async(&mut redis).await?;
        Ok(())
    }

    /// Reserves what a buyer wants, or refuses, at once. The same request under the same key is one reservation. What is
    /// returned was promised: [`FlashSale::write_down`] makes the order, [`FlashSale::reserved`] says how far it is.
    ///
    /// # Errors
    /// [`Error::OutOfStock`], [`Error::LimitPerBuyer`], [`Error::KeyReused`], [`Error::IllegalMove`] when the sale is over,
    /// [`Error::Invalid`] for a request without a key or of something else, [`Error::Cache`] when Redis does not answer:
    /// ask again with the same key.
    pub async fn reserve(&self, request: &OrderRequest) -> Result<Reservation> {
        let lines = sum_lines(&request.lines)?;
        let (Some(quantity), 1) = (lines.get(&*self.sku), lines.len()) else {
            return Err(Error::invalid("lines", format!("this sale is of {} only", self.sku)));
        };
        let Some(key) = request.key.as_ref().filter(|key| !key.is_empty()) else {
            return Err(Error::invalid("key", "a reservation needs an idempotency key"));
        };
        let order = order_id(request)?;
        let text = serde_json::to_string(request).map_err(|error| Error::invalid("request", error.to_string()))?;
        let (script, mut redis) = (Script::new(script::RESERVE), self.redis.clone());
        let mut invocation = script.prepare_invoke();
        self.on_keys(&mut invocation);
        invocation.arg(&order).arg(&request.buyer).arg(quantity).arg(&text);
        invocation.arg(self.shop.now().millis()).arg(self.life_ms());
        let (said, number): (String, i64) = invocation.invoke_async(&mut redis).await?;
        match said.as_str() {
            "held" => Ok(Reservation { order, known: false }),
            "known" => Ok(Reservation { order, known: true }),
            "reused" => Err(Error::KeyReused { key: key.clone() }),
            "short" => Err(Error::OutOfStock { sku: self.sku.to_string(), wanted: *quantity, left: number }),
            "limit" => {
                let limit = self.limit().await?;
                Err(Error::LimitPerBuyer { sku: self.sku.to_string(), limit, had: number })
            }
            _ => Err(over(self.id())),
        }
    }

    async fn limit(&self) -> Result<i64> {
        let limit: Option<i64> =
            redis::cmd("HGET").arg(&self.keys[0]).arg("limit").query_async(&mut self.redis.clone()).await?;
        Ok(limit.unwrap_or(0))
    }

    /// What became of a reservation.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Cache`], a store that fails.
    pub async fn reserved(&self, order: &str) -> Result<Reserved> {
        let mut redis = self.redis.clone();
        let settled: Option<String> = redis::cmd("HGET").arg(&self.keys[3]).arg(order).query_async(&mut redis).await?;
        match settled {
            Some(code) if !code.is_empty() => return Ok(Reserved::Refused(code)),
            Some(_) => return self.shop.order(order).await.map(|order| Reserved::Placed(Box::new(order))),
            None => {}
        }
        let waiting: bool = redis::cmd("HEXISTS").arg(&self.keys[2]).arg(order).query_async(&mut redis).await?;
        match waiting {
            true => Ok(Reserved::Waiting),
            false => self.shop.order(order).await.map(|order| Reserved::Placed(Box::new(order))),
        }
    }

    /// Writes down what is reserved, up to [`MAX_WRITTEN`]: makes the orders in the store. To be called again and again,
    /// by any number of processes.
    ///
    /// # Errors
    /// [`Error::Cache`], a store that fails; what was not written down stays noted.
    pub async fn write_down(&self) -> Result<Written> {
        let mut redis = self.redis.clone();
        let waiting: Vec<(String, String)> = redis::cmd("HRANDFIELD")
            .arg(&self.keys[2])
            .arg(MAX_WRITTEN)
            .arg("WITHVALUES")
            .query_async(&mut redis)
            .await?;
        let mut tasks = tokio::task::JoinSet::new();
        for (order, text) in waiting {
            let sale = self.clone();
            tasks.spawn(async move { sale.write_one(&order, &text).await });
        }
        let (mut written, mut failed) = (Written::default(), None);
        while let Some(done) = tasks.join_next().await {
            match done.unwrap_or(Err(Error::Busy)) {
                Ok(true) => written.placed += 1,
                Ok(false) => written.refused += 1,
                Err(error) => failed = Some(error), // the others go on
            }
        }
        failed.map_or(Ok(written), Err)
    }

    async fn write_one(&self, order: &str, text: &str) -> Result<bool> {
        let request: OrderRequest = serde_json::from_str(text)
            .map_err(|error| Error::Cache { why: format!("reservation {order}: {error}") })?;
        let code = match self.place(&request).await {
            Ok(_) => "",
            Err(error) if error.fault() == crate::Fault::Unavailable => return Err(error),
            Err(refusal) => refusal.code(),
        };
        self.settle(order, code, &request).await?;
        Ok(code.is_empty())
    }

    /// Places an order out of the sale's hold.
    async fn place(&self, request: &OrderRequest) -> Result<Order> {
        let mut reads = reads(request)?;
        reads.push(("stockHolds", self.hold.to_string()));
        let (hold, request) = (self.hold.clone(), request.clone());
        let placed = self.shop.run_reading(reads, move |unit| {
            let (hold, request) = (hold.clone(), request.clone());
            Box::pin(async move { Order::of(&place(unit, &request, Some(&hold)).await?) })
        });
        placed.await
    }

    async fn settle(&self, order: &str, code: &str, request: &OrderRequest) -> Result<()> {
        let quantity: i64 = request.lines.iter().map(|line| line.quantity).sum();
        let (script, mut redis) = (Script::new(script::SETTLE), self.redis.clone());
        let mut invocation = script.prepare_invoke();
        self.on_keys(&mut invocation);
        invocation.arg(order).arg(code).arg(&request.buyer).arg(quantity).arg(self.life_ms());
        let _: i64 = invocation.invoke_async(&mut redis).await?;
        Ok(())
    }

    /// Compares what Redis would let through with the store, and puts it right with `repair`; writes down what waits
    /// first. It is exact while the sale goes on: both are compared at a moment when nothing moves.
    ///
    /// # Errors
    /// [`Error::Busy`] when there was no such moment, [`Error::Cache`], a store that fails.
    pub async fn reconcile(&self, repair: bool) -> Result<SaleLevel> {
        for _ in 0..LOOKS {
            while self.write_down().await? != Written::default() {}
            let look = Script::new(script::LOOK);
            let mut invocation = look.prepare_invoke();
            self.on_keys(&mut invocation);
            type Look = (Option<i64>, Option<String>, Vec<String>);
            let (left, moves, waiting): Look = invocation.invoke_async(&mut self.redis.clone()).await?;
            let Some(moves) = moves else {
                let (remaining, limit) = self.remaining().await?;
                self.load(remaining, limit).await?;
                return Ok(SaleLevel { left: 0, expected: remaining });
            };
            let left = left.unwrap_or(0);
            let expected = self.expected(waiting).await?;
            let script = Script::new(script::CORRECT);
            let mut invocation = script.prepare_invoke();
            self.on_keys(&mut invocation);
            invocation.arg(&moves).arg(if repair { expected - left } else { 0 });
            let done: i64 = invocation.invoke_async(&mut self.redis.clone()).await?;
            if done == 1 {
                return Ok(SaleLevel { left, expected });
            }
        }
        Err(Error::Busy)
    }

    /// What is left of the sale's hold, and the limit of a buyer.
    async fn remaining(&self) -> Result<(i64, i64)> {
        let found = self.shop.collection("stockHolds").find_one(doc! { "_id": &*self.hold }, None).await?;
        let hold = found.ok_or_else(|| over(self.id()))?;
        let line = element(&hold, "lines", "skuId", &self.sku);
        Ok((line.map_or(0, |line| line.long("quantity")), hold.long("limit")))
    }

    /// What is left of the sale's hold, less what waits and has no order yet: of one moment.
    async fn expected(&self, waiting: Vec<String>) -> Result<i64> {
        let (hold, sku, mine) = (self.hold.clone(), self.sku.clone(), self.clone());
        let texts: Vec<Option<String>> = match waiting.is_empty() {
            true => Vec::new(),
            false => redis::cmd("HMGET").arg(&self.keys[2]).arg(&waiting).query_async(&mut self.redis.clone()).await?,
        };
        let quantity = |text: &String| {
            let request: Option<OrderRequest> = serde_json::from_str(text).ok();
            request.map_or(0, |request| request.lines.iter().map(|line| line.quantity).sum::<i64>())
        };
        let wanted: Vec<(String, i64)> =
            waiting.into_iter().zip(texts).map(|(order, text)| (order, text.as_ref().map_or(0, quantity))).collect();
        let done = mine.shop.run_alone(move |unit| {
            let (hold, sku, wanted) = (hold.clone(), sku.clone(), wanted.clone());
            Box::pin(async move {
                let hold = unit.get("stockHolds", &hold).await?.cloned().unwrap_or_default();
                let mut left = element(&hold, "lines", "skuId", &sku).map_or(0, |line| line.long("quantity"));
                for (order, quantity) in wanted {
                    if unit.get("orders", &order).await?.is_none() {
                        left -= quantity;
                    }
                }
                Ok(left)
            })
        });
        done.await
    }

    /// Ends the sale: nothing more is reserved, what is reserved is written down, what is left can be sold again. Gives
    /// how many units that are. A sale that nobody closes ends when its time is over.
    ///
    /// # Errors
    /// [`Error::Cache`], a store that fails; call it again.
    pub async fn close(&self, operator: &str) -> Result<i64> {
        let script = Script::new(script::CLOSE);
        loop {
            let mut invocation = script.prepare_invoke();
            self.on_keys(&mut invocation);
            let waiting: i64 = invocation.invoke_async(&mut self.redis.clone()).await?;
            if waiting == 0 {
                break;
            }
            self.write_down().await?;
        }
        let (hold, operator) = (self.hold.clone(), operator.to_owned());
        let done = self.shop.run(move |unit| {
            let (hold, operator) = (hold.clone(), operator.clone());
            Box::pin(async move {
                let held = unit.get("stockHolds", &hold).await?.cloned().unwrap_or_default();
                end(unit, &hold, Movement::Release, "the flash sale is over", &operator).await?;
                Ok(held.parts("lines").iter().map(|line| line.long("quantity")).sum())
            })
        });
        done.await
    }
}
