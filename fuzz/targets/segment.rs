//! Reads a segment of a bulk load to its end. Checksums are not compared in a build for fuzzing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegraph_wire::segment::SegmentReader;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut segment) = SegmentReader::open(bytes) else { return };
    while let Ok(Some(_)) = segment.next_block() {}
});
