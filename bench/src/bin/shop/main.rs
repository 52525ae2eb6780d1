//! What a shop reads, beside PostgreSQL (Debian's package, started here in a folder of its own): an order's detail, embedded,
//! by five `$lookup`s, and by five joins; the sales by city of many orders, as an aggregation, as a kept rollup, on jsonb
//! and on flat columns.
//!
//! `cargo run --release --bin shop -- [orders of the report] [orders of the detail] [folder]` (build all binaries first)

mod detail;
mod report;
mod rival;

use rival::Postgres;
use std::path::Path;

/// The allocator of the `sheaf` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: i64| arguments.next().map_or(otherwise, |text| text.parse().expect("a number"));
    let (sold, orders) = (number(1_000_000), number(100_000));
    let place = arguments.next().unwrap_or_else(|| ".".to_owned());
    let place = Path::new(&place);
    let rival = Postgres::start(place);
    detail::measure(place, &rival, orders);
    report::measure(place, &rival, sold);
}
