//! A filter, by index and by scan. `cargo +nightly fuzz run filter`, in this folder's parent.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    sheafdb_tests::hostile::filter(bytes);
});
