//! Parses, lowers and plans a Gremlin text.
#![no_main]

use tidegraph_engine::Language;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tidegraph_fuzz::explain(Language::Gremlin, bytes));
