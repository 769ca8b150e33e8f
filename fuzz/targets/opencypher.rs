//! Parses, lowers and plans an openCypher text.
#![no_main]

use tidegraph_engine::Language;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegraph_fuzz::explain(Language::OpenCypher, bytes));
