//! Output as text, read in pieces.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heeler_server::fuzz::text(bytes));
