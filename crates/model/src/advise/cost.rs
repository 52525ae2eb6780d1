//! What a design costs: work in milliseconds per second, from counts, sizes, rates and the table of costs.
//!
//! A read is index seeks, entries, documents fetched and bytes; a write is documents and index entries rewritten; a copy
//! is effects per change of its source times fan-out.

use super::decide::Design;
use super::relation::{Relation, Wanted};
use super::thresholds::{Costs, Thresholds};
use crate::size::array_overhead;

/// One read of a document found by an index.
fn read(costs: &Costs, bytes: f64) -> f64 {
    costs.index_seek + costs.index_entry + costs.document_fetch + costs.kilobyte_read * bytes / 1e3
}

/// One write of a document with its index entries.
fn write(costs: &Costs, bytes: f64, entries: f64) -> f64 {
    costs.document_write + costs.kilobyte_written * bytes / 1e3 + costs.index_entry_written * entries
}

/// A page of documents of their own, in the order of an index.
fn page(costs: &Costs, count: f64, bytes: f64) -> f64 {
    costs.request
        + costs.index_seek
        + count * (costs.index_entry + costs.document_fetch + costs.kilobyte_read * bytes / 1e3)
}

/// The work of a design for a relation, in milliseconds per second.
pub fn of_design(relation: &Relation, design: Design, table: &Thresholds) -> f64 {
    let costs = &table.costs;
    let (reads, writes) = (&relation.reads, &relation.writes);
    let typical = relation.typical as f64;
    let (parent, element, document) =
        (relation.parent_bytes as f64, relation.element_bytes as f64, relation.document_bytes as f64);
    let shown = (reads.shown.min(relation.typical)) as f64;
    let on_page = (reads.page.min(relation.typical)) as f64;
    let all_parents = reads.parent_with + reads.parent_alone;
    let parent_of = |bytes: f64| {
        all_parents * (costs.request + read(costs, parent + bytes))
            + writes.parent_changes * (costs.request + read(costs, parent + bytes) + write(costs, parent + bytes, 0.0))
    };
    // A child's own document has the index on _id and the one by its parent.
    let own_documents = writes.with_parent * write(costs, document, 2.0)
        + writes.inserts * (costs.request + write(costs, document, 2.0))
        + writes.changes * (costs.request + read(costs, document) + write(costs, document, 0.0))
        + reads.pages * page(costs, on_page, document)
        + reads.singles * (costs.request + read(costs, document));
    let microseconds = match design {
        Design::Embed => {
            let array = array_overhead(relation.typical) as f64 + typical * element;
            let whole = parent + array;
            let changes = (writes.inserts + writes.changes) * relation.shared_by.max(1) as f64;
            parent_of(array)
                + writes.with_parent * costs.kilobyte_written * element / 1e3
                + (reads.pages + reads.singles) * (costs.request + read(costs, whole))
                + changes * (costs.request + read(costs, whole) + write(costs, whole, 1.0))
        }
        Design::Reference => parent_of(0.0) + reads.parent_with * page(costs, shown, document) + own_documents,
        Design::Recent { keep } => {
            let array = keep.min(relation.typical) as f64 * element;
            let beyond = if reads.shown > keep { reads.parent_with * page(costs, shown, document) } else { 0.0 };
            let kept = writes.inserts * (read(costs, parent + array) + write(costs, parent + array, 0.0));
            parent_of(array) + beyond + own_documents + kept
        }
        Design::Bucket { items, .. } => {
            let items = items as f64;
            let chunk = items / 2.0 * element;
            let chunks = |count: f64| (count / items).ceil().max(1.0) + 0.5;
            parent_of(0.0)
                + reads.parent_with * page(costs, chunks(shown), items * element)
                + reads.pages * page(costs, chunks(on_page), items * element)
                + reads.singles * (costs.request + read(costs, items * element))
                + (writes.inserts + writes.changes)
                    * (costs.request + read(costs, chunk) + write(costs, chunk, 2.0 / items))
        }
        Design::Edge => {
            let edges = writes.inserts * (costs.request + write(costs, document, 3.0));
            parent_of(0.0)
                + edges
                + reads.pages * page(costs, on_page, document)
                + reads.singles * (costs.request + read(costs, document))
        }
        Design::Snapshot | Design::Live => f64::INFINITY,
    };
    microseconds / 1e3
}

/// The work of a way to show a field, in milliseconds per second.
pub fn of_copy(wanted: &Wanted, design: Design, table: &Thresholds) -> f64 {
    let costs = &table.costs;
    let page_of = wanted.page.max(1) as f64;
    let more_bytes = wanted.reads * page_of * costs.kilobyte_read * wanted.bytes as f64 / 1e3;
    let fill = wanted.inserts * read(costs, wanted.source_bytes as f64);
    let microseconds = match design {
        Design::Reference => wanted.reads * (costs.request + page_of * read(costs, wanted.source_bytes as f64)),
        Design::Snapshot => more_bytes + fill,
        Design::Live => {
            let holder = wanted.holder_bytes as f64;
            let effect = costs.index_entry + read(costs, holder) + write(costs, holder, 0.0);
            more_bytes + fill + wanted.source_changes * wanted.typical.max(1) as f64 * effect
        }
        _ => f64::INFINITY,
    };
    microseconds / 1e3
}
