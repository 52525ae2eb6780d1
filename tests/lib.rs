//! End-to-end tests; see the `tests` targets of this package.
