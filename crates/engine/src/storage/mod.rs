//! Ordered bytes that survive crashes: the log, the overlay and the tables that are the log's fold.
