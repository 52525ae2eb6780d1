//! Stock that the model keeps, compared with its ledger and its holds.

use super::snapshot::key;
use super::{Auditor, Compared, Drift};
use crate::error::Result;
use crate::keep::effect::Stocked;
use crate::keep::{number, stock};
use bson::{Bson, DateTime, Document, doc};
use std::collections::HashMap;
use store::Session;

impl Auditor {
    /// The ledger adds up to what is there, and the open holds to what is set aside.
    pub(super) async fn compare_stocks(
        &self,
        rule: &Stocked,
        items: &[Document],
        mut session: Option<&mut Session>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        if items.is_empty() {
            return Ok(compared);
        }
        let ids: Vec<Bson> = items.iter().filter_map(|item| item.get("_id").cloned()).collect();
        let lines = self.quantities(&rule.ledger, &ids, Document::new(), session.as_deref_mut()).await?;
        let holds = match &rule.holds {
            Some(holds) => self.quantities(holds, &ids, stock::open_holds(), session).await?,
            None => HashMap::new(),
        };
        for item in items {
            let id = item.get("_id").cloned().unwrap_or(Bson::Null);
            let sum = |sums: &HashMap<Vec<u8>, Document>| -> Result<i64> {
                let value = sums.get(&key(&id)?).and_then(|group| group.get("value"));
                Ok(number(value)?.to_i64_exact().unwrap_or(0))
            };
            let (lines, held) = (sum(&lines)?, sum(&holds)?);
            let total = stock::total(rule, item)?;
            let stored_held = match &rule.held {
                Some(field) => number(item.get(field))?.to_i64_exact().unwrap_or(0),
                None => 0,
            };
            if (lines, held) == (total, stored_held) {
                continue;
            }
            let mut add = doc! { rule.field.clone(): lines - total };
            if let Some(field) = &rule.held {
                add.insert(field.clone(), held - stored_held);
            }
            compared.drifts.push(Drift {
                target: id,
                stored: doc! { "there": total, "held": stored_held }.into(),
                expected: doc! { "ledger": lines, "holds": held }.into(),
                add: Some(add),
                documents: 0,
                update: None,
            });
        }
        Ok(compared)
    }

    /// On a server that keeps no models: the held quantity to its holds, and a line that explains the rest.
    pub(super) async fn stock_right(
        &self,
        rule: &Stocked,
        drift: &Drift,
        mut session: Option<&mut Session>,
    ) -> Result<()> {
        let empty = Document::new();
        let add = drift.add.as_ref().unwrap_or(&empty);
        let there = drift.stored.as_document().and_then(|stored| stored.get_i64("there").ok()).unwrap_or(0);
        if let Some(held) = &rule.held
            && let Ok(more @ (1.. | ..=-1)) = add.get_i64(held)
        {
            let change = doc! { "$inc": { held: more, &rule.field: -more } };
            let items = self.store.collection(&self.database, &rule.items);
            let by_id = doc! { "_id": drift.target.clone() };
            items.update_one(by_id, change, store::Update::default(), session.as_deref_mut()).await?;
        }
        if let Ok(short @ (1.. | ..=-1)) = add.get_i64(&rule.field) {
            let line = stock::correction(drift.target.clone(), -short, there, "correction", DateTime::now());
            self.store.collection(&self.database, &rule.ledger).insert_one(line, session).await?;
        }
        Ok(())
    }

    /// What the lines or holds of some items add up to.
    async fn quantities(
        &self,
        collection: &str,
        items: &[Bson],
        filter: Document,
        session: Option<&mut Session>,
    ) -> Result<HashMap<Vec<u8>, Document>> {
        let mut wanted = doc! { stock::ITEM: { "$in": items.to_vec() } };
        wanted.extend(filter);
        let pipeline = vec![
            doc! { "$match": wanted },
            doc! { "$group": {
                "_id": format!("${}", stock::ITEM), "value": { "$sum": format!("${}", stock::QUANTITY) },
            } },
        ];
        self.grouped(collection, pipeline, session).await
    }
}
