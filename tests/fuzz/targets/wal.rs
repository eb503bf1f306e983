//! A damaged WAL, and the journal opened on it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heeler_server::fuzz::damaged_wal(bytes));
