//! Carrying out effects on a deployment.

use super::super::bucket::Packing;
use super::super::effect::{Apart, Change, Effect, Extreme, Fill, Mirror, Newest, Referrers, Spread, Step};
use super::super::lagging::released;
use super::super::newest::raw as raw_value;
use super::super::timeline::{Fan, Fanned};
use super::super::value::tree;
use super::super::{Keeper, Kept, compress};
use super::chunks::Chunks;
use super::inboxes::Inboxes;
use super::lease::Lease;
use super::records::{RECORDS, image, raw, record_id, shares, tried};
use super::sums::Sums;
use super::{Key, now_ms};
use crate::language::reference::OnDelete;
use bson::{Bson, Document, RawBson, RawDocumentBuf, doc};
use store::{Aggregate, BulkWrite, Collection, Find, Result, Session, Store, Update, WriteModel};

/// The most copies or references that one transaction of a keeper changes.
const MANY: i64 = 300;

/// The most pages of so many that a writer's own transaction takes along for one document.
const PAGES: usize = 20;

pub(super) struct Carrier<'k> {
    pub(super) store: &'k Store,
    pub(super) database: &'k str,
    pub(super) keeper: &'k Keeper,
    /// None within a writer's own transaction, which needs no lease.
    pub(super) lease: Option<&'k Lease>,
}

impl Carrier<'_> {
    fn collection(&self, name: &str) -> Collection {
        self.store.collection(self.database, name)
    }

    async fn images(&self, (collection, id): &Key, mut session: Option<&mut Session>) -> Result<Images> {
        let by_id = doc! { "_id": id.clone() };
        let now = self.collection(collection).find_one(by_id, session.as_deref_mut()).await?;
        let by_record = doc! { "_id": record_id(collection, id) };
        let record = self.collection(RECORDS).find_one(by_record, session).await?;
        let (before, tried) = (image(record.as_ref())?, tried(record.as_ref())?);
        Ok(Images { before, now: now.as_ref().map(raw).transpose()?, tried })
    }

    /// What may be many is written first, in bounded transactions: copies of a document, and references to one that is gone.
    /// Gives how much it was, and what was read for it.
    pub(super) async fn before_record(&self, key: &Key) -> Result<(u64, Images)> {
        let images = self.images(key, None).await?;
        let Images { before, now, tried } = &images;
        let mut effects = 0;
        let mut many = self.keeper.others(&key.0, before.as_deref(), now.as_deref(), false)?;
        for tried in tried {
            let again = self.keeper.others(&key.0, Some(tried), now.as_deref(), false)?;
            many.extend(again.into_iter().filter(|effect| matches!(effect, Effect::Fan { .. })));
        }
        if let (None, Some(_), Some(watch)) = (before, now, self.keeper.watches.get(&key.0)) {
            // An author that is seen for the first time may have had too many followers meanwhile.
            let limited = watch.authors.iter().filter(|fan| fan.threshold.is_some());
            for fan in limited {
                many.push(Effect::Fan { fan: fan.clone(), what: Fanned::Author(raw_value(&key.1)?) });
            }
        }
        for effect in many {
            effects += match effect {
                Effect::Spread { spread, .. } => self.in_pages(&Many::Copies(&spread), key).await?,
                Effect::Referrers { rule, .. } if now.is_none() => self.in_pages(&Many::References(&rule), key).await?,
                Effect::Fan { fan, what } => {
                    match Inboxes::new(self.store, self.database, &fan).concerns_nobody(&what).await? {
                        true => 0,
                        false => self.in_pages(&Many::Inboxes(&fan, &what, now.is_some()), key).await?,
                    }
                }
                _ => 0,
            };
        }
        Ok((effects, images))
    }

    /// What has become of a document since what may be many was written for it.
    fn since(&self, key: &Key, seen: &Images, images: &Images) -> Result<Since> {
        let is_noted = |tried: &RawDocumentBuf| seen.tried.contains(tried) || seen.now.as_ref() == Some(tried);
        let is_known = images.before == seen.before && images.tried.iter().all(is_noted);
        if images.now == seen.now {
            return Ok(if is_known { Since::Nothing } else { Since::Accounted });
        }
        if !is_known || images.now.is_some() != seen.now.is_some() {
            return Ok(Since::Written);
        }
        let missed = self.keeper.others(&key.0, seen.now.as_deref(), images.now.as_deref(), false)?;
        let is_many = |effect: &Effect| matches!(effect, Effect::Spread { .. } | Effect::Fan { .. });
        Ok(if missed.iter().any(is_many) { Since::Written } else { Since::Nothing })
    }

    /// Accounts for a document within a writer's transaction, unless too many others follow from it.
    pub(super) async fn account(&self, key: &Key, sums: &mut Sums, session: &mut Session) -> Result<u64> {
        let Images { before, now, .. } = self.images(key, Some(&mut *session)).await?;
        let mut changed = 0;
        for effect in self.keeper.others(&key.0, before.as_deref(), now.as_deref(), false)? {
            let many = match &effect {
                Effect::Spread { spread, .. } => Many::Copies(spread),
                Effect::Referrers { rule, .. } if now.is_none() => Many::References(rule),
                Effect::Fan { fan, what } => Many::Inboxes(fan, what, false),
                _ => continue,
            };
            let mut last = None;
            for _ in 0..PAGES {
                let (next, effects) = self.page(&many, key, last, session).await?;
                (last, changed) = (next, changed + effects);
                if last.is_none() {
                    break;
                }
            }
            if last.is_some() {
                return Ok(changed);
            }
        }
        Ok(changed + self.document(key, sums, session).await?)
    }

    /// One transaction: documents as they are, their records, the effects of the differences, the token. None if something was
    /// accounted for since it was read: what may be many is to be written again first.
    pub(super) async fn batch(&self, keys: &[(Key, Images)], token: Option<Document>) -> Result<Option<u64>> {
        let mut session = self.store.start_session().await?;
        session.start_transaction().await?;
        let done = self.batch_in(keys, token, &mut session).await;
        match done {
            Ok(Some(effects)) => session.commit_transaction().await.map(|()| Some(effects)),
            over => {
                // The error of the body matters; the transaction is over either way.
                let _ = session.abort_transaction().await;
                over
            }
        }
    }

    async fn batch_in(
        &self,
        keys: &[(Key, Images)],
        token: Option<Document>,
        session: &mut Session,
    ) -> Result<Option<u64>> {
        self.check_lease(token, session).await?;
        let (mut count, mut sums) = (0, Sums::default());
        for (key, seen) in keys {
            let images = self.images(key, Some(&mut *session)).await?;
            match self.since(key, seen, &images)? {
                Since::Nothing => count += self.document_of(key, images, &mut sums, session).await?,
                Since::Written => {}
                Since::Accounted => return Ok(None),
            }
        }
        Ok(Some(count + self.write_sums(&mut sums, session).await?))
    }

    async fn check_lease(&self, token: Option<Document>, session: &mut Session) -> Result<()> {
        match self.lease {
            Some(lease) => lease.check(self.store, token, session).await,
            None => Ok(()),
        }
    }

    async fn document(&self, key: &Key, sums: &mut Sums, session: &mut Session) -> Result<u64> {
        let images = self.images(key, Some(&mut *session)).await?;
        self.document_of(key, images, sums, session).await
    }

    async fn document_of(&self, key: &Key, images: Images, sums: &mut Sums, session: &mut Session) -> Result<u64> {
        let (collection, id) = key;
        let Images { before, now, tried } = images;
        let mut count = 0;
        if let Some(now) = &now {
            let document = Document::try_from(&**now)?;
            // As if it were new: which copies it must have, whatever was there before.
            for effect in self.keeper.own(collection, None, Some(now), false, now_ms())? {
                match effect {
                    Effect::Fill(fill) => count += self.fill(&fill, key, &document, session).await?,
                    Effect::Apart { rule, id, fields } => {
                        count += self.apart(&rule, collection, &tree(id)?, fields, session).await?;
                    }
                    _ => {}
                }
            }
            count += self.compress(collection, id, now, session).await?;
            // A parent that is new, or was written anew without what is kept in it.
            let kept: Vec<&Kept> = self.numbers_and_lists(collection).collect();
            if !kept.is_empty() && (before.is_none() || kept.iter().any(|kept| at(&document, &kept.field).is_none())) {
                // What the records say already must not be added to it once more.
                count += self.write_sums(sums, session).await?;
                count += self.adopt(collection, id, session).await?;
            }
        }
        let effects = self.keeper.others(collection, before.as_deref(), now.as_deref(), false)?;
        if before.is_some() && now.is_some() && effects.is_empty() && tried.is_empty() {
            return Ok(count);
        }
        for effect in effects {
            count += self.effect(effect, sums, session).await?;
        }
        for tried in &tried {
            for effect in self.keeper.others(collection, Some(tried), now.as_deref(), false)? {
                if let Effect::Parent { change: Change::Newest { .. } | Change::Extreme { .. }, .. } = effect {
                    count += self.effect(effect, sums, session).await?;
                }
            }
        }
        self.record(key, now.as_ref(), session).await?;
        Ok(count)
    }

    /// The kept fields that a keeper writes: stock is moved by whoever has the right to refuse.
    fn numbers_and_lists<'c>(&'c self, collection: &'c str) -> impl Iterator<Item = &'c Kept> {
        self.keeper.kept(collection).iter().filter(|kept| !self.keeper.is_stock(collection, &kept.field))
    }

    /// What a document holds of its other part goes there; without fields, the part goes.
    async fn apart(
        &self,
        rule: &Apart,
        collection: &str,
        id: &Bson,
        fields: Option<Vec<(String, RawBson)>>,
        session: &mut Session,
    ) -> Result<u64> {
        let parts = self.collection(&rule.parts);
        let by_id = doc! { "_id": id.clone() };
        let Some(fields) = fields else { return parts.delete_one(by_id, Some(session)).await };
        let (mut set, mut unset) = (Document::new(), Document::new());
        for (name, value) in fields {
            set.insert(name.clone(), tree(value)?);
            unset.insert(name, 1);
        }
        let upsert = Update { upsert: true, ..Update::default() };
        parts.update_one(by_id, doc! { "$set": set }, upsert, Some(&mut *session)).await?;
        self.write_parent(collection, id, Document::new(), unset, session).await
    }

    /// Large fields that stand as they came.
    async fn compress(&self, collection: &str, id: &Bson, now: &RawDocumentBuf, session: &mut Session) -> Result<u64> {
        let rules = self.keeper.watches.get(collection).map_or(&[][..], |watch| &watch.packed);
        let mut set = Document::new();
        for rule in rules {
            if let Some(packed) = compress::packed(rule, now)? {
                set.insert(rule.path.clone(), Bson::Binary(packed));
            }
        }
        if set.is_empty() {
            return Ok(0);
        }
        self.write_parent(collection, id, set, Document::new(), session).await
    }

    /// A child's chunks.
    async fn pack(&self, packing: Packing, session: &mut Session) -> Result<u64> {
        let parents: Vec<Bson> =
            packing.gone.into_iter().map(|(parent, _)| tree(parent)).collect::<engine::Result<_>>()?;
        let came = packing.came.map(|(parent, item)| Ok::<_, engine::Error>((tree(parent)?, item))).transpose()?;
        let chunks = Chunks::new(self.store, self.database, &packing.rule);
        chunks.repack(&tree(packing.child)?, &parents, came, Some(session)).await?;
        Ok(1)
    }

    async fn record(&self, (collection, id): &Key, now: Option<&RawDocumentBuf>, session: &mut Session) -> Result<()> {
        let records = self.collection(RECORDS);
        let by_id = doc! { "_id": record_id(collection, id) };
        let Some(now) = now else {
            records.delete_one(by_id, Some(session)).await?;
            return Ok(());
        };
        let shares = shares(self.keeper, collection, Some(now))?;
        let record = doc! { "image": Document::try_from(&**now)?, "shares": shares };
        let upsert = Update { upsert: true, ..Update::default() };
        records.replace_one(by_id, record, upsert, Some(session)).await?;
        Ok(())
    }

    /// A parent that is new here gets what its children's records say, and the newest of them.
    pub(super) async fn adopt(&self, collection: &str, id: &Bson, session: &mut Session) -> Result<u64> {
        let mut set = Document::new();
        let prefix = format!("{collection}.");
        let pipeline = vec![
            doc! { "$match": { "shares.p": id.clone() } },
            doc! { "$unwind": "$shares" },
            doc! { "$match": { "shares.p": id.clone() } },
            doc! { "$group": { "_id": "$shares.k", "v": { "$sum": "$shares.v" } } },
        ];
        let cursor = self.collection(RECORDS).aggregate(pipeline, Aggregate::default(), Some(&mut *session)).await?;
        for group in cursor.collect(Some(&mut *session)).await? {
            if let (Ok(name), Some(value)) = (group.get_str("_id"), group.get("v"))
                && let Some(field) = name.strip_prefix(&prefix)
            {
                set.insert(field, value.clone());
            }
        }
        let mut unset = Document::new();
        for kept in self.numbers_and_lists(collection) {
            match &kept.rule {
                super::super::KeptRule::Number => {
                    if !set.contains_key(&kept.field) {
                        set.insert(kept.field.clone(), 0_i64);
                    }
                }
                super::super::KeptRule::Extreme(rule) => {
                    put(&mut set, &mut unset, &kept.field, self.extreme(rule, id, session).await?);
                }
                super::super::KeptRule::Newest(rule) => {
                    put(&mut set, &mut unset, &kept.field, self.newest(rule, id, session).await?);
                }
            }
        }
        self.write_parent(collection, id, set, unset, session).await
    }

    async fn write_parent(
        &self,
        collection: &str,
        id: &Bson,
        set: Document,
        unset: Document,
        session: &mut Session,
    ) -> Result<u64> {
        let mut update = Document::new();
        if !set.is_empty() {
            update.insert("$set", set);
        }
        if !unset.is_empty() {
            update.insert("$unset", unset);
        }
        if update.is_empty() {
            return Ok(0);
        }
        let by_id = doc! { "_id": id.clone() };
        let done =
            self.collection(collection).update_one(by_id, update, Update::default(), Some(&mut *session)).await?;
        if done.matched == 0 {
            self.await_document(collection, id, session).await?;
        }
        Ok(done.modified)
    }

    /// A document that others wait for is not there, as far as this transaction sees. Whoever creates it meanwhile writes its
    /// record, and so does this: the two conflict, and the later one sees what the other did. The record goes with a pass
    /// once nobody refers to the document.
    async fn await_document(&self, collection: &str, id: &Bson, session: &mut Session) -> Result<()> {
        let by_id = doc! { "_id": record_id(collection, id) };
        let upsert = Update { upsert: true, ..Update::default() };
        let more = doc! { "$inc": { "awaited": 1_i64 } };
        self.collection(RECORDS).update_one(by_id, more, upsert, Some(session)).await.map(|_| ())
    }

    async fn effect(&self, effect: Effect, sums: &mut Sums, session: &mut Session) -> Result<u64> {
        match effect {
            Effect::Parent { collection, id, change } => {
                let id = tree(id)?;
                let (mut set, mut unset) = (Document::new(), Document::new());
                match change {
                    Change::Add { field, .. } if self.keeper.is_stock(&collection, &field) => return Ok(0),
                    Change::Add { field, amount } => {
                        sums.add(collection, id, field, amount)?;
                        return Ok(0);
                    }
                    Change::Extreme { rule, .. } => {
                        put(&mut set, &mut unset, &rule.field, self.extreme(&rule, &id, session).await?);
                    }
                    Change::Newest { rule, .. } => {
                        put(&mut set, &mut unset, &rule.field, self.newest(&rule, &id, session).await?);
                    }
                }
                self.write_parent(&collection, &id, set, unset, session).await
            }
            Effect::Mirror(mirror) => self.mirror(mirror, session).await,
            Effect::Pack(packing) => self.pack(packing, session).await,
            Effect::Apart { rule, id, fields } => self.apart(&rule, &rule.parts, &tree(id)?, fields, session).await,
            Effect::Roll { roll, group, .. } => sums.roll(roll, group).map(|()| 0),
            // A deployment's other writers are not refused; what may be many was written before.
            _ => Ok(0),
        }
    }

    fn of_parent(by: &str, parent: &Bson, filter: &RawDocumentBuf) -> Result<Document> {
        let mut query = Document::try_from(&**filter)?;
        query.insert(by, parent.clone());
        Ok(query)
    }

    async fn extreme(&self, rule: &Extreme, parent: &Bson, session: &mut Session) -> Result<Option<Bson>> {
        let mut query = Self::of_parent(&rule.by, parent, &rule.filter)?;
        query.insert(rule.path.clone(), doc! { "$ne": Bson::Null });
        let sort = Some(doc! { &rule.path: if rule.largest { -1 } else { 1 } });
        let options = Find { sort, limit: 1, ..Find::default() };
        let found = self.collection(&rule.children).find(query, options, Some(&mut *session)).await?;
        self.note_unaccounted(&rule.children, &found, session).await?;
        Ok(found.first().and_then(|child| at(child, &rule.path)).cloned())
    }

    async fn newest(&self, rule: &Newest, parent: &Bson, session: &mut Session) -> Result<Option<Bson>> {
        let query = Self::of_parent(&rule.by, parent, &rule.filter)?;
        let direction = if rule.descending { 1 } else { -1 };
        let sort = Some(doc! { &rule.order: direction, "_id": -1 });
        let limit = rule.keep.unwrap_or(1) as i64;
        let options = Find { sort, limit, ..Find::default() };
        let found = self.collection(&rule.children).find(query, options, Some(&mut *session)).await?;
        self.note_unaccounted(&rule.children, &found, session).await?;
        let copies: Vec<Bson> = found
            .iter()
            .map(|child| {
                let mut copy = doc! { "_id": child.get("_id").cloned().unwrap_or(Bson::Null) };
                for (name, path) in &rule.fields {
                    if let Some(value) = at(child, path) {
                        copy.insert(name.clone(), value.clone());
                    }
                }
                Bson::Document(copy)
            })
            .collect();
        Ok(match rule.keep {
            Some(_) => Some(Bson::Array(copies)),
            None => copies.into_iter().next(),
        })
    }

    async fn mirror(&self, mirror: Mirror, session: &mut Session) -> Result<u64> {
        let edges = self.collection(&mirror.collection);
        let ends = doc! { &mirror.ends.0: tree(mirror.from)?, &mirror.ends.1: tree(mirror.to)? };
        let Some(fields) = mirror.fields else { return edges.delete_one(ends, Some(session)).await };
        let upsert = Update { upsert: true, ..Update::default() };
        let mut update = doc! { "$setOnInsert": { "_id": bson::oid::ObjectId::new() } };
        if !fields.is_empty() {
            update.insert("$set", fields);
        }
        let done = edges.update_one(ends, update, upsert, Some(session)).await?;
        Ok(done.modified + u64::from(done.upserted.is_some()))
    }

    /// Copies from the source as this transaction sees it, so that a copy made now and a change of the source conflict.
    async fn fill(&self, fill: &Fill, (collection, id): &Key, now: &Document, session: &mut Session) -> Result<u64> {
        let by_id = doc! { "_id": tree(fill.id.clone())? };
        let Some(source) = self.collection(&fill.copy.source).find_one(by_id, Some(&mut *session)).await? else {
            self.await_document(&fill.copy.source, &tree(fill.id.clone())?, session).await?;
            return Ok(0);
        };
        let mut path = String::new();
        for step in &fill.place.0 {
            match step {
                Step::Name(name) => path.push_str(&format!("{name}.")),
                Step::Index(index) => path.push_str(&format!("{index}.")),
            }
        }
        let is_live = fill.copy.fill.is_none();
        let mut set = Document::new();
        for (name, from) in &fill.copy.fields {
            let place = format!("{path}{name}");
            let held = at(now, &place);
            // A snapshot is taken once; a live copy follows.
            let wanted = if is_live { held != at(&source, from) } else { held.is_none() };
            if let Some(value) = at(&source, from).filter(|_| wanted) {
                set.insert(place, value.clone());
            }
        }
        self.write_parent(collection, id, set, Document::new(), session).await
    }

    /// What may be many, a bounded number in each transaction, which checks the lease.
    pub(super) async fn in_pages(&self, many: &Many<'_>, key: &Key) -> Result<u64> {
        let mut effects = 0;
        let mut last: Option<Bson> = None;
        loop {
            let mut session = self.store.start_session().await?;
            session.start_transaction().await?;
            let page = self.page(many, key, last.clone(), &mut session).await;
            let (next, changed) = match page {
                Ok(page) => {
                    session.commit_transaction().await?;
                    page
                }
                Err(error) => {
                    let _ = session.abort_transaction().await; // the page's error matters
                    if error.has_label("TransientTransactionError") {
                        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                        continue;
                    }
                    return Err(error);
                }
            };
            effects += changed;
            let Some(next) = next else { return Ok(effects) };
            last = Some(next);
        }
    }

    /// One page, after an `_id`; the last one's, if there may be more.
    pub(super) async fn page(
        &self,
        many: &Many<'_>,
        (collection, id): &Key,
        after: Option<Bson>,
        session: &mut Session,
    ) -> Result<(Option<Bson>, u64)> {
        self.check_lease(None, session).await?;
        match many {
            Many::Copies(spread) => self.spread_page(spread, collection, id, after, session).await,
            Many::References(rule) => self.references_page(rule, collection, id, after, session).await,
            Many::Inboxes(fan, what, noted) => {
                if *noted {
                    self.note_tried(collection, id, session).await?;
                }
                Inboxes::new(self.store, self.database, fan).page(what, after, Some(session)).await
            }
        }
    }

    /// Children that a parent shows as they are, and whose records do not say so yet: if one is gone or elsewhere by the time its
    /// own change is accounted for, the parent is found again by this note.
    async fn note_unaccounted(&self, collection: &str, children: &[Document], session: &mut Session) -> Result<()> {
        for child in children {
            let id = child.get("_id").cloned().unwrap_or(Bson::Null);
            let by_id = doc! { "_id": record_id(collection, &id) };
            let record = self.collection(RECORDS).find_one(by_id, Some(&mut *session)).await?;
            let accounted = record.as_ref().and_then(|record| record.get_document("image").ok());
            if accounted != Some(child) {
                self.note_tried(collection, &id, session).await?;
            }
        }
        Ok(())
    }

    /// Remembers with each page what is fanned out: if the record is never reached and the document changes or goes
    /// meanwhile, it is taken back from this.
    async fn note_tried(&self, collection: &str, id: &Bson, session: &mut Session) -> Result<()> {
        let source = self.collection(collection);
        let Some(image) = source.find_one(doc! { "_id": id.clone() }, Some(&mut *session)).await? else {
            return Ok(());
        };
        let by_id = doc! { "_id": record_id(collection, id) };
        let note = doc! { "$addToSet": { "tried": image } };
        let upsert = Update { upsert: true, ..Update::default() };
        self.collection(RECORDS).update_one(by_id, note, upsert, Some(session)).await.map(|_| ())
    }

    /// One page of holders, by `_id`; the last one's, if there may be more.
    async fn spread_page(
        &self,
        spread: &Spread,
        source: &str,
        id: &Bson,
        after: Option<Bson>,
        session: &mut Session,
    ) -> Result<(Option<Bson>, u64)> {
        let by_id = doc! { "_id": id.clone() };
        let Some(source) = self.collection(source).find_one(by_id, Some(&mut *session)).await? else {
            return Ok((None, 0));
        };
        let holders = self.collection(&spread.holders);
        let mut query = doc! { &spread.via: id.clone() };
        if let Some(after) = after {
            query.insert("_id", doc! { "$gt": after });
        }
        let options =
            Find { sort: Some(doc! { "_id": 1 }), limit: MANY, projection: Some(doc! { "_id": 1 }), ..Find::default() };
        let found = holders.find(query, options, Some(&mut *session)).await?;
        if found.is_empty() {
            return Ok((None, 0));
        }
        let (update, options) = copy_update(spread, id, &source);
        let write = |holder: &Document| WriteModel::Update {
            filter: doc! { "_id": holder.get("_id").cloned().unwrap_or(Bson::Null) },
            update: update.clone().into(),
            many: false,
            options: options.clone(),
        };
        let models = found.iter().map(write).collect();
        let done = holders.bulk_write(models, BulkWrite::default(), Some(session)).await?.ok()?;
        let last = found.last().and_then(|holder| holder.get("_id")).cloned();
        Ok((last.filter(|_| found.len() as i64 == MANY), done.modified))
    }

    /// What a delete does to a page of the documents that refer to what is gone.
    async fn references_page(
        &self,
        rule: &Referrers,
        source: &str,
        id: &Bson,
        after: Option<Bson>,
        session: &mut Session,
    ) -> Result<(Option<Bson>, u64)> {
        // Too late to refuse a delete: the audit reports the orphans. And it may be there again.
        let is_over = matches!(rule.on_delete, OnDelete::Restrict | OnDelete::Keep);
        let by_id = doc! { "_id": id.clone() };
        if is_over || self.collection(source).find_one(by_id, Some(&mut *session)).await?.is_some() {
            return Ok((None, 0));
        }
        let referring = self.collection(&rule.collection);
        let mut query = doc! { &rule.path: id.clone() };
        if let Some(after) = after {
            query.insert("_id", doc! { "$gt": after });
        }
        let options = Find { sort: Some(doc! { "_id": 1 }), limit: MANY, ..Find::default() };
        let found = referring.find(query, options, Some(&mut *session)).await?;
        let Some(last) = found.last().and_then(|last| last.get("_id")).cloned() else { return Ok((None, 0)) };
        let count = found.len();
        let mut models = Vec::new();
        for referrer in found {
            let filter = doc! { "_id": referrer.get("_id").cloned().unwrap_or(Bson::Null) };
            models.push(match released(rule, referrer, id)? {
                Some(replacement) => WriteModel::Replace { filter, replacement, upsert: false },
                None => WriteModel::Delete { filter, many: false },
            });
        }
        referring.bulk_write(models, BulkWrite::default(), Some(session)).await?.ok()?;
        Ok(((count as i64 == MANY).then_some(last), count as u64))
    }
}

/// What may be many for one document.
pub(super) enum Many<'e> {
    /// Its copies.
    Copies(&'e Spread),
    /// References to it, when it is gone.
    References(&'e Referrers),
    /// Inboxes that it comes into or leaves, and whether it is noted as tried.
    Inboxes(&'e Fan, &'e Fanned, bool),
}

/// What has become of a document since what may be many was written for it.
enum Since {
    /// Nothing that matters to that.
    Nothing,
    /// It was written: an event of its own follows, and finds everything as it was.
    Written,
    /// It stands as it was, but somebody accounted for it or filled inboxes with it: a transaction of a keeper that was thought
    /// dead.
    Accounted,
}

/// A document as it is, and what is known of it.
pub(super) struct Images {
    /// What was accounted for.
    before: Option<RawDocumentBuf>,
    now: Option<RawDocumentBuf>,
    /// What was fanned out, perhaps in part, and not accounted for.
    tried: Vec<RawDocumentBuf>,
}

fn put(set: &mut Document, unset: &mut Document, field: &str, value: Option<Bson>) {
    match value {
        Some(value) => set.insert(field, value),
        None => unset.insert(field, 1),
    };
}

/// The value at a dotted path, with positions in arrays.
fn at<'d>(document: &'d Document, path: &str) -> Option<&'d Bson> {
    let mut names = path.split('.');
    let mut value = document.get(names.next()?)?;
    for name in names {
        value = match value {
            Bson::Document(inner) => inner.get(name)?,
            Bson::Array(elements) => elements.get(name.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}

/// The update that brings a holder's copies to a source's values.
fn copy_update(spread: &Spread, id: &Bson, source: &Document) -> (Document, Update) {
    let mut path = String::new();
    let mut filters = Vec::new();
    let last_array = spread.steps.iter().rposition(|(_, many)| *many);
    for (number, (name, many)) in spread.steps.iter().enumerate() {
        path.push_str(&format!("{name}."));
        if *many && Some(number) == last_array {
            let below: String = spread.steps[number + 1..].iter().map(|(name, _)| format!("{name}.")).collect();
            filters.push(doc! { format!("holder.{below}{}", spread.reference): id.clone() });
            path.push_str("$[holder].");
        } else if *many {
            path.push_str("$[].");
        }
    }
    if let Some(name) = &spread.name {
        path.push_str(&format!("{name}."));
    }
    let (mut set, mut unset) = (Document::new(), Document::new());
    for (name, from) in &spread.fields {
        match at(source, from) {
            Some(value) => set.insert(format!("{path}{name}"), value.clone()),
            None => unset.insert(format!("{path}{name}"), 1),
        };
    }
    let mut update = Document::new();
    for (operator, fields) in [("$set", set), ("$unset", unset)] {
        if !fields.is_empty() {
            update.insert(operator, fields);
        }
    }
    (update, Update { array_filters: filters, ..Update::default() })
}
