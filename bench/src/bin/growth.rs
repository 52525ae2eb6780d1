//! Whether a point read and an insert cost the same however many documents there are: 10,000 to 10,000,000 small ones, in process.
//!
//! `cargo run --release --bin growth -- [folder] [most documents]`

use bson::{RawDocumentBuf, rawdoc};
use engine::operation::{Find, Insert};
use engine::{Context, Engine, Namespace, Options};
use sheafdb_bench::{Dice, cpu, memory_mb};
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let most: i64 = arguments.next().map_or(10_000_000, |count| count.parse().unwrap());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let engine = Engine::open(folder.path(), Options::system()).unwrap();
    let (mut held, mut next) = (0, 10_000);
    println!("small documents of 90 bytes; random _id; flushed; checkpoints included in the inserts");
    while next <= most {
        let mut dice = Dice::new(next as u64);
        let (used, began, added) = (cpu(), Instant::now(), next - held);
        while held < next {
            let count = 1000.min(next - held);
            insert(&engine, (held..held + count).map(document).collect());
            held += count;
        }
        engine.storage().checkpoint().unwrap();
        let batch =
            ((cpu() - used).as_secs_f64() * 1e6 / added as f64, began.elapsed().as_secs_f64() * 1e6 / added as f64);
        let (used, began) = (cpu(), Instant::now());
        for _ in 0..5_000 {
            insert(&engine, vec![document(1 << 40 | dice.below(1 << 39) as i64)]);
        }
        let single = ((cpu() - used).as_secs_f64() * 1e6 / 5e3, began.elapsed().as_secs_f64() * 1e6 / 5e3);
        let reads = 100_000;
        let (used, began) = (cpu(), Instant::now());
        for _ in 0..reads {
            let mut find = Find::new(Namespace::new("shop", "small").unwrap());
            find.query.filter = rawdoc! { "_id": id(dice.below(held as u64) as i64) };
            assert_eq!(engine.find(&Context::default(), &find).unwrap().documents.len(), 1);
        }
        let read =
            ((cpu() - used).as_secs_f64() * 1e6 / reads as f64, began.elapsed().as_secs_f64() * 1e6 / reads as f64);
        println!(
            "{held:9} documents: insert of 1,000 at once {:5.2} us of cpu each ({:5.2} us), single insert {:5.1} us of cpu \
             ({:6.0} us), point read {:5.2} us of cpu ({:5.2} us), {} MB of tables, {:?} MB of memory",
            batch.0,
            batch.1,
            single.0,
            single.1,
            read.0,
            read.1,
            engine.storage().statistics().table_bytes >> 20,
            memory_mb("self"),
        );
        next = if next.to_string().starts_with('1') { next * 3 } else { next / 3 * 10 };
    }
    engine.close().unwrap();
}

fn id(number: i64) -> i64 {
    number.wrapping_mul(0x1e37_79b9_7f4a_7c15)
}

fn document(number: i64) -> RawDocumentBuf {
    rawdoc! { "_id": id(number), "user": number % 1000, "text": "a small document", "n": number }
}

fn insert(engine: &Engine, documents: Vec<RawDocumentBuf>) {
    let insert = Insert {
        namespace: Namespace::new("shop", "small").unwrap(),
        documents,
        ordered: true,
        bypass_document_validation: false,
        statement_ids: Vec::new(),
    };
    assert!(engine.insert(&Context::default(), insert).unwrap().wait().unwrap().errors.is_empty());
}
