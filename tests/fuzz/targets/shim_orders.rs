//! The orders of a server to a shim.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heeler_fuzz::orders(bytes));
