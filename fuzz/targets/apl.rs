//! Decodes a request to a partition and makes it, and decodes an answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::Cell;
use std::sync::LazyLock;
use tidegraph_apl::At;
use tidegraph_storage::Store;
use tidegraph_types::Epoch;
use tidegraph_wire::Message;
use tidegraph_wire::apl::{Allowance, AnyAnswer, AnyRequest};
use tidegraph_wire::proto::{AplAnswer, AplRequest};

/// Pieces of a frontier that one request may ask for.
const PIECES: u32 = 64;

fuzz_target!(|bytes: &[u8]| {
    static STORE: LazyLock<Store> = LazyLock::new(tidegraph_fuzz::store);
    if let Ok(message) = AplRequest::decode(bytes) {
        let _ = AnyRequest::rows(&message);
        if let Ok((_, request)) = AnyRequest::decode(message) {
            let left = Cell::new(PIECES);
            let check = || match left.get() {
                0 => Err(tidegraph_apl::Error::Cancelled),
                more => Ok(left.set(more - 1)),
            };
            let allowance = Allowance { max_rows: 1_000, piece_rows: 100, check: &check };
            let at = At { version: tidegraph_fuzz::VERSION, epoch: Epoch::default() };
            if let Ok(answer) = request.call(&*STORE, at, &allowance) {
                let message = answer.encode().expect("an answer can be encoded");
                AnyAnswer::decode(message).expect("an answer can be decoded");
            }
        }
    }
    if let Ok(message) = AplAnswer::decode(bytes) {
        let _ = AnyAnswer::decode(message);
    }
});
