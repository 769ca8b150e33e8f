//! Generated graphs as CSV files, one for each table: `vertices_partner.csv`, `edges_has_partner.csv`.

use super::{Element, Keys, Spec, Table, each};
use crate::dialect::Dialect;
use crate::error::Error;
use crate::header::FileKind;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tidegraph_types::Value;

/// A file that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of rows after the header.
    pub rows: u64,
}

/// Writes a graph to a directory; creates the directory if it does not exist. Calls `progress` now and then with the
/// number of completed steps and of all steps ([`Spec::steps`]).
///
/// # Errors
///
/// [`Error::Write`] if the disk fails; [`Error::Parameter`] if the scale is too large.
#[expect(clippy::disallowed_methods, reason = "a command writes files for its user")]
pub fn write(
    spec: &Spec,
    dialect: Dialect,
    gzip: bool,
    dir: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<Vec<Written>, Error> {
    let failed = |path: &Path, source| Error::Write { path: path.display().to_string(), source };
    std::fs::create_dir_all(dir).map_err(|e| failed(dir, e))?;
    let mut files = Vec::new();
    for table in spec.tables() {
        let path = dir.join(file_name(table, gzip));
        let file = File::create(&path).map_err(|e| failed(&path, e))?;
        let sink = BufWriter::new(file);
        let sink =
            if gzip { Sink::Gzip(GzEncoder::new(sink, Compression::fast())) } else { Sink::Plain(sink) };
        let mut out = TableWriter::new(table, spec.keys(table), dialect, sink);
        out.header().map_err(|e| failed(&path, e))?;
        files.push((out, Written { path, rows: 0 }));
    }
    let (mut done, total) = (0, spec.steps());
    each(spec, |element| {
        let table = match element {
            Element::Vertex { table, .. } | Element::Edge { table, .. } => table,
        };
        // There are thirty tables at most; a scan of pointers is cheaper than a hash.
        let Some((out, written)) = files.iter_mut().find(|(out, _)| std::ptr::eq(out.table, table)) else {
            return Err(Error::Internal("an element of an unknown table"));
        };
        out.row(&element).map_err(|e| failed(&written.path, e))?;
        written.rows += 1;
        if spec.is_step(table) {
            done += 1;
            if done % 4096 == 0 {
                progress(done, total);
            }
        }
        Ok(())
    })?;
    progress(total, total);
    let finish = |(out, written): (TableWriter<Sink>, Written)| {
        out.finish().map_err(|e| failed(&written.path, e))?;
        Ok(written)
    };
    files.into_iter().map(finish).collect()
}

/// Returns the file name of a table.
#[must_use]
pub fn file_name(table: &Table, gzip: bool) -> String {
    let kind = if table.edges { "edges" } else { "vertices" };
    format!("{kind}_{}.csv{}", table.name, if gzip { ".gz" } else { "" })
}

enum Sink {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
        }
    }
}

/// Writes the rows of one table.
pub(crate) struct TableWriter<W: Write> {
    pub table: &'static Table,
    keys: Keys,
    dialect: Dialect,
    out: csv::Writer<W>,
    text: Vec<u8>,
}

impl<W: Write> TableWriter<W> {
    pub fn new(table: &'static Table, keys: Keys, dialect: Dialect, sink: W) -> Self {
        Self { table, keys, dialect, out: csv::Writer::from_writer(sink), text: Vec::new() }
    }

    fn kind(&self) -> FileKind {
        if self.table.edges { FileKind::Edges } else { FileKind::Vertices }
    }

    pub fn header(&mut self) -> io::Result<()> {
        let (rules, kind) = (self.dialect.rules(), self.kind());
        rules.generated_columns(kind).iter().try_for_each(|column| self.out.write_field(column))?;
        for (key, value_type) in self.keys {
            let list = self.table.lists.contains(key);
            self.out.write_field(rules.generated_property(key, *value_type, kind, list))?;
        }
        self.out.write_record(None::<&[u8]>)?;
        Ok(())
    }

    pub fn row(&mut self, element: &Element<'_>) -> io::Result<()> {
        let values = match element {
            Element::Vertex { id, values, .. } => {
                self.out.write_field(id)?;
                values
            }
            Element::Edge { id, from, to, values, .. } => {
                [id, from, to].into_iter().try_for_each(|f| self.out.write_field(f))?;
                values
            }
        };
        self.out.write_field(self.table.label)?;
        for value in *values {
            self.text.clear();
            if let Some(value) = value {
                write_value(&mut self.text, value)?;
            }
            self.out.write_field(&self.text)?;
        }
        self.out.write_record(None::<&[u8]>)?;
        Ok(())
    }
}

#[cfg(test)]
impl TableWriter<Vec<u8>> {
    pub fn into_bytes(self) -> Vec<u8> {
        self.out.into_inner().unwrap()
    }
}

impl TableWriter<Sink> {
    fn finish(self) -> io::Result<()> {
        let sink = self.out.into_inner().map_err(|e| io::Error::new(e.error().kind(), e.to_string()))?;
        let file = match sink {
            Sink::Plain(out) => out,
            Sink::Gzip(out) => out.finish()?,
        };
        file.into_inner().map_err(io::IntoInnerError::into_error).map(|_| ())
    }
}

fn write_value(out: &mut Vec<u8>, value: &Value) -> io::Result<()> {
    match value {
        Value::String(text) => out.write_all(text.as_bytes()),
        Value::Bool(v) => write!(out, "{v}"),
        Value::Float(v) => write!(out, "{v}"),
        Value::Double(v) => write!(out, "{v}"),
        Value::DateTime(v) => write!(out, "{v}"),
        Value::Temporal(v) => write!(out, "{v}"),
        Value::List(values) => values.iter().enumerate().try_for_each(|(at, value)| {
            if at > 0 {
                out.write_all(b";")?;
            }
            write_value(out, value)
        }),
        other => match other.as_i64() {
            Some(v) => write!(out, "{v}"),
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, other.type_name())),
        },
    }
}
