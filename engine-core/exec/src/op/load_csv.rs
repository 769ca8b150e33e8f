//! Rows of CSV files.

use super::{Boxed, Feed, Operator, Want, compute};
use crate::batch::BATCH_ROWS;
use crate::{Batch, Column, Context, CsvRecords, CsvStep, Error, FileError, Result};
use std::sync::Arc;
use tidegraph_plan::{Expr, Op, Slot};
use tidegraph_types::{ErrorCode, Map, Str, Value};

/// A batch ends early once its records have this many bytes: records may be long.
const BATCH_BYTES: usize = 1 << 20;

/// Steps of work that reading a record costs at least.
const STEPS_PER_RECORD: usize = 16;

/// Yields a row for each record of the file that each row names.
///
/// *Memory*: it holds one file at a time, one record of it, and one batch of rows, whatever the size of the file.
pub(super) struct LoadCsv<'p> {
    input: Boxed<'p>,
    url: &'p Expr,
    headers: bool,
    terminator: char,
    out: Slot,
    number: Option<Slot>,
    file: Option<Slot>,
    current: Option<Current>,
}

/// The batch whose files the operator reads now.
struct Current {
    batch: Batch,
    urls: Arc<Column>,
    row: usize,
    /// The file of this row, once it is open.
    reading: Option<Reading>,
    /// What is wrong with the record after the rows that were yielded last.
    failed: Option<Error>,
}

/// An open file.
struct Reading {
    records: Box<dyn CsvRecords>,
    name: Str,
    /// Names of the fields, if the file has them.
    headers: Option<Vec<Value>>,
    /// Number of records that were read, with that of the headers.
    number: i64,
    /// Bytes charged for the reader.
    charged: usize,
}

/// Rows that the operator makes.
#[derive(Default)]
struct Taken {
    /// The number of the input row of each.
    rows: Vec<u32>,
    values: Vec<Value>,
    numbers: Vec<Value>,
    files: Vec<Value>,
}

impl<'p> LoadCsv<'p> {
    pub(super) fn new(input: Boxed<'p>, op: &'p Op) -> Result<Self> {
        let Op::LoadCsv { url, headers, terminator, out, number, file, .. } = op else {
            return Err(Error::Plan("an operator that loads no CSV".to_owned()));
        };
        let (headers, terminator, out, number, file) = (*headers, *terminator, *out, *number, *file);
        Ok(Self { input, url, headers, terminator, out, number, file, current: None })
    }

    /// Opens the file of a row.
    fn open(&self, url: &Value, ctx: &Context<'_>) -> Result<Reading> {
        let Some(url) = url.as_str() else {
            return Err(Error::of_type("LOAD CSV", "a string, the address of a file", url));
        };
        let Some(files) = ctx.csv_files else {
            let message = format!("{url}: files cannot be read here");
            return Err(FileError::new(ErrorCode::UnsupportedOperation, message).into());
        };
        let records = match files.open(url, self.terminator, ctx.interrupt) {
            Ok(records) => records,
            Err(error) => {
                // A request that must stop says so, not that it could not open a file.
                ctx.check()?;
                return Err(error.into());
            }
        };
        let name = records.file().into();
        let mut reading = Reading { records, name, headers: None, number: 0, charged: 0 };
        if self.headers {
            let names = reading.fields(ctx)?.unwrap_or_default();
            let name = |value: Value| if value.is_null() { Value::String(Str::default()) } else { value };
            reading.headers = Some(names.into_iter().map(name).collect());
        }
        Ok(reading)
    }

    /// Returns up to `want.rows` rows. If a record after some of them is wrong, the rows come first: how many rows a
    /// query gets of such a file does not depend on the sizes of batches.
    fn take(&self, current: &mut Current, want: Want<'_>, ctx: &Context<'_>) -> Result<Taken> {
        if let Some(failed) = current.failed.take() {
            return Err(failed);
        }
        let mut taken = Taken::default();
        match self.fill(&mut taken, current, want, ctx) {
            Err(error) if !taken.rows.is_empty() && !matches!(error, Error::Stopped(_)) => {
                current.failed = Some(error);
                Ok(taken)
            }
            filled => filled.map(|()| taken),
        }
    }

    fn fill(
        &self,
        taken: &mut Taken,
        current: &mut Current,
        want: Want<'_>,
        ctx: &Context<'_>,
    ) -> Result<()> {
        let mut bytes = 0;
        let limit = want.rows.min(BATCH_ROWS);
        while current.row < current.batch.len && taken.rows.len() < limit && bytes < BATCH_BYTES {
            let wanted = want.wants(current.batch.origin_of(current.row));
            let mut value = None;
            if wanted {
                let reading = match &mut current.reading {
                    Some(reading) => reading,
                    none => none.insert(self.open(&current.urls.get(current.row), ctx)?),
                };
                value = reading.row(ctx)?;
                if value.is_some() {
                    taken.numbers.extend(self.number.map(|_| Value::Long(reading.number)));
                    taken.files.extend(self.file.map(|_| Value::String(reading.name.clone())));
                }
            }
            match value {
                Some(value) => {
                    bytes += value.heap_bytes();
                    taken.rows.push(current.row as u32);
                    taken.values.push(value);
                }
                None => {
                    current.close(ctx);
                    current.row += 1;
                }
            }
        }
        Ok(())
    }
}

impl Current {
    /// Closes the open file.
    fn close(&mut self, ctx: &Context<'_>) {
        if let Some(reading) = self.reading.take() {
            ctx.memory.release(reading.charged);
        }
    }
}

impl Reading {
    /// Returns the fields of the next record; `None` at the end of the file.
    fn fields(&mut self, ctx: &Context<'_>) -> Result<Option<Vec<Value>>> {
        let mut fields = Vec::with_capacity(self.headers.as_ref().map_or(0, Vec::len));
        loop {
            ctx.spend(STEPS_PER_RECORD)?;
            let step = self.records.step(&mut fields)?;
            let held = self.records.held_bytes();
            if held != self.charged {
                ctx.memory.release(std::mem::take(&mut self.charged));
                ctx.memory.charge(held)?;
                self.charged = held;
            }
            match step {
                CsvStep::Record => {
                    self.number += 1;
                    ctx.spend(fields.iter().map(|field| 4 + field.heap_bytes() / 16).sum())?;
                    return Ok(Some(fields));
                }
                // A whole buffer was read.
                CsvStep::Pause => ctx.check()?,
                CsvStep::End => return Ok(None),
            }
        }
    }

    /// Returns the value of the next row: a list of its fields, or a map of them by the names of the headers.
    fn row(&mut self, ctx: &Context<'_>) -> Result<Option<Value>> {
        let Some(fields) = self.fields(ctx)? else { return Ok(None) };
        let Some(headers) = &self.headers else { return Ok(Some(Value::list(fields))) };
        let mut fields = fields.into_iter();
        let mut map = Map::with_capacity(headers.len());
        for name in headers {
            // Of several fields of one name the last one counts; fields without a name are left out.
            map.insert(name.clone(), fields.next().unwrap_or(Value::Null));
        }
        Ok(Some(Value::map(map)))
    }
}

impl Operator for LoadCsv<'_> {
    fn next(&mut self, ctx: &Context<'_>, want: Want<'_>) -> Result<Option<Batch>> {
        loop {
            ctx.check()?;
            if let Some(mut current) = self.current.take() {
                let Taken { rows, values, numbers, files } = self.take(&mut current, want, ctx)?;
                if rows.is_empty() {
                    continue;
                }
                let mut batch = current.batch.gather(&rows);
                batch.set(self.out, Column::from_values(values));
                for (slot, values) in [(self.number, numbers), (self.file, files)] {
                    if let Some(slot) = slot {
                        batch.set(slot, Column::from_values(values));
                    }
                }
                self.current = Some(current);
                return Ok(Some(batch));
            }
            let Some(batch) = self.input.next(ctx, want)? else { return Ok(None) };
            let urls = compute::column(self.url, &batch, ctx)?;
            self.current = Some(Current { batch, urls, row: 0, reading: None, failed: None });
        }
    }

    fn feed(&mut self, ctx: &Context<'_>, feed: Feed) {
        if let Some(mut current) = self.current.take() {
            current.close(ctx);
        }
        self.input.feed(ctx, feed);
    }
}
