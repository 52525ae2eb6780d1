//! A short run of the fuzzers in `fuzz/`: a fixed number of seeded inputs each, so that it comes out the same everywhere.
//!
//! `FUZZ_CASES` says how many inputs (2,000), `FUZZ_SEED` which. A failing input's number is printed; the seed and the number
//! give it again.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may end at what it did not expect, and says where"
)]

use sheafdb_tests::hostile;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// splitmix64: independent streams for neighbouring seeds.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..16 + self.below(240)).map(|_| self.next() as u8).collect()
    }

    /// One of the seeds with a few bytes changed, gone, doubled or put in.
    fn damaged(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len());
            match self.below(8) {
                0..5 if !bytes.is_empty() => bytes[at] = self.next() as u8,
                5 if !bytes.is_empty() => drop(bytes.remove(at)),
                6 => bytes.insert(at, self.next() as u8),
                _ => {
                    let end = (at + self.below(32)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, part);
                }
            }
        }
        bytes
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Runs the cases, or one in so many where each takes long; the failing ones are told.
fn run(name: &str, one_in: u64, entry: fn(&[u8]) -> bool, make: impl Fn(&mut Random) -> Vec<u8>) {
    let (cases, seed) = (number("FUZZ_CASES", 2_000), number("FUZZ_SEED", 1));
    let (mut failed, mut accepted) = (Vec::new(), 0_u64);
    for case in 0..cases.div_ceil(one_in) {
        let bytes = make(&mut Random(seed.wrapping_mul(1_000_003).wrapping_add(case)));
        match catch_unwind(AssertUnwindSafe(|| entry(&bytes))) {
            Ok(answered) => accepted += u64::from(answered),
            Err(_) => failed.push(case),
        }
    }
    let cases = cases.div_ceil(one_in);
    eprintln!("{name}: {accepted} of {cases} accepted");
    assert!(accepted * 50 >= cases, "{name}: too few are accepted to say anything");
    assert!(failed.is_empty(), "{name}: cases {failed:?} of seed {seed} failed");
}

#[test]
fn frames_are_refused_or_read() {
    let body = bson::rawdoc! { "insert": "c", "$db": "d", "documents": [{ "a": 1 }] };
    let mut message = vec![0; 16];
    message.extend([0, 0, 0, 0, 0]);
    message.extend(body.as_bytes());
    let length = (message.len() as i32).to_le_bytes();
    message[..4].copy_from_slice(&length);
    message[12..16].copy_from_slice(&wire::frame::OP_MSG.to_le_bytes());
    wire::check_frame(&message).unwrap();
    let compressors = ["snappy", "zlib", "zstd"].map(|name| wire::frame::Compressor::by_name(name).unwrap());
    let mut seeds = vec![message.clone()];
    seeds.extend(compressors.map(|compressor| wire::frame::compress(&message, compressor)));
    assert!(seeds.iter().all(|seed| wire::check_frame(seed).is_ok()));
    run("frame", 1, hostile::frame, |random| random.damaged(&seeds));
}

#[test]
fn documents_are_refused_or_stored() {
    let seed = bson::rawdoc! { "_id": 77, "a": [1, 2.5, { "b": "x" }], "b": true, "c": bson::DateTime::from_millis(5) };
    run("bson", 1, hostile::bson, |random| random.damaged(&[seed.as_bytes().to_vec()]));
}

#[test]
fn filters_find_the_same_with_and_without_an_index() {
    run("filter", 1, hostile::filter, Random::bytes);
}

#[test]
fn updates_are_refused_or_done() {
    run("update", 1, hostile::update, Random::bytes);
}

#[test]
fn pipelines_are_refused_or_run() {
    run("pipeline", 1, hostile::pipeline, Random::bytes);
}

#[test]
fn model_files_are_refused_or_read() {
    let models = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("models");
    let mut seeds = Vec::new();
    for folder in std::fs::read_dir(models).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "kdl") {
                seeds.push(std::fs::read(path).unwrap());
            }
        }
    }
    assert!(seeds.len() >= 5, "the sample models");
    run("model", 20, hostile::model, |random| random.damaged(&seeds));
}
