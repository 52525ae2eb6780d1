//! The query language: filters parsed once, matched on raw bytes.
