//! `system.buckets.NAME`: the groups of a time series as documents in the shape of MongoDB's buckets, to be looked at.
//!
//! Packed buckets and what is loose of each group are shown one by one, unpacked (`control.version: 1`). They can't be written.

use super::group::{Group, Reading};
use super::{BUCKETS_PREFIX, Series};
use crate::catalog::{Catalog, Collection};
use crate::database::{Engine, Inner};
use crate::document::{Row, append, compare_values, get};
use crate::error::Result;
use crate::namespace::Namespace;
use crate::operation::SharedView;
use crate::stage::{RowSource, Rows};
use bson::{DateTime, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, oid::ObjectId, rawdoc};
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The groups that are looked up at once.
const STEP_GROUPS: usize = 16;

/// The time series whose buckets a namespace shows.
pub(crate) fn series_of_buckets<'c>(catalog: &'c Catalog, namespace: &Namespace) -> Option<&'c Arc<Collection>> {
    let name = namespace.collection.strip_prefix(BUCKETS_PREFIX)?;
    let shown = Namespace { database: namespace.database.clone(), collection: name.to_owned() };
    catalog.get(&shown).filter(|collection| collection.settings.series.is_some())
}

impl Engine {
    /// The time series whose buckets a namespace shows (`system.buckets.NAME`).
    pub fn series_of_buckets(&self, namespace: &Namespace) -> Option<Namespace> {
        series_of_buckets(&self.state().catalog, namespace).map(|collection| collection.namespace.clone())
    }
}

/// The buckets of a time series, as rows.
pub(crate) fn rows(engine: &Arc<Inner>, view: SharedView, collection: &Arc<Collection>, series: &Arc<Series>) -> Rows {
    Box::new(Buckets {
        engine: engine.clone(),
        view,
        collection: collection.id,
        series: series.clone(),
        after: None,
        ready: VecDeque::new(),
        is_over: false,
    })
}

struct Buckets {
    engine: Arc<Inner>,
    view: SharedView,
    collection: u32,
    series: Arc<Series>,
    after: Option<bytes::Bytes>,
    ready: VecDeque<RawDocumentBuf>,
    is_over: bool,
}

impl RowSource for Buckets {
    fn next(&mut self) -> Result<Option<Row>> {
        while self.ready.is_empty() && !self.is_over {
            let groups = self.engine.next_groups(self.collection, self.after.as_deref(), STEP_GROUPS)?;
            self.is_over = groups.is_empty();
            for key in groups {
                let mut group = Group::read(&*self.view, self.collection, key.clone())?;
                let mut units: BTreeMap<(bool, [u8; 8]), Vec<bytes::Bytes>> = BTreeMap::new();
                while let Some((unit, document)) = group.next(&*self.view, &self.series, &Reading::default())? {
                    let is_loose = unit.row == super::group::LOOSE;
                    units.entry((is_loose, if is_loose { [0; 8] } else { unit.number })).or_default().push(document);
                }
                for ((is_loose, number), documents) in units {
                    self.ready.push_back(shown(&self.series, &documents, number, !is_loose)?);
                }
                self.after = Some(key);
            }
        }
        Ok(self.ready.pop_front().map(Row::from))
    }
}

/// A bucket as a document.
fn shown(series: &Series, rows: &[bytes::Bytes], number: [u8; 8], is_closed: bool) -> Result<RawDocumentBuf> {
    let documents: Vec<&RawDocument> =
        rows.iter().map(|bytes| RawDocument::from_bytes(bytes)).collect::<std::result::Result<_, _>>()?;
    let first = documents.first().expect("a bucket holds something");
    let window = series.window_of(series.time_of(first)?);
    let mut columns: Vec<(String, RawDocumentBuf, RawBson, RawBson)> = Vec::new();
    for (row, document) in documents.iter().enumerate() {
        for field in *document {
            let (name, value) = field?;
            if series.meta_field.as_deref() == Some(name.as_str()) {
                continue;
            }
            let place = match columns.iter().position(|column| column.0 == name.as_str()) {
                Some(place) => place,
                None => {
                    columns.push((name.as_str().to_owned(), RawDocumentBuf::new(), value.into(), value.into()));
                    columns.len() - 1
                }
            };
            let (_, data, least, greatest) = &mut columns[place];
            append(data, &row.to_string(), value)?;
            if compare_values(value, least.as_raw_bson_ref(), None)? == Ordering::Less {
                *least = value.into();
            }
            if compare_values(value, greatest.as_raw_bson_ref(), None)? == Ordering::Greater {
                *greatest = value.into();
            }
        }
    }
    let (mut min, mut max, mut data) = (RawDocumentBuf::new(), RawDocumentBuf::new(), RawDocumentBuf::new());
    for (name, values, least, greatest) in &columns {
        let is_time = **name == *series.time_field;
        let least = if is_time { RawBson::DateTime(DateTime::from_millis(window)) } else { least.clone() };
        append(&mut min, name, least.as_raw_bson_ref())?;
        append(&mut max, name, greatest.as_raw_bson_ref())?;
        append(&mut data, name, RawBsonRef::Document(values))?;
    }
    let mut bucket = rawdoc! { "_id": id_of(window, number) };
    let control = rawdoc! { "version": 1, "min": min, "max": max, "closed": is_closed, "count": rows.len() as i32 };
    append(&mut bucket, "control", RawBsonRef::Document(&control))?;
    if let Some(meta) = &series.meta_field
        && let Some(value) = get(first, meta)?
    {
        append(&mut bucket, "meta", value)?;
    }
    append(&mut bucket, "data", RawBsonRef::Document(&data))?;
    Ok(bucket)
}

/// An id as MongoDB makes it: the window's beginning in seconds, then what tells buckets apart.
fn id_of(window_ms: i64, number: [u8; 8]) -> ObjectId {
    let mut id = [0; 12];
    id[..4].copy_from_slice(&((window_ms / 1000) as u32).to_be_bytes());
    id[4..].copy_from_slice(&number);
    ObjectId::from_bytes(id)
}
