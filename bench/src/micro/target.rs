//! The empty graph that loads of a measurement go to.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use tidegraph_load::Error;
use tidegraph_load::run::{Found, LoadTarget};
use tidegraph_types::{Edge, Gui, GuiHasher, PartitionCount, Str, Token, Value};

/// A graph that has no elements and keeps only names.
pub struct EmptyGraph {
    partitions: PartitionCount,
    tokens: RefCell<HashMap<Str, Token>>,
    next_sid: RefCell<u64>,
}

impl EmptyGraph {
    /// An empty graph of some partitions; `partitions` is a power of two.
    pub fn new(partitions: u16) -> Self {
        let partitions = PartitionCount::new(partitions).unwrap_or(PartitionCount::ONE);
        Self { partitions, tokens: RefCell::default(), next_sid: RefCell::default() }
    }
}

impl LoadTarget for EmptyGraph {
    fn graph(&self) -> &str {
        "empty"
    }
    fn partitions(&self) -> PartitionCount {
        self.partitions
    }
    fn hasher(&self) -> GuiHasher {
        GuiHasher::default()
    }
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(true)
    }
    fn intern(&self, names: &[Str]) -> Result<Vec<Token>, Error> {
        let mut tokens = self.tokens.borrow_mut();
        let mut token = |name: &Str| {
            let next = Token(tokens.len() as u32);
            *tokens.entry(name.clone()).or_insert(next)
        };
        Ok(names.iter().map(&mut token).collect())
    }
    fn allocate_sids(&self, count: u64) -> Result<Range<u64>, Error> {
        let first = self.next_sid.replace_with(|n| *n + count);
        Ok(first..first + count)
    }
    fn vertices(&self, ids: &[Str]) -> Result<Vec<Found>, Error> {
        Ok(vec![Found::Absent; ids.len()])
    }
    fn occupied(&self, guis: &[Gui]) -> Result<Vec<bool>, Error> {
        Ok(vec![false; guis.len()])
    }
    fn vertex_values(&self, wanted: &[(Gui, Token)]) -> Result<Vec<Vec<Value>>, Error> {
        Ok(vec![Vec::new(); wanted.len()])
    }
    fn edges(&self, ids: &[Str]) -> Result<Vec<Option<Edge>>, Error> {
        Ok(vec![None; ids.len()])
    }
    fn edge_values(&self, wanted: &[(Edge, Token)]) -> Result<Vec<Option<Value>>, Error> {
        Ok(vec![None; wanted.len()])
    }
}
