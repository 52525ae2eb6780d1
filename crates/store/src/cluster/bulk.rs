//! Bulk writes: one `bulkWrite` command from MongoDB 8.0 on, several commands before.

use super::write::modifications;
use super::{Cluster, ClusterSession};
use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::options::{BulkWrite, BulkWriteResult, Delete, InsertMany, Update, UpdateResult, WriteError, WriteModel};
use bson::{Bson, Document};
use mongodb::Namespace;
use mongodb::error::{BulkWriteError, ErrorKind, PartialBulkWriteResult};
use mongodb::options::{
    BulkWriteOptions, DeleteManyModel, DeleteOneModel, InsertOneModel, ReplaceOneModel, UpdateManyModel, UpdateOneModel,
};
use mongodb::results::VerboseBulkWriteResult;

/// The first wire version with the `bulkWrite` command.
const BULK_WRITE_WIRE_VERSION: i32 = 25;

/// A write as the driver has it.
fn driver_model(collection: &Collection, model: WriteModel) -> mongodb::options::WriteModel {
    let namespace = Namespace { db: collection.database.clone(), coll: collection.name.clone() };
    match model {
        WriteModel::Insert(document) => {
            InsertOneModel::builder().namespace(namespace).document(document).build().into()
        }
        WriteModel::Update { filter, update, many, options } => {
            let filters: Vec<Bson> = options.array_filters.into_iter().map(Bson::Document).collect();
            let filters = (!filters.is_empty()).then_some(filters);
            let upsert = options.upsert.then_some(true);
            let update = modifications(update);
            if many {
                let mut given = UpdateManyModel::builder().namespace(namespace).filter(filter).update(update).build();
                given.array_filters = filters;
                given.upsert = upsert;
                given.hint = options.hint;
                given.collation = options.collation;
                given.into()
            } else {
                let mut given = UpdateOneModel::builder().namespace(namespace).filter(filter).update(update).build();
                given.array_filters = filters;
                given.upsert = upsert;
                given.hint = options.hint;
                given.collation = options.collation;
                given.into()
            }
        }
        WriteModel::Replace { filter, replacement, upsert } => {
            let given = ReplaceOneModel::builder().namespace(namespace).filter(filter).replacement(replacement);
            let mut given = given.build();
            given.upsert = upsert.then_some(true);
            given.into()
        }
        WriteModel::Delete { filter, many: true } => {
            DeleteManyModel::builder().namespace(namespace).filter(filter).build().into()
        }
        WriteModel::Delete { filter, many: false } => {
            DeleteOneModel::builder().namespace(namespace).filter(filter).build().into()
        }
    }
}

fn result(done: VerboseBulkWriteResult) -> BulkWriteResult {
    let mut upserted: Vec<(usize, Bson)> =
        done.update_results.into_iter().filter_map(|(index, update)| Some((index, update.upserted_id?))).collect();
    upserted.sort_by_key(|entry| entry.0);
    let summary = done.summary;
    BulkWriteResult {
        inserted: summary.inserted_count as u64,
        matched: summary.matched_count as u64,
        modified: summary.modified_count as u64,
        deleted: summary.deleted_count as u64,
        upserted,
        errors: Vec::new(),
    }
}

impl Cluster {
    pub(crate) async fn bulk_write(
        &self,
        models: Vec<(Collection, WriteModel)>,
        options: BulkWrite,
        session: Option<&mut ClusterSession>,
    ) -> Result<BulkWriteResult> {
        if self.capabilities.wire_version < BULK_WRITE_WIRE_VERSION {
            return self.bulk_by_parts(models, options, session).await;
        }
        let in_transaction = session.is_some();
        let models: Vec<_> = models.into_iter().map(|(collection, model)| driver_model(&collection, model)).collect();
        let mut given = BulkWriteOptions::default();
        given.ordered = Some(options.ordered);
        given.bypass_document_validation = options.bypass_document_validation.then_some(true);
        let action = self.client.bulk_write(models).with_options(given).verbose_results();
        let done = match session {
            Some(session) => action.session(&mut session.session).await,
            None => action.await,
        };
        match done {
            Ok(done) => Ok(result(done)),
            Err(error) => match &*error.kind {
                ErrorKind::BulkWrite(failed) if !failed.write_errors.is_empty() && !in_transaction => {
                    Ok(partial(failed))
                }
                _ => Err(error.into()),
            },
        }
    }

    /// The bulk as one command for neighbouring inserts and one for each other write.
    async fn bulk_by_parts(
        &self,
        models: Vec<(Collection, WriteModel)>,
        options: BulkWrite,
        mut session: Option<&mut ClusterSession>,
    ) -> Result<BulkWriteResult> {
        let mut done = BulkWriteResult::default();
        let mut models = models.into_iter().enumerate().peekable();
        while let Some((index, (collection, model))) = models.next() {
            let session = session.as_deref_mut();
            let in_transaction = session.is_some();
            let error = match model {
                WriteModel::Insert(first) => {
                    let mut documents = vec![first];
                    while let Some((_, (_, WriteModel::Insert(next)))) = models.next_if(|(_, (other, model))| {
                        matches!(model, WriteModel::Insert(_))
                            && other.database == collection.database
                            && other.name == collection.name
                    }) {
                        documents.push(next);
                    }
                    self.insert_part(&collection, documents, index, options, session, &mut done).await
                }
                other => self.write_part(&collection, other, index, options, session, &mut done).await,
            };
            if let Err(error) = error {
                if in_transaction {
                    return Err(error);
                }
                done.errors.push(WriteError { index, error });
            }
            if options.ordered && !done.errors.is_empty() {
                break;
            }
        }
        Ok(done)
    }

    async fn insert_part(
        &self,
        collection: &Collection,
        documents: Vec<Document>,
        from: usize,
        options: BulkWrite,
        session: Option<&mut ClusterSession>,
        done: &mut BulkWriteResult,
    ) -> Result<()> {
        let BulkWrite { ordered, bypass_document_validation } = options;
        let insert = InsertMany { ordered, bypass_document_validation };
        let inserted = self.insert(collection, documents, insert, session).await?;
        done.inserted += inserted.inserted;
        let failed = inserted.errors.into_iter();
        done.errors.extend(failed.map(|failed| WriteError { index: from + failed.index, ..failed }));
        Ok(())
    }

    async fn write_part(
        &self,
        collection: &Collection,
        model: WriteModel,
        index: usize,
        options: BulkWrite,
        session: Option<&mut ClusterSession>,
        done: &mut BulkWriteResult,
    ) -> Result<()> {
        let bypass_document_validation = options.bypass_document_validation;
        let updated = match model {
            WriteModel::Insert(_) => unreachable!("inserts go together"),
            WriteModel::Update { filter, update, many, options } => {
                let options = Update { bypass_document_validation, ..options };
                self.update(collection, filter, update, options, many, session).await?
            }
            WriteModel::Replace { filter, replacement, upsert } => {
                let options = Update { upsert, bypass_document_validation, ..Update::default() };
                self.replace(collection, filter, replacement, options, session).await?
            }
            WriteModel::Delete { filter, many } => {
                done.deleted += self.delete(collection, filter, Delete::default(), many, session).await?;
                UpdateResult::default()
            }
        };
        done.matched += updated.matched;
        done.modified += updated.modified;
        done.upserted.extend(updated.upserted.map(|id| (index, id)));
        Ok(())
    }
}

/// What was done before and besides the writes that failed.
fn partial(failed: &BulkWriteError) -> BulkWriteResult {
    let mut done = match &failed.partial_result {
        Some(PartialBulkWriteResult::Verbose(done)) => result(done.clone()),
        _ => BulkWriteResult::default(),
    };
    let mut errors: Vec<WriteError> = failed
        .write_errors
        .iter()
        .map(|(index, failed)| {
            let error = Error::new(failed.code, failed.message.clone()).with_info(failed.details.clone());
            WriteError { index: *index, error }
        })
        .collect();
    errors.sort_by_key(|failed| failed.index);
    done.errors = errors;
    done
}

#[cfg(test)]
mod tests {
    use crate::{BulkWrite, Kind, Store, WriteModel};
    use bson::{Bson, doc};
    use wire::{Address, Config, Listen, Server};

    async fn old_server() -> Store {
        let listen = vec![Listen::Tcp { host: "127.0.0.1".to_owned(), port: 0 }];
        let engine = engine::Engine::in_memory(engine::Options::system()).expect("opens");
        let server = Server::bind(Config { listen, ..Config::default() }, engine).await.expect("binds");
        let Some(Address::Tcp(address)) = server.addresses().into_iter().next() else { panic!("a TCP address") };
        tokio::spawn(server.serve(std::future::pending()));
        let mut store = Store::connect(&format!("mongodb://{address}/")).await.expect("connects");
        let Kind::Cluster(cluster) = &mut store.kind else { panic!("a cluster") };
        cluster.capabilities.wire_version = 21;
        store
    }

    #[tokio::test]
    async fn before_mongodb_8_a_bulk_goes_in_parts() {
        let store = old_server().await;
        let items = store.collection("shop", "items");
        let models = || {
            vec![
                WriteModel::Insert(doc! { "_id": 1 }),
                WriteModel::Insert(doc! { "_id": 2 }),
                WriteModel::upsert_one(doc! { "_id": 3 }, doc! { "$set": { "a": 1 } }),
                WriteModel::replace_one(doc! { "_id": 1 }, doc! { "b": 1 }),
                WriteModel::delete_many(doc! { "_id": 2 }),
            ]
        };
        let done = items.bulk_write(models(), BulkWrite::default(), None).await.expect("runs");
        assert_eq!((done.inserted, done.matched, done.modified, done.deleted), (2, 1, 1, 1));
        assert_eq!(done.upserted, [(2, Bson::Int32(3))]);
        let again = items.bulk_write(models(), BulkWrite::default(), None).await.expect("runs");
        assert_eq!((again.errors.len(), again.errors[0].index), (1, 0));
        assert_eq!((again.inserted, again.deleted), (0, 0));
        let unordered = BulkWrite { ordered: false, ..BulkWrite::default() };
        let again = items.bulk_write(models(), unordered, None).await.expect("runs");
        assert_eq!((again.errors.len(), again.inserted, again.deleted), (1, 1, 1));
    }
}
