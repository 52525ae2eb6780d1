//! Collation: comparing strings by the rules of a language, by ICU.

use std::cmp::Ordering;

/// A prepared collation.
#[derive(Debug)]
pub struct Collator {}

impl Collator {
    /// Compares two strings by the collation's rules.
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        a.cmp(b)
    }
}
