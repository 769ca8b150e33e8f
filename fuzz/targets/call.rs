//! Answers a call of another process, as a storage node does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};
use tidegraph_fuzz::OneNode;
use tidegraph_platform::ManualClock;
use tidegraph_remote::{Services, answer_once};
use tidegraph_wire::Message;
use tidegraph_wire::proto::Reply;

fuzz_target!(|bytes: &[u8]| {
    static SERVICES: LazyLock<Services> =
        LazyLock::new(|| Services { node: Some(Arc::new(OneNode::new())), ..Services::default() });
    if let Ok(Some(reply)) = answer_once(&SERVICES, bytes, &ManualClock::default(), true) {
        Reply::decode(&reply[..]).expect("a reply can be decoded");
    }
    let _ = Reply::decode(bytes);
});
