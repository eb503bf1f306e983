//! A script with a trailing ampersand.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heeler_server::fuzz::script(bytes));
