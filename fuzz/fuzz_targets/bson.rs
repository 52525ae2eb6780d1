//! A document as a client sends it. `cargo +nightly fuzz run bson`, in this folder's parent.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    sheafdb_tests::hostile::bson(bytes);
});
