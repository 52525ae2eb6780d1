//! Definitions on a deployment.

use super::Cluster;
use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::options::{CollectionInfo, DatabaseInfo};
use bson::{Bson, Document, doc};

/// A namespace that isn't there.
const NAMESPACE_NOT_FOUND: i32 = 26;

impl Cluster {
    pub(crate) async fn run_command(&self, database: &str, command: Document) -> Result<Document> {
        Ok(self.client.database(database).run_command(command).await?)
    }

    /// A command on a collection: `{name: collection, …rest}`.
    async fn command(&self, collection: &Collection, name: &str, rest: Document) -> Result<Document> {
        let mut command = doc! { name: &collection.name };
        command.extend(rest);
        self.run_command(&collection.database, command).await
    }

    pub(crate) async fn list_databases(&self) -> Result<Vec<DatabaseInfo>> {
        let listed = self.client.list_databases().await?;
        let info = |known: mongodb::results::DatabaseSpecification| DatabaseInfo {
            name: known.name,
            size_bytes: known.size_on_disk,
        };
        Ok(listed.into_iter().map(info).collect())
    }

    pub(crate) async fn list_collections(&self, database: &str, filter: Document) -> Result<Vec<CollectionInfo>> {
        let command = doc! { "listCollections": 1, "filter": filter, "cursor": {} };
        let mut cursor = self.client.database(database).run_cursor_command(command).await?;
        let mut all = Vec::new();
        while cursor.advance().await? {
            let mut entry = Document::try_from(cursor.current())?;
            let uuid = match entry.get_document("info").ok().and_then(|info| info.get("uuid")) {
                Some(Bson::Binary(binary)) => binary.to_uuid().ok(),
                _ => None,
            };
            let text = |entry: &Document, key: &str| entry.get_str(key).unwrap_or_default().to_owned();
            let options = match entry.remove("options") {
                Some(Bson::Document(options)) => options,
                _ => Document::new(),
            };
            all.push(CollectionInfo { name: text(&entry, "name"), kind: text(&entry, "type"), options, uuid });
        }
        Ok(all)
    }

    pub(crate) async fn drop_database(&self, database: &str) -> Result<()> {
        Ok(self.client.database(database).drop().await?)
    }

    pub(crate) async fn create(&self, collection: &Collection, options: Document) -> Result<()> {
        self.command(collection, "create", options).await?;
        Ok(())
    }

    pub(crate) async fn modify(&self, collection: &Collection, changes: Document) -> Result<()> {
        self.command(collection, "collMod", changes).await?;
        Ok(())
    }

    pub(crate) async fn drop_collection(&self, collection: &Collection) -> Result<()> {
        Ok(self.of(collection).drop().await?)
    }

    pub(crate) async fn rename(&self, collection: &Collection, to: &str, drop_target: bool) -> Result<()> {
        let name = |name: &str| format!("{}.{name}", collection.database);
        let command = doc! {
            "renameCollection": name(&collection.name), "to": name(to), "dropTarget": drop_target,
        };
        self.run_command("admin", command).await?;
        Ok(())
    }

    pub(crate) async fn create_indexes(&self, collection: &Collection, indexes: Vec<Document>) -> Result<()> {
        self.command(collection, "createIndexes", doc! { "indexes": indexes }).await?;
        Ok(())
    }

    pub(crate) async fn list_indexes(&self, collection: &Collection) -> Result<Vec<Document>> {
        let command = doc! { "listIndexes": &collection.name, "cursor": {} };
        let mut cursor = self.client.database(&collection.database).run_cursor_command(command).await?;
        let mut all = Vec::new();
        while cursor.advance().await? {
            all.push(Document::try_from(cursor.current())?);
        }
        Ok(all)
    }

    pub(crate) async fn drop_indexes(&self, collection: &Collection, name: &str) -> Result<()> {
        match self.command(collection, "dropIndexes", doc! { "index": name }).await {
            Err(Error { code: Some(NAMESPACE_NOT_FOUND), .. }) if name == "*" => Ok(()),
            done => done.map(|_| ()),
        }
    }
}
