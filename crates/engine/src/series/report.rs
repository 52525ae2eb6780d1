//! `timeseries` in the statistics of a collection.

use super::{BUCKETS_PREFIX, Series};
use crate::catalog::Collection;
use crate::database::{Engine, Inner, Totals};
use crate::error::Result;
use crate::keyspace;
use crate::storage::{Direction, View};
use bson::{RawDocumentBuf, rawdoc};
use std::ops::Bound;

impl Engine {
    /// The section `timeseries` of a collection's statistics; none for other collections.
    ///
    /// # Errors
    /// A failing storage.
    pub fn series_stats(&self, collection: &Collection) -> Result<Option<RawDocumentBuf>> {
        let Some(series) = &collection.settings.series else { return Ok(None) };
        self.inner.series_report(&self.state().snapshot, collection, series).map(Some)
    }
}

impl Inner {
    /// How many buckets a time series shows: the packed ones, and one for each group with loose measurements.
    pub(crate) fn bucket_count(&self, view: &dyn View, collection: &Collection) -> Result<i64> {
        let totals = self.totals(view, collection.id)?;
        Ok(totals.buckets + loose_groups(view, collection.id)?)
    }

    /// The section of a collection's statistics; sizes are not scaled.
    pub(crate) fn series_report(
        &self,
        view: &dyn View,
        collection: &Collection,
        series: &Series,
    ) -> Result<RawDocumentBuf> {
        let totals: Totals = self.totals(view, collection.id)?;
        let buckets = self.bucket_count(view, collection)?;
        let namespace = &collection.namespace;
        Ok(rawdoc! {
            "bucketsNs": format!("{}.{BUCKETS_PREFIX}{}", namespace.database, namespace.collection),
            "bucketCount": buckets,
            "avgBucketSize": if buckets > 0 { totals.size_bytes / buckets } else { 0 },
            "numMeasurementsCommitted": totals.count,
            "avgNumMeasurementsPerCommit": 1_i64,
            "bucketMaxSpanSeconds": series.span_ms / 1000,
        })
    }
}

/// The groups that have loose measurements.
fn loose_groups(view: &dyn View, collection: u32) -> Result<i64> {
    let prefix = keyspace::prefix(keyspace::RECORDS, collection);
    let end = keyspace::after_prefix(&prefix).expect("records are not the last kind of keys");
    let (mut from, mut groups) = (prefix.to_vec(), 0);
    loop {
        let range = view.range(Bound::Included(&from), Bound::Excluded(&end), Direction::Forward)?;
        let Some((key, _)) = range.take(1).next().transpose()? else { return Ok(groups) };
        let group = keyspace::key(keyspace::RECORDS, collection, &super::group::group_of_key(&key));
        from = keyspace::after_prefix(&group).expect("a group's key does not end the key space");
        groups += 1;
    }
}
