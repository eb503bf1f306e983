//! A record of the journal, read and shown.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heeler_server::fuzz::record(bytes));
