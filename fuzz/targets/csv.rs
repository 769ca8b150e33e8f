//! Reads a CSV file of either dialect or of none, plain or compressed. The first byte chooses the name and the options.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use tidegraph_load::plain::{PlainReader, Step, Terminator};
use tidegraph_load::{Options, Problem, open};

/// Rows that are read of one file: a small compressed file has millions.
const ROWS: usize = 10_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, content)) = bytes.split_first() else { return };
    let name = ["rows.csv", "rows.csv.gz", "rows.csv.bz2"][usize::from(choice % 3)];
    if choice & 16 != 0 {
        let terminator = if choice & 32 != 0 { '\u{a6}' } else { ',' };
        read_plain(content, name, Terminator::new(terminator).unwrap_or_default());
        return;
    }
    let options = Options {
        allow_empty_strings: choice & 4 != 0,
        user_provided_edge_ids: choice & 8 != 0,
        max_record_bytes: 1 << 16,
    };
    let Ok(rows) = open(Cursor::new(content.to_vec()), name, None, &options) else { return };
    let mut ended = false;
    for row in rows.take(ROWS) {
        assert!(!ended, "rows follow the end of a file");
        match row {
            Ok(_) => {}
            Err(Problem::Row(refused)) => drop(refused.to_string()),
            Err(Problem::File(_)) => ended = true,
        }
    }
});

/// Reads a file as `LOAD CSV` does.
fn read_plain(content: &[u8], name: &str, terminator: Terminator) {
    let Ok(mut reader) = PlainReader::new(Cursor::new(content.to_vec()), name, terminator) else { return };
    for _ in 0..ROWS {
        match reader.step() {
            Ok(Step::Record) => assert!(reader.fields().count() > 0, "a record has a field"),
            Ok(Step::Pause) => {}
            Ok(Step::End) => break,
            Err(error) => {
                drop(error.to_string());
                assert_eq!(reader.step().ok(), Some(Step::End), "an error ends the file");
                break;
            }
        }
    }
}
