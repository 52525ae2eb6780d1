//! The tree of a plan: what is read, and what is done to it on its way up.

use super::bounds::{self, FieldRanges};
use super::sort::SortPattern;
use super::{IndexInfo, IndexKind};
use crate::document::collation::Collator;
use crate::error::Result;
use crate::filter::{Filter, Intervals};
use crate::series::Series;
use crate::series::group::Reading;
use bson::{RawBson, RawDocumentBuf};
use std::sync::Arc;

/// A stage of a plan, with those below it.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Nothing can match.
    Eof,
    /// All records, or a range of them in a clustered collection.
    CollScan(CollScan),
    /// One point read by `_id`.
    IdHack(IdHack),
    /// Keys of an index.
    IndexScan(Box<IndexScan>),
    /// Reads the documents of keys, and checks them.
    Fetch {
        /// What is left to check.
        filter: Option<Filter>,
        /// Where the keys come from.
        child: Box<Node>,
    },
    /// Measurements of a time series, by the order of its groups.
    Series(Box<SeriesScan>),
    /// Measurements of the groups that keys lead to.
    SeriesFetch {
        /// What is read of them.
        within: Box<SeriesScan>,
        /// Where the keys come from.
        child: Box<Node>,
    },
    /// Several scans one after the other, each record once.
    Or {
        /// The scans.
        children: Vec<Node>,
    },
    /// Several scans in the same order, merged.
    SortMerge {
        /// The order.
        pattern: Arc<SortPattern>,
        /// The scans.
        children: Vec<Node>,
    },
    /// Everything read, ordered, then given.
    Sort {
        /// The order.
        pattern: Arc<SortPattern>,
        /// How many of the first are needed; zero for all.
        limit: u64,
        /// What is sorted.
        child: Box<Node>,
    },
    /// The projection's place in the plan; what it does to documents is not the plan's.
    Project {
        /// The stage's name.
        kind: ProjectionKind,
        /// The projection as given.
        document: RawDocumentBuf,
        /// What is projected.
        child: Box<Node>,
    },
    /// Passes over the first.
    Skip {
        /// How many.
        amount: u64,
        /// From what.
        child: Box<Node>,
    },
    /// Gives the first only.
    Limit {
        /// How many.
        amount: u64,
        /// Of what.
        child: Box<Node>,
    },
    /// Counts instead of giving.
    Count {
        /// What is counted.
        child: Box<Node>,
    },
}

/// How a projection is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProjectionKind {
    /// Fields in or out, documents read.
    Simple,
    /// All fields come from the index.
    Covered,
    /// Anything else.
    Default,
}

/// A scan of records.
#[derive(Clone, Debug)]
pub(crate) struct CollScan {
    /// The collection.
    pub(crate) collection: u32,
    /// What documents must match.
    pub(crate) filter: Option<Filter>,
    /// Whether the last records come first.
    pub(crate) backward: bool,
    /// In a clustered collection, the intervals of `_id`.
    pub(crate) clustered: Option<Clustered>,
}

/// The bounds of a scan of a clustered collection.
#[derive(Clone, Debug)]
pub(crate) struct Clustered {
    /// The intervals of `_id`.
    pub(crate) intervals: Intervals,
    /// Their bytes.
    pub(crate) ranges: FieldRanges,
}

/// A point read by `_id`.
#[derive(Clone, Debug)]
pub(crate) struct IdHack {
    /// The collection.
    pub(crate) collection: u32,
    /// Whether records lie under their `_id`.
    pub(crate) clustered: bool,
    /// The encoded value.
    pub(crate) encoded: Vec<u8>,
}

/// A scan of an index.
#[derive(Clone, Debug)]
pub(crate) struct IndexScan {
    /// Which index.
    pub(crate) index: IndexInfo,
    /// The fields of its stored keys.
    pub(crate) fields: Vec<ScanField>,
    /// For each field, the intervals that are read.
    pub(crate) intervals: Vec<Intervals>,
    /// The same as bytes.
    pub(crate) ranges: Vec<FieldRanges>,
    /// Of `min` and `max`: the range of whole keys instead.
    pub(crate) whole: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether the greatest keys come first.
    pub(crate) backward: bool,
    /// What is checked on the keys' own values, before documents are read.
    pub(crate) filter: Option<Filter>,
    /// Whether documents are made from the keys.
    pub(crate) covers: bool,
    /// Of a distinct scan: how many fields a key is told apart by; others with the same are passed over.
    pub(crate) distinct: Option<usize>,
    /// Shown as `COUNT_SCAN`.
    pub(crate) counts: bool,
}

/// A scan of the groups of a time series.
#[derive(Clone, Debug)]
pub(crate) struct SeriesScan {
    /// The bounds of the groups' keys.
    pub(crate) scan: IndexScan,
    /// The series.
    pub(crate) series: Arc<Series>,
    /// What is read of the measurements.
    pub(crate) reading: Arc<Reading>,
    /// What they must match.
    pub(crate) filter: Option<Filter>,
    /// Whether there are bounds.
    pub(crate) is_bounded: bool,
    /// The order that it gives, if it does.
    pub(crate) order: Option<SeriesOrder>,
}

/// How one series is read in the order of time.
#[derive(Clone, Debug)]
pub(crate) struct SeriesOrder {
    /// Whether the latest come first.
    pub(crate) descending: bool,
    /// The bytes between which its groups' keys lie.
    pub(crate) range: (Vec<u8>, Vec<u8>),
    /// The bytes between which groups lie whose meta value is an array.
    pub(crate) arrays: Option<(Vec<u8>, Vec<u8>)>,
}

/// A field of an index's stored key: a wildcard field is two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScanField {
    /// The path of the values; `$_path` for a wildcard's path.
    pub(crate) path: String,
    /// Whether greater values come first.
    pub(crate) descending: bool,
    /// Which parts of the path have been arrays in some document.
    pub(crate) arrays: u64,
    /// Whether hashes are stored.
    pub(crate) hashed: bool,
}

/// The name under which a wildcard index stores paths.
pub(crate) const WILDCARD_PATH: &str = "$_path";

impl IndexScan {
    /// A forward scan over intervals of each field.
    pub(crate) fn new(index: IndexInfo, fields: Vec<ScanField>, intervals: Vec<Intervals>) -> Result<IndexScan> {
        let mut ranges = Vec::with_capacity(fields.len());
        for (field, intervals) in fields.iter().zip(&intervals) {
            let collator = index.collator().filter(|_| !field.hashed && field.path != WILDCARD_PATH);
            ranges.push(bounds::ranges_of(intervals, field.descending, collator)?);
        }
        Ok(IndexScan {
            index,
            fields,
            intervals,
            ranges,
            whole: None,
            backward: false,
            filter: None,
            covers: false,
            distinct: None,
            counts: false,
        })
    }

    /// Whether some document has several keys in the index.
    pub(crate) fn is_multikey(&self) -> bool {
        self.fields.iter().any(|field| field.arrays != 0)
    }

    /// For each field, whether its bytes are inverted.
    pub(crate) fn descending(&self) -> Vec<bool> {
        self.fields.iter().map(|field| field.descending).collect()
    }

    /// Whether it reads one range of keys.
    pub(crate) fn is_single_range(&self) -> bool {
        self.whole.is_some() || bounds::single_range(&self.ranges).is_some()
    }
}

/// The most places where a quick plan begins to read: about as many reads as a quick batch has rows.
const MAX_QUICK_PLACES: usize = 128;

impl Node {
    /// Whether each row takes a bounded number of reads: every key that is read gives one, and reading begins in few places.
    pub(crate) fn is_quick(&self) -> bool {
        self.places().is_some_and(|places| places <= MAX_QUICK_PLACES)
    }

    /// In how many places reading begins, where every key that is read from there on gives a row.
    fn places(&self) -> Option<usize> {
        match self {
            Node::Eof | Node::IdHack(_) => Some(1),
            Node::IndexScan(scan) if scan.filter.is_none() && !scan.is_multikey() && scan.distinct.is_none() => {
                if scan.whole.is_some() { Some(1) } else { bounds::places(&scan.ranges) }
            }
            Node::CollScan(scan) if scan.filter.is_none() => {
                scan.clustered.as_ref().map(|clustered| clustered.ranges.len())
            }
            Node::SortMerge { children, .. } => children.iter().map(Node::places).sum(),
            Node::Fetch { filter: None, child } | Node::Project { child, .. } | Node::Limit { child, .. } => {
                child.places()
            }
            _ => None,
        }
    }

    /// The stage's name in `explain`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Node::Eof => "EOF",
            Node::CollScan(scan) if scan.clustered.is_some() => "CLUSTERED_IXSCAN",
            Node::CollScan(_) => "COLLSCAN",
            Node::IdHack(read) if read.clustered => "CLUSTERED_IXSCAN",
            Node::IdHack(_) => "IDHACK",
            Node::IndexScan(scan) if scan.distinct.is_some() => "DISTINCT_SCAN",
            Node::IndexScan(scan) if scan.counts => "COUNT_SCAN",
            Node::IndexScan(_) => "IXSCAN",
            Node::Fetch { .. } | Node::SeriesFetch { .. } => "FETCH",
            Node::Series(scan) if scan.is_bounded => "CLUSTERED_IXSCAN",
            Node::Series(_) => "COLLSCAN",
            Node::Or { .. } => "OR",
            Node::SortMerge { .. } => "SORT_MERGE",
            Node::Sort { .. } => "SORT",
            Node::Project { kind: ProjectionKind::Simple, .. } => "PROJECTION_SIMPLE",
            Node::Project { kind: ProjectionKind::Covered, .. } => "PROJECTION_COVERED",
            Node::Project { kind: ProjectionKind::Default, .. } => "PROJECTION_DEFAULT",
            Node::Skip { .. } => "SKIP",
            Node::Limit { .. } => "LIMIT",
            Node::Count { .. } => "COUNT",
        }
    }

    /// The stages below.
    pub(crate) fn children(&self) -> Vec<&Node> {
        match self {
            Node::Eof | Node::CollScan(_) | Node::IdHack(_) | Node::IndexScan(_) | Node::Series(_) => Vec::new(),
            Node::Or { children } | Node::SortMerge { children, .. } => children.iter().collect(),
            Node::Fetch { child, .. }
            | Node::SeriesFetch { child, .. }
            | Node::Sort { child, .. }
            | Node::Project { child, .. }
            | Node::Skip { child, .. }
            | Node::Limit { child, .. }
            | Node::Count { child } => vec![child],
        }
    }

    /// Calls `visit` for each stage.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&Node)) {
        visit(self);
        for child in self.children() {
            child.each(visit);
        }
    }

    /// Whether a stage with a property is in the tree.
    pub(crate) fn any(&self, holds: &dyn Fn(&Node) -> bool) -> bool {
        holds(self) || self.children().into_iter().any(|child| child.any(holds))
    }

    /// Where the rows come from, in short: `IXSCAN { a: 1 }, IXSCAN { b: -1 }`.
    pub(crate) fn summary(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        self.each(&mut |node| {
            let part = match node {
                Node::IndexScan(scan) => {
                    format!("{} {}", node.name(), crate::document::text(scan.index.spec.pattern()))
                }
                leaf if leaf.children().is_empty() => leaf.name().to_owned(),
                _ => return,
            };
            if parts.last() != Some(&part) {
                parts.push(part);
            }
        });
        parts.join(", ")
    }

    /// The names of the indexes it reads, `_id_` included.
    pub(crate) fn indexes(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.each(&mut |node| match node {
            Node::IndexScan(scan) => names.push(scan.index.spec.name().to_owned()),
            Node::IdHack(read) if !read.clustered => names.push(crate::index::ID_INDEX_NAME.to_owned()),
            _ => {}
        });
        names.sort();
        names.dedup();
        names
    }
}

impl IndexInfo {
    /// The collation of its strings.
    pub(crate) fn collator(&self) -> Option<&Collator> {
        self.spec.collator().map(|collator| &**collator)
    }

    /// The fields of its stored keys, with a wildcard field standing for one path.
    pub(crate) fn scan_fields(&self, wildcard_path: Option<&str>) -> Vec<ScanField> {
        let mut fields = Vec::with_capacity(self.spec.fields().len() + 1);
        for (number, field) in self.spec.fields().iter().enumerate() {
            let arrays = self.multikey.get(number).copied().unwrap_or(0);
            let descending = field.kind.is_descending();
            if field.kind.is_wildcard() {
                fields.push(ScanField { path: WILDCARD_PATH.to_owned(), descending, arrays: 0, hashed: false });
                let path = wildcard_path.unwrap_or_default().to_owned();
                // Which of the paths had arrays is not kept: any may have had.
                fields.push(ScanField {
                    path,
                    descending,
                    arrays: if arrays == 0 { 0 } else { u64::MAX },
                    hashed: false,
                });
            } else {
                let hashed = field.kind == crate::index::FieldKind::Hashed;
                fields.push(ScanField { path: field.path.clone(), descending, arrays, hashed });
            }
        }
        fields
    }

    /// Whether documents can be made from its keys: values are kept as they are, types included, and no field lies within
    /// another.
    pub(crate) fn can_cover(&self) -> bool {
        let fields = self.spec.fields();
        let within = |path: &str, other: &str| path.strip_prefix(other).is_some_and(|rest| rest.starts_with('.'));
        if fields.iter().any(|field| has_position(&field.path))
            || fields.iter().any(|field| fields.iter().any(|other| within(&field.path, &other.path)))
        {
            return false;
        }
        self.kind == IndexKind::Regular
            && self.spec.collator().is_none()
            && self.spec.wildcard().is_none()
            && !self.spec.is_hashed()
    }
}

/// Whether a part of a path may be a position in an array.
pub(crate) fn has_position(path: &str) -> bool {
    path.split('.').any(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A value that stands in bounds.
pub(crate) fn text(value: &str) -> RawBson {
    RawBson::String(value.to_owned())
}
