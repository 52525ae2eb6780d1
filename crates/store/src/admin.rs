//! Definitions: databases, collections, indexes, statistics.

use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::options::{Aggregate, CollectionInfo, CollectionStats, DatabaseInfo, Index};
use crate::{Kind, Store};
use bson::{Bson, Document, doc};

impl Store {
    /// The databases, by name.
    ///
    /// # Errors
    /// A failing storage or connection, missing rights.
    pub async fn list_databases(&self) -> Result<Vec<DatabaseInfo>> {
        match &self.kind {
            Kind::Embedded(embedded) => embedded.list_databases(),
            Kind::Cluster(cluster) => cluster.list_databases().await,
        }
    }

    /// The collections, views and time series of a database, by name.
    ///
    /// # Errors
    /// A failing storage or connection, missing rights.
    pub async fn list_collections(&self, database: &str) -> Result<Vec<CollectionInfo>> {
        let mut all = match &self.kind {
            Kind::Embedded(embedded) => embedded.list_collections(database)?,
            Kind::Cluster(cluster) => cluster.list_collections(database, Document::new()).await?,
        };
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Drops a database with all its collections.
    ///
    /// # Errors
    /// A failing storage or connection, missing rights.
    pub async fn drop_database(&self, database: &str) -> Result<()> {
        match &self.kind {
            Kind::Embedded(embedded) => embedded.drop_database(database).await,
            Kind::Cluster(cluster) => cluster.drop_database(database).await,
        }
    }
}

impl Collection {
    /// What is known of the collection; `None` when it does not exist.
    ///
    /// # Errors
    /// A failing storage or connection.
    pub async fn info(&self) -> Result<Option<CollectionInfo>> {
        let found = match &self.store.kind {
            Kind::Embedded(embedded) => embedded.list_collections(&self.database)?,
            Kind::Cluster(cluster) => cluster.list_collections(&self.database, doc! { "name": &self.name }).await?,
        };
        Ok(found.into_iter().find(|info| info.name == self.name))
    }

    /// Creates the collection with options as `create` takes them: `validator`, `capped`, `timeseries`, `viewOn` …
    ///
    /// # Errors
    /// 48 when it exists with other options, and what the options refuse.
    pub async fn create(&self, options: Document) -> Result<()> {
        match &self.store.kind {
            Kind::Embedded(embedded) => embedded.create(self, options).await,
            Kind::Cluster(cluster) => cluster.create(self, options).await,
        }
    }

    /// Changes options as `collMod` takes them: `validator`, `validationLevel`, `index: {name, expireAfterSeconds}` …
    ///
    /// # Errors
    /// 26 when it does not exist, and what the options refuse.
    pub async fn modify(&self, changes: Document) -> Result<()> {
        match &self.store.kind {
            Kind::Embedded(embedded) => embedded.modify(self, changes).await,
            Kind::Cluster(cluster) => cluster.modify(self, changes).await,
        }
    }

    /// Drops the collection; nothing happens when there is none.
    ///
    /// # Errors
    /// A failing storage or connection, missing rights.
    pub async fn drop(&self) -> Result<()> {
        match &self.store.kind {
            Kind::Embedded(embedded) => embedded.drop_collection(self).await,
            Kind::Cluster(cluster) => cluster.drop_collection(self).await,
        }
    }

    /// Gives the collection another name in its database; gives the collection of that name.
    ///
    /// # Errors
    /// 26 when it does not exist, 48 when the name is taken and `drop_target` is not set.
    pub async fn rename(&self, to: &str, drop_target: bool) -> Result<Collection> {
        match &self.store.kind {
            Kind::Embedded(embedded) => embedded.rename(self, to, drop_target).await?,
            Kind::Cluster(cluster) => cluster.rename(self, to, drop_target).await?,
        }
        Ok(self.store.collection(&self.database, to))
    }

    /// Creates an index unless it is there.
    ///
    /// # Errors
    /// A conflict with another index, duplicate keys in the documents.
    pub async fn create_index(&self, keys: Document, unique: bool) -> Result<()> {
        let index = if unique { Index::unique(keys) } else { Index::new(keys) };
        self.create_indexes(vec![index]).await
    }

    /// Creates indexes unless they are there, and waits until they can be used.
    ///
    /// # Errors
    /// 85 and 86 for a conflict with another index, 11000 for duplicate keys in the documents, what an index refuses.
    pub async fn create_indexes(&self, indexes: Vec<Index>) -> Result<()> {
        if indexes.is_empty() {
            return Ok(());
        }
        let specifications = indexes.iter().map(Index::specification).collect();
        match &self.store.kind {
            Kind::Embedded(embedded) => embedded.create_indexes(self, specifications).await,
            Kind::Cluster(cluster) => cluster.create_indexes(self, specifications).await,
        }
    }

    /// The indexes as `listIndexes` shows them, `_id`'s included; none when the collection does not exist.
    ///
    /// # Errors
    /// A failing storage or connection.
    pub async fn list_indexes(&self) -> Result<Vec<Document>> {
        let listed = match &self.store.kind {
            Kind::Embedded(embedded) => embedded.list_indexes(self),
            Kind::Cluster(cluster) => cluster.list_indexes(self).await,
        };
        match listed {
            Err(error) if error.code == Some(26) => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Drops an index by its name.
    ///
    /// # Errors
    /// 27 when there is none, 72 for `_id`'s.
    pub async fn drop_index(&self, name: &str) -> Result<()> {
        if name == "*" {
            return Err(Error::new(72, "name one index; drop_indexes drops all"));
        }
        match &self.store.kind {
            Kind::Embedded(embedded) => embedded.drop_indexes(self, Some(name)).await,
            Kind::Cluster(cluster) => cluster.drop_indexes(self, name).await,
        }
    }

    /// Drops all indexes but `_id`'s.
    ///
    /// # Errors
    /// A failing storage or connection.
    pub async fn drop_indexes(&self) -> Result<()> {
        match &self.store.kind {
            Kind::Embedded(embedded) => embedded.drop_indexes(self, None).await,
            Kind::Cluster(cluster) => cluster.drop_indexes(self, "*").await,
        }
    }

    /// What the collection takes, summed over shards; zeros when it does not exist.
    ///
    /// # Errors
    /// A failing storage or connection, 166 for a view.
    pub async fn stats(&self) -> Result<CollectionStats> {
        let pipeline = vec![doc! { "$collStats": { "storageStats": {} } }];
        let rows = match self.aggregate(pipeline, Aggregate::default(), None).await {
            Ok(cursor) => cursor.collect(None).await?,
            Err(error) if error.code == Some(26) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut stats = CollectionStats::default();
        for row in rows {
            let Ok(storage) = row.get_document("storageStats") else { continue };
            stats.count += whole(storage.get("count"));
            stats.size_bytes += whole(storage.get("size"));
            stats.storage_bytes += whole(storage.get("storageSize"));
            for (name, size) in storage.get_document("indexSizes").into_iter().flatten() {
                match stats.index_bytes.iter_mut().find(|known| known.0 == *name) {
                    Some(known) => known.1 += whole(Some(size)),
                    None => stats.index_bytes.push((name.clone(), whole(Some(size)))),
                }
            }
        }
        Ok(stats)
    }
}

/// A count of any numeric type.
pub(crate) fn whole(value: Option<&Bson>) -> u64 {
    match value {
        Some(Bson::Int32(number)) => (*number).max(0) as u64,
        Some(Bson::Int64(number)) => (*number).max(0) as u64,
        Some(Bson::Double(number)) => number.max(0.0) as u64,
        _ => 0,
    }
}
