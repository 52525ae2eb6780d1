//! The stage that reads keys of an index.

use super::record::Chunks;
use super::{Counters, Cx, IndexKey, Member, Settings, State, Work};
use crate::error::Result;
use crate::filter::Filter;
use crate::key::{self, Decoder};
use crate::keyspace;
use crate::plan::IndexKind;
use crate::plan::bounds::{self, Check, FieldRanges};
use crate::plan::node::IndexScan;
use crate::plan::seen::Seen;
use bson::{RawBson, RawDocumentBuf};
use bytes::Bytes;

/// The length of a record key that is not an encoded `_id`.
const RECORD_NUMBER_BYTES: usize = 8;

/// A scan of an index's keys.
pub(super) struct KeyScan {
    chunks: Option<Chunks>,
    prefix: Vec<u8>,
    kind: IndexKind,
    collection: u32,
    clustered: bool,
    /// Fields to be checked on each key; empty when the range alone says it all.
    checked: Vec<FieldRanges>,
    descending: Vec<bool>,
    paths: Vec<String>,
    backward: bool,
    filter: Option<Filter>,
    makes_documents: bool,
    distinct: Option<usize>,
    /// The records seen, where a record may have several keys.
    seen: Option<Seen>,
}

impl KeyScan {
    pub(super) fn new(scan: &IndexScan, settings: &Settings) -> KeyScan {
        let kind = scan.index.kind;
        let space = if kind == IndexKind::Id { keyspace::IDS } else { keyspace::INDEXES };
        let prefix = keyspace::prefix(space, scan.index.id).to_vec();
        let single = scan.whole.clone().or_else(|| bounds::single_range(&scan.ranges));
        let checked = if single.is_some() { Vec::new() } else { scan.ranges.clone() };
        let range = single.or_else(|| bounds::envelope(&scan.ranges));
        let chunks = range
            .map(|(low, high)| Chunks::new([&prefix[..], &low].concat(), [&prefix[..], &high].concat(), scan.backward));
        KeyScan {
            chunks,
            prefix,
            kind,
            collection: settings.collection,
            clustered: settings.clustered,
            checked,
            descending: scan.descending(),
            paths: scan.fields.iter().map(|field| field.path.clone()).collect(),
            backward: scan.backward,
            filter: scan.filter.clone(),
            makes_documents: scan.covers && settings.makes_documents,
            distinct: scan.distinct,
            seen: (scan.is_multikey() || scan.index.spec.wildcard().is_some()).then(Seen::default),
        }
    }

    /// Splits an entry into the key's fields and the record's key.
    fn split(&self, rest: &Bytes, value: Bytes) -> Result<(IndexKey, Bytes)> {
        if self.kind == IndexKind::Id {
            return Ok((IndexKey { fields: rest.clone(), types: Bytes::new() }, value));
        }
        let at = if self.clustered {
            self.fields_length(rest, self.descending.len())?
        } else {
            rest.len().saturating_sub(RECORD_NUMBER_BYTES)
        };
        Ok((IndexKey { fields: rest.slice(..at), types: value }, rest.slice(at..)))
    }

    fn fields_length(&self, key: &[u8], fields: usize) -> Result<usize> {
        let mut at = 0;
        for descending in &self.descending[..fields] {
            at += key::skip(&key[at..], *descending)?;
        }
        Ok(at)
    }

    /// The document that a key makes, and whether a null in it may stand for a missing field.
    fn document(&self, key: &IndexKey) -> Result<(RawDocumentBuf, bool)> {
        let mut decoder = Decoder::new(&key.fields, &key.types);
        let mut fields = Vec::with_capacity(self.paths.len());
        for (path, descending) in self.paths.iter().zip(&self.descending) {
            fields.push((path.as_str(), decoder.next(*descending)?));
        }
        let has_null = fields.iter().any(|(_, value)| *value == RawBson::Null);
        Ok((nested(fields)?, has_null))
    }

    /// After a row of a distinct scan: on to the next value.
    fn pass_over(&mut self, key: &IndexKey, fields: usize) -> Result<()> {
        let length = self.fields_length(&key.fields, fields)?;
        let value = [&self.prefix[..], &key.fields[..length]].concat();
        let target = if self.backward { Some(value) } else { keyspace::after_prefix(&value) };
        if let (Some(chunks), Some(target)) = (&mut self.chunks, target) {
            chunks.seek(&target);
        }
        Ok(())
    }
}

impl Work for KeyScan {
    fn step(&mut self, cx: &Cx<'_>, counters: &mut Counters) -> Result<State> {
        let Some(chunks) = &mut self.chunks else { return Ok(State::End) };
        if counters.seeks == 0 {
            counters.seeks = 1;
        }
        let Some((entry, value)) = chunks.next(cx)? else { return Ok(State::End) };
        cx.count_key(counters);
        let rest = entry.slice(self.prefix.len()..);
        if !self.checked.is_empty() {
            match bounds::check(&rest, &self.checked, &self.descending, self.backward)? {
                Check::Within => {}
                Check::Done => return Ok(State::End),
                Check::Seek(target) => {
                    counters.seeks += 1;
                    chunks.seek(&[&self.prefix[..], &target].concat());
                    return Ok(State::NeedTime);
                }
            }
        }
        let (key, record) = self.split(&rest, value)?;
        if let Some(seen) = &mut self.seen {
            counters.duplicates_tested += 1;
            if !seen.insert(&record)? {
                counters.duplicates_dropped += 1;
                return Ok(State::NeedTime);
            }
        }
        let mut document = None;
        let mut is_certain = true;
        if self.filter.is_some() || self.makes_documents {
            let (made, has_null) = self.document(&key)?;
            if let Some(filter) = &self.filter
                && !filter.matches(&made, cx.environment)?
            {
                return Ok(State::NeedTime);
            }
            if self.makes_documents {
                document = Some(Bytes::from(made.into_bytes()));
                is_certain = !has_null;
            }
        }
        if !is_certain {
            // Only the document knows what is null and what is missing.
            document = cx.view.get(&keyspace::record(self.collection, &record))?;
            cx.count_document(counters);
            if document.is_none() {
                return Ok(State::NeedTime);
            }
        } else if let Some(fields) = self.distinct {
            self.pass_over(&key, fields)?;
        }
        let generation = cx.generation;
        Ok(State::Row(Box::new(Member { record, document, key: Some(key), sort_key: None, generation })))
    }

    fn release(&mut self) {
        if let Some(chunks) = &mut self.chunks {
            chunks.release();
        }
    }
}

/// A document of dotted paths, each group of paths with the same beginning under it.
fn nested(mut fields: Vec<(&str, RawBson)>) -> Result<RawDocumentBuf> {
    let mut document = RawDocumentBuf::new();
    while !fields.is_empty() {
        let (path, value) = fields.remove(0);
        let Some((first, rest)) = path.split_once('.') else {
            crate::document::append(&mut document, path, value.as_raw_bson_ref())?;
            continue;
        };
        let mut inner = vec![(rest, value)];
        let mut others = Vec::new();
        for (path, value) in fields {
            match path.strip_prefix(first).and_then(|rest| rest.strip_prefix('.')) {
                Some(rest) => inner.push((rest, value)),
                None => others.push((path, value)),
            }
        }
        fields = others;
        let inner = nested(inner)?;
        crate::document::append(&mut document, first, bson::RawBsonRef::Document(&inner))?;
    }
    Ok(document)
}
