//! End-to-end tests; see the `tests` targets of this package. What the fuzzers feed lies in [`hostile`].

pub mod hostile;
