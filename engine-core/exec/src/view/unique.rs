//! Checks unique constraints when a transaction is about to commit (TXN-3), and after each request of a transaction of
//! several, so that the request fails that breaks them.
//!
//! Every value that the transaction gives to a constrained label and key is searched at the read version and among the
//! transaction's own values. The commit reads the key of each such value and writes it too. So of two transactions that
//! give the same value, the sequencer refuses one, which then runs again and finds the other's value.

use super::View;
use super::pending::{Pending, PendingVertex};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use tidegraph_apl::{Projection, PropertyPredicate, ScanCursor, Test, VertexRead, VertexRows, VertexScan};
use tidegraph_types::order::equals;
use tidegraph_types::{Gui, Key, Str, Token, Value};

/// Candidates per request to storage.
const AT_ONCE: u32 = 64;

/// The keys that a commit reads and writes because of constraints.
#[derive(Default)]
pub(super) struct UniqueKeys {
    pub read: Vec<Key>,
    pub written: Vec<Key>,
}

/// What a transaction of several requests has given under constraints.
#[derive(Default)]
pub(super) struct Holders {
    /// Vertices that its running request has created or changed.
    touched: Vec<Gui>,
    /// The vertex that got a value last. It may have lost it since.
    last: FxHashMap<(Token, Token, Value), Gui>,
}

impl Holders {
    /// Notes that a vertex is created or changed. Returns the bytes that this takes.
    pub(super) fn touch(&mut self, gui: Gui) -> usize {
        if self.touched.last() == Some(&gui) {
            return 0;
        }
        self.touched.push(gui);
        size_of::<Gui>()
    }
}

/// A value that a vertex gets under a constraint.
struct Given {
    gui: Gui,
    label: Token,
    key: Token,
    value: Value,
}

impl Given {
    /// Whether a vertex that has had the value, in storage or by a write, has it still.
    fn is_kept_by(&self, vertex: &PendingVertex) -> bool {
        let is_it = |value: &Value| equals(value, &self.value) == Some(true);
        vertex.visible()
            && vertex.labels.contains(&self.label)
            && match vertex.cells_of(self.key) {
                Some(cells) => cells.iter().any(|cell| is_it(&cell.cell.value)),
                None => vertex.created.is_none(),
            }
    }
}

impl View<'_> {
    /// Checks all constraints against the final state of the transaction.
    pub(super) fn check_unique(&self, pending: &Pending) -> Result<UniqueKeys> {
        let mut keys = UniqueKeys::default();
        if !pending.vertices.values().any(|v| v.visible() && (v.created.is_some() || v.changed)) {
            return Ok(keys);
        }
        // A constraint that is created later was not checked: this key conflicts with its creation.
        keys.read.push(Key::constraints());
        let constraints = self.apl.unique_keys(self.at)?;
        if constraints.is_empty() {
            return Ok(keys);
        }
        let given = self.given(pending.vertices.iter(), &constraints)?;
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

    /// Checks all constraints against what the last request of a transaction wrote, and the state after it. The commit
    /// checks them again, for all requests, and records what it reads.
    ///
    /// # Errors
    ///
    /// [`Error::NotUnique`], or storage does not answer.
    pub fn check_request(&self) -> Result<()> {
        let Some(mut holders) = self.pending.borrow_mut().holders.take() else { return Ok(()) };
        let checked = self.check_touched(&mut holders);
        let mut pending = self.pending.borrow_mut();
        pending.holders = Some(holders);
        pending.bytes += checked?;
        Ok(())
    }

    /// Checks the touched vertices, and returns the bytes that their values take among the holders.
    fn check_touched(&self, holders: &mut Holders) -> Result<usize> {
        let mut touched = std::mem::take(&mut holders.touched);
        if touched.is_empty() {
            return Ok(0);
        }
        let constraints = self.apl.unique_keys(self.at)?;
        if constraints.is_empty() {
            return Ok(0);
        }
        touched.sort_unstable();
        touched.dedup();
        let pending = self.pending.borrow();
        let vertices = touched.iter().filter_map(|gui| pending.vertices.get_key_value(gui));
        let mut bytes = 0;
        for one in self.given(vertices, &constraints)? {
            let place = (one.label, one.key, one.value.clone());
            let last = holders.last.get(&place).copied().filter(|gui| *gui != one.gui);
            let last =
                last.filter(|gui| pending.vertices.get(gui).is_some_and(|vertex| one.is_kept_by(vertex)));
            let other = match last {
                None => self.holder(&pending, &one)?,
                other => other,
            };
            if let Some(other) = other {
                return Err(self.not_unique(&one, other));
            }
            bytes += size_of::<((Token, Token, Value), Gui)>() + one.value.heap_bytes();
            holders.last.insert(place, one.gui);
        }
        Ok(bytes)
    }

    /// Returns the values that vertices get under constraints.
    fn given<'v>(
        &self,
        vertices: impl Iterator<Item = (&'v Gui, &'v PendingVertex)>,
        constraints: &[(Token, Token)],
    ) -> Result<Vec<Given>> {
        let mut given = Vec::new();
        // Stored values of vertices that get a constrained label.
        let mut stored: Vec<(Gui, Token, Token)> = Vec::new();
        for (gui, vertex) in vertices {
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
        // A value that does not equal itself (NaN) is always unique.
        given.retain(|one| equals(&one.value, &one.value) == Some(true));
        // The same request must fail with the same error each time.
        given.sort_unstable_by_key(|one| (one.gui, one.label, one.key));
        Ok(given)
    }

    /// Finds another stored vertex that has the value and keeps it.
    fn holder(&self, pending: &Pending, one: &Given) -> Result<Option<Gui>> {
        let scan = VertexScan {
            labels: vec![vec![one.label]],
            predicates: vec![PropertyPredicate::any(one.key, Test::Equals(one.value.clone()))],
            max_rows: AT_ONCE,
        };
        let (mut cursor, mut found) = (ScanCursor::default(), Vec::new());
        loop {
            found.clear();
            let next = self.apl.scan_vertices(self.at, &scan, cursor, &mut found)?;
            let holder = found
                .iter()
                .find(|gui| **gui != one.gui && pending.vertices.get(gui).is_none_or(|v| one.is_kept_by(v)));
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
            // That the value is not unique matters more than this error.
            Err(_) => [Str::default(), Str::default()],
        };
        let value = one.value.for_message();
        Error::NotUnique { label: name(one.label), key: name(one.key), value, ids }
    }
}
