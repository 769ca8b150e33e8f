//! `micro apply-rate`: applies loads of different content and prints elements and property values per second of
//! processor time of the one applying thread, with the rate of copying memory from the same run.
//!
//! Linux only: processor time comes from `/proc/thread-self/schedstat`. Other work on the machine changes it little.

use std::sync::Arc;
use std::time::Duration;
use tidegraph_platform::RealClock;
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{Cardinality, Edge, Gui, Mutation, PropertyWrite, Sid, Str, Token, Value, Version};

/// Number of mutations in a block of a segment.
const BLOCK: usize = 8192;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 32) * n as u64) >> 32) as usize
    }
}

/// Returns the processor time of this thread in seconds.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this is Linux");
    let nanos: u64 = text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number stands first");
    nanos as f64 / 1e9
}

fn time(work: impl FnOnce()) -> f64 {
    let before = processor_seconds();
    work();
    processor_seconds() - before
}

/// Returns the GB/s of copying 256 MiB.
fn copy_rate() -> f64 {
    let from: Vec<u64> = (0..1 << 25).collect();
    let mut to = vec![0_u64; from.len()];
    let seconds = time(|| {
        for _ in 0..4 {
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&mut to);
        }
    });
    (from.len() * 8 * 4) as f64 / seconds / 1e9
}

/// Prints the rates; `vertices` is the size of the largest graph.
pub fn run(vertices: usize) {
    println!("copying                      {:8.2} GB/s", copy_rate());
    let mut random = Random(42);
    for (degree, share) in [(1.0, 1), (3.5, 1), (28.0, 4)] {
        let edges = (vertices as f64 * degree) as usize / share;
        measure(&mut random, vertices / share, edges, false);
    }
    measure(&mut random, vertices, vertices, true);
}

fn vertex(hasher: tidegraph_types::GuiHasher, number: usize, rich: bool, random: &mut Random) -> Mutation {
    let id = Str::from(format!("v{number}"));
    let write = |key, value| PropertyWrite { key: Token(key), cardinality: Cardinality::Single, value };
    let mut properties = vec![write(9, Value::Int(random.below(100) as i32))];
    if rich {
        properties.push(write(10, Value::Long(random.below(1 << 20) as i64)));
        properties.push(write(11, Value::string(format!("name {}", random.below(1000)))));
        properties.push(write(12, Value::string(format!("{}@mail.example.org", random.below(1 << 20)))));
        // Half of the vertices lack this property.
        if random.below(2) == 0 {
            properties.push(write(13, Value::Double(random.below(1000) as f64)));
        }
    }
    let label = if rich { 1 + random.below(4) as u32 } else { 1 };
    Mutation::CreateVertex { gui: hasher.gui(&id), id, labels: vec![Token(label)], properties }
}

/// Applies a load. If `rich`, vertices have several properties, and edges have ids and properties.
fn measure(random: &mut Random, vertices: usize, edges: usize, rich: bool) {
    let config = StoreConfig::new(Arc::new(RealClock::new()));
    let store = Store::new(StoreConfig { window: Duration::ZERO, ..config });
    let hasher = store.config().hasher;
    let guis: Vec<Gui> = (0..vertices).map(|number| hasher.gui(&format!("v{number}"))).collect();
    let mut load = store.begin_load(Version(1));
    let mut rounds = |count: usize, mut make: Box<dyn FnMut(usize) -> (Mutation, usize) + '_>| {
        let (mut seconds, mut values, mut block) = (0.0, 0, Vec::new());
        for number in 0..count {
            let (mutation, more) = make(number);
            block.push(mutation);
            values += more;
            if block.len() == BLOCK || number + 1 == count {
                seconds += time(|| load.apply(&block));
                block.clear();
            }
        }
        (seconds, values)
    };
    let (for_vertices, values) = rounds(
        vertices,
        Box::new(|number| {
            let vertex = vertex(hasher, number, rich, random);
            let values = match &vertex {
                Mutation::CreateVertex { properties, .. } => properties.len(),
                _ => 0,
            };
            (vertex, values)
        }),
    );
    let (mut for_edges, edge_values) = rounds(
        edges,
        Box::new(|number| {
            // In the order of segments: the edges of one source follow each other.
            let source = number * vertices / edges;
            let (target, sid) = (guis[random.below(vertices)], Sid(number as u64 + 1));
            let edge = Edge { sid, source: guis[source], target, label: Token(2) };
            let id = rich.then(|| Str::from(format!("e{number}")));
            let properties = if rich { vec![(Token(20), Value::Double(0.5))] } else { vec![] };
            let values = properties.len();
            (Mutation::CreateEdge { edge, id, properties }, values)
        }),
    );
    for_edges += time(|| _ = load.finish());
    store.publish(Version(1));
    let settling = time(|| {
        store.publish(Version(2));
        while store.reclaim(1 << 20) > 0 {}
    });
    println!("\n{vertices} vertices, {edges} edges{}", if rich { " with ids and properties" } else { "" });
    let rate = |count: usize, seconds: f64| count as f64 / seconds / 1e6;
    println!("vertices                     {:8.2} M/s", rate(vertices, for_vertices));
    println!("edges                        {:8.2} M/s", rate(edges, for_edges));
    println!("elements                     {:8.2} M/s", rate(vertices + edges, for_vertices + for_edges));
    println!("property values              {:8.2} M/s", rate(values + edge_values, for_vertices + for_edges));
    println!("settling                     {:8.2} M elements/s", rate(vertices + edges, settling));
    let bytes = store.memory().total() as f64 / (vertices + edges) as f64;
    println!("memory                       {bytes:8.1} bytes/element");
}
