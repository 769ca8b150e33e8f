//! Tests of plain CSV files.

use super::*;
use proptest::prelude::*;
use std::io::Cursor;
use tidegraph_types::ErrorCode;

/// Gives its bytes a few at a time, so that each state meets the end of a buffer.
struct Trickle {
    bytes: Cursor<Vec<u8>>,
    most: usize,
}

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = into.len().min(self.most);
        self.bytes.read(&mut into[..most])
    }
}

type Records = Vec<Vec<Option<String>>>;

fn read_to_end(mut reader: PlainReader) -> Result<Records, Error> {
    let mut records = vec![];
    loop {
        match reader.step()? {
            Step::Record => records.push(reader.fields().map(|field| field.map(str::to_owned)).collect()),
            Step::Pause => {}
            Step::End => return Ok(records),
        }
    }
}

fn read_by(most: usize, bytes: &[u8], terminator: char, limit: usize) -> Result<Records, Error> {
    let input = Trickle { bytes: Cursor::new(bytes.to_vec()), most };
    read_to_end(PlainReader::with_limit(input, "x.csv", Terminator::new(terminator).unwrap(), limit)?)
}

/// Reads with buffers of several sizes, which must not make a difference.
fn read(bytes: impl AsRef<[u8]>, terminator: char) -> Result<Records, String> {
    let results: Vec<_> = [1, 2, 3, 5, 1000]
        .map(|most| read_by(most, bytes.as_ref(), terminator, 64).map_err(|error| error.to_string()))
        .into();
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    results.into_iter().next().unwrap()
}

fn fields(record: &[Option<&str>]) -> Vec<Option<String>> {
    record.iter().map(|field| field.map(str::to_owned)).collect()
}

#[test]
fn fields_are_cut_as_neo4j_cuts_them() {
    let cases: &[(&str, &[&[Option<&str>]])] = &[
        ("", &[]),
        ("\n\r\n\r", &[]),
        ("a", &[&[Some("a")]]),
        ("a,b\nc\n", &[&[Some("a"), Some("b")], &[Some("c")]]),
        ("a,b\r\nc\rd", &[&[Some("a"), Some("b")], &[Some("c")], &[Some("d")]]),
        // Only a field without quotes is absent.
        (",\"\",\n,", &[&[None, Some(""), None], &[None, None]]),
        (" a , b \n", &[&[Some(" a "), Some(" b ")]]),
        ("\"a\nb\",\"c\r\n\"\n", &[&[Some("a\nb"), Some("c\r\n")]]),
        ("\"a\"\"b\",\"\"\"\",a\"b\n", &[&[Some("a\"b"), Some("\""), Some("a\"b")]]),
        // A backslash in quotes escapes a quote or a backslash, and nothing else.
        (
            "\"a\\\"b\",\"\\\\\",\"C:\\temp\",\\\"\n",
            &[&[Some("a\"b"), Some("\\"), Some("C:\\temp"), Some("\\\"")]],
        ),
        ("\"x\"", &[&[Some("x")]]),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|record| fields(record)).collect();
        assert_eq!(read(text, ',').unwrap(), expected, "{text:?}");
        let marked = format!("\u{feff}{text}");
        assert_eq!(read(&marked, ',').unwrap(), expected, "{marked:?}");
    }
}

#[test]
fn any_character_may_end_fields() {
    for terminator in [';', '\t', '|', ' ', '\\', '\u{a6}', '→', '😀'] {
        let text = "a·\"b·c\"·\"\"··é\n·\n".replace('·', &terminator.to_string());
        let inside = format!("b{terminator}c");
        // In quotes a backslash before another character stays.
        let expected =
            vec![fields(&[Some("a"), Some(&inside), Some(""), None, Some("é")]), fields(&[None, None])];
        assert_eq!(read(&text, terminator).unwrap(), expected, "{text:?}");
    }
    // Other characters with the same last byte do not end a field, nor do the first bytes.
    assert_eq!(read("æ¦b", '\u{a6}').unwrap(), [fields(&[Some("æ"), Some("b")])]);
    assert!(read("\"a\"→", '↓').unwrap_err().contains("field 1 goes on after its closing quote"));
    for wrong in ['"', '\n', '\r'] {
        assert_eq!(Terminator::new(wrong), None);
    }
}

#[test]
fn wrong_records_are_errors_with_their_line() {
    let long = format!("a\n{}\n", "x".repeat(65));
    let cases: &[(&[u8], &str)] = &[
        (
            b"a\n\n\"b\"c\n",
            "x.csv, line 3: field 1 goes on after its closing quote: a quote inside of quotes is written \"\"",
        ),
        (b"a\r\nx,\"b\" ,c\n", "x.csv, line 2: field 2 goes on after its closing quote"),
        (b"\"a\rb\"\r\"c\nd", "x.csv, line 3: the file ends inside a quoted field"),
        (b"\"a\\\"", "x.csv, line 1: the file ends inside a quoted field"),
        (b"a\nb,\xff\n", "x.csv, line 2: field 2 is not valid UTF-8"),
        // The bytes of one character in two fields.
        (b"\xc3,\xa9\n", "x.csv, line 1: field 1 is not valid UTF-8"),
        (long.as_bytes(), "x.csv, line 2: the record has more than 64 bytes, the limit"),
    ];
    for (bytes, expected) in cases {
        let error = read(bytes, ',').unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = read_by(1000, b"\"", ',', 64).unwrap_err();
    assert_eq!(error.code(), ErrorCode::BadRequest);
    let many = ",".repeat(MAX_FIELDS);
    let error = read_by(100_000, many.as_bytes(), ',', 1 << 20).unwrap_err();
    assert!(error.to_string().contains("more than 65536 fields"), "{error}");
}

#[test]
fn the_reader_pauses_in_a_file_without_records_and_ends_once() {
    let input = std::io::repeat(b'\n').take(10 << 20);
    let mut reader = PlainReader::new(input, "x.csv", Terminator::default()).unwrap();
    let mut pauses = 0;
    while reader.step().unwrap() == Step::Pause {
        pauses += 1;
    }
    assert!(pauses >= 80, "{pauses} pauses");
    assert_eq!(reader.step().unwrap(), Step::End);
    assert!(reader.held_bytes() < 1 << 20);
}

#[test]
fn one_long_record_does_not_hold_memory() {
    let text = format!("{}\nb\nc\n", "a".repeat(1 << 20));
    let mut reader = PlainReader::new(Cursor::new(text), "x.csv", Terminator::default()).unwrap();
    while reader.step().unwrap() != Step::Record {}
    assert!(reader.held_bytes() > 1 << 20);
    while reader.step().unwrap() != Step::Record {}
    assert!(reader.held_bytes() < 1 << 20);
}

proptest! {
    /// Both formats are the same for what the crate `csv` writes, if it has no backslashes.
    #[test]
    fn files_of_the_crate_csv_are_read_as_it_reads_them(
        records in prop::collection::vec(prop::collection::vec("[a-c\"\n\r,; é]{0,5}", 1..4), 0..6),
        most in 1_usize..20,
        always in any::<bool>(),
    ) {
        let style = if always { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary };
        let mut writer = csv::WriterBuilder::new().delimiter(b';').quote_style(style).flexible(true).from_writer(vec![]);
        for record in &records {
            writer.write_record(record).unwrap();
        }
        let bytes = writer.into_inner().unwrap();
        let mut reader = csv::ReaderBuilder::new().delimiter(b';').has_headers(false).flexible(true).from_reader(&bytes[..]);
        let expected: Vec<Vec<String>> = reader.deserialize().map(|record| record.unwrap()).collect();
        let found: Vec<Vec<String>> = read_by(most, &bytes, ';', 1000)
            .unwrap()
            .into_iter()
            .map(|record| record.into_iter().map(Option::unwrap_or_default).collect())
            .collect();
        prop_assert_eq!(found, expected);
    }

    /// The same for any text that this reader takes.
    #[test]
    fn texts_are_read_as_the_crate_csv_reads_them(text in "[ab\"\n\r, é]{0,30}", most in 1_usize..20) {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let expected: Vec<Vec<String>> = reader.deserialize().map(|record| record.unwrap()).collect();
        if let Ok(found) = read_by(most, text.as_bytes(), ',', 1000) {
            let found: Vec<Vec<String>> = found
                .into_iter()
                .map(|record| record.into_iter().map(Option::unwrap_or_default).collect())
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), most in 1_usize..20) {
        let _ = read_by(most, &bytes, ',', 50);
        let _ = read_by(most, &bytes, '\u{a6}', 50);
    }
}
