#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| landfall_documents::sandbox::fuzzing::read_response(bytes));
