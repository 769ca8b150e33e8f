//! The files that `LOAD CSV` reads: those that the options allow, found as a bulk load finds its sources.

use crate::Database;
use tidegraph_exec::{CsvFiles, CsvRecords, CsvStep, FileError, Interrupt};
use tidegraph_load::plain::{self, PlainReader, Step, Terminator};
use tidegraph_load::source::Access;
use tidegraph_types::{ErrorCode, Value};

impl CsvFiles for Database {
    fn open(
        &self,
        url: &str,
        terminator: char,
        interrupt: &dyn Interrupt,
    ) -> Result<Box<dyn CsvRecords>, FileError> {
        let Some(terminator) = Terminator::new(terminator) else {
            let message = format!("{terminator:?} cannot end fields");
            return Err(FileError::new(ErrorCode::InvalidArgument, message));
        };
        let cancelled = || interrupt.check().is_err();
        let access = Access { cancelled: &cancelled, ..Access::to(&self.options.load_from) };
        let reader = plain::open(url, terminator, &access).map_err(of_load)?;
        let name = name_of(reader.file()).to_owned();
        Ok(Box::new(Records { reader, name }))
    }
}

struct Records {
    reader: PlainReader,
    name: String,
}

impl CsvRecords for Records {
    fn file(&self) -> &str {
        &self.name
    }

    fn step(&mut self, fields: &mut Vec<Value>) -> Result<CsvStep, FileError> {
        Ok(match self.reader.step().map_err(of_load)? {
            Step::Record => {
                fields.extend(self.reader.fields().map(|field| field.map_or(Value::Null, Value::from)));
                CsvStep::Record
            }
            Step::Pause => CsvStep::Pause,
            Step::End => CsvStep::End,
        })
    }

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }
}

pub(crate) fn of_load(error: tidegraph_load::Error) -> FileError {
    FileError::new(error.code(), error)
}

/// Returns what `file()` tells of an address, as Neo4j does: the path of a local file, and the last part of any other
/// address.
fn name_of(url: &str) -> &str {
    match url.strip_prefix("file://") {
        Some(path) => path,
        None => url.rsplit('/').next().unwrap_or(url),
    }
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn a_local_file_has_its_path_and_an_object_its_last_name() {
        assert_eq!(name_of("file:///data/people.csv"), "/data/people.csv");
        assert_eq!(name_of("s3://bucket/2026/people.csv.gz"), "people.csv.gz");
    }
}
