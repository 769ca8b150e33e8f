//! Rows that would give two vertices one value where a constraint says that it is unique.
//!
//! A row is checked against the graph and against the rows before it, before anything of it is written. What the load
//! itself gave under a constraint is kept: about 100 bytes for each such value.
//!
//! A value that the load takes away again (a replaced one, say) stays taken until the load has ended.

use super::{Load, Stop};
use crate::error::Error;
use crate::reject::{Code, Rejected};
use crate::rows::{DEFAULT_LABEL, VertexRow};
use rustc_hash::FxHashMap;
use tidegraph_types::order::equals;
use tidegraph_types::{Gui, Str, Token, Value};

/// What the load gave under constraints.
#[derive(Default)]
pub(super) struct Unique {
    /// Label and key of each.
    constraints: Vec<(Token, Token)>,
    taken: FxHashMap<(usize, Value), Gui>,
    /// Of each vertex that the load gave such a label or key: constraints whose label it has, and values of their keys.
    given: FxHashMap<Gui, Given>,
}

#[derive(Default, Clone)]
struct Given {
    labels: Vec<usize>,
    values: Vec<(usize, Value)>,
}

/// What a row that may be written takes.
#[derive(Default)]
pub(super) struct Claim {
    takes: Vec<(usize, Value)>,
    given: Given,
}

impl Unique {
    pub fn new(constraints: Vec<(Token, Token)>) -> Self {
        Self { constraints, ..Self::default() }
    }

    /// Enters what a row takes for its vertex.
    pub fn enter(&mut self, gui: Gui, claim: Claim) {
        for take in claim.takes {
            self.taken.insert(take, gui);
        }
        if !(claim.given.labels.is_empty() && claim.given.values.is_empty()) {
            // Once each, though many rows may say the same.
            let given = self.given.entry(gui).or_default();
            let labels = claim.given.labels.into_iter().filter(|label| !given.labels.contains(label));
            given.labels.extend(labels.collect::<Vec<_>>());
            let values = claim.given.values.into_iter().filter(|value| !given.values.contains(value));
            given.values.extend(values.collect::<Vec<_>>());
        }
    }
}

impl Load<'_> {
    /// What a row takes, or why it is refused. `gui`: the vertex, if the graph or this load has it already.
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
        let token = |name| self.tokens.token(file, name);
        let mut labels: Vec<Token> = row.labels.iter().map(|name| token(*name)).collect();
        let values: Vec<(Token, Value)> =
            row.properties.iter().map(|p| (token(p.name), p.value.clone())).collect();
        if gui.is_none() && labels.is_empty() && !self.opencypher(file) {
            labels = self.intern(&[Str::new_static(DEFAULT_LABEL)])?;
        }
        for index in 0..self.unique.constraints.len() {
            let (label, key) = self.unique.constraints[index];
            let new_label = labels.contains(&label);
            // What equals nothing is unique.
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
                    let key = self.name_of(key);
                    let shown = super::vertices::show(&value);
                    let reason = format!(
                        "vertex {:?} would have the value {shown} for {key:?}, which is unique for label {:?} and taken by {other}",
                        row.id,
                        self.name_of(label),
                    );
                    let rejected = self.refuse(file, row.line, Code::NotUnique, reason);
                    return Ok(Err(rejected.at(&key, shown.as_bytes())));
                }
                claim.takes.push((index, value));
            }
        }
        Ok(Ok(claim))
    }

    /// Whether a vertex has the label of a constraint so far, and its values of the key.
    fn had(&self, gui: Option<Gui>, index: usize) -> Result<(bool, Vec<Value>), Error> {
        let Some(gui) = gui else { return Ok((false, Vec::new())) };
        let (label, key) = self.unique.constraints[index];
        let (mut labelled, mut values) = (false, Vec::new());
        if let Some(given) = self.unique.given.get(&gui) {
            labelled = given.labels.contains(&index);
            values.extend(given.values.iter().filter(|(i, _)| *i == index).map(|(_, v)| v.clone()));
        }
        if !self.graph_is_empty {
            labelled |= self.target.vertex_labels(&[gui])?.iter().flatten().any(|l| *l == label);
            values.extend(self.target.vertex_values(&[(gui, key)])?.into_iter().flatten());
        }
        Ok((labelled, values))
    }

    /// Who else has a value, for a message.
    fn other_holder(
        &self,
        gui: Option<Gui>,
        index: usize,
        value: &Value,
    ) -> Result<Option<&'static str>, Error> {
        // The key of the map is equivalence, which is equality for what is no NaN.
        if let Some(other) = self.unique.taken.get(&(index, value.clone()))
            && Some(*other) != gui
        {
            return Ok(Some("another row of the load"));
        }
        if self.graph_is_empty {
            return Ok(None);
        }
        let (label, key) = self.unique.constraints[index];
        let holders = self.target.holders(label, key, value)?;
        Ok(holders.into_iter().any(|other| Some(other) != gui).then_some("a vertex of the graph"))
    }

    fn name_of(&self, token: Token) -> String {
        let found = self.interned.iter().find(|(_, t)| **t == token);
        found.map(|(name, _)| name.to_string()).unwrap_or_default()
    }
}
