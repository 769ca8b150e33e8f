//! The stage that turns files into rows.

use super::plan::is_no_fault_of_the_file;
use super::runs::{RowKind, RunWriter};
use super::{TaskReport, Work};
use crate::error::Error;
use crate::reject::Rejected;
use crate::rows::{self, Name, Problem, Row, RowReader};
use crate::run::feed;
use tidegraph_types::{Edge, Gui, Mutation, PropertyWrite, Sid, Token};
use tidegraph_wire::load::LoadRow;

impl Work<'_> {
    pub(super) fn parse(&self) -> Result<TaskReport, Error> {
        let plan = self.plan();
        let chunk = plan.chunks.get(self.task as usize).ok_or_else(|| Error::Parameter {
            name: "task",
            value: self.task.to_string(),
            reason: format!("the load has {} parts of files", plan.chunks.len()),
        })?;
        let source = plan.source()?;
        let file = &plan.files[chunk.file as usize].file;
        let options = &plan.request.options;
        let mut done = TaskReport::default();
        let opened = match chunk.part {
            None => feed::open(&source, file, plan.dialect, options, &feed::Meter::default()),
            Some(part) => {
                // The first part begins after the header.
                let first = plan.chunks.iter().find(|c| c.file == chunk.file).and_then(|c| c.part);
                let header = source.reader_of(file, Some(0..first.unwrap_or(part).start))?;
                let header = rows::open(header, &file.name, Some(plan.dialect), options)?.header().clone();
                let reader = source.reader_of(file, Some(part.start..part.end))?;
                Ok(rows::open_part(reader, &file.name, header, part.line, options))
            }
        };
        let mut reader = match opened {
            Ok(reader) => reader,
            Err(error) => {
                let rejected = refusal(error)?;
                done.reject_file(chunk.file, rejected, usize::MAX);
                return Ok(done);
            }
        };
        let most = self.most_errors();
        let mut out = RunWriter::new(self)?;
        let mut tokens = Vec::new();
        while let Some(item) = reader.next() {
            match item {
                Ok(row) => {
                    done.counts_of(chunk.file).rows += 1;
                    self.intern(&reader, &mut tokens, &mut done)?;
                    self.push(&mut out, chunk.file, row, &tokens)?;
                }
                Err(Problem::Row(rejected)) => {
                    done.counts_of(chunk.file).rows += 1;
                    done.reject(chunk.file, rejected, most);
                }
                Err(Problem::File(error)) => done.reject_file(chunk.file, refusal(error)?, most),
            }
            if plan.request.fail_on_error && done.rejected > 0 {
                break;
            }
        }
        done.runs = out.finish()?;
        done.bytes = chunk.part.map_or(file.bytes, |part| part.end - part.start);
        Ok(done)
    }

    /// Adds the tokens of the names that the reader has met since the last call.
    fn intern(
        &self,
        reader: &RowReader,
        tokens: &mut Vec<Token>,
        done: &mut TaskReport,
    ) -> Result<(), Error> {
        let new = &reader.names()[tokens.len()..];
        if !new.is_empty() {
            let found = self.steps.target.intern(new)?;
            done.names.extend(new.iter().cloned().zip(found.iter().copied()));
            tokens.extend(found);
        }
        Ok(())
    }

    fn push(&self, out: &mut RunWriter<'_>, file: u32, row: Row, tokens: &[Token]) -> Result<(), Error> {
        let hasher = self.steps.target.hasher();
        let token = |name: Name| tokens[name.0 as usize];
        match row {
            Row::Vertex(row) => {
                let gui = hasher.gui(&row.id);
                let properties = row.properties.into_iter().map(|p| PropertyWrite {
                    key: token(p.name),
                    cardinality: p.cardinality,
                    value: p.value,
                });
                let mutation = Mutation::CreateVertex {
                    gui,
                    id: row.id,
                    labels: row.labels.iter().map(|name| token(*name)).collect(),
                    properties: properties.collect(),
                };
                out.push(RowKind::Vertices, gui, &LoadRow { file, line: row.line, mutation, ends: None })
            }
            Row::Edge(row) => {
                let unknown = Gui(0);
                let edge = Edge { sid: Sid(0), source: unknown, target: unknown, label: token(row.label) };
                let properties = row.properties.into_iter().map(|p| (token(p.name), p.value)).collect();
                let mutation = Mutation::CreateEdge { edge, id: row.id, properties };
                let source = hasher.gui(&row.from);
                let ends = Some((row.from, row.to));
                out.push(RowKind::Edges, source, &LoadRow { file, line: row.line, mutation, ends })
            }
        }
    }
}

/// Turns the error of a file into its refusal. An error that is not the file's fault stays an error of the task: the
/// file may be readable later, or it has changed since other tasks read it.
fn refusal(error: Error) -> Result<Rejected, Error> {
    if is_no_fault_of_the_file(&error) {
        return Err(error);
    }
    error.rejected().ok_or(error)
}
