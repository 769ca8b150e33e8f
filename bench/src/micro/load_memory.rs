//! `micro load-memory`: loads a skewed graph (Kronecker, 16 edges for each vertex) in the order of segments, and prints
//! the memory of its parts in bytes for each edge: right after the load, and once no older version is kept.
//!
//! One thread writes.

use crate::kronecker;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::memory::resident_bytes;
use tidegraph_platform::{Clock, ManualClock, RealClock};
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{Edge, Gui, Mutation, Sid, Str, Token, Version};

/// Number of mutations in a block of a segment.
const BLOCK: usize = 8192;

struct Shown {
    edges: usize,
    before: u64,
    most: u64,
}

impl Shown {
    fn note(&mut self) {
        self.most = self.most.max(resident_bytes().unwrap_or(0));
    }

    fn show(&mut self, store: &Store, when: &str) {
        self.note();
        let memory = store.memory();
        let each = |bytes: usize| bytes as f64 / self.edges as f64;
        println!("--- {when}, bytes an edge");
        println!("blocks of adjacency  {:8.2}", each(memory.adjacency - memory.adjacency_free));
        println!("free among them      {:8.2}", each(memory.adjacency_free));
        println!("nodes and rows       {:8.2}", each(memory.vertices));
        println!("indexes              {:8.2}", each(memory.indexes));
        println!("older versions       {:8.2}", each(memory.versions));
        println!("the rest             {:8.2}", each(memory.properties + memory.ids + memory.labels));
        println!("all of it            {:8.2}", each(memory.total()));
        let resident = resident_bytes().unwrap_or(0);
        println!("resident             {:8.2}", each(resident.saturating_sub(self.before) as usize));
        println!("resident at most     {:8.2}", each(self.most.saturating_sub(self.before) as usize));
    }
}

/// Prints the memory of a graph of 2^`scale` vertices.
pub fn run(scale: u32) {
    let clock = Arc::new(ManualClock::default());
    let store = Store::new(StoreConfig::new(clock.clone()));
    let hasher = store.config().hasher;
    let pairs = kronecker::pairs(42, scale);
    let vertices = 1_usize << scale;
    let guis: Vec<Gui> = (0..vertices).map(|number| hasher.gui(&format!("v{number}"))).collect();
    let partition = |gui: Gui| usize::from(store.config().partitions.of(gui).0);
    let mut shown = Shown { edges: pairs.len(), before: resident_bytes().unwrap_or(0), most: 0 };
    let timer = RealClock::new();
    let begin = timer.now();
    let mut load = store.begin_load(Version(1));
    let mut block = Vec::with_capacity(BLOCK);
    for (number, gui) in guis.iter().enumerate() {
        let id = Str::from(format!("v{number}"));
        block.push(Mutation::CreateVertex { gui: *gui, id, labels: vec![Token(1)], properties: vec![] });
        if block.len() == BLOCK || number + 1 == vertices {
            load.apply(&block);
            block.clear();
        }
    }
    for number in 0..store.config().partitions.get() {
        for (index, (source, target)) in pairs.iter().enumerate() {
            let (source, target) = (guis[*source as usize], guis[*target as usize]);
            if partition(source) == usize::from(number) {
                let edge = Edge { sid: Sid(index as u64 + 1), source, target, label: Token(2) };
                block.push(Mutation::CreateEdge { edge, id: None, properties: vec![] });
            }
            if block.len() == BLOCK {
                load.apply(&block);
                block.clear();
                shown.note();
            }
        }
    }
    load.apply(&block);
    load.finish();
    store.publish(Version(1));
    let seconds = (timer.now() - begin).as_secs_f64();
    println!("{} million edges a second", pairs.len() as f64 / seconds / 1e6);
    shown.show(&store, "right after the load");
    clock.advance(Duration::from_secs(600));
    while store.reclaim(1 << 16) > 0 {
        shown.note();
    }
    shown.show(&store, "when no older version is kept");
}
