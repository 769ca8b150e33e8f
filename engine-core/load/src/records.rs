//! CSV records: cuts a byte stream into fields with `csv-core`, in bounded memory.
//!
//! It adds to `csv-core`: the physical line of each record; whether a field was quoted, since an empty quoted field is
//! an empty string and an empty bare one is absent; spaces around fields are dropped, as the formats require; a record
//! longer than the limit is skipped and reported, not held in memory.
//!
//! Must never: hold more than one record, or more of a record than the limit.

use std::io::{self, BufRead};

/// Limit of fields that are kept; further ones are only counted.
pub(crate) const MAX_FIELDS: usize = 65_536;

/// Result of reading one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// A record was read.
    Record,
    /// The record has more bytes than the limit; it was skipped.
    TooLong,
    /// The file ends inside a quoted field.
    Unclosed,
    /// No more records.
    End,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    start: usize,
    end: usize,
    quoted: bool,
}

/// Reads records one after the other into its own buffer.
pub(crate) struct Records<R> {
    input: R,
    core: csv_core::Reader,
    /// Text of the record. Bytes outside of `fields` are undefined.
    data: Vec<u8>,
    fields: Vec<Field>,
    count: usize,
    line: u64,
    lines: Lines,
    limit: usize,
}

impl<R: BufRead> Records<R> {
    pub fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            core: csv_core::Reader::new(),
            data: vec![0; limit.clamp(1, 4096)],
            fields: Vec::new(),
            count: 0,
            line: 0,
            lines: Lines::new(),
            limit: limit.max(1),
        }
    }

    /// Returns the physical line on which the record begins, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Sets the number of the next line: the input is the rest of a file.
    pub fn at_line(mut self, line: u64) -> Self {
        self.lines.line = line;
        self
    }

    /// Returns the number of the line on which the next byte of the input is.
    pub fn next_line(&mut self) -> io::Result<u64> {
        // A newline after a carriage return belongs to the line that both end.
        if self.lines.after_cr && self.input.fill_buf()?.first() != Some(&b'\n') {
            self.lines.end();
        }
        Ok(self.lines.line)
    }

    /// Returns the input.
    pub fn input(&self) -> &R {
        &self.input
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the bytes of one field.
    pub fn bytes(&self, index: usize) -> &[u8] {
        self.fields.get(index).map_or(&[], |f| &self.data[f.start..f.end])
    }

    /// Whether the field was written in quotes.
    pub fn quoted(&self, index: usize) -> bool {
        self.fields.get(index).is_some_and(|f| f.quoted)
    }

    /// Checks that the record is UTF-8. Returns the index of the first field that is not.
    pub fn check_utf8(&self) -> Result<(), usize> {
        let used = self.fields.last().map_or(0, |f| f.end);
        // One check for the whole record is several times faster than one for each field. It is enough where no
        // character straddles two fields, which the boundaries tell.
        if let Ok(text) = std::str::from_utf8(&self.data[..used])
            && self.fields.iter().all(|f| text.is_char_boundary(f.start) && text.is_char_boundary(f.end))
        {
            return Ok(());
        }
        match (0..self.fields.len()).find(|i| std::str::from_utf8(self.bytes(*i)).is_err()) {
            Some(index) => Err(index),
            None => Ok(()),
        }
    }

    /// Returns the text of one field. Call [`Records::check_utf8`] first: a field that is not UTF-8 reads as empty.
    pub fn text(&self, index: usize) -> &str {
        std::str::from_utf8(self.bytes(index)).unwrap_or_default()
    }

    /// Reads the next record.
    pub fn next(&mut self) -> io::Result<Outcome> {
        self.fields.clear();
        self.count = 0;
        if !self.skip_blank_lines()? {
            return Ok(Outcome::End);
        }
        self.line = self.lines.line;
        let (mut len, mut too_long) = (0, false);
        loop {
            self.skip_spaces()?;
            let mut scan = Scan { quoted: self.input.fill_buf()?.first() == Some(&b'"'), ..Scan::default() };
            let mut start = len;
            let record_end = loop {
                let input = self.input.fill_buf()?;
                let at_end = input.is_empty();
                let (result, read, written) = self.core.read_field(input, &mut self.data[len..]);
                scan.see(&input[..read], at_end);
                // Outside of quotes only the last byte of a field can end a line.
                let of_lines = if scan.quoted { 0 } else { read.saturating_sub(1) };
                self.lines.see(&input[of_lines..read]);
                self.input.consume(read);
                len += written;
                match result {
                    csv_core::ReadFieldResult::InputEmpty => {}
                    csv_core::ReadFieldResult::OutputFull => {
                        if self.data.len() < self.limit {
                            let larger = (self.data.len() * 2).min(self.limit);
                            self.data.resize(larger, 0);
                        } else {
                            // The rest of the record is read into the buffer and discarded.
                            too_long = true;
                            (len, start) = (0, 0);
                        }
                    }
                    csv_core::ReadFieldResult::Field { record_end } => break record_end,
                    csv_core::ReadFieldResult::End => break true,
                }
            };
            if !scan.quoted || scan.spaces_follow_quote() {
                while len > start && self.data[len - 1] == b' ' {
                    len -= 1;
                }
            }
            self.count += 1;
            if !too_long && self.fields.len() < MAX_FIELDS {
                self.fields.push(Field { start, end: len, quoted: scan.quoted });
            }
            if record_end {
                let unclosed = scan.quoted && scan.ended_at_eof && scan.quotes % 2 == 1;
                if too_long {
                    self.fields.clear();
                    self.data.truncate(4096);
                    self.data.shrink_to_fit();
                    return Ok(Outcome::TooLong);
                }
                return Ok(if unclosed { Outcome::Unclosed } else { Outcome::Record });
            }
        }
    }

    /// Skips whole lines without quotes, about `most` bytes of them. Returns false if there are none.
    pub fn skip_unquoted(&mut self, most: usize) -> io::Result<bool> {
        let buffer = self.input.fill_buf()?;
        let buffer = &buffer[..buffer.len().min(most.saturating_add(1 << 12))];
        let plain = memchr::memchr(b'"', buffer).map_or(buffer, |quote| &buffer[..quote]);
        let Some(last) = memchr::memrchr(b'\n', plain) else { return Ok(false) };
        self.lines.see(&plain[..=last]);
        self.input.consume(last + 1);
        Ok(true)
    }

    /// Skips to the first byte of the next record. Returns false at the end of the input.
    fn skip_blank_lines(&mut self) -> io::Result<bool> {
        loop {
            match self.input.fill_buf()?.first() {
                None => return Ok(false),
                Some(byte @ (b'\n' | b'\r' | b' ')) => self.lines.see(&[*byte]),
                Some(_) => {
                    self.lines.end();
                    return Ok(true);
                }
            }
            self.input.consume(1);
        }
    }

    fn skip_spaces(&mut self) -> io::Result<()> {
        while self.input.fill_buf()?.first() == Some(&b' ') {
            self.input.consume(1);
        }
        Ok(())
    }
}

/// Counts lines, which end with `\n`, `\r\n` or `\r`.
pub(crate) struct Lines {
    /// Number of the line of the next byte, from 1; one more after a carriage return that no newline follows.
    pub line: u64,
    /// Whether the last byte was a carriage return, whose line may end with a newline.
    after_cr: bool,
}

impl Lines {
    /// Counts from the first line of a file.
    pub fn new() -> Self {
        Self { line: 1, after_cr: false }
    }

    /// Counts the ends of lines in the next bytes.
    pub fn see(&mut self, bytes: &[u8]) {
        let Some(first) = bytes.first() else { return };
        if *first != b'\n' {
            self.end();
        }
        self.after_cr = bytes.last() == Some(&b'\r');
        let ends = memchr::memchr2_iter(b'\n', b'\r', bytes);
        self.line += ends
            .filter(|at| bytes[*at] == b'\n' || bytes.get(at + 1).is_some_and(|b| *b != b'\n'))
            .count() as u64;
    }

    /// Ends the line of a carriage return that no newline follows.
    pub fn end(&mut self) {
        self.line += u64::from(std::mem::take(&mut self.after_cr));
    }
}

/// Properties of a field's raw bytes that `csv-core` does not report.
#[derive(Default)]
struct Scan {
    quoted: bool,
    quotes: usize,
    ended_at_eof: bool,
    last: u8,
    before_last: u8,
}

impl Scan {
    fn see(&mut self, raw: &[u8], at_end: bool) {
        self.ended_at_eof = at_end;
        if !self.quoted {
            return;
        }
        self.quotes += raw.iter().filter(|b| **b == b'"').count();
        match raw {
            [] => {}
            [only] => (self.before_last, self.last) = (self.last, *only),
            [.., a, b] => (self.before_last, self.last) = (*a, *b),
        }
    }

    /// Whether spaces are between the closing quote and the delimiter, as in `"a" ,`.
    fn spaces_follow_quote(&self) -> bool {
        let content = if self.ended_at_eof { self.last } else { self.before_last };
        self.quoted && content == b' '
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn all(text: &[u8], capacity: usize, limit: usize) -> Vec<(u64, Outcome, Vec<String>)> {
        let mut records = Records::new(BufReader::with_capacity(capacity, text), limit);
        let mut out = Vec::new();
        loop {
            let outcome = records.next().unwrap();
            if outcome == Outcome::End {
                return out;
            }
            let fields = (0..records.fields.len())
                .map(|i| {
                    let mark = if records.quoted(i) { "q:" } else { "" };
                    format!("{mark}{}", String::from_utf8_lossy(records.bytes(i)))
                })
                .collect();
            out.push((records.line(), outcome, fields));
        }
    }

    #[test]
    fn fields_lines_and_quotes_do_not_depend_on_the_buffer() {
        let text = b"a,b , c\r\n\r\n  \n\"x\ny\", \"\" ,\"q\"\"q \"\n,,\nlast, \"z\" ";
        let expected = vec![
            (1, Outcome::Record, vec!["a", "b", "c"]),
            (4, Outcome::Record, vec!["q:x\ny", "q:", "q:q\"q "]),
            (6, Outcome::Record, vec!["", "", ""]),
            (7, Outcome::Record, vec!["last", "q:z"]),
        ];
        for capacity in 1..40 {
            let found = all(text, capacity, 1000);
            let found: Vec<_> =
                found.iter().map(|(l, o, f)| (*l, *o, f.iter().map(String::as_str).collect())).collect();
            assert_eq!(found, expected, "buffer of {capacity} bytes");
        }
    }

    #[test]
    fn long_records_are_skipped_and_open_quotes_reported() {
        let found = all(b"a,b\n1,xxxxxxxxxxxxxxxxxxxx,y,z\n2,ok\n3,\"open\n", 7, 10);
        assert_eq!(found[1].1, Outcome::TooLong);
        assert_eq!(found[2], (3, Outcome::Record, vec!["2".into(), "ok".into()]));
        assert_eq!(found[3].1, Outcome::Unclosed);
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn characters_do_not_straddle_fields() {
        let mut records = Records::new(b"\xc3,\xa9\nok,\xc3\xa9\n".as_slice(), 100);
        records.next().unwrap();
        assert_eq!(records.check_utf8(), Err(0));
        records.next().unwrap();
        assert_eq!(records.check_utf8(), Ok(()));
        assert_eq!(records.text(1), "é");
    }
}
