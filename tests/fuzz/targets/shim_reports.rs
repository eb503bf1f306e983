//! The reports of a shim to the server.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heeler_server::fuzz::reports(bytes));
