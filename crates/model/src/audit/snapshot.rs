//! Reading several things as they are at one moment.

use super::{Auditor, Compared, Drift};
use crate::error::{Error, Result};
use crate::keep::declaration::{Declaration, Rule};
use crate::keep::deployment::inboxes::Inboxes;
use crate::keep::value;
use bson::{Bson, Document, RawBson, doc};
use store::{Find, Session, Update};

impl Auditor {
    /// Compares one target in one snapshot; on a server that keeps no models, puts it right in the same transaction.
    pub(super) async fn confirm_once(&self, declaration: &Declaration, target: &Bson) -> Result<Option<Drift>> {
        if !self.store.capabilities().transactions {
            return self.confirm_without_transactions(declaration, target).await;
        }
        let mut session = self.store.start_session().await?;
        session.start_transaction().await?;
        let compared = self.again(declaration, target, Some(&mut session)).await;
        let drift = match compared {
            Ok(compared) => compared.drifts.into_iter().next(),
            Err(error) => {
                // The error of the comparison matters; the transaction is over either way.
                let _ = session.abort_transaction().await;
                return Err(error);
            }
        };
        let direct = self.options.repair && !self.keeps_itself();
        if let (Some(drift), true) = (&drift, direct) {
            if let Err(error) = self.put_right(declaration, drift, Some(&mut session)).await {
                let _ = session.abort_transaction().await;
                return Err(error);
            }
            session.commit_transaction().await?;
        } else {
            session.abort_transaction().await?;
        }
        Ok(drift)
    }

    /// Twice the same difference with nothing changed in between.
    async fn confirm_without_transactions(&self, declaration: &Declaration, target: &Bson) -> Result<Option<Drift>> {
        let first = self.again(declaration, target, None).await?.drifts.into_iter().next();
        let second = self.again(declaration, target, None).await?.drifts.into_iter().next();
        let (Some(first), Some(second)) = (first, second) else { return Ok(None) };
        if (&first.stored, &first.expected) != (&second.stored, &second.expected) {
            return Ok(None);
        }
        if self.options.repair && !self.keeps_itself() {
            self.put_right(declaration, &second, None).await?;
        }
        Ok(Some(second))
    }

    async fn again(
        &self,
        declaration: &Declaration,
        target: &Bson,
        mut session: Option<&mut Session>,
    ) -> Result<Compared> {
        if let Rule::Roll(roll) = &declaration.rule {
            return self.compare_group(roll, target, session).await;
        }
        if let Rule::Bucket(rule) = &declaration.rule {
            return self.packed_again(declaration, rule, target, session).await;
        }
        if let Rule::Timeline(fan) = &declaration.rule {
            return self.inbox_again(fan, target, session).await;
        }
        let collection = self.store.collection(&self.database, &declaration.collection);
        let found = collection.find_one(doc! { "_id": target.clone() }, session.as_deref_mut()).await?;
        match (&declaration.rule, found) {
            (_, Some(image)) => self.compare(declaration, 0, &[image], session).await,
            (Rule::Number(number), None) => {
                self.compare_missing(declaration, number, vec![target.clone()], session).await
            }
            (_, None) => Ok(Compared::default()),
        }
    }

    async fn put_right(&self, declaration: &Declaration, drift: &Drift, session: Option<&mut Session>) -> Result<()> {
        let mut session = session;
        match &declaration.rule {
            Rule::Bucket(rule) => return self.chunks_right(declaration, rule, drift, session).await,
            Rule::Stock(rule) => return self.stock_right(rule, drift, session).await,
            Rule::Split(rule) => self.part_right(rule, drift, session.as_deref_mut()).await?,
            Rule::Timeline(fan) => {
                let Some(target) = drift.target.as_document() else { return Ok(()) };
                return Ok(Inboxes::new(&self.store, &self.database, fan).put_right(target, session).await?);
            }
            _ => {}
        }
        let Some((filter, update)) = &drift.update else { return Ok(()) };
        let collection = self.store.collection(&self.database, &declaration.collection);
        let options =
            Update { upsert: matches!(declaration.rule, Rule::Roll(_) | Rule::Mirror { .. }), ..Update::default() };
        collection.update_one(filter.clone(), update.clone(), options, session).await?;
        Ok(())
    }

    /// The documents of a collection with these ids.
    pub(super) async fn by_ids(
        &self,
        collection: &str,
        ids: Vec<Bson>,
        projection: Option<Document>,
        session: Option<&mut Session>,
    ) -> Result<Vec<Document>> {
        let collection = self.store.collection(&self.database, collection);
        let options = Find { projection, ..Find::default() };
        Ok(collection.find(doc! { "_id": { "$in": ids } }, options, session).await?)
    }
}

/// A value as a key that is equal exactly for values that MongoDB calls equal.
pub(super) fn key(value: &Bson) -> Result<Vec<u8>> {
    let raw =
        RawBson::try_from(value.clone()).map_err(|error| Error::Engine(engine::Error::bad_value(error.to_string())))?;
    let mut key = Vec::new();
    engine::key::encode(raw.as_raw_bson_ref(), None, &mut key)?;
    Ok(key)
}

/// What stands at a dotted path; arrays are not gone through.
pub(super) fn at<'d>(document: &'d Document, path: &str) -> Option<&'d Bson> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    match (document.get(first)?, rest) {
        (value, None) => Some(value),
        (Bson::Document(inner), Some(rest)) => at(inner, rest),
        _ => None,
    }
}

/// Whether two values, either of which may be missing, are equal.
pub(super) fn same(a: Option<&Bson>, b: Option<&Bson>) -> Result<bool> {
    match (a, b) {
        (None, None) => Ok(true),
        (Some(a), Some(b)) => Ok(key(a)? == key(b)?),
        _ => Ok(false),
    }
}

/// A document as bytes.
pub(super) fn raw(document: &Document) -> Result<bson::RawDocumentBuf> {
    Ok(crate::keep::raw(document)?)
}

/// A place in a document as a dotted path.
pub(super) fn dotted(place: &crate::keep::effect::Place) -> String {
    use crate::keep::effect::Step;
    let parts = place.0.iter().map(|step| match step {
        Step::Name(name) => name.clone(),
        Step::Index(index) => index.to_string(),
    });
    parts.collect::<Vec<_>>().join(".")
}

/// What stands at a place.
pub(super) fn at_place<'d>(document: &'d Document, place: &crate::keep::effect::Place) -> Option<&'d Bson> {
    value::get(document, place)
}
