//! A client's request, from its bytes through every check of the edge.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heeler_server::fuzz::request(bytes));
