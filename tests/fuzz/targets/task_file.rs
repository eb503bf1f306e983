//! A task file: its records and its output.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heeler_server::fuzz::task_file(bytes));
