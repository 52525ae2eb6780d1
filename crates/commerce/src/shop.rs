//! The shop: its store, its settings, its collections and indexes.

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::till::Till;
use crate::time::Time;
use bson::{DateTime, Document, doc};
use model::keep::Keeper;
use model::problem::Sources;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use store::{Collection, Store};

/// The shop's model, as it stands in `models/shop`: names and texts of its files.
pub const MODEL: [(&str, &str); 2] = [
    ("catalogue.sheaf.kdl", include_str!("../../../models/shop/catalogue.sheaf.kdl")),
    ("orders.sheaf.kdl", include_str!("../../../models/shop/orders.sheaf.kdl")),
];

/// The shop's collections.
pub(crate) const COLLECTIONS: [&str; 27] = [
    "users",
    "userProfiles",
    "categories",
    "products",
    "skus",
    "reviews",
    "carts",
    "orders",
    "stockLedger",
    "stockHolds",
    "purchases",
    "payments",
    "coupons",
    "parcels",
    "logistics",
    "afterSales",
    "sales",
    "salesByCity",
    "salesByProduct",
    "salesBySku",
    "salesByCityHour",
    "salesByProductHour",
    "salesBySkuHour",
    "spending",
    "shopState",
    "webhookEndpoints",
    "webhookDeliveries",
];

/// An index: collection, keys in order, whether unique.
type Index = (&'static str, &'static [(&'static str, i32)], bool);

/// The indexes that the shop's queries need.
const INDEXES: &[Index] = &[
    ("users", &[("username", 1)], true),
    ("orders", &[("orderNumber", 1)], true),
    ("orders", &[("userId", 1), ("createdAt", -1), ("_id", -1)], false),
    ("orders", &[("userId", 1), ("status", 1), ("createdAt", -1), ("_id", -1)], false),
    ("orders", &[("status", 1), ("createdAt", -1), ("_id", -1)], false),
    ("skus", &[("productId", 1)], false),
    ("skus", &[("changedAt", 1)], false),
    ("stockLedger", &[("skuId", 1), ("at", -1), ("_id", -1)], false),
    ("stockLedger", &[("orderId", 1)], false),
    ("stockHolds", &[("until", 1)], false),
    ("products", &[("category.id", 1)], false),
    ("products", &[("status", 1), ("category.id", 1), ("createdAt", -1), ("_id", -1)], false),
    ("products", &[("status", 1), ("category.id", 1), ("price", 1), ("_id", 1)], false),
    ("products", &[("status", 1), ("attributes", 1), ("price", 1), ("_id", 1)], false),
    ("products", &[("status", 1), ("totalStock", 1), ("_id", 1)], false),
    ("payments", &[("orderId", 1)], false),
    ("payments", &[("refunding", 1), ("_id", 1)], false),
    ("payments", &[("status", 1), ("createdAt", 1)], false),
    ("reviews", &[("productId", 1), ("status", 1), ("createdAt", -1), ("_id", -1)], false),
    ("parcels", &[("orderId", 1)], false),
    ("parcels", &[("trackingNumber", 1)], false),
    ("logistics", &[("orderId", 1), ("time", -1), ("_id", -1)], false),
    ("logistics", &[("parcelId", 1), ("time", -1), ("_id", -1)], false),
    ("afterSales", &[("orderId", 1)], false),
    ("afterSales", &[("userId", 1), ("createdAt", -1), ("_id", -1)], false),
    ("afterSales", &[("status", 1), ("createdAt", -1), ("_id", -1)], false),
    ("sales", &[("at", 1)], false),
    ("webhookDeliveries", &[("status", 1), ("due", 1)], false),
    ("webhookDeliveries", &[("endpointId", 1), ("createdAt", -1), ("_id", -1)], false),
    ("webhookDeliveries", &[("doneAt", 1)], false),
    ("salesByCity", &[("day", 1)], false),
    ("salesByProduct", &[("day", 1)], false),
    ("salesBySku", &[("day", 1)], false),
    ("salesByCityHour", &[("hour", 1)], false),
    ("salesByProductHour", &[("hour", 1)], false),
    ("salesBySkuHour", &[("hour", 1)], false),
    ("spending", &[("userId", 1)], false),
];

/// Who keeps counts, sums, latest, recents and rollups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeping {
    /// The model's write hook on the store does, whoever writes.
    Model,
    /// The shop does, in its own transactions.
    Shop,
}

/// What becomes of a payment that arrives when its order's hold has expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LatePayment {
    /// The stock is taken again if it is there; if not, the money goes back.
    #[default]
    Reacquire,
    /// The money goes back.
    Refund,
}

/// Where the shop gets the time from: milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// How a shop behaves.
#[derive(Clone)]
pub struct Settings {
    /// How long stock is held for an unpaid order.
    pub hold_for: Duration,
    /// The shipping fee of an order, in minor units of its currency.
    pub shipping_fee_minor: i64,
    /// From which value of goods, in minor units, nothing is charged for shipping.
    pub free_shipping_from_minor: Option<i64>,
    /// See [`LatePayment`].
    pub late_payment: LatePayment,
    /// The time zone in which the kept reports cut days; the model's rollups must say the same.
    pub zone: String,
    /// See [`Keeping`].
    pub keeping: Keeping,
    /// The secret that payment callbacks are signed with.
    pub callback_secret: Vec<u8>,
    /// The clock.
    pub clock: Clock,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("hold_for", &self.hold_for).field("zone", &self.zone).finish_non_exhaustive()
    }
}

impl Settings {
    /// Fifteen minutes of hold, free shipping, the system's clock; the model keeps its values where the store has hooks.
    pub fn for_store(store: &Store) -> Settings {
        Settings {
            hold_for: Duration::from_secs(15 * 60),
            shipping_fee_minor: 0,
            free_shipping_from_minor: None,
            late_payment: LatePayment::default(),
            zone: "Asia/Shanghai".to_owned(),
            keeping: if store.capabilities().hooks { Keeping::Model } else { Keeping::Shop },
            callback_secret: Vec::new(),
            clock: Arc::new(|| DateTime::now().timestamp_millis()),
        }
    }
}

/// A shop in one database of a store. Clones are the same shop.
///
/// What changes documents goes through the shop's till, which needs a tokio runtime.
#[derive(Clone)]
pub struct Shop {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    database: String,
    settings: Settings,
    till: Till,
    cache: Cache,
    keeper: Option<Keeper>,
}

impl Shop {
    /// A shop in a database, with the usual settings.
    ///
    /// On a store with hooks somebody has to add the model's hook ([`MODEL`]); on others the shop keeps the model's values.
    pub fn new(store: Store, database: &str) -> Shop {
        let settings = Settings::for_store(&store);
        Shop::with(store, database, settings)
    }

    /// A shop in a database, with settings.
    pub fn with(store: Store, database: &str, settings: Settings) -> Shop {
        let keeper = (settings.keeping == Keeping::Shop).then(|| {
            let mut sources = Sources::default();
            for (name, text) in MODEL {
                sources.push(name.to_owned(), text.to_owned());
            }
            let checked = model::parse(sources).expect("the shop's model is checked by its tests");
            Keeper::new(&checked.model).expect("the shop's model is checked by its tests")
        });
        let database = database.to_owned();
        let inner = Inner { store, database, settings, till: Till::default(), cache: Cache::default(), keeper };
        Shop { inner: Arc::new(inner) }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// The database's name.
    pub fn database(&self) -> &str {
        &self.inner.database
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn till(&self) -> &Till {
        &self.inner.till
    }

    pub(crate) fn keeper(&self) -> Option<&Keeper> {
        self.inner.keeper.as_ref()
    }

    /// The shop's time.
    pub fn now(&self) -> Time {
        Time::from_millis((self.inner.settings.clock)())
    }

    pub(crate) fn collection(&self, name: &str) -> Collection {
        self.inner.store.collection(&self.inner.database, name)
    }

    pub(crate) async fn by_id(&self, collection: &str, what: &'static str, id: &str) -> Result<Document> {
        let found = self.collection(collection).find_one(doc! { "_id": id }, None).await?;
        found.ok_or_else(|| Error::missing(what, id))
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.inner.cache
    }

    /// Creates the indexes that the shop's queries and rules need; what is there stays.
    ///
    /// # Errors
    /// A store that fails, an index of the same name and another key.
    pub async fn ensure_indexes(&self) -> Result<()> {
        for (collection, keys, unique) in INDEXES {
            let mut key = Document::new();
            for (path, direction) in *keys {
                key.insert(*path, *direction);
            }
            // On a sharded cluster a unique key would have to begin with the shard key; numbers are unique by themselves.
            let unique = *unique && !self.store().capabilities().sharded;
            self.collection(collection).create_index(key, unique).await?;
        }
        if self.keeper().is_some() {
            model::keep::deployment::prepare(self.store(), self.database()).await?;
        }
        Ok(())
    }
}
