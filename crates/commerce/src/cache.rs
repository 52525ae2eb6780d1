//! A cache beside the store: order details and the pages of buyers' lists, with exact invalidation.
//!
//! An entry's key carries the epoch of what it is about. A change moves the epoch on, which makes every entry under the
//! old one unreachable, also one that a slow reader puts there afterwards: the reader looked at the epoch before it read.
//!
//! ```text
//!   reader: epoch 7 ── read (old) ───────────────── put under 7: nobody asks for 7 any more
//!   writer:              └── commit ── epoch 8
//! ```
//!
//! The shop moves the epochs for its own changes before it answers. Those of others come from the store's change log
//! ([`Shop::follow_changes`]); when that has a gap, everything is forgotten.

use crate::error::Result;
use crate::fields::Fields;
use crate::order::{Order, OrderFilter, OrderSummary};
use crate::page::{Page, Paging};
use crate::shop::Shop;
use crate::unit::Place;
use bson::doc;
use moka::sync::Cache as Moka;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::Watch;

/// How long a detail is kept at most.
pub const DETAIL_TTL: Duration = Duration::from_secs(300);

/// How long a page is kept at most.
pub const LIST_TTL: Duration = Duration::from_secs(30);

/// How many details and how many pages are kept at most.
pub const MAX_CACHED: u64 = 50_000;

/// How many epochs there are; what shares one is forgotten together.
const EPOCHS: usize = 4_096;

type PageKey = (u64, u64, OrderFilter, Paging);

/// See the module.
pub(crate) struct Cache {
    details: Moka<(u64, u64, String), Arc<Order>>,
    pages: Moka<PageKey, Arc<Page<OrderSummary>>>,
    epochs: Vec<AtomicU64>,
    all: AtomicU64,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache {
            details: Moka::builder().max_capacity(MAX_CACHED).time_to_live(DETAIL_TTL).build(),
            pages: Moka::builder().max_capacity(MAX_CACHED).time_to_live(LIST_TTL).build(),
            epochs: (0..EPOCHS).map(|_| AtomicU64::new(0)).collect(),
            all: AtomicU64::new(0),
        }
    }
}

impl Cache {
    fn epoch(&self, kind: &str, id: &str) -> &AtomicU64 {
        let mut hasher = DefaultHasher::new();
        (kind, id).hash(&mut hasher);
        &self.epochs[(hasher.finish() as usize) % EPOCHS]
    }

    /// Something has changed: an order, or a buyer's orders.
    fn forget(&self, kind: &str, id: &str) {
        self.epoch(kind, id).fetch_add(1, Ordering::SeqCst);
    }

    fn forget_all(&self) {
        self.all.fetch_add(1, Ordering::SeqCst);
    }

    fn now(&self, kind: &str, id: &str) -> (u64, u64) {
        (self.all.load(Ordering::SeqCst), self.epoch(kind, id).load(Ordering::SeqCst))
    }
}

impl Shop {
    /// An order, from the cache if it is there: as it was when it last changed, in so far as the change is known here.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn order_cached(&self, id: &str) -> Result<Arc<Order>> {
        let cache = self.cache();
        let (all, epoch) = cache.now("order", id);
        let key = (all, epoch, id.to_owned());
        if let Some(known) = cache.details.get(&key) {
            return Ok(known);
        }
        let order = Arc::new(self.order(id).await?);
        cache.details.insert(key, order.clone());
        Ok(order)
    }

    /// A page of a buyer's orders, from the cache if it is there; a list without a buyer is always read.
    ///
    /// # Errors
    /// As [`Shop::orders`].
    pub async fn orders_cached(&self, filter: &OrderFilter, paging: &Paging) -> Result<Arc<Page<OrderSummary>>> {
        let Some(buyer) = &filter.buyer else { return Ok(Arc::new(self.orders(filter, paging).await?)) };
        let cache = self.cache();
        let (all, epoch) = cache.now("buyer", buyer);
        let key = (all, epoch, filter.clone(), paging.clone());
        if let Some(known) = cache.pages.get(&key) {
            return Ok(known);
        }
        let page = Arc::new(self.orders(filter, paging).await?);
        cache.pages.insert(key, page.clone());
        Ok(page)
    }

    /// What was changed is no longer what the cache may hold.
    pub(crate) fn forget(&self, changed: &[Place], buyers: &[String]) {
        for (_, id) in changed.iter().filter(|(collection, _)| *collection == "orders") {
            self.cache().forget("order", id);
        }
        for buyer in buyers {
            self.cache().forget("buyer", buyer);
        }
    }

    /// Follows the store's change log, so that the cache forgets what others change. It ends only with an error; whoever
    /// calls it calls it again. Before it begins, and after a gap, everything is forgotten.
    ///
    /// # Errors
    /// A store without change streams, a connection that breaks, a place in the log that is gone.
    pub async fn follow_changes(&self) -> Result<()> {
        let watched = doc! { "$match": { "ns.coll": "orders" } };
        let options = Watch { pipeline: vec![watched], update_lookup: true, ..Watch::default() };
        let mut stream = self.store().watch_database(self.database(), options).await?;
        self.cache().forget_all();
        loop {
            let event = stream.next().await.inspect_err(|_| self.cache().forget_all())?;
            let id = event.part("documentKey").map(|key| key.text("_id").to_owned()).unwrap_or_default();
            match event.part("fullDocument") {
                Some(order) if !id.is_empty() => {
                    self.cache().forget("order", &id);
                    self.cache().forget("buyer", order.text("userId"));
                }
                _ => self.cache().forget_all(), // a delete, a drop: whose list it was in is not said
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slow_reader_puts_back_is_not_found() {
        let cache = Cache::default();
        let (all, epoch) = cache.now("order", "a");
        cache.forget("order", "a");
        let page = Arc::new(Page::<OrderSummary> { items: Vec::new(), next: None });
        let filter = OrderFilter::default();
        cache.pages.insert((all, epoch, filter.clone(), Paging::default()), page);
        let (all, epoch) = cache.now("order", "a");
        assert!(cache.pages.get(&(all, epoch, filter, Paging::default())).is_none());
    }
}
