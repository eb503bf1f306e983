//! Page tokens, cursors and filters, into the journal's reader.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heeler_server::fuzz::list(bytes));
