//! Reads what clients of Gremlin Server's protocol send. The first byte chooses the format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegraph_gremlin_io::{Argument, Budget, Format, Request, Script};

/// Memory that the values of one message may take.
const MEMORY_BYTES: usize = 16 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some((format, message)) = bytes.split_first() else { return };
    let format = if format % 2 == 0 { Format::Binary } else { Format::GraphSon3 };
    let mut left = MEMORY_BYTES;
    let mut take = |bytes: usize| {
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    let Ok(request) = Request::read(format, message, Budget::new(&mut take)) else { return };
    let Some(Argument::Bytecode(bytecode)) = request.argument("gremlin") else { return };
    if let Ok(Script::Traversal { text, .. }) = Script::of(bytecode) {
        // The text has no step that the client did not send as one.
        if let Ok(parsed) = tidegraph_gremlin::parse(&text) {
            let [only] = &parsed[..] else { panic!("several statements: {text}") };
            assert!(only.steps.len() <= bytecode.steps.len(), "{text}");
        }
    }
});
