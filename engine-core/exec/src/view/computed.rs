//! Properties that an algorithm has computed for vertices ([`Op::Analyze`](tidegraph_plan::Op::Analyze)).
//!
//! They belong to one request and are never committed: the reads of [`View`] answer them in place of what storage and pending
//! writes have under the same key. A key that the graph does not have gets a token that storage never gives.
//!
//! What must never happen: such a token reaches storage, or a write.

use super::{View, overlay, wants};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use tidegraph_apl::{Projection, PropertyCell, PropertyPredicate, VertexRead, VertexRows, VertexScan};
use tidegraph_types::{Cardinality, Gui, Str, Token, Value};

/// The computed properties of a request, with the newest values of each key.
#[derive(Default)]
pub(super) struct Computed(Vec<Property>);

struct Property {
    key: Str,
    token: Token,
    values: FxHashMap<Gui, Value>,
}

impl Computed {
    fn has(&self, token: Token) -> bool {
        self.0.iter().any(|property| property.token == token)
    }

    /// Whether a read needs a computed value.
    pub fn concerns(&self, projection: &Projection) -> bool {
        self.0.iter().any(|property| wants(projection, property.token))
    }

    /// Returns what is left of a read for storage and pending writes.
    pub fn rest(&self, read: &VertexRead) -> VertexRead {
        let mut rest = read.clone();
        if let Projection::Keys(keys) = &mut rest.properties {
            keys.retain(|key| !self.has(*key));
        }
        rest
    }

    /// Makes the answer to a read of the answer to its [rest](Self::rest).
    pub fn add(&self, read: &VertexRead, frontier: &[Gui], base: &VertexRows, out: &mut VertexRows) {
        for (row, gui) in frontier.iter().enumerate() {
            out.present.push(base.present[row]);
            if read.ids {
                out.ids.push(base.ids[row].clone());
            }
            if read.labels {
                out.labels.extend_from_slice(base.labels_of(row));
                out.label_ends.push(out.labels.len() as u32);
            }
            if base.present[row] {
                overlay::base_cells(base, row, |key| !self.has(key), out);
                for property in self.0.iter().filter(|property| wants(&read.properties, property.token)) {
                    out.cells.extend(property.values.get(gui).map(|value| PropertyCell {
                        key: property.token,
                        cardinality: Cardinality::Single,
                        value: value.clone(),
                    }));
                }
            }
            out.cell_ends.push(out.cells.len() as u32);
        }
    }

    /// Takes apart what a scan tests: what storage and pending writes have, and what was computed.
    pub fn split<'s>(&self, scan: &'s VertexScan) -> (Cow<'s, VertexScan>, Vec<PropertyPredicate>) {
        if !scan.predicates.iter().any(|predicate| self.has(predicate.key)) {
            return (Cow::Borrowed(scan), vec![]);
        }
        let (own, predicates) =
            scan.predicates.iter().cloned().partition(|predicate| self.has(predicate.key));
        (Cow::Owned(VertexScan { predicates, ..scan.clone() }), own)
    }

    /// Whether the computed values of a vertex pass all of these tests.
    pub fn passes(&self, gui: Gui, tests: &[PropertyPredicate]) -> bool {
        tests.iter().all(|test| {
            let property = self.0.iter().find(|property| property.token == test.key);
            test.passes(property.and_then(|property| property.values.get(&gui)).into_iter())
        })
    }
}

impl View<'_> {
    /// Gives vertices a computed property, in place of what they had under this key. The caller has charged the values.
    pub(crate) fn compute(&self, key: &Str, values: FxHashMap<Gui, Value>) {
        let mut computed = self.computed.borrow_mut();
        self.computations.set(self.computations.get() + 1);
        if let Some(known) = computed.0.iter_mut().find(|property| property.key == *key) {
            known.values = values;
            return;
        }
        let next = u32::try_from(computed.0.len()).unwrap_or(u32::MAX);
        let token = self.catalog.token(key).unwrap_or(Token(u32::MAX - next));
        computed.0.push(Property { key: key.clone(), token, values });
    }

    /// Whether the request has computed properties.
    pub(crate) fn has_computed(&self) -> bool {
        self.computations.get() > 0
    }

    /// Returns the token of a name for a read: that of a computed property, or else that of the graph's dictionary.
    #[must_use]
    pub fn token(&self, name: &str) -> Option<Token> {
        if self.has_computed()
            && let Some(property) = self.computed.borrow().0.iter().find(|property| property.key == *name)
        {
            return Some(property.token);
        }
        self.catalog.token(name)
    }

    /// Returns the name of a token in an answer.
    #[must_use]
    pub fn name(&self, token: Token) -> Str {
        if self.has_computed()
            && let Some(property) = self.computed.borrow().0.iter().find(|property| property.token == token)
        {
            return property.key.clone();
        }
        self.catalog.name(token)
    }
}
