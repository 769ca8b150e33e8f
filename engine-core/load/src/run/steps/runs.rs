//! Runs: objects with the rows that one stage passes to the next.
//!
//! An object holds the rows of its groups one after the other. A task reads the rows of its group from all objects.

use super::{FOLDER, Stage, Work};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use tidegraph_platform::Objects;
use tidegraph_types::{Gui, PartitionCount};
use tidegraph_wire::load::{LoadRow, RunBuffer, RunReader};

/// Size at which buffered rows are written, in bytes.
const BUFFER_BYTES: usize = 64 << 20;

/// Kind of the rows of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RowKind {
    Vertices,
    Edges,
}

/// Returns the kind of rows that a stage reads.
pub(super) fn kind_of(stage: Stage) -> RowKind {
    if stage == Stage::Vertices { RowKind::Vertices } else { RowKind::Edges }
}

/// An object with rows, as reports name it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub object: String,
    pub parts: Vec<RunPart>,
}

/// The rows of one kind and group in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunPart {
    pub kind: RowKind,
    pub group: u16,
    start: u64,
    bytes: u64,
    rows: u64,
}

/// Writes rows, divided by groups.
pub(super) struct RunWriter<'w> {
    work: &'w Work<'w>,
    groups: PartitionCount,
    buffers: Vec<[RunBuffer; 2]>,
    added: usize,
    written: Vec<Run>,
}

impl<'w> RunWriter<'w> {
    pub fn new(work: &'w Work<'w>) -> Result<Self, Error> {
        let groups = work.groups()?;
        let buffers = groups.all().map(|_| Default::default()).collect();
        Ok(Self { work, groups, buffers, added: 0, written: Vec::new() })
    }

    /// Adds a row to the group of `gui`.
    pub fn push(&mut self, kind: RowKind, gui: Gui, row: &LoadRow) -> Result<(), Error> {
        let group = usize::from(self.groups.of(gui).0);
        let buffer = &mut self.buffers[group][kind as usize];
        let before = buffer.size();
        buffer.push(row).map_err(|error| damaged(&self.work.writer, error))?;
        self.added += buffer.size().saturating_sub(before);
        if self.added < BUFFER_BYTES { Ok(()) } else { self.flush() }
    }

    /// Writes the rest and returns the written objects.
    pub fn finish(mut self) -> Result<Vec<Run>, Error> {
        self.flush()?;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let (mut bytes, mut parts) = (Vec::with_capacity(self.added), Vec::new());
        for (group, kinds) in (0..).zip(&mut self.buffers) {
            for (buffer, kind) in kinds.iter_mut().zip([RowKind::Vertices, RowKind::Edges]) {
                let (run, rows) = buffer.take().map_err(|error| damaged(&self.work.writer, error))?;
                if rows > 0 {
                    let start = bytes.len() as u64;
                    parts.push(RunPart { kind, group, start, bytes: run.len() as u64, rows });
                    bytes.extend_from_slice(&run);
                }
            }
        }
        self.added = 0;
        if !parts.is_empty() {
            let Work { steps, writer, .. } = self.work;
            let number = self.written.len();
            let object = format!("{FOLDER}/{}/rows/{writer}-{number:05}.rows", steps.plan.load_id);
            steps.objects.put(&object, bytes)?;
            self.written.push(Run { object, parts });
        }
        Ok(())
    }
}

/// Calls `take` with each block of rows of a kind and of the groups that `wants` selects, in the order of writing.
pub(super) fn each_block(
    objects: &Objects,
    runs: &[Run],
    kind: RowKind,
    wants: impl Fn(u16) -> bool,
    mut take: impl FnMut(Vec<LoadRow>) -> Result<(), super::Stop>,
) -> Result<(), super::Stop> {
    for run in runs {
        for part in run.parts.iter().filter(|part| part.kind == kind && wants(part.group)) {
            let range = part.start..part.start + part.bytes;
            let inner = objects.reader_of(&run.object, Some(range), None)?;
            let mut reader = RunReader::new(inner, part.rows);
            while let Some(rows) = reader.next_block().map_err(|error| damaged(&run.object, error))? {
                take(rows)?;
            }
        }
    }
    Ok(())
}

fn damaged(object: &str, source: tidegraph_wire::Error) -> Error {
    Error::Segment { object: object.to_owned(), source }
}
