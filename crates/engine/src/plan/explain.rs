//! What a plan looks like, in MongoDB's classic shape.

use super::bounds;
use super::execution::{Counters, Execution, Running, State};
use super::node::{CollScan, IndexScan, Node, WILDCARD_PATH};
use super::shape;
use super::trial::{Candidate, Plan};
use crate::document::append;
use crate::error::Result;
use crate::storage::View;
use bson::{RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use std::time::Instant;

/// How much is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verbosity {
    /// The plans.
    QueryPlanner,
    /// And what the chosen one does when it is run.
    ExecutionStats,
    /// And what the others did in their trial.
    AllPlansExecution,
}

impl Plan {
    /// `queryPlanner` and, if asked for, `executionStats`, as fields of one document. The plan is run to its end for those.
    ///
    /// # Errors
    /// What running it refuses.
    pub fn explain(mut self, view: &dyn View, verbosity: Verbosity) -> Result<RawDocumentBuf> {
        let mut document = RawDocumentBuf::new();
        append(&mut document, "queryPlanner", RawBsonRef::Document(&self.planner()?))?;
        let shape = shape::named_hash(&self.target.namespace, &self.shape);
        if verbosity == Verbosity::QueryPlanner {
            append(&mut document, "queryShapeHash", RawBsonRef::String(&shape))?;
            return Ok(document);
        }
        let mut trials = RawArrayBuf::new();
        if verbosity == Verbosity::AllPlansExecution && !self.rejected.is_empty() {
            trials.push(trial_stats(&self.winner)?);
            for candidate in &self.rejected {
                trials.push(trial_stats(candidate)?);
            }
        }
        let begun = Instant::now();
        let mut stats = run(&mut self.winner.execution, view, begun)?;
        if verbosity == Verbosity::AllPlansExecution {
            append(&mut stats, "allPlansExecution", RawBsonRef::Array(&trials))?;
        }
        append(&mut document, "executionStats", RawBsonRef::Document(&stats))?;
        append(&mut document, "queryShapeHash", RawBsonRef::String(&shape))?;
        Ok(document)
    }

    fn planner(&self) -> Result<RawDocumentBuf> {
        let (hash, key) = (self.shape_hash(), self.key_hash());
        let mut planner = rawdoc! {
            "namespace": self.target.namespace.as_str(),
            "parsedQuery": self.query.filter.root().describe(),
            "indexFilterSet": self.is_filtered,
        };
        if let Some(collator) = self.query.filter.collator() {
            append(&mut planner, "collation", RawBsonRef::Document(collator.spec()))?;
        }
        append(&mut planner, "queryHash", RawBsonRef::String(&hash))?;
        append(&mut planner, "planCacheShapeHash", RawBsonRef::String(&hash))?;
        append(&mut planner, "planCacheKey", RawBsonRef::String(&key))?;
        append(&mut planner, "optimizationTimeMillis", RawBsonRef::Int32(0))?;
        for name in [
            "maxIndexedOrSolutionsReached",
            "maxIndexedAndSolutionsReached",
            "maxScansToExplodeReached",
            "prunedSimilarIndexes",
        ] {
            append(&mut planner, name, RawBsonRef::Boolean(false))?;
        }
        let mut winning = rawdoc! { "isCached": self.from_cache };
        extend(&mut winning, &describe(&self.winner.node)?)?;
        append(&mut planner, "winningPlan", RawBsonRef::Document(&winning))?;
        let mut rejected = RawArrayBuf::new();
        for candidate in &self.rejected {
            let mut plan = rawdoc! { "isCached": false };
            extend(&mut plan, &describe(&candidate.node)?)?;
            rejected.push(plan);
        }
        append(&mut planner, "rejectedPlans", RawBsonRef::Array(&rejected))?;
        Ok(planner)
    }

    /// What `$planCacheStats` shows of the plan once it is remembered.
    pub(super) fn describe_remembered(&self) -> Result<RawDocumentBuf> {
        let mut trials = RawArrayBuf::new();
        let mut scores = RawArrayBuf::new();
        for candidate in std::iter::once(&self.winner).chain(&self.rejected) {
            trials.push(trial_stats(candidate)?);
            scores.push(candidate.score);
        }
        let sort = self.query.pattern().map(|pattern| pattern.document().to_owned()).unwrap_or_default();
        let works = i64::try_from(self.winner.execution.root.counters.works).unwrap_or(i64::MAX);
        let mut shown = rawdoc! {
            "version": "1",
            "queryHash": self.shape_hash(),
            "planCacheShapeHash": self.shape_hash(),
            "planCacheKey": self.key_hash(),
            "isActive": true,
            "works": works,
            "worksType": "works",
            "timeOfCreation": self.query.environment.now,
            "createdFromQuery": {
                "query": self.query.filter.root().describe(),
                "sort": sort,
                "projection": self.query.projection.clone().unwrap_or_default(),
            },
            "cachedPlan": describe(&self.winner.node)?,
            "creationExecStats": trials,
            "candidatePlanScores": scores,
            "indexFilterSet": self.is_filtered,
        };
        let size = i64::try_from(shown.as_bytes().len() + self.shape.len()).unwrap_or(i64::MAX);
        append(&mut shown, "estimatedSizeBytes", RawBsonRef::Int64(size))?;
        Ok(shown)
    }

    fn shape_hash(&self) -> String {
        format!("{:08X}", shape::hash(&self.shape))
    }

    fn key_hash(&self) -> String {
        format!("{:08X}", shape::hash(&format!("{}{:?}", self.shape, self.winner.node.indexes())))
    }
}

fn describe(node: &Node) -> Result<RawDocumentBuf> {
    let mut document = rawdoc! { "stage": node.name() };
    append_own(&mut document, node)?;
    append_inputs(&mut document, node, &mut |child, _| describe(child))
}

fn extend(document: &mut RawDocumentBuf, more: &RawDocument) -> Result<()> {
    for field in more {
        let (name, value) = field?;
        append(document, name.as_str(), value)?;
    }
    Ok(())
}

/// The stages below: `inputStage` for one, `inputStages` for several.
fn append_inputs(
    document: &mut RawDocumentBuf,
    node: &Node,
    describe: &mut dyn FnMut(&Node, usize) -> Result<RawDocumentBuf>,
) -> Result<RawDocumentBuf> {
    match node {
        Node::Or { children } | Node::SortMerge { children, .. } => {
            let mut inputs = RawArrayBuf::new();
            for (number, child) in children.iter().enumerate() {
                inputs.push(describe(child, number)?);
            }
            append(document, "inputStages", RawBsonRef::Array(&inputs))?;
        }
        node => {
            if let Some(child) = node.children().first() {
                append(document, "inputStage", RawBsonRef::Document(&describe(child, 0)?))?;
            }
        }
    }
    Ok(std::mem::take(document))
}

/// What a stage says about itself, whether it ran or not.
fn append_own(document: &mut RawDocumentBuf, node: &Node) -> Result<()> {
    match node {
        Node::CollScan(scan) => append_records(document, scan),
        Node::IdHack(read) if !read.clustered => {
            append(document, "keyPattern", RawBsonRef::Document(&rawdoc! { "_id": 1 }))?;
            append(document, "indexName", RawBsonRef::String(crate::index::ID_INDEX_NAME))
        }
        Node::IndexScan(scan) => append_scan(document, scan),
        Node::Series(scan) | Node::SeriesFetch { within: scan, .. } => {
            if let Some(filter) = &scan.filter {
                append(document, "filter", RawBsonRef::Document(&filter.root().describe()))?;
            }
            match node {
                Node::Series(scan) if scan.is_bounded => append_scan(document, &scan.scan),
                _ => append(document, "direction", RawBsonRef::String("forward")),
            }
        }
        Node::Fetch { filter: Some(filter), .. } => {
            append(document, "filter", RawBsonRef::Document(&filter.root().describe()))
        }
        Node::SortMerge { pattern, .. } => append(document, "sortPattern", RawBsonRef::Document(pattern.document())),
        Node::Sort { pattern, limit, .. } => {
            append(document, "sortPattern", RawBsonRef::Document(pattern.document()))?;
            append(document, "memLimit", RawBsonRef::Int64(100 * 1024 * 1024))?;
            if *limit > 0 {
                append(document, "limitAmount", RawBsonRef::Int64(i64::try_from(*limit).unwrap_or(i64::MAX)))?;
            }
            append(document, "type", RawBsonRef::String("simple"))
        }
        Node::Project { document: by, .. } => append(document, "transformBy", RawBsonRef::Document(by)),
        Node::Skip { amount, .. } => {
            append(document, "skipAmount", RawBsonRef::Int64(i64::try_from(*amount).unwrap_or(i64::MAX)))
        }
        Node::Limit { amount, .. } => {
            append(document, "limitAmount", RawBsonRef::Int64(i64::try_from(*amount).unwrap_or(i64::MAX)))
        }
        _ => Ok(()),
    }
}

fn append_records(document: &mut RawDocumentBuf, scan: &CollScan) -> Result<()> {
    if let Some(filter) = &scan.filter {
        append(document, "filter", RawBsonRef::Document(&filter.root().describe()))?;
    }
    append(document, "direction", RawBsonRef::String(if scan.backward { "backward" } else { "forward" }))?;
    if let Some(clustered) = &scan.clustered {
        let value = |bound: &std::ops::Bound<bson::RawBson>| match bound {
            std::ops::Bound::Included(value) | std::ops::Bound::Excluded(value) => Some(value.clone()),
            std::ops::Bound::Unbounded => None,
        };
        let first = clustered.intervals.0.first().and_then(|interval| value(&interval.low));
        let last = clustered.intervals.0.last().and_then(|interval| value(&interval.high));
        for (name, value) in [("minRecord", first), ("maxRecord", last)] {
            if let Some(value) = value {
                append(document, name, value.as_raw_bson_ref())?;
            }
        }
    }
    Ok(())
}

fn append_scan(document: &mut RawDocumentBuf, scan: &IndexScan) -> Result<()> {
    if let Some(filter) = &scan.filter {
        append(document, "filter", RawBsonRef::Document(&filter.root().describe()))?;
    }
    let spec = &scan.index.spec;
    let mut pattern = RawDocumentBuf::new();
    let mut paths = RawDocumentBuf::new();
    let mut shown = RawDocumentBuf::new();
    for (number, field) in scan.fields.iter().enumerate() {
        let direction = if field.descending { -1 } else { 1 };
        let value = if field.hashed { RawBsonRef::String("hashed") } else { RawBsonRef::Int32(direction) };
        append(&mut pattern, &field.path, value)?;
        append(&mut paths, &field.path, RawBsonRef::Array(&multikey_paths(&field.path, field.arrays)))?;
        let reversed = field.descending != scan.backward;
        let mut intervals = RawArrayBuf::new();
        for interval in bounds::describe(&scan.intervals[number], reversed) {
            intervals.push(interval);
        }
        append(&mut shown, &field.path, RawBsonRef::Array(&intervals))?;
    }
    let pattern = if scan.fields.iter().any(|field| field.path == WILDCARD_PATH) { &*pattern } else { spec.pattern() };
    append(document, "keyPattern", RawBsonRef::Document(pattern))?;
    append(document, "indexName", RawBsonRef::String(spec.name()))?;
    if let Some(collator) = spec.collator() {
        append(document, "collation", RawBsonRef::Document(collator.spec()))?;
    }
    append(document, "isMultiKey", RawBsonRef::Boolean(scan.is_multikey()))?;
    append(document, "multiKeyPaths", RawBsonRef::Document(&paths))?;
    append(document, "isUnique", RawBsonRef::Boolean(spec.unique() || spec.is_id()))?;
    append(document, "isSparse", RawBsonRef::Boolean(spec.sparse()))?;
    append(document, "isPartial", RawBsonRef::Boolean(spec.partial().is_some()))?;
    append(document, "indexVersion", RawBsonRef::Int32(2))?;
    append(document, "direction", RawBsonRef::String(if scan.backward { "backward" } else { "forward" }))?;
    append(document, "indexBounds", RawBsonRef::Document(&shown))
}

/// The beginnings of a path that are arrays.
fn multikey_paths(path: &str, arrays: u64) -> RawArrayBuf {
    let mut paths = RawArrayBuf::new();
    let mut ends: Vec<usize> = path.match_indices('.').map(|(at, _)| at).collect();
    ends.push(path.len());
    for (number, end) in ends.iter().enumerate().take(64) {
        if arrays & (1 << number) != 0 {
            paths.push(&path[..*end]);
        }
    }
    paths
}

fn run(execution: &mut Execution, view: &dyn View, begun: Instant) -> Result<RawDocumentBuf> {
    let counts = matches!(*execution.node, Node::Count { .. });
    let mut returned = 0u64;
    let before = execution.root.counters.advanced;
    loop {
        match execution.step(view)? {
            State::Row(_) => returned += 1,
            State::NeedTime => {}
            State::End => break,
        }
    }
    let millis = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
    let mut stats = rawdoc! {
        "executionSuccess": true,
        "nReturned": if counts { 0 } else { int(before + returned) },
        "executionTimeMillis": int(millis as u64),
        "totalKeysExamined": int(execution.keys_examined()),
        "totalDocsExamined": int(execution.docs_examined()),
    };
    let stages = describe_running(&execution.node, &execution.root)?;
    append(&mut stats, "executionStages", RawBsonRef::Document(&stages))?;
    Ok(stats)
}

fn trial_stats(candidate: &Candidate) -> Result<RawDocumentBuf> {
    let execution = &candidate.execution;
    let mut stats = rawdoc! {
        "nReturned": int(execution.root.counters.advanced),
        "executionTimeMillisEstimate": 0,
        "totalKeysExamined": int(execution.keys_examined()),
        "totalDocsExamined": int(execution.docs_examined()),
        "score": candidate.score,
    };
    let stages = describe_running(&execution.node, &execution.root)?;
    append(&mut stats, "executionStages", RawBsonRef::Document(&stages))?;
    Ok(stats)
}

fn int(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn describe_running(node: &Node, running: &Running) -> Result<RawDocumentBuf> {
    let mut document = rawdoc! { "stage": node.name() };
    let mut counters = running.counters.clone();
    if let Node::Count { .. } = node {
        counters.need_time += std::mem::take(&mut counters.advanced);
    }
    let counters = &counters;
    if let Node::CollScan(CollScan { filter: Some(filter), .. }) | Node::Fetch { filter: Some(filter), .. } = node {
        append(&mut document, "filter", RawBsonRef::Document(&filter.root().describe()))?;
    }
    for (name, value) in [
        ("nReturned", counters.advanced),
        ("executionTimeMillisEstimate", 0),
        ("works", counters.works),
        ("advanced", counters.advanced),
        ("needTime", counters.need_time),
        ("needYield", 0),
        ("saveState", counters.releases),
        ("restoreState", counters.releases),
        ("isEOF", u64::from(counters.is_eof)),
    ] {
        append(&mut document, name, RawBsonRef::Int32(int(value)))?;
    }
    if !matches!(node, Node::CollScan(CollScan { filter: Some(_), .. }) | Node::Fetch { filter: Some(_), .. }) {
        append_own(&mut document, node)?;
    } else if let Node::CollScan(scan) = node {
        append_records(&mut document, &CollScan { filter: None, ..scan.clone() })?;
    }
    append_counters(&mut document, node, counters)?;
    let children = running.children();
    append_inputs(&mut document, node, &mut |child, number| describe_running(child, children[number]))
}

fn append_counters(document: &mut RawDocumentBuf, node: &Node, counters: &Counters) -> Result<()> {
    let shown: &[(&str, u64)] = match node {
        Node::IndexScan(_) => &[
            ("keysExamined", counters.keys_examined),
            ("seeks", counters.seeks),
            ("dupsTested", counters.duplicates_tested),
            ("dupsDropped", counters.duplicates_dropped),
        ],
        Node::IdHack(_) => &[("keysExamined", counters.keys_examined), ("docsExamined", counters.docs_examined)],
        Node::CollScan(_) | Node::Series(_) => &[("docsExamined", counters.docs_examined)],
        Node::Fetch { .. } | Node::SeriesFetch { .. } => {
            &[("docsExamined", counters.docs_examined), ("alreadyHasObj", 0)]
        }
        Node::Or { .. } | Node::SortMerge { .. } => {
            &[("dupsTested", counters.duplicates_tested), ("dupsDropped", counters.duplicates_dropped)]
        }
        Node::Sort { .. } => &[
            ("totalDataSizeSorted", counters.sorted_bytes),
            ("usedDisk", u64::from(counters.spills > 0)),
            ("spills", counters.spills),
            ("spilledBytes", counters.spilled_bytes),
        ],
        Node::Count { .. } => &[("nCounted", counters.counted), ("nSkipped", 0)],
        _ => &[],
    };
    for (name, value) in shown {
        match *name {
            "usedDisk" => append(document, name, RawBsonRef::Boolean(*value != 0))?,
            name => append(document, name, RawBsonRef::Int64(i64::try_from(*value).unwrap_or(i64::MAX)))?,
        }
    }
    Ok(())
}
