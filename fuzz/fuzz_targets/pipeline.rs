//! An aggregation pipeline. `cargo +nightly fuzz run pipeline`, in this folder's parent.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    sheafdb_tests::hostile::pipeline(bytes);
});
