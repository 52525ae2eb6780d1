//! The `sheaf` binary: command line, configuration, wiring.
fn main() {}
