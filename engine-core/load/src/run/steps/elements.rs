//! The stages that turn rows into segments.

use super::report::TaskReport;
use super::runs::{self, RunWriter};
use super::{FOLDER, Stage, Stop, Work, to_the_end};
use crate::error::Error;
use crate::rows::{Name, Property, VertexRow};
use crate::run::edges::{EdgeName, End, Resolved};
use crate::run::{Config, Load};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use tidegraph_types::{ErrorCode, Gui, GuiHasher, Mutation, Str};
use tidegraph_wire::load::LoadRow;
use tidegraph_wire::{Message, frame, proto};

/// Number of rows for which the graph is asked at once.
const BATCH_ROWS: usize = 1_024;

/// The object that lists the vertices of the load in one group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ids {
    pub group: u16,
    pub object: String,
    /// How many ends and ids of edges it has; 0 for vertices of rows.
    #[serde(default)]
    pub edges_met: u64,
}

impl Work<'_> {
    fn config(&self) -> Config {
        let most = self.most_errors();
        Config { max_errors: most, ..self.plan().config() }
    }

    /// Returns how many refused rows a task keeps: its share of the limit, but at least 100.
    pub(super) fn most_errors(&self) -> usize {
        let config = self.plan().config();
        (config.max_errors / self.plan().chunks.len().max(1)).max(100)
    }

    /// Whether a group is that of this task.
    fn wants(&self, group: u16) -> bool {
        self.task == u32::from(group)
    }

    pub(super) fn vertices(&self) -> Result<TaskReport, Error> {
        let config = self.config();
        let mut load = self.load(&config)?;
        let all = !self.steps.round(self.round)?.unique.is_empty();
        let runs = self.steps.gathered(Stage::Parse, self.round)?.runs;
        let mut rows = Rows::default();
        let kind = runs::RowKind::Vertices;
        let taken = runs::each_block(
            self.steps.objects,
            &runs,
            kind,
            |g| all || self.wants(g),
            |block| {
                rows.add(block, |file, rows| {
                    load.vertex_rows(file, rows.into_iter().filter_map(vertex).collect())
                })
            },
        );
        let taken = taken.and_then(|()| {
            rows.rest(|file, rows| load.vertex_rows(file, rows.into_iter().filter_map(vertex).collect()))?;
            load.apply_waiting_vertices()
        });
        to_the_end(taken)?;
        let mut done = TaskReport::of(&mut load);
        let Load { writer, ids, .. } = load;
        done.segments = writer.finish()?;
        let (seen, moved) = ids.into_noted();
        done.ids = self.write_ids(&seen, &moved)?;
        Ok(done)
    }

    /// Looks up one end of the edges of a group and passes them to the next stage.
    pub(super) fn ends(&self) -> Result<TaskReport, Error> {
        let config = self.config();
        let mut load = self.load(&config)?;
        self.read_ids(&mut load)?;
        let reads = self.stage.reads().ok_or(Error::Internal("a stage without rows"))?;
        let runs = self.steps.gathered(reads, self.round)?.runs;
        let mut out = RunWriter::new(self)?;
        let mut rows = Rows::default();
        let kind = runs::RowKind::Edges;
        let taken = runs::each_block(
            self.steps.objects,
            &runs,
            kind,
            |g| self.wants(g),
            |block| rows.add(block, |file, rows| self.ends_of(&mut load, &mut out, file, rows)),
        );
        let taken =
            taken.and_then(|()| rows.rest(|file, rows| self.ends_of(&mut load, &mut out, file, rows)));
        to_the_end(taken)?;
        let mut done = TaskReport::of(&mut load);
        let Load { writer, ids, .. } = load;
        done.segments = writer.finish()?;
        done.runs = out.finish()?;
        self.note_edges(&mut done, ids)?;
        Ok(done)
    }

    fn ends_of(
        &self,
        load: &mut Load<'_>,
        out: &mut RunWriter<'_>,
        file: usize,
        rows: Vec<LoadRow>,
    ) -> Result<(), Stop> {
        let end = if self.stage == Stage::Sources { End::From } else { End::To };
        let id_of = |ends: &(Str, Str)| if end == End::From { ends.0.clone() } else { ends.1.clone() };
        let ids: Vec<Str> = rows.iter().filter_map(|row| row.ends.as_ref().map(id_of)).collect();
        let found = load.find_vertices(ids.iter())?;
        load.note_ends(&found);
        let hasher = self.steps.target.hasher();
        let mut made = Vec::new();
        for (mut row, id) in rows.into_iter().zip(ids) {
            let Mutation::CreateEdge { edge, properties, id: edge_id } = &mut row.mutation else { continue };
            if end == End::From {
                load.count_edge(file, properties.len());
            }
            let Some(gui) = load.end(&id, &found) else {
                let rejected = load.missing(file, row.line, end, &id);
                load.reject(file, rejected)?;
                continue;
            };
            if end == End::From {
                edge.source = gui;
                let Some((_, to)) = &row.ends else { continue };
                out.push(runs::RowKind::Edges, hasher.gui(to), &row)?;
                continue;
            }
            edge.target = gui;
            match edge_id {
                Some(id) => {
                    let home = hasher.edge_id(id);
                    // From here on both ends are GUIs.
                    row.ends = Some(Default::default());
                    out.push(runs::RowKind::Edges, home, &row)?;
                }
                None => made.extend(resolved(row, hasher)),
            }
        }
        if made.is_empty() { Ok(()) } else { load.resolved_edges(file, made) }
    }

    /// Creates the edges of a group of ids. Rows of one id are applied in the order of files and lines.
    pub(super) fn edges(&self) -> Result<TaskReport, Error> {
        let config = self.config();
        let mut load = self.load(&config)?;
        let runs = self.steps.gathered(Stage::Targets, self.round)?.runs;
        let hasher = self.steps.target.hasher();
        let hash_of = |row: &LoadRow| match &row.mutation {
            Mutation::CreateEdge { id: Some(id), .. } => hasher.edge_id(id).0,
            _ => 0,
        };
        let objects = self.steps.objects;
        let kind = runs::RowKind::Edges;
        // Whether an id has more than one row.
        let mut repeated: FxHashMap<u64, bool> = FxHashMap::default();
        let counted = runs::each_block(
            objects,
            &runs,
            kind,
            |g| self.wants(g),
            |block| {
                for row in &block {
                    repeated.entry(hash_of(row)).and_modify(|more| *more = true).or_insert(false);
                }
                Ok(())
            },
        );
        to_the_end(counted)?;
        repeated.retain(|_, more| *more);
        let mut later = Vec::new();
        let mut rows = Rows::default();
        let resolve = |rows: Vec<LoadRow>| rows.into_iter().filter_map(|row| resolved(row, hasher)).collect();
        let taken = runs::each_block(
            objects,
            &runs,
            kind,
            |g| self.wants(g),
            |block| {
                let (some, once) = block.into_iter().partition(|row| repeated.contains_key(&hash_of(row)));
                later.extend::<Vec<LoadRow>>(some);
                rows.add(once, |file, rows| load.resolved_edges(file, resolve(rows)))
            },
        );
        later.sort_by_key(|row| (row.file, row.line));
        let taken = taken.and_then(|()| {
            rows.rest(|file, rows| load.resolved_edges(file, resolve(rows)))?;
            rows.add(later, |file, rows| load.resolved_edges(file, resolve(rows)))?;
            rows.rest(|file, rows| load.resolved_edges(file, resolve(rows)))?;
            load.apply_waiting_edges()
        });
        to_the_end(taken)?;
        let mut done = TaskReport::of(&mut load);
        let Load { writer, ids, .. } = load;
        done.segments = writer.finish()?;
        self.note_edges(&mut done, ids)?;
        Ok(done)
    }

    /// Writes the lists of the vertices that this task has, one object for each group.
    fn write_ids(&self, seen: &[(u64, u64)], moved: &[(Str, Gui)]) -> Result<Vec<Ids>, Error> {
        let groups = self.groups()?;
        let mut notes: FxHashMap<u16, proto::LoadedVertices> = FxHashMap::default();
        for (gui, check) in seen {
            let note = notes.entry(groups.of(Gui(*gui)).0).or_default();
            note.guis.push(*gui);
            note.checks.push(*check);
        }
        for (id, gui) in moved {
            let moved = proto::MovedVertex { id: id.to_string(), gui: gui.0 };
            notes.entry(groups.of(*gui).0).or_default().moved.push(moved);
        }
        let mut written = Vec::new();
        for (group, note) in notes {
            let Work { steps, writer, .. } = self;
            let object = format!("{FOLDER}/{}/ids/{group:05}-{writer}.ids", steps.plan.load_id);
            let mut bytes = Vec::new();
            frame::write_frame(&mut bytes, &note.encode_to_vec())
                .map_err(|source| Error::Segment { object: object.clone(), source })?;
            steps.objects.put(&object, bytes)?;
            written.push(Ids { group, object, edges_met: 0 });
        }
        written.sort_by_key(|ids| ids.group);
        Ok(written)
    }

    /// Writes the list of what the edges of this task have met.
    fn note_edges(&self, done: &mut TaskReport, ids: crate::run::ids::Ids) -> Result<(), Error> {
        let Work { steps, writer, .. } = self;
        done.has_edges_met = true;
        let [ends, edge_ids] = ids.into_edges_met();
        let edges_met = (ends.len() + edge_ids.len()) as u64;
        if edges_met == 0 {
            return Ok(());
        }
        let note = proto::LoadedVertices { ends, edge_ids, ..Default::default() };
        let object = format!("{FOLDER}/{}/ids/edges-{writer}.ids", steps.plan.load_id);
        let mut bytes = Vec::new();
        frame::write_frame(&mut bytes, &note.encode_to_vec())
            .map_err(|source| Error::Segment { object: object.clone(), source })?;
        steps.objects.put(&object, bytes)?;
        done.ids.push(Ids { group: 0, object, edges_met });
        Ok(())
    }

    /// Adds the listed vertices of this task's group to a load.
    fn read_ids(&self, load: &mut Load<'_>) -> Result<(), Error> {
        let noted = match self.steps.gathered(Stage::Vertices, self.round) {
            Ok(gathered) => gathered.ids,
            // No file has vertices.
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for ids in noted.iter().filter(|ids| self.wants(ids.group)) {
            let note = self.steps.listed(&ids.object)?;
            let moved = note.moved.into_iter().map(|moved| (moved.id.into(), Gui(moved.gui)));
            load.ids.note(note.guis.into_iter().zip(note.checks), moved);
        }
        Ok(())
    }
}

impl super::Steps<'_> {
    /// Reads a list of vertices.
    pub(super) fn listed(&self, object: &str) -> Result<proto::LoadedVertices, Error> {
        let bytes = self.objects.get(object)?;
        let damaged = |source| Error::Segment { object: object.to_owned(), source };
        let mut frames = frame::FrameReader::new(&bytes[..]);
        let payload = frames.next_frame().map_err(damaged)?.unwrap_or_default();
        let note = proto::LoadedVertices::decode(payload).map_err(|error| damaged(error.into()))?;
        if note.guis.len() != note.checks.len() {
            let (expected, found) = (note.guis.len() as u64, note.checks.len() as u64);
            return Err(damaged(tidegraph_wire::Error::CountMismatch {
                what: "vertices of a load",
                expected,
                found,
            }));
        }
        Ok(note)
    }
}

/// Collects rows of one file until there are [`BATCH_ROWS`].
#[derive(Default)]
struct Rows {
    file: u32,
    waiting: Vec<LoadRow>,
}

impl Rows {
    fn add(
        &mut self,
        rows: Vec<LoadRow>,
        mut take: impl FnMut(usize, Vec<LoadRow>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        for row in rows {
            if row.file != self.file || self.waiting.len() >= BATCH_ROWS {
                self.rest(&mut take)?;
                self.file = row.file;
            }
            self.waiting.push(row);
        }
        Ok(())
    }

    fn rest(&mut self, mut take: impl FnMut(usize, Vec<LoadRow>) -> Result<(), Stop>) -> Result<(), Stop> {
        let rows = std::mem::take(&mut self.waiting);
        if rows.is_empty() { Ok(()) } else { take(self.file as usize, rows) }
    }
}

/// Returns the row of a vertex; its names are numbers of tokens.
fn vertex(row: LoadRow) -> Option<VertexRow> {
    let Mutation::CreateVertex { id, labels, properties, .. } = row.mutation else { return None };
    let properties = properties.into_iter().map(|write| Property {
        name: Name(write.key.0),
        cardinality: write.cardinality,
        value: write.value,
    });
    let labels = labels.into_iter().map(|token| Name(token.0)).collect();
    Some(VertexRow { line: row.line, id, labels, properties: properties.collect() })
}

/// Returns the row of an edge whose ends were looked up.
fn resolved(row: LoadRow, hasher: GuiHasher) -> Option<Resolved> {
    let Mutation::CreateEdge { edge, id, properties } = row.mutation else { return None };
    Some(Resolved {
        line: row.line,
        id: id.map(|text| EdgeName::new(text, hasher)),
        source: edge.source,
        target: edge.target,
        label: edge.label,
        properties,
    })
}
