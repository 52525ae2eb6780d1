//! A frame as it comes from a socket. `cargo +nightly fuzz run frame`, in this folder's parent.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    sheafdb_tests::hostile::frame(bytes);
});
