//! Parse threads: each reads one file after the other and sends the rows in batches.
//!
//! One thread reads a file, so the batches of a file arrive in order; batches of different files mix. The channel
//! bounds the number of batches in flight.

use super::edges::LookedUp;
use super::ids::Met;
use crate::dialect::Dialect;
use crate::error::Error;
use crate::header::{Header, Role};
use crate::options::Options;
use crate::reject::Rejected;
use crate::rows::{self, Problem, Row, RowReader};
use crate::source::{File, Source};
use crossbeam_channel::Sender;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tidegraph_types::Str;

/// Rows in a batch. The graph is asked once for each batch.
const BATCH_ROWS: usize = 1024;
/// Bytes after which a batch ends before it has [`BATCH_ROWS`].
const BATCH_BYTES: usize = 1 << 20;

/// Consecutive rows of one file.
pub(super) struct Batch {
    pub file: usize,
    pub rows: Vec<Row>,
    /// For each edge row in their order, or empty.
    pub looked_up: Vec<LookedUp>,
    pub rejected: Vec<Rejected>,
    /// Names that the file has since the last batch.
    pub names: Vec<Str>,
    /// Columns of the file; only in its first batch.
    pub columns: Option<Columns>,
    /// Whether this is the last batch of the file.
    pub end: bool,
    /// Why the file could not be read to its end.
    pub failure: Option<Error>,
}

/// Dialect of a file, and the headers of its system columns for error messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Columns {
    pub dialect: Dialect,
    pub from: Str,
    pub to: Str,
    pub id: Str,
}

impl Columns {
    pub fn of(header: &Header) -> Self {
        let text = |found: fn(&Role) -> bool| {
            header.columns.iter().find(|c| found(&c.role)).map(|c| c.text.clone()).unwrap_or_default()
        };
        Self {
            dialect: header.dialect,
            from: text(|r| matches!(r, Role::From { .. })),
            to: text(|r| matches!(r, Role::To { .. })),
            id: text(|r| matches!(r, Role::Id { .. })),
        }
    }
}

/// State that the parse threads share.
pub(super) struct Feed<'a> {
    pub source: &'a Source,
    pub dialect: Dialect,
    pub options: &'a Options,
    /// Indexes of the files to read.
    pub files: &'a [usize],
    pub next: AtomicUsize,
    pub meter: &'a Meter,
    /// The vertices of the load, if there will be no more of them.
    pub met: Option<Arc<Met>>,
}

/// What the readers of a load share with the thread that runs it.
#[derive(Clone, Default)]
pub(super) struct Meter {
    /// Number of bytes read, before decompression.
    pub read: Arc<AtomicU64>,
    /// Whether to read no further: then every reader fails, also one in the middle of a record.
    pub stop: Arc<AtomicBool>,
}

impl Feed<'_> {
    /// Reads files until none is left or the receiver is gone.
    pub fn work(&self, out: &Sender<Batch>) {
        loop {
            let Some(file) = self.files.get(self.next.fetch_add(1, Ordering::Relaxed)) else { return };
            if self.meter.stop.load(Ordering::Relaxed) || self.read(*file, out).is_none() {
                return;
            }
        }
    }

    /// Reads one file; `None` if the receiver is gone or the load stops.
    fn read(&self, file: usize, out: &Sender<Batch>) -> Option<()> {
        let info = &self.source.files()[file];
        let mut batch = Batch::new(file);
        let mut reader = match open(self.source, info, self.dialect, self.options, self.meter) {
            Ok(reader) => reader,
            Err(error) => {
                batch.end = true;
                batch.failure = Some(error);
                return out.send(batch).ok();
            }
        };
        batch.columns = Some(Columns::of(reader.header()));
        let (mut named, mut bytes) = (0, 0);
        loop {
            let item = reader.next();
            match item {
                Some(Ok(row)) => {
                    bytes += row_bytes(&row);
                    batch.rows.push(row);
                }
                Some(Err(Problem::Row(rejected))) => batch.rejected.push(rejected),
                Some(Err(Problem::File(error))) => {
                    batch.end = true;
                    batch.failure = Some(error);
                }
                None => batch.end = true,
            }
            let full = batch.rows.len() + batch.rejected.len() >= BATCH_ROWS || bytes >= BATCH_BYTES;
            if full || batch.end {
                if let Some(met) = &self.met {
                    let edges = batch.rows.iter().filter_map(|row| match row {
                        Row::Edge(row) => Some(row),
                        Row::Vertex(_) => None,
                    });
                    batch.looked_up = LookedUp::of_rows(edges, met);
                }
                batch.names.extend_from_slice(&reader.names()[named..]);
                named = reader.names().len();
                bytes = 0;
                let end = batch.end;
                out.send(std::mem::replace(&mut batch, Batch::new(file))).ok()?;
                if end {
                    return Some(());
                }
                if self.meter.stop.load(Ordering::Relaxed) {
                    return None;
                }
            }
        }
    }
}

impl Batch {
    fn new(file: usize) -> Self {
        Self {
            file,
            rows: Vec::new(),
            looked_up: Vec::new(),
            rejected: Vec::new(),
            names: Vec::new(),
            columns: None,
            end: false,
            failure: None,
        }
    }
}

/// Opens one file of a source.
pub(super) fn open(
    source: &Source,
    file: &File,
    dialect: Dialect,
    options: &Options,
    meter: &Meter,
) -> Result<RowReader, Error> {
    let inner = source.reader(file)?;
    let counting = Counting { inner, meter: meter.clone() };
    rows::open(counting, &file.name, Some(dialect), options)
}

struct Counting {
    inner: Box<dyn Read + Send>,
    meter: Meter,
}

impl Read for Counting {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.meter.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("the load has ended"));
        }
        let n = self.inner.read(out)?;
        self.meter.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

fn row_bytes(row: &Row) -> usize {
    let (id, properties) = match row {
        Row::Vertex(v) => (v.id.len(), &v.properties),
        Row::Edge(e) => (e.from.len() + e.to.len() + e.id.as_ref().map_or(0, |i| i.len()), &e.properties),
    };
    size_of::<Row>() + id + properties.iter().map(|p| size_of_val(p) + p.value.heap_bytes()).sum::<usize>()
}
