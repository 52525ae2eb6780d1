//! Repairs on Sheaf: a document that says what to put right, carried out by the server.

use super::{Auditor, Drift};
use crate::error::Result;
use crate::keep::declaration::Declaration;
use crate::keep::{REPAIRS, repair_record};
use bson::Bson;
use bson::oid::ObjectId;

impl Auditor {
    /// Has the server put a difference right; true once it has.
    pub(super) async fn record_repair(&self, declaration: &Declaration, drift: &Drift) -> Result<bool> {
        let id = Bson::ObjectId(ObjectId::new());
        let mut record = repair_record(id, &declaration.name, &drift.target, drift.add.clone());
        if drift.documents != 0 {
            record.insert("documents", drift.documents);
        }
        record.insert("was", drift.stored.clone());
        record.insert("expected", drift.expected.clone());
        let repairs = self.store.collection(&self.database, REPAIRS);
        match repairs.insert_one(record, None).await {
            Ok(()) => Ok(true),
            // The answer was lost and the driver tried again: it was carried out once.
            Err(error) if error.is_duplicate_key() => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}
