//! A model file. `cargo +nightly fuzz run model`, in this folder's parent.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    sheafdb_tests::hostile::model(bytes);
});
