#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cotter::targets::sse::run(bytes));
