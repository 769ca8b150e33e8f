//! `micro point-rate`: reads one vertex with its properties straight from the store, and prints the processor time of a
//! read as a multiple of a dependent random read on this machine. Both are measured in turn.
//!
//! Linux only: it measures processor time, which other work on the machine changes less than the time of a clock.

use std::hint::black_box;
use std::sync::Arc;
use tidegraph_apl::{Apl, At, Projection, VertexRead, VertexRows};
use tidegraph_platform::RealClock;
use tidegraph_storage::{Store, StoreConfig};
use tidegraph_types::{Cardinality, Epoch, Gui, Mutation, PropertyWrite, Str, Token, Value, Version};

/// Number of reads between two readings of the clock.
const READS: usize = 20_000;
const ROUNDS: usize = 51;

/// Returns the processor time of this thread in nanoseconds.
fn processor_nanos() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the one structure that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn nanos_each(mut work: impl FnMut()) -> f64 {
    let before = processor_nanos();
    for _ in 0..READS {
        work();
    }
    (processor_nanos() - before) / READS as f64
}

fn median(of: &mut [f64]) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn filled(vertices: usize) -> (Store, Vec<Gui>) {
    let store = Store::new(StoreConfig::new(Arc::new(RealClock::new())));
    let guis: Vec<Gui> = (0..vertices).map(|n| store.config().hasher.gui(&format!("v{n}"))).collect();
    let mut load = store.begin_load(Version(1));
    let numbers: Vec<usize> = (0..vertices).collect();
    for some in numbers.chunks(8192) {
        let write = |key, value| PropertyWrite { key: Token(key), cardinality: Cardinality::Single, value };
        let made = some.iter().map(|n| Mutation::CreateVertex {
            gui: guis[*n],
            id: Str::from(format!("v{n}")),
            labels: vec![Token(1)],
            properties: vec![
                write(2, Value::Int(*n as i32)),
                write(3, Value::Long(*n as i64)),
                write(4, Value::Double(*n as f64 / 7.0)),
                write(5, Value::Bool(n % 2 == 0)),
            ],
        });
        load.apply(&made.collect::<Vec<_>>());
    }
    load.finish();
    store.publish(Version(1));
    (store, guis)
}

/// Prints the times over a store of some vertices.
pub fn run(vertices: usize) {
    let (store, guis) = filled(vertices);
    let at = At { version: Version(1), epoch: Epoch(0) };
    let places = 1_u64 << 28;
    // A linear congruential generator of full period: one cycle through all places.
    let step = |at: u64| (at.wrapping_mul(0x2545_f491_4f6c_dd1d) + 0x1234_5677) & (places - 1);
    let next: Vec<u32> = (0..places).map(|at| step(at) as u32).collect();
    let mut place = 0_u32;
    let mut state = 42_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        guis[(((state >> 32) * guis.len() as u64) >> 32) as usize]
    };
    let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: false };
    let nothing = VertexRead { ids: false, labels: false, properties: Projection::None, meta: false };
    let mut rows = VertexRows::default();
    let mut taken = [const { vec![] }; 4];
    for _ in 0..ROUNDS {
        taken[0].push(nanos_each(|| place = next[place as usize]));
        taken[1].push(nanos_each(|| {
            black_box(random());
        }));
        for (read, taken) in [&nothing, &read].into_iter().zip(&mut taken[2..]) {
            taken.push(nanos_each(|| {
                rows.clear();
                store.vertices(at, read, &[random()], &mut rows).expect("this version is kept");
                assert!(rows.present[0]);
            }));
        }
    }
    black_box(place);
    let [dependent, choosing, present, whole] = taken.map(|mut taken| median(&mut taken));
    println!("a dependent random read     {dependent:6.1} ns");
    for (what, nanos) in [("whether a vertex is there", present), ("a vertex with properties", whole)] {
        let nanos = nanos - choosing;
        println!("{what:27} {nanos:6.1} ns = {:.2} dependent reads", nanos / dependent);
    }
}
