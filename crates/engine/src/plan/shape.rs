//! The shape of a query: its filter without the constants, its sort, projection and collation. Queries of one shape share
//! a remembered plan.

use super::{Order, Purpose, Query};
use crate::filter::Node as Condition;
use std::fmt::Write;

/// The shape as text.
pub(super) fn shape(query: &Query) -> String {
    let mut text = String::with_capacity(128);
    write_condition(query.filter.root(), &mut text);
    match &query.order {
        None => {}
        Some(Order::Natural { backward }) => push(&mut text, format_args!("~natural {backward}")),
        Some(Order::Fields(pattern)) => push(&mut text, format_args!("~{:?}", pattern.document())),
    }
    if let Some(needed) = &query.needed {
        push(&mut text, format_args!("|{needed:?}"));
    }
    if let Some(collator) = query.filter.collator() {
        push(&mut text, format_args!("#{:?}", collator.spec()));
    }
    match &query.purpose {
        Purpose::Find => {}
        Purpose::Count => text.push_str("=count"),
        Purpose::Distinct(path) => push(&mut text, format_args!("=distinct {path}")),
    }
    push(&mut text, format_args!("{}", u8::from(query.limit == 0)));
    text
}

/// The shape that index filters go by: whatever the query is for, and however much of a document is looked at.
pub(super) fn filter_shape(query: &Query) -> String {
    let mut text = String::with_capacity(128);
    write_condition(query.filter.root(), &mut text);
    if let Some(Order::Fields(pattern)) = &query.order {
        push(&mut text, format_args!("~{:?}", pattern.document()));
    }
    if let Some(projection) = query.projection.as_ref().filter(|projection| !projection.is_empty()) {
        push(&mut text, format_args!("|{projection:?}"));
    }
    if let Some(collator) = query.filter.collator() {
        push(&mut text, format_args!("#{:?}", collator.spec()));
    }
    text
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes everything");
}

fn write_condition(condition: &Condition, text: &mut String) {
    match condition {
        Condition::And(parts) => write_list("and", parts, text),
        Condition::Or(parts) => write_list("or", parts, text),
        Condition::Nor(parts) => write_list("nor", parts, text),
        Condition::Not { node, .. } => {
            text.push('!');
            write_condition(node, text);
        }
        Condition::Path { path, test } => {
            push(text, format_args!("{}{}", path.as_str(), test.name()));
            if let Some(value) = test.equality() {
                push(text, format_args!(":{}", crate::document::compare::canonical_rank(value)));
            }
            if let Some((inner, _)) = test.elements() {
                text.push('(');
                write_condition(inner, text);
                text.push(')');
            }
            text.push(',');
        }
        Condition::Expr(_) => text.push_str("expr,"),
        Condition::Schema(_) => push(text, format_args!("{:?},", condition.describe())),
        Condition::Sample(_) => text.push_str("sample,"),
        Condition::Always(value) => push(text, format_args!("{value},")),
    }
}

fn write_list(name: &str, parts: &[Condition], text: &mut String) {
    text.push_str(name);
    text.push('(');
    parts.iter().for_each(|part| write_condition(part, text));
    text.push(')');
}

/// A 32-bit hash of a text (FNV-1a), for `explain`.
pub(super) fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The hash by which a query's shape on a collection is named.
pub(crate) fn query_shape_hash(namespace: &str, query: &Query) -> String {
    named_hash(namespace, &shape(query))
}

/// The hash of a shape on a collection.
pub(super) fn named_hash(namespace: &str, shape: &str) -> String {
    long_hash(&format!("{namespace} {shape}"))
}

/// The same as 64 hexadecimal digits.
pub(crate) fn long_hash(text: &str) -> String {
    let mut hashes = String::with_capacity(64);
    for part in 0..8 {
        push(&mut hashes, format_args!("{:08X}", hash(&format!("{part}{text}"))));
    }
    hashes
}
