//! `micro commit-rate`: commits transactions to a log in memory and prints their latencies.

use tidegraph_log::{LogStore, MemoryLog, Record};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_txn::{Applier, Recovered, Sequencer, SequencerConfig};
use tidegraph_types::{CommitRequest, Gui, Key, Mutation};

struct Nothing;

impl Applier for Nothing {
    fn apply(&mut self, _record: &Record) {}
}

/// Prints latencies of several rounds.
pub fn run() {
    let clock = RealClock::new();
    for round in 0..5 {
        let log: Box<dyn LogStore> = Box::new(MemoryLog::default());
        let sequencer =
            Sequencer::start(SequencerConfig::default(), log, Recovered::default(), Box::new(Nothing));
        let mut nanos: Vec<u128> = (0..200_000_u64)
            .map(|n| {
                let key = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let request = CommitRequest {
                    read_version: sequencer.version(),
                    read_keys: vec![Key(key), Key(!key)],
                    write_keys: vec![Key(key), Key(!key)],
                    mutations: vec![
                        Mutation::AddException { id: "a".into(), gui: Gui(key) },
                        Mutation::AddException { id: "b".into(), gui: Gui(!key) },
                    ],
                    ..CommitRequest::default()
                };
                let began = clock.now();
                sequencer.commit(request).expect("nobody is in its way");
                (clock.now() - began).as_nanos()
            })
            .collect();
        nanos.sort_unstable();
        let at = |percent: usize| nanos[nanos.len() * percent / 100];
        println!("round {round}: p50 {} ns, p90 {} ns, p99 {} ns", at(50), at(90), at(99));
    }
}
