//! Reading from a deployment.

use super::{Cluster, ClusterSession, collation, hint, run, selection};
use crate::collection::Collection;
use crate::cursor::{Cursor, CursorKind};
use crate::error::Result;
use crate::options::{Aggregate, Find};
use bson::{Bson, Document};
use mongodb::options::{AggregateOptions, FindOptions};

impl Cluster {
    pub(crate) async fn find(
        &self,
        collection: &Collection,
        filter: Document,
        options: Find,
        session: Option<&mut ClusterSession>,
    ) -> Result<Cursor> {
        let mut given = FindOptions::default();
        given.sort = options.sort;
        given.projection = options.projection;
        given.skip = (options.skip > 0).then_some(options.skip);
        given.limit = (options.limit != 0).then_some(options.limit);
        given.hint = hint(options.hint);
        given.collation = collation(options.collation)?;
        given.batch_size = options.batch_size;
        given.max_time = options.max_time;
        given.selection_criteria = selection(options.freshness);
        let collection = self.of(collection);
        let find = collection.find(filter).with_options(given);
        let kind = match session {
            Some(session) => CursorKind::ClusterSession(find.session(&mut session.session).await?),
            None => CursorKind::Cluster(find.await?),
        };
        Ok(Cursor { kind })
    }

    pub(crate) async fn aggregate(
        &self,
        collection: &Collection,
        pipeline: Vec<Document>,
        options: Aggregate,
        session: Option<&mut ClusterSession>,
    ) -> Result<Cursor> {
        let mut given = AggregateOptions::default();
        given.hint = hint(options.hint);
        given.collation = collation(options.collation)?;
        given.batch_size = options.batch_size;
        given.max_time = options.max_time;
        given.let_vars = options.variables;
        given.allow_disk_use = Some(true);
        given.selection_criteria = selection(options.freshness);
        let database = self.client.database(&collection.database);
        let named = database.collection::<Document>(&collection.name);
        let action = match collection.name.as_str() {
            "" => database.aggregate(pipeline),
            _ => named.aggregate(pipeline),
        };
        let action = action.with_options(given);
        let kind = match session {
            Some(session) => CursorKind::ClusterSession(action.session(&mut session.session).await?),
            None => CursorKind::Cluster(action.await?),
        };
        Ok(Cursor { kind })
    }

    pub(crate) async fn count(
        &self,
        collection: &Collection,
        filter: Document,
        session: Option<&mut ClusterSession>,
    ) -> Result<u64> {
        let collection = self.of(collection);
        Ok(run!(collection.count_documents(filter), session))
    }

    pub(crate) async fn estimated_count(&self, collection: &Collection) -> Result<u64> {
        Ok(self.of(collection).estimated_document_count().await?)
    }

    pub(crate) async fn distinct(
        &self,
        collection: &Collection,
        key: &str,
        filter: Document,
        session: Option<&mut ClusterSession>,
    ) -> Result<Vec<Bson>> {
        let collection = self.of(collection);
        Ok(run!(collection.distinct(key, filter), session))
    }
}
