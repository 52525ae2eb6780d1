//! An update of one or many documents. `cargo +nightly fuzz run update`, in this folder's parent.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    sheafdb_tests::hostile::update(bytes);
});
