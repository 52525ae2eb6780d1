//! Change streams of a deployment; the driver resumes them after a failed connection.

use super::Cluster;
use crate::error::Result;
use crate::options::{Start, Watch};
use crate::stream::{ChangeStream, StreamKind};
use bson::Document;
use mongodb::change_stream::event::ResumeToken;
use mongodb::options::{ChangeStreamOptions, FullDocumentBeforeChangeType, FullDocumentType};

fn token(token: Document) -> Result<ResumeToken> {
    Ok(bson::deserialize_from_document(token)?)
}

impl Cluster {
    pub(crate) async fn watch(&self, database: &str, name: &str, options: Watch) -> Result<ChangeStream> {
        let mut given = ChangeStreamOptions::default();
        given.full_document = options.update_lookup.then_some(FullDocumentType::UpdateLookup);
        given.full_document_before_change =
            options.before_change.then_some(FullDocumentBeforeChangeType::WhenAvailable);
        given.show_expanded_events = options.show_expanded_events.then_some(true);
        given.max_await_time = Some(options.max_await);
        given.batch_size = options.batch_size;
        match options.start {
            Start::Now => {}
            Start::ResumeAfter(from) => given.resume_after = Some(token(from)?),
            Start::StartAfter(from) => given.start_after = Some(token(from)?),
            Start::AtTime(time) => given.start_at_operation_time = Some(time),
        }
        let stream = if database.is_empty() {
            self.client.watch().pipeline(options.pipeline).with_options(given).await?
        } else if name.is_empty() {
            self.client.database(database).watch().pipeline(options.pipeline).with_options(given).await?
        } else {
            let collection = self.client.database(database).collection::<Document>(name);
            collection.watch().pipeline(options.pipeline).with_options(given).await?
        };
        Ok(ChangeStream::new(StreamKind::Cluster(Box::new(stream.with_type()))))
    }
}
