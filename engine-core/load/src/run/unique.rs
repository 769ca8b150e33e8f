//! Uniqueness constraints: refuses rows that would give two vertices one value.
//!
//! A row is checked against the graph and against the rows before it, before anything of it is written. The values that
//! the load itself wrote under a constraint are kept in memory, about 100 bytes for each.
//!
//! A value that the load replaces stays taken until the load has ended.

use super::{Load, Stop};
use crate::error::Error;
use crate::reject::{Code, Rejected};
use crate::rows::VertexRow;
use rustc_hash::FxHashMap;
use tidegraph_types::order::equals;
use tidegraph_types::{Gui, Token, Value};

/// The values that the load wrote under constraints.
#[derive(Default)]
pub(super) struct Unique {
    /// Label and key of each constraint.
    constraints: Vec<(Token, Token)>,
    taken: FxHashMap<(usize, Value), Gui>,
    /// For each vertex to which the load gave a constrained label or key.
    given: FxHashMap<Gui, Given>,
}

/// The constrained labels and values of one vertex.
#[derive(Default, Clone)]
struct Given {
    /// Indexes of the constraints whose label the vertex has.
    labels: Vec<usize>,
    /// Indexes of constraints, with a value of the vertex for their key.
    values: Vec<(usize, Value)>,
}

/// The values that a row takes if it is written.
#[derive(Default)]
pub(super) struct Claim {
    takes: Vec<(usize, Value)>,
    given: Given,
}

impl Unique {
    pub fn new(constraints: Vec<(Token, Token)>) -> Self {
        Self { constraints, ..Self::default() }
    }

    /// Records the claim of a row that is written.
    pub fn enter(&mut self, gui: Gui, claim: Claim) {
        for take in claim.takes {
            self.taken.insert(take, gui);
        }
        if !(claim.given.labels.is_empty() && claim.given.values.is_empty()) {
            // Many rows may repeat a label or value; each is recorded once.
            let given = self.given.entry(gui).or_default();
            let labels = claim.given.labels.into_iter().filter(|label| !given.labels.contains(label));
            given.labels.extend(labels.collect::<Vec<_>>());
            let values = claim.given.values.into_iter().filter(|value| !given.values.contains(value));
            given.values.extend(values.collect::<Vec<_>>());
        }
    }
}

impl Load<'_> {
    /// Returns the claim of a row, or its refusal. `gui` is the vertex if the graph or this load has it already.
    pub(super) fn claim(
        &mut self,
        file: usize,
        gui: Option<Gui>,
        row: &VertexRow,
    ) -> Result<Result<Claim, Rejected>, Stop> {
        let mut claim = Claim::default();
        if self.unique.constraints.is_empty() {
            return Ok(Ok(claim));
        }
        let token = |name| self.names.token(file, name);
        let mut labels: Vec<Token> = row.labels.iter().map(|name| token(*name)).collect();
        let values: Vec<(Token, Value)> =
            row.properties.iter().map(|p| (token(p.name), p.value.clone())).collect();
        if gui.is_none() && labels.is_empty() {
            labels.extend(self.default_label(file)?);
        }
        for index in 0..self.unique.constraints.len() {
            let (label, key) = self.unique.constraints[index];
            let new_label = labels.contains(&label);
            // A value that does not equal itself (NaN) never violates a constraint.
            let scalar = |value: &Value| equals(value, value) == Some(true);
            let mut takes: Vec<Value> =
                values.iter().filter(|(k, v)| *k == key && scalar(v)).map(|(_, v)| v.clone()).collect();
            if !new_label && takes.is_empty() {
                continue;
            }
            claim.given.labels.extend(new_label.then_some(index));
            claim.given.values.extend(takes.iter().map(|value| (index, value.clone())));
            let (had_label, had) = self.had(gui, index)?;
            if new_label && !had_label {
                takes.extend(had.into_iter().filter(scalar));
            }
            if !new_label && !had_label {
                continue;
            }
            for value in takes {
                if let Some(other) = self.other_holder(gui, index, &value)? {
                    let key = self.names.text(key);
                    let shown = super::vertices::show(&value);
                    let reason = format!(
                        "vertex {:?} would have the value {shown} for {key:?}, which is unique for label {:?} \
                         and taken by {other}",
                        row.id,
                        self.names.text(label),
                    );
                    let rejected = self.refuse(file, row.line, Code::NotUnique, reason);
                    return Ok(Err(rejected.at(&key, shown.as_bytes())));
                }
                claim.takes.push((index, value));
            }
        }
        Ok(Ok(claim))
    }

    /// Returns whether a vertex has the label of a constraint so far, and its values for the key.
    fn had(&self, gui: Option<Gui>, index: usize) -> Result<(bool, Vec<Value>), Error> {
        let Some(gui) = gui else { return Ok((false, Vec::new())) };
        let (label, key) = self.unique.constraints[index];
        let (mut labelled, mut values) = (false, Vec::new());
        if let Some(given) = self.unique.given.get(&gui) {
            labelled = given.labels.contains(&index);
            values.extend(given.values.iter().filter(|(i, _)| *i == index).map(|(_, v)| v.clone()));
        }
        if !self.context.graph_is_empty {
            labelled |= self.context.target.vertex_labels(&[gui])?.iter().flatten().any(|l| *l == label);
            values.extend(self.context.target.vertex_values(&[(gui, key)])?.into_iter().flatten());
        }
        Ok((labelled, values))
    }

    /// Returns what else has a value, for a message; `None` if nothing has.
    fn other_holder(
        &self,
        gui: Option<Gui>,
        index: usize,
        value: &Value,
    ) -> Result<Option<&'static str>, Error> {
        // The map compares by equivalence, which is equality for every value but NaN.
        if let Some(other) = self.unique.taken.get(&(index, value.clone()))
            && Some(*other) != gui
        {
            return Ok(Some("another row of the load"));
        }
        if self.context.graph_is_empty {
            return Ok(None);
        }
        let (label, key) = self.unique.constraints[index];
        let holders = self.context.target.holders(label, key, value)?;
        Ok(holders.into_iter().any(|other| Some(other) != gui).then_some("a vertex of the graph"))
    }
}
