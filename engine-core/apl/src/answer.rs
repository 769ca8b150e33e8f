//! Answers: columns that the caller owns, clears and reuses.

use crate::{Projection, VertexRead};
use std::ops::Range;
use tidegraph_types::{Cardinality, Edge, Gui, Sid, Str, Token, Value};

/// One value of one property key.
#[derive(Clone, PartialEq, Debug)]
pub struct PropertyCell {
    /// Property key.
    pub key: Token,
    /// Cardinality under which the value was written (edges: single).
    pub cardinality: Cardinality,
    /// The value.
    pub value: Value,
}

/// A meta-property: a property of one property value.
#[derive(Clone, PartialEq, Debug)]
pub struct CellMeta {
    /// Number of the cell, counted over all cells of the answer.
    pub cell: u32,
    /// Its key.
    pub key: Token,
    /// Its value.
    pub value: Value,
}

/// Vertices: one row for each GUI of the request.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VertexRows {
    /// Whether the vertex exists at the version. Absent rows have an empty id and no labels or cells.
    pub present: Vec<bool>,
    /// Users' ids; empty unless requested.
    pub ids: Vec<Str>,
    /// End of each row's labels in `labels`; empty unless requested.
    pub label_ends: Vec<u32>,
    /// Labels of all rows, one row after the other.
    pub labels: Vec<Token>,
    /// End of each row's cells in `cells`; empty unless requested.
    pub cell_ends: Vec<u32>,
    /// Property values of all rows; values of one key stand together, in order of writing.
    pub cells: Vec<PropertyCell>,
    /// Meta-properties of the cells, in order of cells, those of one cell in order of first writing; empty unless
    /// requested.
    pub meta: Vec<CellMeta>,
}

/// Vertices of ids, with what the request asked about them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LookedUp {
    /// One answer for each id; `None`: no vertex has the id.
    pub found: Vec<Option<Gui>>,
    /// If requested, one place for each id that no vertex has, in order of the ids.
    pub places: Vec<(Gui, u64)>,
    /// If requested, one row for each vertex that was found, in order of the ids.
    pub rows: VertexRows,
}

/// Edges: one row for each edge of the request.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EdgeRows {
    /// Whether the edge exists at the version.
    pub present: Vec<bool>,
    /// Users' or generated ids; empty unless requested.
    pub ids: Vec<Str>,
    /// End of each row's cells in `cells`; empty unless requested.
    pub cell_ends: Vec<u32>,
    /// Property values of all rows.
    pub cells: Vec<PropertyCell>,
}

/// Returns the items of a row, given the end of each row.
fn slice<'a, T>(ends: &[u32], items: &'a [T], row: usize) -> &'a [T] {
    let Some(&end) = ends.get(row) else { return &[] };
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &items[start as usize..end as usize]
}

impl VertexRows {
    /// Empties all columns and keeps their memory.
    pub fn clear(&mut self) {
        self.present.clear();
        self.ids.clear();
        self.label_ends.clear();
        self.labels.clear();
        self.cell_ends.clear();
        self.cells.clear();
        self.meta.clear();
    }

    /// Returns the labels of a row.
    #[must_use]
    pub fn labels_of(&self, row: usize) -> &[Token] {
        slice(&self.label_ends, &self.labels, row)
    }

    /// Returns the property values of a row.
    #[must_use]
    pub fn cells_of(&self, row: usize) -> &[PropertyCell] {
        slice(&self.cell_ends, &self.cells, row)
    }

    /// Returns the number of a row's first cell, counted over all cells.
    #[must_use]
    pub fn first_cell_of(&self, row: usize) -> usize {
        row.checked_sub(1).and_then(|before| self.cell_ends.get(before)).map_or(0, |end| *end as usize)
    }

    /// Returns the meta-properties of some cells, whose numbers count over all cells.
    #[must_use]
    pub fn meta_of(&self, cells: Range<usize>) -> &[CellMeta] {
        let from = self.meta.partition_point(|meta| (meta.cell as usize) < cells.start);
        let count = self.meta[from..].partition_point(|meta| (meta.cell as usize) < cells.end);
        &self.meta[from..from + count]
    }

    /// Appends a row of another answer, reduced to what `read` asks for. That answer must contain all of it.
    pub fn append(&mut self, read: &VertexRead, from: &Self, row: usize) {
        self.present.push(from.present[row]);
        if read.ids {
            self.ids.push(from.ids[row].clone());
        }
        if read.labels {
            self.labels.extend_from_slice(from.labels_of(row));
            self.label_ends.push(self.labels.len() as u32);
        }
        let wanted = |key: Token| match &read.properties {
            Projection::None => false,
            Projection::All => true,
            Projection::Keys(keys) => keys.contains(&key),
        };
        if read.properties == Projection::None {
            return;
        }
        for (number, cell) in (from.first_cell_of(row)..).zip(from.cells_of(row)) {
            if !wanted(cell.key) {
                continue;
            }
            if read.meta {
                let cell = self.cells.len() as u32;
                let meta = from.meta_of(number..number + 1).iter();
                self.meta.extend(meta.map(|meta| CellMeta { cell, ..meta.clone() }));
            }
            self.cells.push(cell.clone());
        }
        self.cell_ends.push(self.cells.len() as u32);
    }

    /// Returns the value of a key in a row: null if the key has none, a list if it has several.
    #[must_use]
    pub fn value_of(&self, row: usize, key: Token) -> Value {
        value_of(self.cells_of(row), key)
    }
}

/// Returns the value of a key among an element's cells: null if the key has none, a list if it has several.
#[must_use]
pub fn value_of(cells: &[PropertyCell], key: Token) -> Value {
    let mut values = cells.iter().filter(|cell| cell.key == key).map(|cell| &cell.value);
    match (values.next(), values.next()) {
        (None, _) => Value::Null,
        (Some(one), None) => one.clone(),
        (Some(first), Some(second)) => {
            let mut all = vec![first.clone(), second.clone()];
            all.extend(values.cloned());
            Value::list(all)
        }
    }
}

impl EdgeRows {
    /// Empties all columns and keeps their memory.
    pub fn clear(&mut self) {
        self.present.clear();
        self.ids.clear();
        self.cell_ends.clear();
        self.cells.clear();
    }

    /// Returns the property values of a row.
    #[must_use]
    pub fn cells_of(&self, row: usize) -> &[PropertyCell] {
        slice(&self.cell_ends, &self.cells, row)
    }
}

/// Edges of a frontier: aligned columns; rows of one frontier vertex are together and in order of the frontier. The
/// last three columns may be empty if the request needed neighbours only.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Expansion {
    /// Row of the frontier that the edge belongs to.
    pub row: Vec<u32>,
    /// The vertex at the other end.
    pub neighbour: Vec<Gui>,
    /// SID of the edge.
    pub sid: Vec<Sid>,
    /// Label of the edge.
    pub label: Vec<Token>,
    /// Whether the frontier vertex is the edge's source.
    pub outgoing: Vec<bool>,
}

/// Keeps the marked rows of a column. An empty column stays empty.
fn retain<T>(column: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    column.retain(|_| keep.next().is_some_and(|keep| *keep));
}

/// One row of an [`Expansion`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpansionRow {
    /// Row of the frontier that the edge belongs to.
    pub row: u32,
    /// The vertex at the other end.
    pub neighbour: Gui,
    /// SID of the edge.
    pub sid: Sid,
    /// Label of the edge.
    pub label: Token,
    /// Whether the frontier vertex is the edge's source.
    pub outgoing: bool,
}

impl Expansion {
    /// Returns a row by its number.
    #[must_use]
    pub fn at(&self, index: usize) -> ExpansionRow {
        ExpansionRow {
            row: self.row[index],
            neighbour: self.neighbour[index],
            sid: self.sid[index],
            label: self.label[index],
            outgoing: self.outgoing[index],
        }
    }

    /// Appends a row.
    pub fn append(&mut self, row: ExpansionRow) {
        self.push(row.row, row.neighbour, row.sid, row.label, row.outgoing);
    }

    /// Empties all columns and keeps their memory.
    pub fn clear(&mut self) {
        self.row.clear();
        self.neighbour.clear();
        self.sid.clear();
        self.label.clear();
        self.outgoing.clear();
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.row.len()
    }

    /// Returns whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// Appends one row.
    pub fn push(&mut self, row: u32, neighbour: Gui, sid: Sid, label: Token, outgoing: bool) {
        self.row.push(row);
        self.neighbour.push(neighbour);
        self.sid.push(sid);
        self.label.push(label);
        self.outgoing.push(outgoing);
    }

    /// Keeps the rows whose frontier row and neighbour pass.
    pub fn retain(&mut self, mut passes: impl FnMut(u32, Gui) -> bool) {
        let keep: Vec<bool> =
            self.row.iter().zip(&self.neighbour).map(|(row, gui)| passes(*row, *gui)).collect();
        retain(&mut self.row, &keep);
        retain(&mut self.neighbour, &keep);
        retain(&mut self.sid, &keep);
        retain(&mut self.label, &keep);
        retain(&mut self.outgoing, &keep);
    }

    /// Returns the edge of a row, given the frontier of the request. Panics if the answer contains neighbours only.
    #[must_use]
    pub fn edge(&self, index: usize, frontier: &[Gui]) -> Edge {
        let from = frontier[self.row[index] as usize];
        let to = self.neighbour[index];
        let (source, target) = if self.outgoing[index] { (from, to) } else { (to, from) };
        Edge { sid: self.sid[index], source, target, label: self.label[index] }
    }
}

/// Where edges with some ids may be: zero or more places for each id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EdgeCandidates {
    /// End of each id's candidates.
    pub ends: Vec<u32>,
    /// Source of each candidate.
    pub source: Vec<Gui>,
    /// SID of each candidate.
    pub sid: Vec<Sid>,
}

impl EdgeCandidates {
    /// Returns the candidates of an id, given the number of the id.
    pub fn of_row(&self, row: usize) -> impl Iterator<Item = (Gui, Sid)> {
        let sources = slice(&self.ends, &self.source, row);
        sources.iter().copied().zip(slice(&self.ends, &self.sid, row).iter().copied())
    }

    /// Ends the row of an id: its candidates are those that were appended since the previous row.
    ///
    /// # Panics
    ///
    /// With more than 4 billion candidates.
    pub fn end_row(&mut self) {
        let Ok(end) = u32::try_from(self.source.len()) else {
            panic!("an answer of {} candidates", self.source.len());
        };
        self.ends.push(end);
    }
}

/// Consecutive edges of an answer that share source and label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgeRun {
    /// Their source.
    pub source: Gui,
    /// Their label.
    pub label: Token,
    /// One more than the last row of the run. The first row is where the previous run ends.
    pub end: u32,
}

/// Edges of a scan, as they are stored: columns of what differs, and runs of what is
/// equal. An edge takes 16 bytes if runs are long.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EdgeRuns {
    /// Runs of rows, none of them empty. Two consecutive runs may have the same source and label.
    pub runs: Vec<EdgeRun>,
    /// Target of each edge.
    pub target: Vec<Gui>,
    /// SID of each edge.
    pub sid: Vec<Sid>,
}

impl EdgeRuns {
    /// Empties all columns and keeps their memory.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.target.clear();
        self.sid.clear();
    }

    /// Returns the number of edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.target.len()
    }

    /// Returns whether there is no edge.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.target.is_empty()
    }

    /// Appends one edge.
    pub fn push(&mut self, edge: Edge) {
        self.target.push(edge.target);
        self.sid.push(edge.sid);
        self.end_run(edge.source, edge.label);
    }

    /// Ends a run with the rows that were appended to the columns since the last run, or adds the rows to that run.
    ///
    /// # Panics
    ///
    /// With more than 4 billion rows: the caller must stop at `max_rows`.
    pub fn end_run(&mut self, source: Gui, label: Token) {
        let Ok(end) = u32::try_from(self.target.len()) else {
            panic!("an answer of {} edges", self.target.len());
        };
        match self.runs.last_mut() {
            Some(last) if last.source == source && last.label == label => last.end = end,
            last => {
                if last.map_or(0, |last| last.end) < end {
                    self.runs.push(EdgeRun { source, label, end });
                }
            }
        }
    }

    /// Appends the edges one by one to a list.
    pub fn append_to(&self, out: &mut Vec<Edge>) {
        out.reserve(self.len());
        let mut start = 0;
        for run in &self.runs {
            let rows = start..run.end as usize;
            start = rows.end;
            let ends = self.target[rows.clone()].iter().zip(&self.sid[rows]);
            out.extend(ends.map(|(&target, &sid)| Edge {
                sid,
                source: run.source,
                target,
                label: run.label,
            }));
        }
    }
}

/// Counts for the planner.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Statistics {
    /// Number of vertices in the graph.
    pub vertices: u64,
    /// Number of edges in the graph.
    pub edges: u64,
    /// Number of vertices by label.
    pub vertices_by_label: Vec<(Token, u64)>,
    /// Number of edges by label.
    pub edges_by_label: Vec<(Token, u64)>,
    /// Property keys for which storage keeps more counts, by label.
    pub keys: Vec<KeyStatistics>,
    /// Characteristic sets: labels and keys that vertices have together.
    pub sets: Vec<SetStatistics>,
    /// Characteristic sets of the edges with properties, without labels.
    pub edge_sets: Vec<SetStatistics>,
    /// Approximate number of different values of each property key of the vertices.
    pub distinct: Vec<(Token, u64)>,
    /// Degrees, estimated from a sample of the vertices.
    pub degrees: Vec<DegreeStatistics>,
}

/// A characteristic set: elements that have exactly these labels and at least these keys.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SetStatistics {
    /// Their labels.
    pub labels: Vec<Token>,
    /// Approximate number of these elements.
    pub elements: u64,
    /// Their keys.
    pub keys: Vec<SetKey>,
}

/// A property key of a characteristic set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SetKey {
    /// The key.
    pub key: Token,
    /// Least and greatest value, if the values are numbers or points in time (seconds since 1970).
    pub bounds: Option<(f64, f64)>,
}

/// Degrees of the vertices of one label, counting edges of one label and one direction, in a sample of the vertices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DegreeStatistics {
    /// Label of the vertices; `None`: all vertices.
    pub vertex_label: Option<Token>,
    /// Label of the edges.
    pub edge_label: Token,
    /// Whether outgoing edges are counted; otherwise incoming edges are.
    pub outgoing: bool,
    /// Number of vertices of the sample with the vertex label.
    pub vertices: u64,
    /// Number of their edges.
    pub edges: u64,
    /// Number of these vertices with a degree of 1, 2 to 3, 4 to 7 and so on. Buckets past the end are zero.
    pub histogram: Vec<u64>,
}

/// Counts of one property key of the vertices of one label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyStatistics {
    /// Label of the vertices.
    pub label: Token,
    /// Property key.
    pub key: Token,
    /// Number of values, counting each once for each vertex that has it.
    pub values: u64,
    /// Approximate number of different values.
    pub distinct: u64,
}
