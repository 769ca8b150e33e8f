//! Reads what clients of Bolt send: a greeting, chunks, and the messages in them. The first byte chooses the version.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegraph_bolt::handshake::{GREETING_BYTES, answer, choice};
use tidegraph_bolt::packstream::write_value;
use tidegraph_bolt::{Budget, Dialect, Message, Messages, Request, Version};

/// Memory that the values of one message may take.
const MEMORY_BYTES: usize = 16 << 20;

fuzz_target!(|bytes: &[u8]| {
    if let Some(greeting) = bytes.first_chunk::<GREETING_BYTES>() {
        let _ = answer(*greeting);
    }
    let _ = choice(bytes);
    let Some((version, sent)) = bytes.split_first() else { return };
    let version = if version % 10 == 9 { Version::new(4, 4) } else { Version::new(5, version % 10) };
    let mut messages = Messages::default();
    for piece in sent.chunks(100) {
        messages.buffer.extend_from_slice(piece);
        while let Some(message) = messages.next(1 << 16) {
            let Message::Whole(message) = message else { continue };
            let mut left = MEMORY_BYTES;
            let mut take = |bytes: usize| {
                let fits = bytes <= left;
                left = left.saturating_sub(bytes);
                fits
            };
            if let Ok(Request::Run(run)) = Request::read(&message, version, Budget::new(&mut take)) {
                let mut written = vec![];
                for value in run.parameters.values() {
                    write_value(value, Dialect { element_ids: true, utc: true }, &mut written);
                }
            }
        }
    }
});
