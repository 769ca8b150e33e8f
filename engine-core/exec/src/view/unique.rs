//! Unique constraints, checked when a transaction is about to commit.
//!
//! Every value that the transaction gives to a constrained label and key is looked up at the read version, and among the
//! transaction's own. That a value is free is a read key of the commit, and that it is taken a write key, so that of two
//! transactions that give the same one, one is refused and looks again.

use super::View;
use super::pending::{Pending, PendingVertex};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use tidegraph_apl::{Projection, PropertyPredicate, ScanCursor, Test, VertexRead, VertexRows, VertexScan};
use tidegraph_types::order::equals;
use tidegraph_types::{Gui, Key, Str, Token, Value};

/// Candidates that are asked for at once.
const AT_ONCE: u32 = 64;

/// What the commit rests on and what it writes, for its constraints.
#[derive(Default)]
pub(super) struct UniqueKeys {
    pub read: Vec<Key>,
    pub written: Vec<Key>,
}

/// A value that a vertex gets where it must be unique.
struct Given {
    gui: Gui,
    label: Token,
    key: Token,
    value: Value,
}

impl View<'_> {
    /// Checks all constraints against the final state of the transaction.
    pub(super) fn check_unique(&self, pending: &Pending) -> Result<UniqueKeys> {
        let mut keys = UniqueKeys::default();
        if !pending.vertices.values().any(|v| v.visible() && (v.created.is_some() || v.changed)) {
            return Ok(keys);
        }
        // A constraint that was made since is one that was not checked.
        keys.read.push(Key::constraints());
        let constraints = self.apl.unique_keys(self.at)?;
        if constraints.is_empty() {
            return Ok(keys);
        }
        let given = self.given(pending, &constraints)?;
        let mut own: FxHashMap<(Token, Token, &Value), Gui> = FxHashMap::default();
        for one in &given {
            let Given { gui, label, key, value } = one;
            if let Some(other) = own.insert((*label, *key, value), *gui)
                && other != *gui
            {
                return Err(self.not_unique(one, other));
            }
            if let Some(other) = self.holder(pending, one)? {
                return Err(self.not_unique(one, other));
            }
            let unique = Key::unique(*label, *key, value);
            keys.read.push(unique);
            keys.written.extend([unique, Key::any_unique(*label, *key)]);
        }
        Ok(keys)
    }

    fn given(&self, pending: &Pending, constraints: &[(Token, Token)]) -> Result<Vec<Given>> {
        let mut given = Vec::new();
        // Values that storage has and that now stand under a new label.
        let mut stored: Vec<(Gui, Token, Token)> = Vec::new();
        for (gui, vertex) in &pending.vertices {
            if !vertex.visible() || !(vertex.created.is_some() || vertex.changed) {
                continue;
            }
            for &(label, key) in constraints.iter().filter(|(label, _)| vertex.labels.contains(label)) {
                let new = vertex.created.is_some() || !vertex.base_labels.contains(&label);
                match vertex.cells_of(key) {
                    Some(cells) => given.extend(cells.iter().map(|cell| Given {
                        gui: *gui,
                        label,
                        key,
                        value: cell.cell.value.clone(),
                    })),
                    None if new && vertex.in_base && vertex.created.is_none() => {
                        stored.push((*gui, label, key));
                    }
                    None => {}
                }
            }
        }
        if !stored.is_empty() {
            let guis: Vec<Gui> = stored.iter().map(|(gui, ..)| *gui).collect();
            let keys = stored.iter().map(|(.., key)| *key).collect();
            let read = VertexRead { properties: Projection::Keys(keys), ..VertexRead::default() };
            let mut rows = VertexRows::default();
            self.apl.vertices(self.at, &read, &guis, &mut rows)?;
            for (row, &(gui, label, key)) in stored.iter().enumerate() {
                let cells = rows.cells_of(row).iter().filter(|cell| cell.key == key);
                given.extend(cells.map(|cell| Given { gui, label, key, value: cell.value.clone() }));
            }
        }
        // What equals nothing, not even itself, is unique.
        given.retain(|one| equals(&one.value, &one.value) == Some(true));
        // Errors are to be the same each time.
        given.sort_unstable_by_key(|one| (one.gui, one.label, one.key));
        Ok(given)
    }

    /// Another vertex of storage that has the value and keeps it.
    fn holder(&self, pending: &Pending, one: &Given) -> Result<Option<Gui>> {
        let test = Test::Equals(one.value.clone());
        let keeps = |vertex: &PendingVertex| {
            vertex.visible()
                && vertex.labels.contains(&one.label)
                && match vertex.cells_of(one.key) {
                    Some(cells) => cells.iter().any(|cell| test.passes(&cell.cell.value)),
                    None => vertex.created.is_none(),
                }
        };
        let scan = VertexScan {
            labels: vec![vec![one.label]],
            predicates: vec![PropertyPredicate::any(one.key, test.clone())],
            max_rows: AT_ONCE,
        };
        let (mut cursor, mut found) = (ScanCursor::default(), Vec::new());
        loop {
            found.clear();
            let next = self.apl.scan_vertices(self.at, &scan, cursor, &mut found)?;
            let holder =
                found.iter().find(|gui| **gui != one.gui && pending.vertices.get(gui).is_none_or(keeps));
            match (holder, next) {
                (Some(gui), _) => return Ok(Some(*gui)),
                (None, Some(next)) => cursor = next,
                (None, None) => return Ok(None),
            }
        }
    }

    fn not_unique(&self, one: &Given, other: Gui) -> Error {
        let name = |token| self.catalog.name(token);
        let read = VertexRead { ids: true, ..VertexRead::default() };
        let mut rows = VertexRows::default();
        let ids = match self.vertices_unrecorded(&read, &[other, one.gui], &mut rows) {
            Ok(()) => [0, 1].map(|row| rows.ids.get(row).cloned().unwrap_or_default()),
            // The error that is being made matters more.
            Err(_) => [Str::default(), Str::default()],
        };
        let value = one.value.for_message();
        Error::NotUnique { label: name(one.label), key: name(one.key), value, ids }
    }
}
